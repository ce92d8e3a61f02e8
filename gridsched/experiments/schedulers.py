"""Schedulers as study files write them: a name of the registry with parameters.

The keys are the fields of the scheduler's dataclass, with its defaults and the meanings that its docstring
gives them; nothing is declared here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache, reduce
from itertools import chain, product
from operator import or_
from typing import Annotated, Any, ClassVar, Literal, cast

import pydantic
from pydantic import (
    AfterValidator,
    BaseModel,
    Discriminator,
    GetJsonSchemaHandler,
    PlainValidator,
    Tag,
    model_serializer,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import CoreSchema

from gridsched.derived import (
    MadeConfig,
    keys,
    model_of,
    object_of,
    takes_one,
    with_lists,
    written_of,
)
from gridsched.errors import ConfigurationError, GridschedError
from gridsched.policies.local import POLICIES, LocalPolicy
from gridsched.systems.base import Scheduler
from gridsched.systems.registry import external, is_in_file, library, load_scheduler, names, scheduler_of
from gridsched.validation import BY_NAME, ConfigModel, Different, Label, suggestion

Name = Annotated[Label, pydantic.Field(max_length=80)]

_OWN_KEYS = ("name", "scheduler")
"""Keys that are no parameters."""

_BY_FILE = "by file"
"""Tag of schedulers that are named by the place of their class."""


class SchedulerConfig(MadeConfig):
    """A scheduler of the registry with parameters; the models of its systems are derived from this."""

    made_of: ClassVar[type[Scheduler]]
    name: Name
    """Label in figures and tables."""
    scheduler: str
    """Name of the scheduler."""

    def made(self, **parameters: Any) -> Scheduler:
        """The scheduler that this describes; other parameters may be given besides."""
        given = {key: object_of(getattr(self, key)) for key in self.model_fields_set.difference(_OWN_KEYS)}
        for key, place in self.function_places.items():
            given[key] = self.made_of.functions[key].load(place)
        default: Any = self.default
        for key, made_of in self.made_of.opened.items():
            own = {field.name: given.pop(field.name) for field in fields(made_of) if field.name in given}
            if own:
                before: Any = getattr(default, key)
                own["name"] = self.name
                given[key] = made_of(**own) if before is None else replace(before, **own)
        return cast(Scheduler, replace(default, **given, **parameters))

    @property
    def default(self) -> Scheduler:
        """The scheduler of this name without further parameters."""
        return names()[self.scheduler]()

    @property
    def files(self) -> set[str]:
        """Python files of the user that it is made of."""
        return {place.rpartition(":")[0] for place in self.function_places.values()}

    @property
    def function_places(self) -> dict[str, str]:
        """Places of the user's functions, path/to/file.py:function, by key."""
        values = {key: getattr(self, key) for key in self.made_of.functions}
        return {key: value for key, value in values.items() if isinstance(value, str) and ":" in value}

    @model_serializer(mode="plain")
    def _as_given(self) -> dict[str, Any]:
        """What was given alone: a name such as `dll` stands for values that are no defaults of its class."""
        given = (key for key in type(self).model_fields if key in self.model_fields_set)
        return {key: written_of(getattr(self, key)) for key in given}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Schema in which a list may stand for a value, since it makes a scheduler of each."""
        schema = handler.resolve_ref_schema(super().__get_pydantic_json_schema__(core_schema, handler))
        return with_lists(cls, schema, _OWN_KEYS)


class FileSchedulerConfig(SchedulerConfig):
    """A scheduler of a user, written as path/to/file.py:Class, with its parameters."""

    def made(self, **parameters: Any) -> Scheduler:
        """The scheduler that this describes; other parameters may be given besides."""
        given = {key: getattr(self, key) for key in self.model_fields_set.difference(_OWN_KEYS)}
        return self.made_of(**given, **parameters)

    @property
    def files(self) -> set[str]:
        """Its file."""
        return {self.scheduler.rpartition(":")[0]}


EXTERNAL = "external"
"""Name of schedulers in other processes and libraries, which need parameters."""


class ExternalSchedulerConfig(SchedulerConfig):
    """A scheduler in another process or in a library."""

    def made(self, **parameters: Any) -> Scheduler:
        """The scheduler that this describes; other parameters may be given besides."""
        given = {key: getattr(self, key) for key in self.model_fields_set.difference(_OWN_KEYS)}
        ways = [key for key in ("command", "library", "edc_library") if key in given]
        if len(ways) != 1:
            raise ConfigurationError(
                f"an external scheduler needs a command, a library or an edc_library, and has "
                f"{' and '.join(ways) or 'none'}: give one of them"
            )
        known = {"library", "parameters"}
        other = sorted(given.keys() - known if "library" in given else given.keys() & known)
        if other:
            raise ConfigurationError(f"{other[0]} does not go with {ways[0]}; leave it out")
        return library(**given) if "library" in given else self.made_of(**given, **parameters)

    @property
    def files(self) -> set[str]:
        """Files of the user that it is made of."""
        made: Any = self.made()
        return set(made.files)


def _model_in_file(place: str) -> type[FileSchedulerConfig]:
    """Model of a scheduler of a user."""
    made_of = load_scheduler(place)
    own = {
        name: kind for name, kind in keys(made_of, made_of.not_in_studies).items() if name not in _OWN_KEYS
    }
    return model_of(made_of, FileSchedulerConfig, own)


def _read_in_file(written: Any) -> Any:
    """Scheduler of a user as a study writes it: a place, or a place with parameters."""
    if isinstance(written, FileSchedulerConfig):
        return written
    given = {"scheduler": written} if isinstance(written, str) else dict(written)
    try:
        model = _model_in_file(given["scheduler"])
    except GridschedError as error:
        raise ValueError(str(error)) from None
    for key in given:
        if key not in model.model_fields:
            raise ValueError(f"{key}: unknown key; {suggestion(key, model.model_fields)}")
    return model.model_validate({"name": given["scheduler"].rpartition(":")[2], **given})


class CustomSchedulerConfig(ConfigModel):
    """A scheduler of a user: a class in a Python file. Further keys are its parameters."""

    model_config = pydantic.ConfigDict(extra="allow")
    name: Name | None = None
    """Label in figures and tables; the name of the class by default."""
    scheduler: Annotated[str, pydantic.Field(pattern=r"\.py:\w+$")]
    """Place of the class: path/to/file.py:Class."""


@cache
def scheduler_models() -> dict[str, type[SchedulerConfig]]:
    """Model of each scheduler of the registry, by its name; names of one class share one."""
    classes = {name: type(make()) for name, make in names().items()}
    models: dict[str, type[SchedulerConfig]] = {}
    for made_of in dict.fromkeys(classes.values()):
        known = tuple(name for name, own in classes.items() if own is made_of)
        declared = keys(made_of, made_of.not_in_studies | set(made_of.opened))
        for part in made_of.opened.values():
            declared |= keys(part, {"name"})
        declared["scheduler"] = (Literal[known], pydantic.Field(..., description="Name of the scheduler."))
        models |= dict.fromkeys(known, model_of(made_of, SchedulerConfig, declared))
    made_of = type(external())
    declared = keys(made_of, made_of.not_in_studies) | keys(type(library(library="")))
    # one of several ways to name it
    declared["library"] = (str, pydantic.Field("", description="Shared library with `gridsched_decide`."))
    declared["scheduler"] = (Literal["external"], pydantic.Field(..., description="Name of the scheduler."))
    return models | {EXTERNAL: model_of(made_of, ExternalSchedulerConfig, declared)}


def _way_of_writing(value: Any) -> Hashable:
    """Tag of the model that is meant, so that an error speaks of that one."""
    name = value.get("scheduler") if isinstance(value, dict) else getattr(value, "scheduler", value)
    if is_in_file(name):
        return _BY_FILE
    if not isinstance(value, dict | BaseModel):
        return BY_NAME
    return f"by {name}" if name in scheduler_models() else "by unknown"


def _known_name(name: str) -> str:
    try:
        scheduler_of(name)
    except GridschedError:
        raise ValueError(f"unknown scheduler; {suggestion(name, [*names(), 'easy(r)'])}") from None
    return name


class _UnknownScheduler(ConfigModel):
    """What names no scheduler of the registry."""

    name: Name
    """Label in figures and tables."""
    scheduler: Annotated[str, AfterValidator(_known_name)]
    """Name of the scheduler."""


AnyScheduler: Any = Annotated[
    reduce(
        or_,
        [Annotated[model, Tag(f"by {name}")] for name, model in scheduler_models().items()],
        Annotated[str, AfterValidator(_known_name), Tag(BY_NAME)]
        | Annotated[
            Any,  # a FileSchedulerConfig, which pydantic would write down twice
            PlainValidator(_read_in_file, json_schema_input_type=CustomSchedulerConfig),
            Tag(_BY_FILE),
        ]
        | Annotated[SkipJsonSchema[_UnknownScheduler], Tag("by unknown")],
    ),
    Discriminator(_way_of_writing),
]
"""A scheduler: a name of the registry, or a name with parameters."""


Written = str | SchedulerConfig
"""A scheduler as a validated study has it."""


def scheduler_made(written: Written, **parameters: Any) -> Scheduler:
    """Scheduler of a study's configuration; other parameters may be given besides."""
    if not isinstance(written, str):
        return written.made(**parameters)
    named: Any = scheduler_of(written)
    return cast(Scheduler, replace(named, **parameters))


def policy_made(written: Written) -> LocalPolicy:
    """Local policy of a study's configuration."""
    made: Any = scheduler_made(written)
    return cast(LocalPolicy, made.policy)


def _local(written: Any) -> Any:
    """A scheduler that is a local policy."""
    if getattr(scheduler_made(written), "policy", None) is None or scheduler_made(written).system != "local":
        name = written if isinstance(written, str) else written.scheduler
        raise ValueError(f"{name} is no local policy; {suggestion(name, [*POLICIES, 'easy(r)'])}")
    return written


Policies: Any = Annotated[
    tuple[Annotated[AnyScheduler, AfterValidator(_local)], ...], pydantic.Field(min_length=1), Different
]
"""Local policies of clusters, as schedulers are written."""

# --- lists of values ------------------------------------------------------------------------------


def expanded(written: Any) -> tuple[Any, dict[str, list[str]]]:
    """Schedulers with a list of values where a parameter takes one: one scheduler for each value.

    A list of values may be written as a range, {from: 1, to: 55}.

    Returns
    -------
    list
        The schedulers; what is no list of schedulers is left as it is.
    dict
        Labels that each written label has become.
    """
    if not isinstance(written, list | tuple):
        return written, {}
    made = [_expanded(each) for each in written]
    labels: dict[str, list[str]] = {}
    for each, own in zip(written, made, strict=True):
        label = str(each.get("name") if isinstance(each, dict) else each)
        labels.setdefault(label, []).extend(
            str(one.get("name") if isinstance(one, dict) else one) for one in own
        )
    return list(chain.from_iterable(made)), labels


def _expanded(written: Any) -> list[Any]:
    named = isinstance(written, dict) and "name" in written and isinstance(written.get("scheduler"), str)
    model = _model_named(written["scheduler"]) if named else None
    if model is None:
        return [written]
    return [
        {**written, **chosen, "name": f"{written['name']}, {labelled(chosen)}"} if chosen else written
        for chosen in combinations(lists_of(written, model))
    ]


def _model_named(scheduler: str) -> type[SchedulerConfig] | None:
    """Model of a scheduler by its name or place; None where there is none, which is reported elsewhere."""
    if not is_in_file(scheduler):
        return scheduler_models().get(scheduler)
    try:
        return _model_in_file(scheduler)
    except GridschedError:
        return None


def lists_of(written: Mapping[str, Any], model: type[ConfigModel]) -> dict[str, list[Any]]:
    """Lists where keys take a single value, by key; an empty one is a mistake, which is left to the model."""
    several = {key: values_of(value) for key, value in written.items() if takes_one(model, key)}
    return {key: values for key, values in several.items() if values}


def values_of(written: Any) -> list[Any] | None:
    """Values that a list or a range stands for; None of a single value."""
    if isinstance(written, dict) and set(written) == {"from", "to"}:
        first, last = written["from"], written["to"]
        if isinstance(first, int) and isinstance(last, int) and first <= last < first + _LONGEST_RANGE:
            return list(range(first, last + 1))
    return list(written) if isinstance(written, list | tuple) else None


_LONGEST_RANGE = 100_000
"""Values that a range may stand for; longer ones are mistakes."""


def combinations(lists: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Each combination of values, the last key changing fastest."""
    for values in product(*lists.values()):
        yield dict(zip(lists, values, strict=True))


def labelled(chosen: Mapping[str, Any], shown: Callable[[Any], str] = str) -> str:
    """Values of a combination as labels show them."""
    return ", ".join(f"{key} {shown(value)}" for key, value in chosen.items())
