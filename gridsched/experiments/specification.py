"""What a figure shows, as plain values: measures, axes, form, caption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

FormName = Literal["ranking", "response", "distribution", "series", "composition", "schedule", "map"]
Reference = Literal["", "scheduler", "scenario", "estimates"]


@dataclass(frozen=True, kw_only=True)
class Specification:
    """What a figure shows.

    Parameters
    ----------
    name : str
        Name of its files and of its place in the page, unique in a study.
    form : str
        One of the seven forms: `ranking` (dots with intervals), `response` to a parameter (lines with bands),
        `distribution` (quantiles), `series` (steps over time), `composition` (bars), `schedule` (Gantt
        chart), `map` (places and flows).
    title : str
        What is shown, in a few words; the figure's finding stands above it.
    measures : sequence of str
        Names of `gridsched.measures`, or variables of the dataset; a panel each.
    x : str
        Axis or parameter along which a response is drawn; points without lines where it is a measure.
    hue : str
        Axis or parameter whose values have colours; in a ranking, what the rows are.
    facets : str
        Axis whose values have a panel each.
    lanes : str
        In a ranking, the axis whose values lie side by side in a row.
    where : mapping
        Labels of axes to keep, one or a list of each, or one for each scenario; the group is `all jobs` where
        none is given.
    reference : {"scheduler", "scenario", "estimates", ""}
        What values are relative to: the reference scheduler of the study in the same scenario, the baseline
        of the scenario under the same scheduler, the first estimates of the study under the same scheduler,
        or nothing.
    against : str
        The scheduler that values are relative to, where it is another than the reference of the study; it is
        not shown itself.
    relation : {"ratio", "difference"}
        How values are relative to it.
    lines : mapping
        In a ranking, values of each measure at which lines stand, by its name.
    caption : str
        How to read it, beyond what the form itself says.
    own : str
        Place of a function, module:name, that draws a schedule or map by hand: (dataset, **parameters) ->
        (figure, numbers).
    finding : str
        Place of a function that says what it shows, module:name: (numbers, specification, attributes) ->
        list of sentences, the first of which is the headline; that of the form by default.
    parameters : mapping
        Of an own function.
    """

    name: str
    form: FormName
    title: str
    measures: Sequence[str] = ()
    x: str = ""
    hue: str = "scheduler"
    facets: str = "scenario"
    lanes: str = "estimates"
    where: Mapping[str, Any] = field(default_factory=dict)
    reference: Reference = "scheduler"
    against: str = ""
    relation: Literal["ratio", "difference"] = "ratio"
    lines: Mapping[str, Sequence[float]] = field(default_factory=dict)
    caption: str = ""
    own: str = ""
    finding: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """The specification as plain values, as workflow rules hand it on."""
        return asdict(self)

    @property
    def compares(self) -> bool:
        """Whether it draws comparisons that have to be corrected for their number."""
        return bool(self.reference) and self.form in ("ranking", "response", "composition")

    @property
    def comparisons(self) -> str:
        """What it compares: two figures of the same comparisons make no more of them."""
        kept = ("measures", "where", "reference", "against", "relation")
        return repr([getattr(self, key) for key in kept])
