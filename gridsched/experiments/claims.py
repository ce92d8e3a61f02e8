"""The claims ledger: what papers state, as data, held against what was measured here.

A claim file (`resources/claims/*.yaml`, described in the README beside them) lists every number and every
comparison of one paper. `load_claims` reads the files, `evaluate` looks each claim up in the datasets of the
studies, `claims_table` makes the table of the report.

Verdicts
--------
reproduced, partly, not
    How far our value agrees, see `evaluate`.
not testable
    Nothing that we could compute decides the claim; `why` says what is lacking.
input
    A number that we took from the paper or calibrated to it, so that agreement proves nothing.
not run
    The study, or a scenario or scheme of it, is not among the given datasets.
"""

from __future__ import annotations

import difflib
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeVar

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from gridsched import inference
from gridsched.errors import ConfigurationError
from gridsched.experiments.collection import ALL
from gridsched.io import read_yaml, resource, shown
from gridsched.measures import measures

Outcome = Literal["reproduced", "partly", "not", "not testable", "input", "not run"]
Form = Literal["ratio", "factor", "difference", "count", "first"]
Bound = Literal["at most", "at least", "below", "above"]
Floats = NDArray[np.float64]
Scalar = str | int | float

COLUMNS = (
    "paper",
    "id",
    "where",
    "claim",
    "paper_value",
    "our_value",
    "low",
    "high",
    "difference",
    "verdict",
    "why",
    "study",
    "variable",
)
"""Columns of `claims_table`."""

_REPLICATE = "replicate"
_LARGEST = sys.float_info.max
_NEUTRAL: dict[Form, float] = {"ratio": 1.0, "factor": 1.0, "difference": 0.0}
"""Value of each form that says: no different from the reference."""


# --- claims ---------------------------------------------------------------------------------------


def _scalar(value: Any) -> Scalar:
    """A label of a dimension, or a value of the paper: a number or a line of text."""
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST:
        return value
    raise ValueError("write text or a finite number")


def _one_or_several(value: Any) -> Scalar | tuple[Scalar, ...]:
    """A label, or a list of labels, all of which are meant."""
    if not isinstance(value, list | tuple):
        return _scalar(value)
    if not value:
        raise ValueError("write at least one label")
    return tuple(_scalar(label) for label in value)


def _printable(value: str) -> str:
    """Text that a table can hold in one cell."""
    if not value.isprintable() or value != value.strip():
        raise ValueError("write printable characters on one line, without blanks at the ends")
    return value


Labels = Annotated[Any, AfterValidator(_one_or_several)]
PaperValue = Annotated[Any, AfterValidator(_scalar)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Slug = Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Text = Annotated[str, AfterValidator(_printable)]
Line = Annotated[Text, Field(min_length=1)]


class _Model(BaseModel):
    """Base: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Model):
    """Where our value comes from."""

    study: Slug
    """Name of the study."""
    variable: Labels
    """Variable of its dataset, or a parameter; in claims of the kinds order and bound a list means that the
    claim must hold for every one."""
    replicates: Slug = _REPLICATE
    """Dimension along which our value varies by chance: the value is the mean over it, and the interval comes
    from it. A ratio of sums by week is one of means."""
    select: dict[str, Labels] = Field(default_factory=dict)
    """Label in each dimension besides that of the replicates, or value of a parameter of scenarios or
    schedulers. A dimension may be left out where one label alone has values, and the group, which is then all
    jobs. In claims of the kinds order and bound a list of
    labels means that the claim must hold for every one."""
    relative_to: dict[str, Labels] | None = None
    """What differs in the reference: labels of dimensions, and `variable` where it is another variable."""
    form: Form | None = None
    """Our value is `ratio` (value / reference), `factor` (reference / value), `difference`; `count`, how many
    of the listed labels have a value below that of the reference; or `first`, the first of the listed numbers
    from which on all have, 0 if none."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in ("study", "variable"):
            if name in self.select:
                raise ValueError(f"select: {name} stands beside select, not in it")
        if (self.relative_to is None) != (self.form is None):
            raise ValueError("relative_to, form: give both or none")
        if self.relative_to is not None:
            if not self.relative_to:
                raise ValueError("relative_to: say what differs in the reference")
            _refuse_lists("relative_to", self.relative_to)
            if "study" in self.relative_to:
                raise ValueError("relative_to: the reference must be of the same study")
        return self

    @property
    def choices(self) -> dict[str, Any]:
        """Labels by dimension, with the variables where there are several."""
        return {**self.select, **({"variable": self.variable} if isinstance(self.variable, tuple) else {})}

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables, one as a rule."""
        return tuple(map(str, _each(self.variable)))


class Tolerance(_Model):
    """How far our value may lie from the paper's: a matter of how precise the paper's statement is."""

    relative: Number | None = Field(None, ge=0)
    """As a share of the paper's value."""
    absolute: Number | None = Field(None, ge=0)
    """In the unit of the value."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.relative is None) == (self.absolute is None):
            raise ValueError("give either relative or absolute")
        return self

    def width(self, value: float) -> float:
        """Tolerance around this value of the paper."""
        return self.absolute if self.absolute is not None else abs(value) * (self.relative or 0.0)


class _Claim(_Model):
    """What claims of all kinds have."""

    id: Slug
    """Name, unique within the paper."""
    paper: Slug
    """Paper that makes the claim."""
    where: Line
    """Section, table or figure."""
    statement: Line
    """What the paper says, in our own words."""
    unit: Line = "1"
    """Unit of the value."""
    why: Text = ""
    """Why it cannot be tested, or why a difference is to be expected."""
    note: Text = ""
    """How the statement was read."""

    @property
    def source(self) -> Source | None:
        """Where our value comes from, if there is one."""
        return getattr(self, "ours", None)

    @property
    def stated(self) -> str:
        """The paper's value as text, with its unit."""
        return _with_unit(getattr(self, "paper_value", None), self.unit)


class ValueClaim(_Claim):
    """A number of the paper."""

    kind: Literal["value"]
    paper_value: Number
    """The number."""
    ours: Source
    """Our value."""
    tolerance: Tolerance
    """How far ours may lie from it."""

    @model_validator(mode="after")
    def _one_value(self) -> Self:
        if self.ours.form not in ("count", "first"):
            _refuse_lists("ours.select", self.ours.choices)
        return self


class OrderClaim(_Claim):
    """A comparison: each member of a chain has a smaller value than the next."""

    kind: Literal["order"]
    ours: Source
    """What all members have in common."""
    chain: Annotated[tuple[dict[str, Labels], ...], Field(min_length=2)]
    """What distinguishes the members, smallest first: labels of dimensions, and `study` or `variable` where
    they differ. A list of labels means that each of them has this place in the chain."""

    @property
    def stated(self) -> str:
        """The chain as text."""
        return " < ".join(_place_text(member) for member in self.chain)


class BoundClaim(_Claim):
    """A number of the paper that our value must not exceed, or must reach."""

    kind: Literal["bound"]
    bound: Bound
    """On which side of the number our value must lie."""
    paper_value: Number
    """The number."""
    ours: Source
    """Our value."""

    @property
    def stated(self) -> str:
        """The bound as text."""
        return f"{self.bound} {super().stated}"


class UntestableClaim(_Claim):
    """A statement that nothing we could compute decides."""

    kind: Literal["untestable"]
    paper_value: PaperValue | None = None
    """The number, if there is one."""
    why: Annotated[Text, Field(min_length=1)]
    """What is lacking."""


class InputClaim(_Claim):
    """A number that we took from the paper or calibrated to it."""

    kind: Literal["input"]
    paper_value: PaperValue
    """The number, or text for several."""
    ours: Source | None = None
    """What the study has there, shown for comparison."""

    @model_validator(mode="after")
    def _one_value(self) -> Self:
        if self.ours is not None:
            _refuse_lists("ours.select", self.ours.choices)
        return self


Claim = ValueClaim | OrderClaim | BoundClaim | UntestableClaim | InputClaim

_KINDS: dict[str, type[Claim]] = {
    "value": ValueClaim,
    "order": OrderClaim,
    "bound": BoundClaim,
    "untestable": UntestableClaim,
    "input": InputClaim,
}


def _refuse_lists(key: str, select: Mapping[str, Any]) -> None:
    """One number comes from one label a dimension."""
    several = [name for name, labels in select.items() if isinstance(labels, tuple)]
    if several:
        raise ValueError(f"{key}: {several[0]!r} has a list of labels; one number needs one (see `each`)")


def _with_unit(value: Scalar | None, unit: str) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else f"{value:.10g}"
    return text if unit == "1" or isinstance(value, str) else f"{text} {unit}"


def _place_text(select: Mapping[str, Any]) -> str:
    """Labels of a member of a chain; several with the same place stand in braces."""
    parts = []
    for labels in select.values():
        several = isinstance(labels, tuple)
        parts.append("{" + ", ".join(map(str, labels)) + "}" if several else str(labels))
    return ", ".join(parts)


# --- files ----------------------------------------------------------------------------------------


class _ClaimFile(_Model):
    """Claims of one paper."""

    paper: Slug
    """Name of the paper, as in the names of its studies."""
    citation: Line
    """The paper."""
    claims: Annotated[tuple[dict[str, Any], ...], Field(min_length=1)]
    """The claims, in the order of the paper."""


def load_claims(paths: Iterable[str | Path] | None = None) -> list[Claim]:
    """Read claim files.

    An entry with `each: dimension` and a mapping of labels to numbers as `paper_value` becomes one claim a
    label.

    Parameters
    ----------
    paths : iterable of path, optional
        YAML files; by default those that come with gridsched, `resources/claims/*.yaml`.

    Returns
    -------
    list of Claim
        In the order of the files and of their entries.

    Raises
    ------
    ConfigurationError
        If a file cannot be read, a claim says something that is not allowed, or two claims of a paper have
        the same id; names file, claim and key.
    """
    files = _shipped() if paths is None else map(Path, paths)
    claims: list[Claim] = []
    seen: set[tuple[str, str]] = set()
    for path in files:
        for claim in _claims_of(path):
            if (claim.paper, claim.id) in seen:
                raise ConfigurationError(
                    f"{path}: claim {claim.id}: id: is there twice for {claim.paper}; choose another"
                )
            seen.add((claim.paper, claim.id))
            claims.append(claim)
    return claims


def citations() -> dict[str, str]:
    """What each paper of the claims that come with gridsched is, by its name."""
    files = [_read(path) for path in _shipped()]
    return {file.paper: file.citation for file in files}


def _shipped() -> list[Path]:
    """Claim files that come with gridsched."""
    return sorted(resource("resources", "claims").glob("*.yaml"))


def _read(path: Path) -> _ClaimFile:
    return _validated(_ClaimFile, read_yaml(path), str(path))


def _claims_of(path: Path) -> Iterator[Claim]:
    file = _read(path)
    for position, entry in enumerate(file.claims, start=1):
        name = entry.get("id")
        where = f"{path}: claim {name if isinstance(name, str) and name.isprintable() else position}"
        if "paper" in entry:
            raise ConfigurationError(f"{where}: paper: stands at the head of the file, not in a claim")
        kind = entry.get("kind")
        if not isinstance(kind, str) or kind not in _KINDS:
            found = f"found {shown(kind)}" if "kind" in entry else "missing"
            raise ConfigurationError(f"{where}: kind: {found}; use one of {', '.join(_KINDS)}")
        for single in _single_entries(entry, where):
            yield _validated(_KINDS[kind], {**single, "paper": file.paper}, where)


def _single_entries(entry: dict[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """The entry itself, or one entry for each label of its `each`."""
    if "each" not in entry:
        yield entry
        return
    common = {key: value for key, value in entry.items() if key != "each"}
    dimension, values = entry["each"], entry.get("paper_value")
    if not isinstance(dimension, str):
        raise ConfigurationError(f"{where}: each: found {shown(dimension)}; write the name of a dimension")
    if not isinstance(values, dict) or not values:
        raise ConfigurationError(
            f"{where}: paper_value: found {shown(values)}; with `each` write label: value for every label"
        )
    for label, value in values.items():
        short = "all" if label == ALL else str(label).removeprefix(_shared(dimension, values))
        slug = re.sub("[^a-z0-9]+", "-", short.lower()).strip("-")
        own = {"id": f"{entry.get('id')}-{slug}", "statement": f"{entry.get('statement')}: {short}"}
        named = {key: text for key, text in own.items() if key in entry}
        yield {**common, **named, "paper_value": value, **_narrowed(entry, dimension, label, where)}


def _shared(dimension: str, labels: Iterable[Any]) -> str:
    """Words with which all groups or variables begin, such as "users of ", which ids leave out."""
    if dimension not in ("group", "variable"):
        return ""
    names = list(map(str, labels))
    ends = [match.end() for match in re.finditer("[ _]", names[0])]
    return max(
        (names[0][:end] for end in ends if all(name.startswith(names[0][:end]) for name in names)),
        key=len,
        default="",
    )


def _narrowed(entry: dict[str, Any], dimension: str, label: Any, where: str) -> dict[str, Any]:
    """The `ours` of an entry for one label of its `each`; nothing where that is not to be had."""
    ours = entry.get("ours")
    if not isinstance(ours, dict):
        return {}
    if dimension == "variable":
        return {"ours": {**ours, "variable": label}}
    select = ours.get("select", {})
    if not isinstance(select, dict) or dimension in select:
        raise ConfigurationError(
            f"{where}: ours.select: found {shown(select)}; write dimension: label lines without "
            f"{dimension}, which is in `each`"
        )
    return {"ours": {**ours, "select": {**select, dimension: label}}}


_Checked = TypeVar("_Checked", bound=_Model)


def _validated(model: type[_Checked], values: Any, where: str) -> _Checked:
    """Model of these values; an error is one line that begins with `where` and names the key."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        # A misprinted key is also a missing one; the misprint says more
        first = min(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
        key = ".".join(map(str, first["loc"]))
        raise ConfigurationError(f"{where}: {key and f'{key}: '}{_problem(first, model)}") from None


def _problem(error: Any, model: type[_Model]) -> str:
    """What is wrong with a value, and what is allowed."""
    if error["type"] == "missing":
        return "missing"
    if error["type"] == "extra_forbidden":
        top = len(error["loc"]) == 1
        return "unknown key" + (f"; {_suggestion(error['loc'][0], model.model_fields)}" if top else "")
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "value_error" and isinstance(error["input"], dict):
        return str(message)
    return f"found {shown(error['input'])}; {message[0].lower()}{message[1:]}"


def _suggestion(wrong: str, known: Iterable[str]) -> str:
    """What to use instead of an unknown name."""
    names = list(known)
    close = difflib.get_close_matches(wrong, names, n=1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(names)}"


# --- evaluation -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClaimVerdict:
    """What became of a claim.

    Parameters
    ----------
    claim : ValueClaim, OrderClaim, BoundClaim, UntestableClaim or InputClaim
    verdict : str
        reproduced, partly, not, not testable, input or not run.
    our_value, low, high : float
        Our value and its 95 % interval in the unit of the claim; NaN if there is none. For an order the
        difference of two neighbours in the chain, negative where they are as stated, and for an order or
        bound with several comparisons the one that supports it least.
    difference : float
        Our value less the paper's; NaN where the paper has no number.
    remark : str
        What the comparison found: what is missing, which of several comparisons is shown, which fail.
    """

    claim: Claim
    verdict: Outcome
    our_value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    difference: float = math.nan
    remark: str = ""

    @property
    def why(self) -> str:
        """Remark of the comparison, explanation and note of the claim."""
        return " ".join(text.strip() for text in (self.remark, self.claim.why, self.claim.note) if text)

    @property
    def studies(self) -> str:
        """Names of the studies that the claim is about."""
        return ", ".join(studies_of(self.claim))


class _AbsentError(Exception):
    """A value that the given datasets do not hold; its text says what is missing."""


class _Estimate(NamedTuple):
    """A value with its interval."""

    mean: float
    low: float
    high: float


class _Term(NamedTuple):
    """One value of one study: a variable, one label in each dimension."""

    study: str
    variable: str
    select: dict[str, Scalar]
    replicates: str


class _Comparison(NamedTuple):
    """One comparison of a claim; `gap` is negative where it holds."""

    label: str
    shown: _Estimate
    gap: _Estimate
    outcome: Outcome


def evaluate(claims: Iterable[Claim], studies: Mapping[str, xr.Dataset]) -> list[ClaimVerdict]:
    """Hold claims against the datasets of studies.

    - value: *reproduced* if our value is within the tolerance of the paper's, or within twice the tolerance
      while our interval holds the paper's value. Else *partly* if both lie on the same side of 1 (ratio,
      factor) or 0 (difference); a value that is not relative to anything, or that the paper has as just 1 or
      0, has no side: it is *partly* within twice the tolerance, or if our interval holds the paper's value.
    - order: a comparison of two neighbours is *reproduced* if the interval of their difference, paired by
      replicate, excludes zero on the stated side; *partly* if only the difference has that sign. Neighbours
      of different studies, and relative values, have no paired difference: their own intervals must not
      overlap, which is stricter. A chain is as good as its weakest comparison.
    - bound: *reproduced* if our interval lies on the stated side, *partly* if our value does.
    - order and bound over several scenarios (or other labels): *reproduced* if so in all, *partly* if
      reproduced or partly in some.
    - Values without replicates, such as what was fitted to a log, count as exact. One replicate alone has no
      interval, so that an order or a bound is at most *partly*.

    Parameters
    ----------
    claims : iterable of Claim
        See `load_claims`.
    studies : mapping of str to xarray.Dataset
        Datasets by name of the study. Values vary along the dimension `replicate`, or the one that a claim
        names instead, if it exists.

    Returns
    -------
    list of ClaimVerdict
        One a claim, in the same order.

    Raises
    ------
    ConfigurationError
        If a claim names a variable or dimension that the dataset of its study does not have, or leaves open
        which label of a dimension it means; names the claim and the key.
    """
    return [_verdict(claim, studies) for claim in claims]


def claims_table(verdicts: Iterable[ClaimVerdict]) -> pd.DataFrame:
    """Verdicts as a table, one row a claim, in the columns `COLUMNS`.

    Parameters
    ----------
    verdicts : iterable of ClaimVerdict
        See `evaluate`.

    Returns
    -------
    pandas.DataFrame
        `paper_value` is text with the unit, in which `our_value`, `low`, `high` and `difference` are given
        as numbers.
    """
    rows = [
        (
            verdict.claim.paper,
            verdict.claim.id,
            verdict.claim.where,
            verdict.claim.statement,
            verdict.claim.stated,
            verdict.our_value,
            verdict.low,
            verdict.high,
            verdict.difference,
            verdict.verdict,
            verdict.why,
            verdict.studies,
            ", ".join(verdict.claim.source.variables) if verdict.claim.source is not None else "",
        )
        for verdict in verdicts
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _verdict(claim: Claim, studies: Mapping[str, xr.Dataset]) -> ClaimVerdict:
    try:
        match claim:
            case ValueClaim():
                return _judge_value(claim, studies)
            case OrderClaim():
                return _judge_comparisons(claim, _order_cases(claim, studies))
            case BoundClaim():
                return _judge_comparisons(claim, _bound_cases(claim, studies))
            case InputClaim():
                return _show_input(claim, studies)
            case UntestableClaim():
                return ClaimVerdict(claim, "not testable")
    except _AbsentError as absent:
        return ClaimVerdict(
            claim, "input" if isinstance(claim, InputClaim) else "not run", remark=f"{absent}."
        )
    except ConfigurationError as error:
        raise ConfigurationError(f"claim {claim.id} of {claim.paper}: {error}") from None


def labels_of(claim: Claim) -> frozenset[str]:
    """All labels, of whatever dimension, that a claim is about: scenarios, cases, schemes..."""
    if claim.source is None:
        return frozenset()
    members = claim.chain if isinstance(claim, OrderClaim) else ()
    return frozenset(
        str(label)
        for select in (claim.source.select, *members)
        for labels in select.values()
        for label in _each(labels)
    )


def studies_of(claim: Claim) -> list[str]:
    """Names of the studies of a claim, each once."""
    if claim.source is None:
        return []
    names = [claim.source.study]
    if isinstance(claim, OrderClaim):
        own = claim.source.study
        names = [str(name) for member in claim.chain for name in _each(member.get("study", own))]
    return list(dict.fromkeys(names))


def _judge_value(claim: ValueClaim, studies: Mapping[str, xr.Dataset]) -> ClaimVerdict:
    ours = _estimate(claim.ours, _own_term(claim.ours), studies)
    paper, width = claim.paper_value, claim.tolerance.width(claim.paper_value)
    inside = ours.low <= paper <= ours.high
    near = _within(ours.mean - paper, 2 * width)
    side = paper - _NEUTRAL[claim.ours.form] if claim.ours.form in _NEUTRAL else math.nan
    verdict: Outcome
    if _within(ours.mean - paper, width) or (inside and near):
        verdict = "reproduced"
    elif claim.ours.form not in _NEUTRAL or side == 0:
        verdict = "partly" if inside or near else "not"
    else:
        verdict = "partly" if (ours.mean - _NEUTRAL[claim.ours.form]) * side > 0 else "not"
    return ClaimVerdict(claim, verdict, *ours, ours.mean - paper)


def _within(distance: float, width: float) -> bool:
    """Whether a distance is within a width, whose edge belongs to it in spite of rounding."""
    return abs(distance) <= width or math.isclose(abs(distance), width, rel_tol=1e-9)


def _show_input(claim: InputClaim, studies: Mapping[str, xr.Dataset]) -> ClaimVerdict:
    if claim.ours is None:
        return ClaimVerdict(claim, "input")
    ours = _estimate(claim.ours, _own_term(claim.ours), studies)
    paper = math.nan if isinstance(claim.paper_value, str) else float(claim.paper_value)
    return ClaimVerdict(claim, "input", *ours, ours.mean - paper)


def _bound_cases(claim: BoundClaim, studies: Mapping[str, xr.Dataset]) -> list[list[_Comparison]]:
    """The comparison with the bound, for each combination of labels."""
    upper, strict = claim.bound in ("at most", "below"), claim.bound in ("below", "above")
    cases = []
    for case in _combinations(claim.ours.choices):
        # Whether something is above 0 is a question only of what may be below.
        term = _term(claim.ours, case)
        ours = _estimate(claim.ours, term, studies, signed=claim.paper_value <= 0)
        if upper:
            gap = _Estimate(*(value - claim.paper_value for value in ours))
        else:
            gap = _Estimate(*(claim.paper_value - value for value in (ours.mean, ours.high, ours.low)))
        label = _case_text(claim.ours.choices, case)
        cases.append([_Comparison(label, ours, gap, _outcome(gap, strict=strict))])
    return cases


def _order_cases(claim: OrderClaim, studies: Mapping[str, xr.Dataset]) -> list[list[_Comparison]]:
    """The comparisons of neighbours in the chain, for each combination of labels."""
    cases = []
    for case in _combinations(claim.ours.choices):
        where = _case_text(claim.ours.choices, case)
        links = []
        for small, large in pairwise(claim.chain):
            for left, right in product(_combinations(small), _combinations(large)):
                gap = _gap(claim.ours, _term(claim.ours, case, left), _term(claim.ours, case, right), studies)
                label = f"{_place_text(left)} minus {_place_text(right)}{where and f' in {where}'}"
                links.append(_Comparison(label, gap, gap, _outcome(gap)))
        cases.append(links)
    return cases


def _gap(source: Source, left: _Term, right: _Term, studies: Mapping[str, xr.Dataset]) -> _Estimate:
    """Difference left - right: paired where both are plain values of one study."""
    if left.study == right.study and source.form is None:
        return _compared(_units(left, studies), _units(right, studies), "difference", left)
    first, second = _estimate(source, left, studies), _estimate(source, right, studies)
    return _Estimate(first.mean - second.mean, first.low - second.high, first.high - second.low)


def _outcome(gap: _Estimate, *, strict: bool = True) -> Outcome:
    """How well a gap is below zero (`strict`), or at most zero."""

    def holds(value: float) -> bool:
        return value < 0 if strict else value <= 0

    if holds(gap.high):
        return "reproduced"
    return "partly" if holds(gap.mean) else "not"


_RANK = {"not": 0, "partly": 1, "reproduced": 2}


def _judge_comparisons(claim: OrderClaim | BoundClaim, cases: list[list[_Comparison]]) -> ClaimVerdict:
    outcomes = [min((link.outcome for link in case), key=_RANK.__getitem__) for case in cases]
    verdict: Outcome = "not"
    if all(outcome == "reproduced" for outcome in outcomes):
        verdict = "reproduced"
    elif any(outcome != "not" for outcome in outcomes):
        verdict = "partly"
    links = [link for case in cases for link in case]
    weakest = min(links, key=_support)
    apart = weakest.shown.mean - claim.paper_value if isinstance(claim, BoundClaim) else math.nan
    return ClaimVerdict(claim, verdict, *weakest.shown, apart, _remark(links, weakest))


def _support(link: _Comparison) -> tuple[int, float]:
    """How well a comparison supports its claim: outcome, then how far its interval is on the right side.

    The distance is relative to the gap, so that comparisons of large and of small values can be compared.
    """
    edge = link.gap.mean if math.isnan(link.gap.high) else link.gap.high
    return _RANK[link.outcome], -edge / abs(link.gap.mean) if link.gap.mean else 0.0


def _remark(links: Sequence[_Comparison], weakest: _Comparison) -> str:
    """Which comparison is shown, and which ones do not hold or are not significant."""
    several = len(links) > 1
    least = f", the least clear of {len(links)} comparisons" if several else ""
    sentences = [f"Shown: {weakest.label}{least}."] if weakest.label else []
    for text, outcome in (("Does not hold", "not"), ("Not significant", "partly")):
        labels = [link.label for link in links if link.outcome == outcome]
        if labels:
            sentences.append(f"{text}: {'; '.join(labels)}." if several else f"{text}.")
    return " ".join(sentences)


# --- values ---------------------------------------------------------------------------------------


def _each(labels: Any) -> tuple[Scalar, ...]:
    return labels if isinstance(labels, tuple) else (labels,)


def _combinations(select: Mapping[str, Any]) -> list[dict[str, Scalar]]:
    """Selections of one label a dimension that a selection with lists stands for."""
    choices = product(*(_each(labels) for labels in select.values()))
    return [dict(zip(select, chosen, strict=True)) for chosen in choices]


def _case_text(select: Mapping[str, Any], case: Mapping[str, Scalar]) -> str:
    """The labels of a case that differ from case to case."""
    return ", ".join(str(label) for name, label in case.items() if isinstance(select[name], tuple))


def _term(source: Source, *selections: Mapping[str, Scalar]) -> _Term:
    """The term of a source with these labels, of which `study` and `variable` replace those of the source."""
    select = {name: label for selection in selections for name, label in selection.items()}
    study, variable = select.pop("study", source.study), select.pop("variable", source.variables[0])
    return _Term(str(study), str(variable), select, source.replicates)


def _own_term(source: Source) -> _Term:
    """The term of a source without lists."""
    return _term(source, source.select)


def _estimate(
    source: Source, term: _Term, studies: Mapping[str, xr.Dataset], *, signed: bool = False
) -> _Estimate:
    """Value of a term in the form of its source, which may be negative if it is said to be signed."""
    if source.form in ("count", "first"):
        single = source.model_copy(update={"form": "ratio"})
        cases = [_term(single, case) for case in _combinations(term.select)]
        below = [each.mean < 1 for each in _known(single, cases, studies).values()]
        number = float(sum(below))
        if source.form == "first":
            listed = next(labels for labels in source.select.values() if isinstance(labels, tuple))
            known = [listed[place] for place in _known(single, cases, studies)]
            number = next((float(known[i]) for i in range(len(known)) if all(below[i:])), 0.0)
        return _Estimate(number, number, number)
    units = _units(term, studies)
    if source.relative_to is None:
        estimate = inference.mean(
            units.repeated(),
            units.weights,
            signed=signed,
            serial=units.serial and units.values.ndim > 0,
            relaxations=units.relaxations,
        )
        return _single(estimate, term)
    reference = _units(_reference(source, term, studies), studies)
    if source.form == "factor":
        return _compared(reference, units, "ratio", term)
    return _compared(units, reference, "ratio" if source.form == "ratio" else "difference", term)


def _known(source: Source, terms: Sequence[_Term], studies: Mapping[str, xr.Dataset]) -> dict[int, _Estimate]:
    """Values of those terms that the studies hold, by place; there must be one."""
    found: dict[int, _Estimate] = {}
    absent: _AbsentError | None = None
    for place, term in enumerate(terms):
        try:
            found[place] = _estimate(source, term, studies)
        except _AbsentError as error:
            absent = error
    if not found and absent is not None:
        raise absent
    return found


def _compared(left: _Units, right: _Units, form: Literal["ratio", "difference"], term: _Term) -> _Estimate:
    """Ratio or difference of two terms, paired."""
    counts = [side.values.size for side in (left, right) if side.values.ndim]
    values, reference = left.repeated(*counts[:1]), right.repeated(*counts[:1])
    weights = left.weights if left.weights is not None else right.weights
    serial = (left.serial or right.serial) and bool(counts)
    compare = inference.ratio if form == "ratio" else inference.difference
    found = compare(
        values,
        reference,
        weights,
        right.weights,
        serial=serial,
        relaxations=left.relaxations,
        reference_relaxations=right.relaxations,
    )
    return _single(found, term)


def _reference(source: Source, term: _Term, studies: Mapping[str, xr.Dataset]) -> _Term:
    """What a term is relative to.

    Another variable takes over those labels whose dimensions it has; a label those parameters that are not
    along its dimension.
    """
    change = dict(source.relative_to or {})
    variable = str(change.pop("variable", term.variable))
    array = _array(term._replace(variable=variable), studies)
    parameters = _parameters(array, term.select)
    taken = {
        name: label
        for name, label in term.select.items()
        if parameters.get(name) not in change
        and (variable == term.variable or name in array.dims or name in parameters)
    }
    return term._replace(variable=variable, select={**taken, **change})


def _array(term: _Term, studies: Mapping[str, xr.Dataset]) -> xr.DataArray:
    if term.study not in studies:
        raise _AbsentError(f"The study {term.study} was not run")
    dataset = studies[term.study]
    if term.variable not in dataset.variables or term.variable in dataset.dims:
        names = map(str, dataset.data_vars)
        raise ConfigurationError(
            f"ours.variable: {term.study} has no {term.variable!r}; {_suggestion(term.variable, names)}"
        )
    return dataset[term.variable]


class _Units(NamedTuple):
    """Replicates of a value, or the value alone where it has none.

    `weights` are those of a mean over jobs; `serial` says that replicates are blocks of one log, which holds
    the memory of its queue `relaxations` times.
    """

    values: Floats
    weights: Floats | None
    serial: bool
    relaxations: float | None = None

    def repeated(self, count: int = 2) -> Floats:
        """Replicates; equal ones, which say that the number is known, where there are none."""
        return self.values if self.values.ndim else np.full(count, self.values)


def _units(term: _Term, studies: Mapping[str, xr.Dataset]) -> _Units:
    """Replicates of a term; an array without dimensions where the variable has none.

    What is known of a whole log stands at the first of its blocks, and counts as known exactly.
    """
    array, places = _array(term, studies), _places(term, studies)
    values = np.asarray(array.isel(places).values, np.float64)
    if np.isnan(values).all():
        raise _AbsentError(f"{term.study} has no {_value_text(term)}")
    dataset, known = studies[term.study], measures().get(term.variable)
    serial = term.replicates != _REPLICATE
    if "replicates_are" in dataset.coords and "scenario" in places:
        serial = serial or str(dataset["replicates_are"].values[places["scenario"]]) == "blocks"
        if serial and values.ndim and np.count_nonzero(~np.isnan(values)) == 1 < values.size:
            return _Units(values[~np.isnan(values)].reshape(()), None, serial)
    if serial and values.ndim and np.ptp(values[~np.isnan(values)]) == 0:
        return _Units(values[~np.isnan(values)][0].reshape(()), None, serial)
    memory = _memory(dataset, places) if serial else None
    if not values.ndim or known is None or known.aggregation != "jobs" or known.weight not in dataset:
        return _Units(values, None, serial, memory)
    weights = dataset[known.weight].isel(
        {dim: i for dim, i in places.items() if dim in dataset[known.weight].dims}
    )
    return _Units(values, np.asarray(weights.values, np.float64), serial, memory)


def _memory(dataset: xr.Dataset, places: Mapping[str, int]) -> float | None:
    """How many times the log of a run holds the memory of its queue; none where it is not known."""
    if "relaxations" not in dataset:
        return None
    array = (
        dataset["relaxations"].sel(group=ALL)
        if "group" in dataset["relaxations"].dims
        else dataset["relaxations"]
    )
    known = array.isel({dim: place for dim, place in places.items() if dim in array.dims}).values
    found = known[~np.isnan(known)]
    return float(found.flat[0]) if found.size == 1 else None


def _places(term: _Term, studies: Mapping[str, xr.Dataset]) -> dict[str, int]:
    """Place of a term in each dimension but that of the replicates."""
    array = _array(term, studies)
    if term.replicates not in (_REPLICATE, *array.dims):
        raise ConfigurationError(
            f"ours.replicates: {term.variable} of {term.study} has no dimension {term.replicates!r}; "
            f"{_suggestion(term.replicates, map(str, array.dims))}"
        )
    known = [str(name) for name in array.dims if name != term.replicates]
    places: dict[str, Any] = {}
    parameters = _parameters(array, term.select)
    for dimension, label in term.select.items():
        if dimension in parameters:
            continue
        if dimension not in known:
            raise ConfigurationError(
                f"ours.select: {term.variable} of {term.study} has no dimension {dimension!r}; "
                f"{_suggestion(dimension, known)}"
            )
        labels = array[dimension].values.tolist()
        if label not in labels:
            raise _AbsentError(f"{term.study} was run without {dimension} {label}")
        places[dimension] = labels.index(label)
    groups = array["group"].values.tolist() if "group" in known else []
    if ALL in groups:
        places.setdefault("group", groups.index(ALL))
    for dim in dict.fromkeys(parameters.values()):
        places[dim] = _with_parameters(array, term, dim, places)
    present = array.isel(places).notnull()
    for dim in map(str, present.dims):
        found = np.flatnonzero(present.any([other for other in present.dims if other != dim]))
        if dim in known and len(found) == 1:
            places[dim] = int(found[0])
    left = [name for name in known if name not in places]
    if left:
        raise ConfigurationError(
            f"ours.select: {term.variable} of {term.study} varies with {', '.join(left)}; "
            "select a label of each"
        )
    return places


def _parameters(array: xr.DataArray, select: Iterable[str]) -> dict[str, str]:
    """Parameters among the keys of a selection, with the dimension along which they are."""
    return {
        name: str(array[name].dims[0])
        for name in select
        if name in array.coords and name not in array.dims and array[name].ndim == 1
    }


def _with_parameters(array: xr.DataArray, term: _Term, dim: str, places: Mapping[str, int]) -> int:
    """Place of the only scenario or scheduler that has a value and these parameters."""
    meant = {
        name: term.select[name] for name, along in _parameters(array, term.select).items() if along == dim
    }
    same = np.all([array[name].values == value for name, value in meant.items()], axis=0)
    here = array.isel(places).notnull()
    found = np.flatnonzero(same & here.any([other for other in here.dims if other != dim]).values)
    text = ", ".join(f"{name} {value}" for name, value in meant.items())
    if not len(found):
        raise _AbsentError(f"{term.study} was run without {text}")
    if len(found) > 1:
        labels = ", ".join(map(str, array[dim].values[found]))
        raise ConfigurationError(f"ours.select: {term.study} has several {dim}s with {text}: {labels}")
    return int(found[0])


def _value_text(term: _Term) -> str:
    labels = ", ".join(map(str, term.select.values()))
    return f"value of {term.variable}{labels and f' for {labels}'}"


def _single(interval: inference.Estimate, term: _Term) -> _Estimate:
    """A single interval as numbers; unknown where replicates do not pair or the reference is 0."""
    estimate = _Estimate(*(float(bound) for bound in interval[:3]))
    if math.isnan(estimate.mean):
        raise _AbsentError(f"{term.study} has a {_value_text(term)} that cannot be compared")
    return estimate
