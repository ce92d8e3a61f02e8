"""What the parts of the page share: figures with captions, counts, numbers as text."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from gridsched.study import plan

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
    return "" if np.isnan(float(value)) else form.format(float(value))
