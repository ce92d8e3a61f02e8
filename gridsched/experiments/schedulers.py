"""Schedulers as study files write them: a name of the registry with parameters.

The keys are the fields of the scheduler's dataclass, with its defaults and the meanings that its docstring
gives them; nothing is declared here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache, reduce
from itertools import product
from operator import or_
from typing import Annotated, Any, ClassVar, Literal

import pydantic
from pydantic import (
    AfterValidator,
    BaseModel,
    Discriminator,
    GetJsonSchemaHandler,
    Tag,
    create_model,
    model_serializer,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import CoreSchema

from gridsched.errors import GridschedError
from gridsched.experiments.derived import (
    MadeConfig,
    keys,
    object_of,
    summary,
    takes_one,
    with_lists,
    written_of,
)
from gridsched.experiments.validation import BY_NAME, ConfigModel, Label, suggestion
from gridsched.policies.local import POLICIES, LocalPolicy
from gridsched.systems.base import Scheduler
from gridsched.systems.registry import names, scheduler_of

Name = Annotated[Label, pydantic.Field(max_length=80)]

_OWN_KEYS = ("name", "scheduler")
"""Keys that are no parameters."""


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
        kinds = self.made_of.functions
        for key, value in given.items():
            if key in kinds and isinstance(value, str) and ":" in value:
                given[key] = kinds[key].load(value)
        default: Any = names()[self.scheduler]()
        for key, made_of in self.made_of.opened.items():
            own = {field.name: given.pop(field.name) for field in fields(made_of) if field.name in given}
            if own:
                before: Any = getattr(default, key)
                own["name"] = self.name
                given[key] = made_of(**own) if before is None else replace(before, **own)
        made: Scheduler = replace(default, **given, **parameters)
        return made

    @property
    def function_places(self) -> list[str]:
        """Places of the user's functions, path/to/file.py:function."""
        values = (getattr(self, key) for key in self.made_of.functions)
        return [value for value in values if isinstance(value, str) and ":" in value]

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


@cache
def scheduler_models() -> dict[str, type[SchedulerConfig]]:
    """Model of each scheduler of the registry, by its name; names of one class share one."""
    by_class: dict[type[Scheduler], list[str]] = {}
    for name, make in names().items():
        by_class.setdefault(type(make()), []).append(name)
    models: dict[str, type[SchedulerConfig]] = {}
    for made_of, known in by_class.items():
        declared: dict[str, Any] = {key: (kind, default) for key, kind, default in parameters_of(made_of)}
        declared["scheduler"] = (
            Literal[tuple(known)],
            pydantic.Field(..., description="Name of the scheduler."),
        )
        model: Any = create_model(
            f"{made_of.__name__}Keys", __base__=SchedulerConfig, __doc__=summary(made_of), **declared
        )
        model.made_of = made_of
        models |= dict.fromkeys(known, model)
    return models


def parameters_of(made_of: type[Scheduler]) -> Iterator[tuple[str, Any, Any]]:
    """Name, type and default of each parameter; those of opened ones stand among the others."""
    yield from keys(made_of, made_of.not_in_studies | frozenset(made_of.opened))
    for part in made_of.opened.values():
        yield from keys(part, frozenset({"name"}))


def _way_of_writing(value: Any) -> Hashable:
    """Tag of the model that is meant, so that an error speaks of that one."""
    if isinstance(value, BaseModel):
        return f"by {getattr(value, 'scheduler', '')}"
    if not isinstance(value, dict):
        return BY_NAME
    return f"by {value.get('scheduler')}" if value.get("scheduler") in scheduler_models() else "by unknown"


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
    made: Scheduler = replace(named, **parameters)
    return made


def policy_made(written: Written) -> LocalPolicy:
    """Local policy of a study's configuration."""
    made: Any = scheduler_made(written)
    policy: LocalPolicy = made.policy
    return policy


def function_places(schedulers: Iterable[Written]) -> list[str]:
    """Places of the user's functions among the parameters of schedulers."""
    return [place for each in schedulers if not isinstance(each, str) for place in each.function_places]


def _local(written: Any) -> Any:
    """A scheduler that is a local policy."""
    if getattr(scheduler_made(written), "policy", None) is None or scheduler_made(written).system != "local":
        name = written if isinstance(written, str) else written.scheduler
        raise ValueError(f"{name} is no local policy; {suggestion(name, [*POLICIES, 'easy(r)'])}")
    return written


Policies: Any = Annotated[
    tuple[Annotated[AnyScheduler, AfterValidator(_local)], ...], pydantic.Field(min_length=1)
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
    made: list[Any] = []
    labels: dict[str, list[str]] = {}
    for each in written:
        own = _expanded(each)
        made += own
        if isinstance(each, dict):
            labels[str(each.get("name"))] = [str(one.get("name")) for one in own]
    return made, labels


def _expanded(written: Any) -> list[Any]:
    model = scheduler_models().get(_text(written.get("scheduler"))) if isinstance(written, dict) else None
    if model is None or "name" not in written:
        return [written]
    return [
        {**written, **chosen, "name": f"{written['name']}, {labelled(chosen)}"} if chosen else written
        for chosen in combinations(lists_of(written, model))
    ]


def lists_of(written: Mapping[str, Any], model: type[ConfigModel]) -> dict[str, list[Any]]:
    """Lists where keys take a single value, by key; an empty one is a mistake, which is left to the model."""
    several = {key: values_of(value) for key, value in written.items() if takes_one(model, key)}
    return {key: values for key, values in several.items() if values}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


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
