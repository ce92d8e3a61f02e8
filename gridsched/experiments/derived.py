"""Configuration models that follow from dataclasses: their fields are the keys, declared there alone.

Defaults come from the fields, meanings from the numpydoc section of the docstring, bounds from the dataclass
itself, which is made of what is written.
"""

from __future__ import annotations

import inspect
import re
from abc import abstractmethod
from collections.abc import Callable as CallableType
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache, partial, reduce
from operator import or_
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import pydantic
from pydantic import (
    AfterValidator,
    BaseModel,
    GetJsonSchemaHandler,
    StrictBool,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema

from gridsched.errors import GridschedError
from gridsched.experiments.validation import ConfigModel, Number, Whole, suggestion


class MadeConfig(ConfigModel):
    """What stands for an object, which is made as soon as it is read, so that mistakes are found then."""

    @abstractmethod
    def made(self) -> Any:
        """What this describes."""

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        try:
            self.made()
        except GridschedError as error:
            raise ValueError(str(error)) from None
        return self


class PartConfig(MadeConfig):
    """Parameters that belong together; the models of single parts are derived from this."""

    made_of: ClassVar[type]

    def made(self) -> Any:
        """What the part describes."""
        return self.made_of(**{key: object_of(getattr(self, key)) for key in self.model_fields_set})

    @model_validator(mode="before")
    @classmethod
    def _single(cls, value: Any) -> Any:
        """A part of one key may be written as the value of that key."""
        if len(cls.model_fields) == 1 and not isinstance(value, dict | BaseModel):
            return dict.fromkeys(cls.model_fields, value)
        return value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Schema of a section, or of the value of its only key."""
        schema = handler.resolve_ref_schema(super().__get_pydantic_json_schema__(core_schema, handler))
        if len(cls.model_fields) == 1:
            # The rest of an object's schema says nothing of a list
            schema["type"] = ["object", "array"]
        return schema


@cache
def part_model(made_of: type) -> type[PartConfig]:
    """Model of a dataclass that parameters are made of."""
    declared: dict[str, Any] = {key: (kind, default) for key, kind, default in keys(made_of, frozenset())}
    model: Any = create_model(
        f"{made_of.__name__}Keys", __base__=PartConfig, __doc__=summary(made_of), **declared
    )
    model.made_of = made_of
    return model


def object_of(value: Any) -> Any:
    """What a value of a derived model stands for."""
    if isinstance(value, PartConfig):
        return value.made()
    if isinstance(value, tuple | list):
        return tuple(object_of(part) for part in value)
    return value


def written_of(value: Any) -> Any:
    """A value of a derived model as a file would write it."""
    if isinstance(value, PartConfig):
        return value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, tuple | list):
        return [written_of(part) for part in value]
    if isinstance(value, dict):
        return {key: written_of(part) for key, part in value.items()}
    return value


# --- keys -----------------------------------------------------------------------------------------


def summary(made_of: type) -> str:
    """First paragraph of a docstring."""
    return (inspect.getdoc(made_of) or "").partition("\n\n")[0]


def keys(made_of: type, left_out: frozenset[str]) -> Iterator[tuple[str, Any, Any]]:
    """Name, type and default of each key; none where a parameter has to be given."""
    hints, meanings = get_type_hints(made_of), _described(made_of)
    for own in fields(made_of):
        if own.name not in left_out:
            default = pydantic.Field(..., description=meanings.get(own.name))
            if own.default is not MISSING or own.default_factory is not MISSING:
                default = pydantic.Field(_plain(_default(own)), description=meanings.get(own.name))
            yield own.name, _annotation(hints[own.name]), default


def _described(made_of: type) -> dict[str, str]:
    """Meaning of each parameter, from the numpydoc sections of the docstrings of a class and its bases."""
    found: list[tuple[str, str]] = []
    for each in reversed(made_of.__mro__):
        section = inspect.cleandoc(each.__doc__ or "")
        section = section.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
        found += re.findall(r"^(\w[\w, ]*) : [^\n]*\n((?:    [^\n]*\n?)+)", section + "\n", flags=re.M)
    return {name.strip(): " ".join(text.split()) for listed, text in found for name in listed.split(",")}


def _default(own: Field[Any]) -> Any:
    if own.default is not MISSING:
        return own.default
    assert own.default_factory is not MISSING
    return own.default_factory()


def _plain(value: Any) -> Any:
    """A default as a file would write it."""
    if is_dataclass(value) and not isinstance(value, type):
        model = part_model(type(value))
        return model(**{own.name: _plain(getattr(value, own.name)) for own in fields(value)})
    return value


def _annotation(hint: Any) -> Any:
    """Type of a key from that of a parameter: dataclasses are sections, functions places in files."""
    plain = {int: Whole, float: Number, bool: StrictBool}
    if isinstance(hint, type) and hint in plain:
        return plain[hint]
    if isinstance(hint, type) and is_dataclass(hint):
        return part_model(hint)
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        if any(get_origin(part) is CallableType for part in inside):
            return Annotated[str, AfterValidator(partial(_word_or_place, _words(inside)))]
        return reduce(or_, [_annotation(part) if part is not NoneType else None for part in inside])
    if origin is tuple:
        parts = tuple(part if part is ... else _annotation(part) for part in inside)
        return tuple.__class_getitem__(parts)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict.__class_getitem__((_annotation(inside[0]), _annotation(inside[1])))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return tuple.__class_getitem__((_annotation(inside[0]), ...))
    return hint


def _words(hints: Sequence[Any]) -> tuple[str, ...]:
    """Words that some types allow."""
    return tuple(word for hint in hints if get_origin(hint) is Literal for word in get_args(hint))


def _word_or_place(words: tuple[str, ...], value: str) -> str:
    """A word that is known, or the place of a user's function."""
    if value not in words and ":" not in value:
        raise ValueError(f"{suggestion(value, words)}, or path/to/file.py:function")
    return value


def takes_one(model: type[ConfigModel], key: str) -> bool:
    """Whether a key takes a single value, not a list of them."""
    field = model.model_fields.get(key)
    if field is None:
        return False
    kinds = [field.annotation, *_inside(field.annotation)]
    if any(isinstance(kind, type) and issubclass(kind, ConfigModel) for kind in kinds):
        return False
    return not any(getattr(get_origin(kind) or kind, "__name__", "") in ("tuple", "list") for kind in kinds)


def _inside(annotation: Any) -> list[Any]:
    inside = list(get_args(annotation))
    return inside + [deeper for part in inside for deeper in _inside(part)]


def with_lists(model: type[ConfigModel], schema: dict[str, Any], left_out: Sequence[str]) -> dict[str, Any]:
    """Schema in which a list may stand for a value, since it makes one of each, but not of some keys."""
    for key, value in schema["properties"].items():
        if key not in left_out and takes_one(model, key):
            meaning = {name: value.pop(name) for name in ("description", "title", "default") if name in value}
            several = [value, {"type": "array", "items": value}]
            if value.get("type") == "integer":
                several.append(_RANGE)
            schema["properties"][key] = {"anyOf": several, **meaning}
    return schema


_RANGE = {
    "type": "object",
    "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}},
    "required": ["from", "to"],
    "additionalProperties": False,
}
"""Schema of a range of whole numbers, which stands for the list of them."""
