"""What the parts of the page share: what every study has, figures with captions, counts, numbers as text."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gridsched.replication import Interval
from gridsched.study import plan
from gridsched.study.config import Study

Form = Callable[[float], str]
"""How a number is written."""

LARGEST_EMBEDDED_TABLE = 400_000
"""Tables of more bytes are named in the page but not embedded."""


@dataclass(frozen=True)
class FigureView:
    """A figure as the page shows it."""

    title: str
    caption: str
    image: str
    table: str | None
    table_path: str
    anchor: str


def heading(study: Study, dataset: xr.Dataset) -> dict[str, Any]:
    """What the page says of every study: its names and where its runs are listed."""
    return {
        "name": study.name,
        "title": study.title,
        "description": study.description,
        "configuration_hash": dataset.attrs["configuration_hash"],
        "runs": f"{study.name}/runs.csv",
    }


def figure(folder: Path, stem: str, kind: str, what: str = "") -> FigureView:
    """A figure with its caption, which is the one that the report of Snakemake shows too."""
    caption = plan.caption(kind)
    table = folder / "figures" / f"{stem}.csv"
    return FigureView(
        title=f"{caption['title']}: {what}" if what else caption["title"],
        caption=caption["text"],
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


def data_address(path: Path, kind: str) -> str:
    """Content of a file as an address that holds it."""
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


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


def acknowledgements(
    dataset: xr.Dataset, dimension: str, variable: str = "acknowledgement"
) -> list[tuple[str, str]]:
    """Whom to thank for each log, by the label of a dimension."""
    named = zip(labels(dataset, dimension), dataset[variable].values, strict=True)
    return [(label, str(text)) for label, text in named if text]
