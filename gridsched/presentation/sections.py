"""A study as a section of the page: question, answers, table, figure, limits; everything else is folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pandas as pd
import xarray as xr

from gridsched import results
from gridsched.experiments.captions import finding_file
from gridsched.experiments.config import Study
from gridsched.experiments.schedulers import scheduler_made
from gridsched.experiments.specification import Specification
from gridsched.experiments.tasks import Figure
from gridsched.presentation.conditions import failures_told, outcome_table
from gridsched.presentation.forms import MOST_BANDS
from gridsched.presentation.numbers import units_word
from gridsched.presentation.pitfalls import Pitfall, pitfalls
from gridsched.presentation.sentences import known_measure, listed
from gridsched.presentation.tables import PageTable, narrow_table, ranking_table

LARGEST_EMBEDDED_TABLE = 20_000
"""Tables of more bytes are linked, from the folder beside the page, and not embedded."""

MOST_ANSWERS = 3
MOST_LIMITS = 3


@dataclass(frozen=True)
class ShownFigure:
    """A figure as the page shows it."""

    title: str
    sentences: list[str]
    caption: str
    image: str
    table: str | None
    table_path: str
    anchor: str
    narrow: PageTable | None

    @property
    def headline(self) -> str:
        """What it shows, in one sentence."""
        return self.sentences[0] if self.sentences else self.title

    @property
    def alternative(self) -> str:
        """What the figure says, for those who cannot see it."""
        return f"{self.title}. {' '.join(self.sentences)}"


@dataclass(frozen=True)
class StudySection:
    """What the page says of a study."""

    name: str
    title: str
    question: str
    description: str
    answers: list[str]
    table: PageTable | None
    main: ShownFigure | None
    limits: list[str]
    more: list[ShownFigure]
    conventions: list[str]
    pitfalls: list[Pitfall]
    tables: list[PageTable]
    files: list[str]
    cannot: str
    seed: str
    runs: str
    configuration_hash: str


def study_section(study: Study, folder: Path) -> StudySection:
    """The section of a finished study.

    Parameters
    ----------
    study : Study
        The study.
    folder : path
        Its folder of results.
    """
    dataset = results.read(folder / "study.nc")
    experiment = study.experiment(0)
    views = {each.name: figure_view(each, folder) for each in experiment.figures}
    specifications = {each.name: Specification(**each.specification) for each in experiment.figures}
    main = next(iter(views), None)
    found = pitfalls(study, dataset)
    own = study.page_tables(dataset)
    shown = [each for each in specifications.values() if each.compares or not own]
    ranking = _ranking(study, shown, folder, dataset)
    sentences = views[main].sentences if main else []
    return StudySection(
        name=study.name,
        title=study.title,
        question=study.question,
        description=study.description,
        answers=sentences[:MOST_ANSWERS],
        table=ranking or next(iter(own), None),
        main=views[main] if main else None,
        limits=_limits(study, dataset, found),
        more=[view for key, view in views.items() if key != main],
        conventions=[*study.conventions(dataset), *failures_told(study)],
        pitfalls=found,
        tables=[
            each
            for each in (outcome_table(dataset), _facts(dataset), *own[0 if ranking else 1 :])
            if each is not None
        ],
        files=[f"{study.name}/tables/{each.name}.csv" for each in experiment.tables],
        cannot=str(dataset.attrs.get("cannot", "")),
        seed=str(dataset.attrs.get("seed", "")),
        runs=f"{study.name}/runs.csv",
        configuration_hash=str(dataset.attrs.get("configuration_hash", "")),
    )


def _ranking(
    study: Study, specifications: Sequence[Specification], folder: Path, dataset: xr.Dataset
) -> PageTable | None:
    """The table of the first ranking of schedulers."""
    labels = getattr(study, "shown_labels", getattr(study, "labels", ()))
    written = dict(zip(labels, getattr(study, "schedulers", ()), strict=True))
    knows = {label: scheduler_made(each).information for label, each in written.items()}
    for specification in specifications:
        if specification.form == "ranking" and specification.hue == "scheduler":
            numbers = _numbers(folder / "figures" / f"{specification.name}.csv")
            if len(numbers):
                return ranking_table(numbers, specification, knows, str(dataset.attrs.get("reference", "")))
    return None


def _limits(study: Study, dataset: xr.Dataset, found: list[Pitfall]) -> list[str]:
    """What could not run, limits of the kind, known pitfalls: at most three lines."""
    lines = study.cautions(dataset)
    if dataset.attrs.get("cannot"):
        lines = [f"Not run: {dataset.attrs['cannot']}.", *lines]
    return [*lines, *(each.found for each in found)][:MOST_LIMITS]


def _facts(dataset: xr.Dataset) -> PageTable | None:
    """Workloads: what was left out or repaired, and their checksums."""
    if "workload_checksum" not in dataset:
        return None
    checksums = dataset["workload_checksum"]
    rows = []
    for place in (
        checksums.stack(place=checksums.dims)["place"].values
        if checksums.ndim > 1
        else checksums[checksums.dims[0]].values
    ):
        labels = place if isinstance(place, tuple) else (place,)
        own = dataset.sel(dict(zip(checksums.dims, labels, strict=True)))
        text = str(own["workload_checksum"].values)
        if text and text != "nan":
            name = ", ".join(dict.fromkeys(map(str, labels)))
            rows.append([name, _counts(own, "left_out"), _counts(own, "repaired"), text[:12]])
    return PageTable(
        "Workloads: what was left out or repaired", ["workload", "left out", "repaired", "SHA-256"], rows
    )


def _counts(own: xr.Dataset, kind: str) -> str:
    if kind not in own:
        return ""
    pairs = zip(own[f"{kind}_reason"].values, own[kind].values, strict=True)
    return "; ".join(f"{int(count):,} {reason}" for reason, count in pairs if count > 0) or "none"


# --- figures --------------------------------------------------------------------------------------


def figure_view(figure: Figure, folder: Path) -> ShownFigure:
    """A figure with what it shows and how to read it."""
    specification = Specification(**figure.specification)
    stem = folder / "figures" / figure.name
    table = stem.with_name(f"{figure.name}.csv")
    text = finding_file(folder / "figures", figure.name).read_text(encoding="utf-8")
    numbers = _numbers(table)
    return ShownFigure(
        title=specification.title,
        sentences=[line for line in text.splitlines() if line],
        caption=caption(specification, numbers),
        image=data_address(stem.with_name(f"{figure.name}.svg"), "image/svg+xml"),
        table=data_address(table, "text/csv") if table.stat().st_size <= LARGEST_EMBEDDED_TABLE else None,
        table_path=f"{folder.name}/figures/{figure.name}.csv",
        anchor=anchor(folder.name, figure.name),
        narrow=narrow_table(numbers, specification),
    )


def _numbers(path: Path) -> pd.DataFrame:
    """Numbers of a figure; texts that are empty stay so."""
    if path.stat().st_size <= 1:
        return pd.DataFrame()
    table = pd.read_csv(path, keep_default_na=False, na_values=[""])  # a label may be "null"
    texts = [name for name in table if str(name).endswith("reason")]
    return table.assign(**{str(name): table[name].astype(object).fillna("") for name in texts})


def anchor(study: str, stem: str) -> str:
    """Name of a figure as a place in the page."""
    return f"{study}-{stem}"


_UNQUOTED = " /:;,=+-.()'!?*@$[]{}|^~`"
"""What may stand in an address as it is: with it a drawing is a tenth shorter than in base 64."""


def data_address(path: Path, kind: str) -> str:
    """Content of a text file as an address that holds it."""
    return f"data:{kind};charset=utf-8,{quote(path.read_text(encoding='utf-8'), safe=_UNQUOTED)}"


def caption(specification: Specification, numbers: pd.DataFrame) -> str:
    """What is shown, how many replicates there are, what markers and bars are."""
    measures = listed(
        [
            known_measure(name.removesuffix("_quantile").removesuffix("_series")).words
            for name in specification.measures
        ]
    )
    parts = []
    if specification.form == "ranking":
        relative = specification.reference and specification.relation in numbers
        parts.append(f"Dots: {measures}" + (", relative to the reference" if relative else "") + ".")
        if relative:
            parts.append(
                "Filled: differs significantly, corrected for all comparisons of this study. "
                "Bars: simultaneous 95 % intervals."
            )
        elif "low" in numbers and numbers["low"].notna().any():
            parts.append("Bars: 95 % intervals.")
    elif specification.form == "response":
        x = specification.x.replace("_", " ")
        many = specification.hue in numbers and numbers[specification.hue].nunique() > MOST_BANDS
        bands = "" if many else "; bands and bars: 95 % intervals"
        parts.append(f"Lines and points: {measures} over {x}{bands}.")
    elif specification.form == "distribution":
        parts.append(f"Lines: share of jobs with at most this {measures}.")
    elif specification.form == "series":
        parts.append(f"Lines: {measures}, first replicate.")
    counted = "number" in numbers and specification.form in ("ranking", "response")
    if counted and numbers["number"].max() > 1:
        low, high = int(numbers["number"].min()), int(numbers["number"].max())
        word = units_word(numbers).capitalize()
        parts.append(f"{word}: {low}." if low == high else f"{word}: {low} to {high}.")
    return " ".join([*parts, specification.caption]).strip()
