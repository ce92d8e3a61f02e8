"""Configuration models that follow from dataclasses: their fields are the keys, declared there alone.

Defaults come from the fields, meanings from the numpydoc section of the docstring, bounds from the dataclass
itself, which is made of what is written.
"""

from __future__ import annotations

import inspect
import re
from abc import abstractmethod
from collections.abc import Callable as CallableType
from collections.abc import Mapping, Sequence, Set
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache, partial, reduce
from operator import or_
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
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
    TypeAdapter,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema

from gridsched.errors import GridschedError
from gridsched.validation import ConfigModel, Number, Whole, nested, suggestion


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


_Made = TypeVar("_Made", bound=MadeConfig)


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


Keys = dict[str, tuple[Any, Any]]
"""Type and default of each key, by its name."""


@cache
def part_model(made_of: type) -> type[PartConfig]:
    """Model of a dataclass that parameters are made of."""
    return model_of(made_of, PartConfig, keys(made_of))


def model_of(made_of: type, base: type[_Made], declared: Keys) -> type[_Made]:
    """Model of a dataclass, with these keys besides those of its base."""
    # The first paragraph of a docstring says what it is
    meaning = (inspect.getdoc(made_of) or "").partition("\n\n")[0]
    given: dict[str, Any] = {**declared, "made_of": (ClassVar[type], made_of)}
    return create_model(f"{made_of.__name__}Keys", __base__=base, __doc__=meaning, **given)


def object_of(value: Any) -> Any:
    """What a value of a derived model stands for."""
    if isinstance(value, PartConfig):
        return value.made()
    return tuple(map(object_of, value)) if isinstance(value, tuple | list) else value


def written_of(value: Any) -> Any:
    """A value of a derived model as a file would write it."""
    return TypeAdapter(Any).dump_python(value, mode="json", exclude_defaults=True)


# --- keys -----------------------------------------------------------------------------------------


def keys(made_of: type, left_out: Set[str] = frozenset()) -> Keys:
    """Type and default of the keys of a dataclass; no default where a parameter has to be given."""
    hints, meanings = get_type_hints(made_of), _described(made_of)
    return {
        own.name: (
            _annotation(hints[own.name]),
            pydantic.Field(_default(own), description=meanings.get(own.name)),
        )
        for own in fields(made_of)
        if own.name not in left_out
    }


def _described(made_of: type) -> dict[str, str]:
    """Meaning of each parameter, from the numpydoc sections of the docstrings of a class and its bases."""
    found: list[tuple[str, str]] = []
    for each in reversed(made_of.__mro__):
        section = inspect.cleandoc(each.__doc__ or "")
        section = section.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
        found += re.findall(r"^(\w[\w, ]*) : [^\n]*\n((?:    [^\n]*\n?)+)", section + "\n", flags=re.M)
    return {name.strip(): " ".join(text.split()) for listed, text in found for name in listed.split(",")}


def _default(own: Field[Any]) -> Any:
    default = own.default if own.default_factory is MISSING else own.default_factory()
    return ... if default is MISSING else _plain(default)


def _plain(value: Any) -> Any:
    """A default as a file would write it."""
    if not is_dataclass(value) or isinstance(value, type):
        return value
    return part_model(type(value))(**{own.name: _plain(getattr(value, own.name)) for own in fields(value)})


_STRICT: dict[Any, Any] = {int: Whole, float: Number, bool: StrictBool}


def _annotation(hint: Any) -> Any:
    """Type of a key from that of a parameter: dataclasses are sections, functions places in files."""
    if isinstance(hint, type) and is_dataclass(hint):
        return part_model(hint)
    origin, inside = get_origin(hint), get_args(hint)
    if any(get_origin(part) is CallableType for part in inside):
        words = [word for part in inside if get_origin(part) is Literal for word in get_args(part)]
        return Annotated[str, AfterValidator(partial(_word_or_place, words))]
    parts = tuple(map(_annotation, inside))
    if origin in (Union, UnionType):
        return reduce(or_, parts)
    if origin is tuple:
        return tuple.__class_getitem__(parts)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict.__class_getitem__(parts)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return tuple.__class_getitem__((*parts, ...))
    return _STRICT.get(hint, hint) if isinstance(hint, type) else hint


def _word_or_place(words: Sequence[str], value: str) -> str:
    """A word that is known, or the place of a user's function."""
    if value not in words and ":" not in value:
        raise ValueError(f"{suggestion(value, words)}, or path/to/file.py:function")
    return value


def takes_one(model: type[ConfigModel], key: str) -> bool:
    """Whether a key takes a single value, not a list of them or a section."""
    if key not in model.model_fields:
        return False
    annotation = model.model_fields[key].annotation
    kinds = [get_origin(kind) or kind for kind in (annotation, *nested(annotation))]
    return not any(isinstance(kind, type) and issubclass(kind, ConfigModel | tuple | list) for kind in kinds)


def with_lists(model: type[ConfigModel], schema: dict[str, Any], left_out: Sequence[str]) -> dict[str, Any]:
    """Schema in which a list may stand for a value, since it makes one of each, but not of some keys."""
    for key, value in schema["properties"].items():
        if key not in left_out and takes_one(model, key):
            meaning = {name: value.pop(name) for name in ("description", "title", "default") if name in value}
            ranges = [_RANGE] if value.get("type") == "integer" else []
            schema["properties"][key] = {
                "anyOf": [value, {"type": "array", "items": value}, *ranges],
                **meaning,
            }
    return schema


_RANGE = {
    "type": "object",
    "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}},
    "required": ["from", "to"],
    "additionalProperties": False,
}
"""Schema of a range of whole numbers, which stands for the list of them."""
