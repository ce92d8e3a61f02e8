"""What the parts of the page share: what every study has, figures with captions, counts, numbers as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.experiments.captions import caption, finding, headline
from gridsched.experiments.config import Study
from gridsched.replication import Interval
from gridsched.report.conditions import failures_told, fate_table

Form = Callable[[float], str]
"""How a number is written."""

LARGEST_EMBEDDED_TABLE = 20_000
"""Tables of more bytes are linked, from the folder beside the page, and not embedded."""


@dataclass(frozen=True)
class FigureView:
    """A figure as the page shows it."""

    kind: str
    title: str
    finding: str
    """What it shows of its data."""
    headline: str
    """The same without details."""
    caption: str
    """How to read it."""
    image: str
    table: str | None
    table_path: str
    anchor: str

    @property
    def alternative(self) -> str:
        """What the figure says, for those who cannot see it."""
        return f"{self.title}. {self.finding}"


def main_figure(study: Study, views: Iterable[FigureView]) -> FigureView | None:
    """The figure that says most of a study: the one that it names, else the first."""
    found = list(views)
    return next((view for view in found if view.kind == study.main_figure), found[0] if found else None)


def heading(study: Study, dataset: xr.Dataset) -> dict[str, Any]:
    """What the page says of every study: its names, where its runs are listed, and how nodes failed."""
    return {
        "name": study.name,
        "title": study.title,
        "description": study.description,
        "configuration_hash": dataset.attrs["configuration_hash"],
        "runs": f"{study.name}/runs.csv",
        "failures": failures_told(study),
        "fate_table": fate_table(dataset),
    }


def figure(folder: Path, stem: str, kind: str, what: str = "") -> FigureView:
    """A figure with its caption, which is the one that the report of Snakemake shows too."""
    words = caption(kind)
    table = folder / "figures" / f"{stem}.csv"
    return FigureView(
        kind=kind,
        title=f"{words['title']}: {what}" if what else words["title"],
        finding=finding(folder / "figures", stem),
        headline=headline(folder / "figures", stem),
        caption=words["text"],
        image=data_address(folder / "figures" / f"{stem}.svg", "image/svg+xml"),
        table=data_address(table, "text/csv") if table.stat().st_size <= LARGEST_EMBEDDED_TABLE else None,
        table_path=f"{folder.name}/figures/{stem}.csv",
        anchor=anchor(folder.name, stem),
    )


def anchor(study: str, stem: str) -> str:
    """Name of a figure as a place in the page."""
    return f"{study}-{stem}"


def figures(folder: Path, names: Iterable[str]) -> list[FigureView]:
    """Figures of a whole study, whose files have the name of their kind."""
    return [figure(folder, name, name) for name in names]


_UNQUOTED = " /:;,=+-.()'!?*@$[]{}|^~`"
"""What may stand in an address as it is: with it a drawing is a tenth shorter than in base 64."""


def data_address(path: Path, kind: str) -> str:
    """Content of a text file as an address that holds it."""
    return f"data:{kind};charset=utf-8,{quote(path.read_text(encoding='utf-8'), safe=_UNQUOTED)}"


def labels(dataset: xr.Dataset, dimension: str) -> list[str]:
    """Labels of a dimension."""
    return [str(label) for label in dataset[dimension].values]


def counts(dataset: xr.Dataset, kind: str) -> list[tuple[str, str]]:
    """Reasons and numbers of jobs, without those that are zero."""
    counts = zip(labels(dataset, f"{kind}_reason"), dataset[kind].values, strict=True)
    return [(reason, f"{int(count):,}") for reason, count in counts if count]


def known(value: xr.DataArray, form: str) -> str:
    """Number as text, nothing for an unknown one."""
    return as_text(value, form.format)


def as_text(value: Any, form: Form) -> str:
    """Number in some form, nothing for an unknown one."""
    return "" if np.isnan(float(value)) else form(float(value))


def interval_text(interval: Interval, form: Form) -> str:
    """Bounds of something that is never negative; nothing where they are unknown or equal."""
    if np.isnan(interval.low) or interval.low == interval.high:
        return ""
    return f"{form(max(float(interval.low), 0.0))} to {form(float(interval.high))}"


def variations(scenarios: Iterable[Any]) -> list[str]:
    """What replicates of logs are, for the conventions of a study; nothing where there are none."""
    lines = []
    for scenario in scenarios:
        if scenario.resampling is not None:
            chosen = scenario.resampling
            weeks = "" if chosen.weeks is None else f" of {chosen.weeks} weeks"
            faster = chosen.squeeze != 1
            squeeze = f" and times between submissions divided by {chosen.squeeze:g}" if faster else ""
            lines.append(
                f"{scenario.name}: {chosen.replicates} logs{weeks} resampled by users, with "
                f"{chosen.users:g} times the users{squeeze}. Their intervals are those of the mean over such "
                "logs: how a policy does with these users, not how far another site would be from that."
            )
        if scenario.shaking is not None:
            chosen = scenario.shaking
            lines.append(
                f"{scenario.name}: {chosen.replicates} logs whose submissions are shaken by up to "
                f"{chosen.seconds} s. A mean is marked unstable where the middle 95 % of them are further "
                f"apart than {UNSTABLE:.0%} of it."
            )
    return lines


UNSTABLE = 0.1
"""A mean is unstable where the middle 95 % of its shaken replicates are further apart than this share."""


def spread(values: NDArray[np.float64]) -> float:
    """How far the middle 95 % of some replicates are apart, relative to their mean; 0 where all are equal."""
    known = values[~np.isnan(values)]
    low, high = np.quantile(known, (0.025, 0.975)) if len(known) else (0.0, 0.0)
    return float((high - low) / known.mean()) if high > low else 0.0


def mark(values: NDArray[np.float64], scenario: Any) -> str:
    """What stands behind a mean of replicates of a scenario that small changes of its logs move far."""
    return " (unstable)" if scenario.shaking is not None and spread(values) > UNSTABLE else ""
