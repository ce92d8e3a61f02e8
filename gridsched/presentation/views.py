"""Views of studies whose kind has a template of its own: names, figures with captions, labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from gridsched.experiments.captions import caption, finding, headline
from gridsched.experiments.config import Study
from gridsched.presentation.sections import LARGEST_EMBEDDED_TABLE, anchor, data_address


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
    """What the page says of every study: its names, and where its runs are listed."""
    return {
        "name": study.name,
        "title": study.title,
        "description": study.description,
        "configuration_hash": dataset.attrs["configuration_hash"],
        "runs": f"{study.name}/runs.csv",
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


def figures(folder: Path, names: Iterable[str]) -> list[FigureView]:
    """Figures of a whole study, whose files have the name of their kind."""
    return [figure(folder, name, name) for name in names]


def labels(dataset: xr.Dataset, dimension: str) -> list[str]:
    """Labels of a dimension."""
    return [str(label) for label in dataset[dimension].values]
