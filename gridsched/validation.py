"""What every configuration model needs: kinds of values, one-line messages.

A mistake is reported as file, key, what was found and what is allowed, on one line.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import unicodedata
from collections.abc import Collection, Iterable
from functools import cache, reduce
from itertools import pairwise
from operator import or_
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    Tag,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema

from gridsched.engine.records import LARGEST
from gridsched.errors import ConfigurationError, meant
from gridsched.io import shown
from gridsched.workloads.columns import LONGEST_TIME

SLUG = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
MONTH = r"^\d{4}-(0[1-9]|1[0-2])$"
PATH = r"^[^{}]+$"
_PATTERNS = {
    SLUG: "use letters, digits, '.', '_' and '-', and begin with a letter or digit",
    MONTH: "write it like 1996-10",
    PATH: "a path has no braces and is not empty",
}
"""What the patterns of this module mean, for messages."""


def _text(value: str) -> str:
    """Text that files and figures can hold."""
    wrong = [
        each for each in value if unicodedata.category(each) in ("Cc", "Cn", "Co") and each not in "\n\t"
    ]
    if wrong:
        raise ValueError(f"the character {wrong[0]!r} is not allowed")
    return value


def one_line(value: str) -> str:
    """Text of one line, as figures show it."""
    if not value.isprintable() or value != value.strip():
        raise ValueError("write printable characters on one line, without blanks at the ends")
    return value


def suggestion(wrong: str, known: Iterable[str]) -> str:
    """What to use instead of an unknown name."""
    names = list(known)
    return f"{meant(wrong, names)} known are {', '.join(names)}".removeprefix(";").strip()


def check_known(where: str, found: str, known: Collection[str]) -> None:
    """Refuse a name that is not known, with a suggestion."""
    if found not in known:
        raise ValueError(f"{where}: found {shown(found)}; {suggestion(found, known)}")


# Numbers are strict: text, and true or false, are no numbers, whatever Python would make of them. Bounds
# keep out what no cluster could hold, so that a digit too many fails here and not after hours.
Whole = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Fraction = Annotated[Number, Field(ge=0, lt=0.5)]
Factor = Annotated[Number, Field(ge=0.001, le=1000)]
Count = Annotated[Whole, Field(ge=1, le=LARGEST)]
Instant = Annotated[Whole, Field(ge=0, le=LONGEST_TIME)]
Duration = Annotated[Whole, Field(ge=0, le=LARGEST)]
Slug = Annotated[str, Field(pattern=SLUG, max_length=60)]
"""Name that is also a file name."""
Month = Annotated[str, Field(pattern=MONTH)]
PathText = Annotated[str, Field(pattern=PATH), AfterValidator(_text)]
Text = Annotated[str, AfterValidator(_text)]
Label = Annotated[str, Field(min_length=1), AfterValidator(one_line)]
"""Text of one line, as figures show it."""


class ConfigModel(BaseModel):
    """Base: unknown keys are errors, values do not change, exactly one of `alternatives` is given."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=False)
    alternatives: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def completed(cls, values: Any) -> Any:
        """Values with everything written out that stands for something else, such as lists of values."""
        return values

    @model_validator(mode="after")
    def _one_alternative(self) -> Self:
        given = [key for key in self.alternatives if getattr(self, key) is not None]
        if self.alternatives and len(given) != 1:
            raise ValueError(
                f"give exactly one of {', '.join(self.alternatives)} (found {', '.join(given) or 'none'})"
            )
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Schema that knows what keys mean, and the alternatives; null stands for a key that is not given."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        meanings = reduce(or_, map(_declared, reversed(cls.__mro__)))
        for key in meanings.keys() & schema["properties"]:
            schema["properties"][key].setdefault("description", meanings[key])
        if cls.alternatives:
            schema["oneOf"] = [
                {"required": [key], "properties": {key: {"not": {"type": "null"}}}}
                for key in cls.alternatives
            ]
        return schema


@cache
def _declared(model: type) -> dict[str, str]:
    """Meaning of each key that a class declares: the text below it, in the source.

    Pydantic would read all sources whenever the models are imported, which takes longer than all else.
    """
    try:
        (declared,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    except (OSError, TypeError):  # made without a source, or built in
        return {}
    assert isinstance(declared, ast.ClassDef)
    return {
        ast.unparse(key.target): inspect.cleandoc(ast.literal_eval(text.value))
        for key, text in pairwise(declared.body)
        if isinstance(key, ast.AnnAssign) and isinstance(text, ast.Expr)
    }


ModelType = TypeVar("ModelType", bound=ConfigModel)


_TAG = "by "
"""Beginning of the tags of ways to write a value; no key has a blank in it."""

BY_NAME = f"{_TAG}name"
"""Tag of a scheduler that is written as a name."""


# --- messages -------------------------------------------------------------------------------------


def validated(model: type[ModelType], values: Any, where: str) -> ModelType:
    """Model of these values.

    Raises
    ------
    ConfigurationError
        If the values are not allowed; a line for each error begins with `where`, usually a file, and
        the key.
    """
    if not isinstance(values, dict):
        found = "nothing in it" if values is None else f"found {shown(values)}"
        raise ConfigurationError(f"{where}: {found}; write key: value lines")
    values = model.completed(values)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        errors = [_explain(found, model, values) for found in _causes(error.errors(include_url=False))]
        more = [f"and {len(errors) - MAX_ERRORS} more"] if len(errors) > MAX_ERRORS else []
        lines = [f"{where}: {line}" for line in (*errors[:MAX_ERRORS], *more)]
        raise ConfigurationError("\n".join(lines)) from None


MAX_ERRORS = 10
"""Errors of one file that are shown."""

_UNKNOWN = "extra_forbidden"


def _causes(errors: list[Any]) -> list[Any]:
    """Errors without those that follow from others, misprinted keys before keys that are missing."""
    # A list without its faulty items may be too short
    around = {error["loc"][:depth] for error in errors for depth in range(len(error["loc"]))}
    causes = [error for error in errors if error["loc"] not in around]
    return sorted(causes, key=lambda error: error["type"] != _UNKNOWN)


_ALLOWED = {
    "string_type": "write text, in quotes if it looks like a number or a date",
    "int_type": "write a whole number",
    "int_from_float": "write a whole number",
    "float_type": "write a number, with a point and a sign if it has an exponent (1.0e+5)",
    "bool_type": "write true or false",
    "tuple_type": "write a list, such as [a, b]",
    "model_type": "write key: value lines",
    "finite_number": "write a finite number",
    "string_unicode": "write text without broken characters",
    "too_short": "write at least {min_length}",
    "too_long": "write at most {max_length}",
}
"""What is allowed, by type of error."""


def _explain(error: Any, model: type[ConfigModel], values: dict[str, Any]) -> str:
    """One validation error as: key: what was found; what is allowed."""
    kind, location = error["type"], error["loc"]
    key = _place(location, values)
    if kind == _UNKNOWN:
        return f"{key}: unknown key; {suggestion(str(location[-1]), _keys_beside(model, location))}"
    if kind == "missing":
        return f"{key}: missing"
    if kind == "value_error":
        allowed = error["msg"].removeprefix("Value error, ")
    elif kind == "string_pattern_mismatch":
        allowed = _PATTERNS[error["ctx"]["pattern"]]
    else:
        usual = error["msg"][:1].lower() + error["msg"][1:]
        allowed = _ALLOWED[kind].format(**error.get("ctx", {})) if kind in _ALLOWED else usual
    found = error["input"]
    whole = isinstance(found, dict) or (kind == "value_error" and isinstance(found, list | tuple))
    # Errors of a whole section name the key in it
    return (f"{key}: " if key else "") + (allowed if whole else f"found {shown(found)}; {allowed}")


def _place(location: tuple[int | str, ...], values: Any) -> str:
    """Location of a key, with the items of lists by their names: workloads[KTH].window.month."""
    place, inside = "", values
    for part in location:
        if isinstance(part, int):
            inside = inside[part] if isinstance(inside, list | tuple) and part < len(inside) else None
            name = inside.get("name") if isinstance(inside, dict) else None
            place += f"[{name}]" if isinstance(name, str) and name.isprintable() else f"[item {part + 1}]"
        elif not part.startswith(_TAG):
            inside = inside.get(part) if isinstance(inside, dict) else None
            shown = part if part.isprintable() else repr(part)
            place += f".{shown}" if place else shown
    return place


def _keys_beside(model: type[ConfigModel], location: tuple[int | str, ...]) -> list[str]:
    """Keys that are known where an unknown one was found."""
    current: Any = model
    inside: list[Any] = []
    for part in location[:-1]:
        if part in current.model_fields:
            annotation = current.model_fields[part].annotation
            inside = [annotation, *nested(annotation)]
        if isinstance(part, str) and part.startswith(_TAG):
            known = [each.__args__[0] for each in inside if Tag(part) in getattr(each, "__metadata__", ())]
        else:
            known = [each for each in inside if isinstance(each, type) and issubclass(each, ConfigModel)]
        current = known[-1] if known else current
    return [field.alias or name for name, field in current.model_fields.items()]


def nested(annotation: Any) -> list[Any]:
    """All types inside a generic annotation."""
    inside = list(getattr(annotation, "__args__", ()))
    return inside + [deeper for part in inside for deeper in nested(part)]


def unique(key: str, names: list[str]) -> None:
    """Refuse names that are there twice."""
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"{key}: {twice[0]!r} is there twice".removeprefix(": "))


def unique_files(key: str, names: list[str]) -> None:
    """Names that stay different as file names where case does not count."""
    unique(key, names)
    folded = [name.casefold() for name in names]
    alike = [name for name in names if folded.count(name.casefold()) > 1]
    if alike:
        text = f"{alike[0]!r} and {alike[1]!r} would be one file where case does not count"
        raise ValueError(f"{key}: {text}".removeprefix(": "))


def _names(members: tuple[Any, ...]) -> list[str]:
    """What members of a list are called: their names, or themselves."""
    return [str(getattr(each, "name", each)) for each in members]


def _different(members: tuple[Any, ...]) -> tuple[Any, ...]:
    unique("", _names(members))
    return members


def _different_files(members: tuple[Any, ...]) -> tuple[Any, ...]:
    unique_files("", _names(members))
    return members


Different = AfterValidator(_different)
"""Of a list whose members, or their names, differ."""
DifferentFiles = AfterValidator(_different_files)
"""Of a list whose members have names that stay different as names of files."""
