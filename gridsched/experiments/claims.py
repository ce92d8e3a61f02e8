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

import math
import operator
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product, takewhile
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, model_validator

from gridsched import inference
from gridsched.errors import ConfigurationError
from gridsched.experiments.collection import ALL
from gridsched.io import read_yaml, resource, shown
from gridsched.measures import measures
from gridsched.validation import SLUG, ConfigModel, Label, Number, one_line, suggestion, validated

Outcome = Literal["reproduced", "partly", "not", "not testable", "input", "not run"]
Form = Literal["ratio", "factor", "difference", "count", "first"]
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
_NEUTRAL: dict[Form | None, float] = {"ratio": 1.0, "factor": 1.0, "difference": 0.0}
"""Value of each form that says: no different from the reference."""
_OVER_LABELS = ("count", "first")
"""Forms of one number of several labels."""


# --- claims ---------------------------------------------------------------------------------------


def _scalar(value: Any) -> Any:
    """A label of a dimension, or a value of the paper: a number or a line of text."""
    text = isinstance(value, str) and value.strip()
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not text and not (number and abs(value) <= sys.float_info.max):
        raise ValueError("write text or a finite number")
    return value


def _one_or_several(value: Any) -> Any:
    """A label, or a list of labels, all of which are meant."""
    if not isinstance(value, list | tuple):
        return _scalar(value)
    if not value:
        raise ValueError("write at least one label")
    return tuple(_scalar(label) for label in value)


Labels = Annotated[Any, AfterValidator(_one_or_several)]
PaperValue = Annotated[Any, AfterValidator(_scalar)]
Slug = Annotated[str, Field(pattern=SLUG)]
Text = Annotated[str, AfterValidator(one_line)]


class Source(ConfigModel):
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
    jobs. In claims of the kinds order and bound a list of labels means that the claim must hold for every
    one."""
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
        if self.relative_to == {}:
            raise ValueError("relative_to: say what differs in the reference")
        _refuse_lists("relative_to", self.relative_to or {})
        if "study" in (self.relative_to or {}):
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


class Tolerance(ConfigModel):
    """How far our value may lie from the paper's: a matter of how precise the paper's statement is."""

    alternatives = ("relative", "absolute")

    relative: Number | None = Field(None, ge=0)
    """As a share of the paper's value."""
    absolute: Number | None = Field(None, ge=0)
    """In the unit of the value."""

    def holds(self, ours: float, paper: float, times: int = 1) -> bool:
        """Whether our value is within it, or within so many times it; its edge belongs to it."""
        width = times * ((self.absolute or 0.0) + abs(paper) * (self.relative or 0.0))
        distance = abs(ours - paper)
        return distance <= width or math.isclose(distance, width, rel_tol=1e-9)


class _Claim(ConfigModel):
    """What claims of all kinds have."""

    unjudged: ClassVar[Outcome] = "not run"
    """Verdict where there is no value of ours."""

    id: Slug
    """Name, unique within the paper."""
    paper: Slug
    """Paper that makes the claim."""
    where: Label
    """Section, table or figure."""
    statement: Label
    """What the paper says, in our own words."""
    unit: Label = "1"
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
        value = getattr(self, "paper_value", None)
        if value is None or isinstance(value, str):
            return value or ""
        return f"{value:.10g}" if self.unit == "1" else f"{value:.10g} {self.unit}"

    @property
    def members(self) -> tuple[dict[str, Any], ...]:
        """What distinguishes the members of a chain; nothing where there is none."""
        return getattr(self, "chain", ({},))

    @model_validator(mode="after")
    def _one_number(self) -> Self:
        """One number comes from one label a dimension; a value may also be one of several labels."""
        over_labels = isinstance(self, ValueClaim) and self.ours.form in _OVER_LABELS
        if self.source is not None and not over_labels and not isinstance(self, OrderClaim | BoundClaim):
            _refuse_lists("ours.select", self.source.choices)
        return self


class ValueClaim(_Claim):
    """A number of the paper."""

    kind: Literal["value"]
    paper_value: Number
    """The number."""
    ours: Source
    """Our value."""
    tolerance: Tolerance
    """How far ours may lie from it."""


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
    bound: Literal["at most", "at least", "below", "above"]
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

    unjudged: ClassVar[Outcome] = "not testable"

    kind: Literal["untestable"]
    paper_value: PaperValue | None = None
    """The number, if there is one."""
    why: Label
    """What is lacking."""


class InputClaim(_Claim):
    """A number that we took from the paper or calibrated to it."""

    unjudged: ClassVar[Outcome] = "input"

    kind: Literal["input"]
    paper_value: PaperValue
    """The number, or text for several."""
    ours: Source | None = None
    """What the study has there, shown for comparison."""


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


def _place_text(select: Mapping[str, Any]) -> str:
    """Labels of a member of a chain; several with the same place stand in braces."""
    return ", ".join(
        f"{{{', '.join(map(str, labels))}}}" if isinstance(labels, tuple) else str(labels)
        for labels in select.values()
    )


# --- files ----------------------------------------------------------------------------------------


class _ClaimFile(ConfigModel):
    """Claims of one paper."""

    paper: Slug
    """Name of the paper, as in the names of its studies."""
    citation: Label
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
    claims: dict[tuple[str, str], Claim] = {}
    for path in _shipped() if paths is None else map(Path, paths):
        for claim in _claims_of(path):
            if (claim.paper, claim.id) in claims:
                raise ConfigurationError(
                    f"{path}: claim {claim.id}: id: is there twice for {claim.paper}; choose another"
                )
            claims[claim.paper, claim.id] = claim
    return list(claims.values())


def citations() -> dict[str, str]:
    """What each paper of the claims that come with gridsched is, by its name."""
    return {file.paper: file.citation for file in map(_read, _shipped())}


def _shipped() -> list[Path]:
    """Claim files that come with gridsched."""
    return sorted(resource("resources", "claims").glob("*.yaml"))


def _read(path: Path) -> _ClaimFile:
    return validated(_ClaimFile, read_yaml(path), str(path))


def _claims_of(path: Path) -> Iterator[Claim]:
    file = _read(path)
    for position, entry in enumerate(file.claims, start=1):
        name, kind = entry.get("id"), entry.get("kind")
        where = f"{path}: claim {name if isinstance(name, str) and name.isprintable() else position}"
        if "paper" in entry:
            raise ConfigurationError(f"{where}: paper: stands at the head of the file, not in a claim")
        if not isinstance(kind, str) or kind not in _KINDS:
            found = f"found {shown(kind)}" if "kind" in entry else "missing"
            raise ConfigurationError(f"{where}: kind: {found}; use one of {', '.join(_KINDS)}")
        for single in _single_entries(entry, where) if "each" in entry else [entry]:
            yield validated(_KINDS[kind], {**single, "paper": file.paper}, where)


def _single_entries(entry: dict[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """One entry for each label of the `each` of an entry."""
    dimension, values, ours = entry["each"], entry.get("paper_value"), entry.get("ours")
    if not isinstance(dimension, str):
        raise ConfigurationError(f"{where}: each: found {shown(dimension)}; write the name of a dimension")
    if not isinstance(values, dict) or not values:
        raise ConfigurationError(
            f"{where}: paper_value: found {shown(values)}; with `each` write label: value for every label"
        )
    # Words with which all groups or variables begin, such as "users of ", are left out of ids
    names = list(map(str, values)) if dimension in ("group", "variable") else [""]
    begins = [names[0][: match.end()] for match in re.finditer("[ _]", names[0])]
    begin = max((each for each in begins if all(name.startswith(each) for name in names)), default="")
    for label, value in values.items():
        short = "all" if label == ALL else str(label).removeprefix(begin)
        slug = re.sub("[^a-z0-9]+", "-", short.lower()).strip("-")
        own = {"id": f"{entry.get('id')}-{slug}", "statement": f"{entry.get('statement')}: {short}"}
        single = {**entry, **{key: text for key, text in own.items() if key in entry}, "paper_value": value}
        del single["each"]
        if isinstance(ours, dict):
            single["ours"] = {**ours, **_narrowed(ours.get("select", {}), dimension, label, where)}
        yield single


def _narrowed(select: Any, dimension: str, label: Any, where: str) -> dict[str, Any]:
    """What one label of its `each` changes in the `ours` of an entry."""
    if dimension == "variable":
        return {"variable": label}
    if not isinstance(select, dict) or dimension in select:
        raise ConfigurationError(
            f"{where}: ours.select: found {shown(select)}; write dimension: label lines without "
            f"{dimension}, which is in `each`"
        )
    return {"select": {**select, dimension: label}}


# --- evaluation -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClaimVerdict:
    """Verdict on a claim.

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
    """A value with its interval, or the reason why it has none."""

    mean: float
    low: float
    high: float
    reason: str = ""


class _Term(NamedTuple):
    """One value of one study: a variable, one label in each dimension."""

    study: str
    variable: str
    select: dict[str, Scalar]
    replicates: str

    def __str__(self) -> str:
        labels = ", ".join(map(str, self.select.values()))
        return f"value of {self.variable}{labels and f' for {labels}'}"


class _Comparison(NamedTuple):
    """One comparison of a claim; `gap` is negative (`strict`), or at most zero, where it holds."""

    label: str
    shown: _Estimate
    gap: _Estimate
    strict: bool = True

    @property
    def outcome(self) -> Outcome:
        """Whether the comparison holds with its interval, by itself or not."""
        holds = operator.lt if self.strict else operator.le
        if holds(self.gap.high, 0):
            return "reproduced"
        return "partly" if holds(self.gap.mean, 0) else "not"

    @property
    def support(self) -> tuple[int, float]:
        """How well it supports its claim: outcome, then how far its interval is on the right side.

        The distance is relative to the gap, so that comparisons of large and of small values can be compared.
        """
        edge = self.gap.mean if math.isnan(self.gap.high) else self.gap.high
        return _RANKS.index(self.outcome), -edge / abs(self.gap.mean) if self.gap.mean else 0.0


_RANKS: tuple[Outcome, ...] = ("not", "partly", "reproduced")


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
    if claim.source is None:
        return ClaimVerdict(claim, claim.unjudged)
    try:
        if isinstance(claim, OrderClaim | BoundClaim):
            return _judge_comparisons(claim, studies)
        return _judge_value(claim, claim.source, studies)
    except _AbsentError as absent:
        return ClaimVerdict(claim, claim.unjudged, remark=f"{absent}.")
    except ConfigurationError as error:
        raise ConfigurationError(f"claim {claim.id} of {claim.paper}: {error}") from None


def labels_of(claim: Claim) -> frozenset[str]:
    """All labels, of whatever dimension, that a claim is about: scenarios, cases, schemes..."""
    if claim.source is None:
        return frozenset()
    return frozenset(
        str(label)
        for select in (claim.source.select, *claim.members)
        for labels in select.values()
        for label in _each(labels)
    )


def studies_of(claim: Claim) -> list[str]:
    """Names of the studies of a claim, each once."""
    if claim.source is None:
        return []
    own = claim.source.study
    names = (str(name) for member in claim.members for name in _each(member.get("study", own)))
    return list(dict.fromkeys(names))


def _judge_value(
    claim: ValueClaim | InputClaim | UntestableClaim, source: Source, studies: Mapping[str, xr.Dataset]
) -> ClaimVerdict:
    ours = _estimate(source, _term(source, source.select), studies)
    paper = claim.paper_value if isinstance(claim.paper_value, int | float) else math.nan
    verdict = _agreement(claim, ours) if isinstance(claim, ValueClaim) else claim.unjudged
    return ClaimVerdict(claim, verdict, *ours[:3], ours.mean - paper, _without_interval(ours))


def _agreement(claim: ValueClaim, ours: _Estimate) -> Outcome:
    """How well our value agrees with that of the paper."""
    paper, neutral = claim.paper_value, _NEUTRAL.get(claim.ours.form)
    inside, near = ours.low <= paper <= ours.high, claim.tolerance.holds(ours.mean, paper, 2)
    if claim.tolerance.holds(ours.mean, paper) or (inside and near):
        return "reproduced"
    if neutral is None or paper == neutral:
        return "partly" if inside or near else "not"
    return "partly" if (ours.mean - neutral) * (paper - neutral) > 0 else "not"


def _judge_comparisons(claim: OrderClaim | BoundClaim, studies: Mapping[str, xr.Dataset]) -> ClaimVerdict:
    cases = [list(_comparisons(claim, case, studies)) for case in _combinations(claim.ours.choices)]
    outcomes = {min((link.outcome for link in case), key=_RANKS.index) for case in cases}
    verdict = outcomes.pop() if len(outcomes) == 1 else "partly"
    links = [link for case in cases for link in case]
    weakest = min(links, key=lambda link: link.support)
    apart = weakest.shown.mean - claim.paper_value if isinstance(claim, BoundClaim) else math.nan
    return ClaimVerdict(claim, verdict, *weakest.shown[:3], apart, _remark(links, weakest))


def _comparisons(
    claim: OrderClaim | BoundClaim, case: Mapping[str, Scalar], studies: Mapping[str, xr.Dataset]
) -> Iterator[_Comparison]:
    """The comparisons of neighbours in the chain, or the one with the bound, for a combination of labels."""
    source = claim.ours
    several = ", ".join(str(label) for name, label in case.items() if isinstance(source.choices[name], tuple))
    if isinstance(claim, OrderClaim):
        for small, large in pairwise(claim.chain):
            for left, right in product(_combinations(small), _combinations(large)):
                gap = _gap(source, _term(source, case, left), _term(source, case, right), studies)
                text = f"{_place_text(left)} minus {_place_text(right)}{several and f' in {several}'}"
                yield _Comparison(text, gap, gap)
        return
    # Whether something is above 0 is a question only of what may be below.
    ours = _estimate(source, _term(source, case), studies, signed=claim.paper_value <= 0)
    upper, limit = claim.bound in ("at most", "below"), claim.paper_value
    low, high = (ours.low, ours.high) if upper else (ours.high, ours.low)
    beyond = [value - limit if upper else limit - value for value in (ours.mean, low, high)]
    gap = _Estimate(beyond[0], beyond[1], beyond[2])
    yield _Comparison(several, ours, gap, strict=claim.bound in ("below", "above"))


def _gap(source: Source, left: _Term, right: _Term, studies: Mapping[str, xr.Dataset]) -> _Estimate:
    """Difference left - right: paired where both are plain values of one study."""
    if left.study == right.study and source.form is None:
        return _compared(_units(left, studies), _units(right, studies), inference.difference, left)
    first, second = _estimate(source, left, studies), _estimate(source, right, studies)
    return _Estimate(first.mean - second.mean, first.low - second.high, first.high - second.low)


def _remark(links: Sequence[_Comparison], weakest: _Comparison) -> str:
    """Which comparison is shown, and which ones do not hold or are not significant."""
    several = len(links) > 1
    least = f", the least clear of {len(links)} comparisons" if several else ""
    sentences = [f"Shown: {weakest.label}{least}."] if weakest.label else []
    for text, outcome in (("Does not hold", "not"), ("Not significant", "partly")):
        labels = [link.label for link in links if link.outcome == outcome]
        if labels:
            sentences.append(f"{text}: {'; '.join(labels)}." if several else f"{text}.")
    return " ".join([*sentences, _without_interval(weakest.shown)]).strip()


def _without_interval(estimate: _Estimate) -> str:
    """Why a value has no interval; nothing where it has one."""
    return f"No interval: {estimate.reason}." if estimate.reason and math.isnan(estimate.low) else ""


# --- values ---------------------------------------------------------------------------------------


def _each(labels: Any) -> tuple[Scalar, ...]:
    return labels if isinstance(labels, tuple) else (labels,)


def _combinations(select: Mapping[str, Any]) -> list[dict[str, Scalar]]:
    """Selections of one label a dimension that a selection with lists stands for."""
    choices = product(*map(_each, select.values()))
    return [dict(zip(select, chosen, strict=True)) for chosen in choices]


def _term(source: Source, *selections: Mapping[str, Scalar]) -> _Term:
    """The term of a source with these labels, of which `study` and `variable` replace those of the source."""
    select = {name: label for selection in selections for name, label in selection.items()}
    study, variable = select.pop("study", source.study), select.pop("variable", source.variables[0])
    return _Term(str(study), str(variable), select, source.replicates)


def _estimate(
    source: Source, term: _Term, studies: Mapping[str, xr.Dataset], *, signed: bool = False
) -> _Estimate:
    """Value of a term in the form of its source, which may be negative if it is said to be signed."""
    if source.form in _OVER_LABELS:
        return _counted(source, term, studies)
    units = _units(term, studies)
    if source.relative_to is not None:
        reference = _units(_reference(source, term, studies), studies)
        if source.form == "factor":
            return _compared(reference, units, inference.ratio, term)
        compare = inference.difference if source.form == "difference" else inference.ratio
        return _compared(units, reference, compare, term)
    estimate = inference.mean(
        units.repeated(),
        units.weights,
        signed=signed,
        serial=units.serial and units.values.ndim > 0,
        relaxations=units.relaxations,
    )
    return _single(estimate, term)


def _counted(source: Source, term: _Term, studies: Mapping[str, xr.Dataset]) -> _Estimate:
    """How many of the listed labels are below their reference, or the first from which on all are.

    Labels that the studies do not hold are left out, but not all of them.
    """
    ratio = source.model_copy(update={"form": "ratio"})
    below: list[tuple[dict[str, Scalar], bool]] = []
    absent: _AbsentError | None = None
    for case in _combinations(term.select):
        try:
            below.append((case, _estimate(ratio, _term(ratio, case), studies).mean < 1))
        except _AbsentError as error:
            absent = error
    if absent is not None and not below:
        raise absent
    number: Scalar = sum(holds for _, holds in below)
    if source.form == "first":
        listed = next(name for name, labels in source.select.items() if isinstance(labels, tuple))
        tail = list(takewhile(lambda each: each[1], reversed(below)))
        number = tail[-1][0][listed] if tail else 0
    return _Estimate(float(number), float(number), float(number))


def _compared(
    left: _Units, right: _Units, compare: Callable[..., inference.Estimate], term: _Term
) -> _Estimate:
    """Ratio or difference of two terms, paired."""
    counts = [side.values.size for side in (left, right) if side.values.ndim]
    found = compare(
        left.repeated(*counts[:1]),
        right.repeated(*counts[:1]),
        left.weights if left.weights is not None else right.weights,
        right.weights,
        serial=(left.serial or right.serial) and bool(counts),
        relaxations=left.relaxations,
        reference_relaxations=right.relaxations,
    )
    return _single(found, term)


def _single(interval: inference.Estimate, term: _Term) -> _Estimate:
    """A single interval as numbers; unknown where replicates do not pair or the reference is 0."""
    value, low, high = map(float, interval[:3])
    estimate = _Estimate(value, low, high, str(interval.reason))
    if math.isnan(estimate.mean):
        raise _AbsentError(f"{term.study} has a {term} that cannot be compared")
    return estimate


class _Units(NamedTuple):
    """Replicates of a value, or the value alone where it has none.

    `weights` are those of a mean over jobs; `serial` says that replicates are blocks of one log, which holds
    the memory of its queue `relaxations` times.
    """

    values: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    serial: bool
    relaxations: float | None = None

    def repeated(self, count: int = 2) -> NDArray[np.float64]:
        """Replicates; equal ones, which say that the number is known, where there are none."""
        return self.values if self.values.ndim else np.full(count, self.values)


def _units(term: _Term, studies: Mapping[str, xr.Dataset]) -> _Units:
    """Replicates of a term; an array without dimensions where the variable has none.

    What is known of a whole log stands at the first of its blocks, and counts as known exactly.
    """
    array, dataset, measure = _array(term, studies), studies[term.study], measures().get(term.variable)
    places = _places(term, array)
    values = np.asarray(array.isel(places).values, np.float64)
    known = values[~np.isnan(values)]
    if not known.size:
        raise _AbsentError(f"{term.study} has no {term}")
    serial = term.replicates != _REPLICATE
    if "replicates_are" in dataset.coords and "scenario" in places:
        serial = serial or dataset["replicates_are"].values[places["scenario"]] == "blocks"
    if serial and values.ndim and np.ptp(known) == 0:
        return _Units(known[0], None, serial)
    weights = memory = None
    if values.ndim and measure is not None and measure.aggregation == "jobs" and measure.weight in dataset:
        weights = dataset[measure.weight].isel(places, missing_dims="ignore").values.astype(np.float64)
    if serial and "relaxations" in dataset:
        whole = {"group": ALL} if "group" in dataset["relaxations"].dims else {}
        found = dataset["relaxations"].sel(whole).isel(places, missing_dims="ignore").values
        found = found[~np.isnan(found)]
        # Those of several runs, or of none, say nothing of this one
        memory = float(found[0]) if found.size == 1 else None
    return _Units(values, weights, serial, memory)


def _places(term: _Term, array: xr.DataArray) -> dict[str, int]:
    """Place of a term in each dimension but that of the replicates."""
    dims = [str(name) for name in array.dims if name != term.replicates]
    if term.replicates not in (_REPLICATE, *array.dims):
        raise ConfigurationError(
            f"ours.replicates: {term.variable} of {term.study} has no dimension {term.replicates!r}; "
            f"{suggestion(term.replicates, map(str, array.dims))}"
        )
    meant: dict[str, dict[str, Scalar]] = {}
    for name, label in term.select.items():
        dim = _along(array, name)
        if dim not in dims:
            raise ConfigurationError(
                f"ours.select: {term.variable} of {term.study} has no dimension {name!r}; "
                f"{suggestion(name, dims)}"
            )
        meant.setdefault(dim, {})[name] = label
    for dim in dims:
        meant.setdefault(dim, {dim: ALL} if dim == "group" and ALL in array[dim].values else {})
    places: dict[str, int] = {}
    # Parameters, and dimensions without a label, mean the only label that has a value under the others
    for dim, labels in sorted(meant.items(), key=lambda each: each[0] not in each[1]):
        fit = np.all([array[name].values == label for name, label in labels.items()], axis=0)
        if dim not in labels:
            present = array.isel(places).notnull()
            fit = fit & present.any([other for other in present.dims if other != dim]).values
        found = np.flatnonzero(fit)
        text = ", ".join(f"{name} {label}" for name, label in labels.items())
        if text and not len(found):
            raise _AbsentError(f"{term.study} was run without {text}")
        if text and len(found) > 1:
            several = ", ".join(map(str, array[dim].values[found]))
            raise ConfigurationError(f"ours.select: {term.study} has several {dim}s with {text}: {several}")
        if len(found) == 1:
            places[dim] = int(found[0])
    left = [dim for dim in dims if dim not in places]
    if left:
        raise ConfigurationError(
            f"ours.select: {term.variable} of {term.study} varies with {', '.join(left)}; "
            "select a label of each"
        )
    return places


def _along(array: xr.DataArray, name: str) -> str:
    """Dimension of a key of a selection: itself, or the one along which a parameter is; empty if none."""
    if name in array.dims:
        return name
    return str(array[name].dims[0]) if name in array.coords and array[name].ndim == 1 else ""


def _reference(source: Source, term: _Term, studies: Mapping[str, xr.Dataset]) -> _Term:
    """What a term is relative to.

    Another variable takes over those labels whose dimensions it has; a label the parameters that are not
    along its dimension, a parameter all but the label of its dimension.
    """
    change = dict(source.relative_to or {})
    variable = str(change.pop("variable", term.variable))
    array = _array(term._replace(variable=variable), studies)
    changed = {_along(array, name) for name in change}
    taken = {
        name: label
        for name, label in term.select.items()
        if (name in change or (name not in changed and _along(array, name) not in change))
        and (variable == term.variable or _along(array, name))
    }
    return term._replace(variable=variable, select={**taken, **change})


def _array(term: _Term, studies: Mapping[str, xr.Dataset]) -> xr.DataArray:
    if term.study not in studies:
        raise _AbsentError(f"The study {term.study} was not run")
    dataset = studies[term.study]
    if term.variable not in dataset.variables or term.variable in dataset.dims:
        names = map(str, dataset.data_vars)
        raise ConfigurationError(
            f"ours.variable: {term.study} has no {term.variable!r}; {suggestion(term.variable, names)}"
        )
    return dataset[term.variable]
