"""A study as a section of the page: question, answers, table, figure, limits; everything else is folded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
import xarray as xr

from gridsched import results
from gridsched.experiments.captions import finding_file
from gridsched.experiments.collection import AXES
from gridsched.experiments.config import Study
from gridsched.experiments.schedulers import scheduler_made
from gridsched.experiments.specification import Specification
from gridsched.experiments.tasks import Figure
from gridsched.presentation.conditions import failures_told, outcome_table
from gridsched.presentation.forms import MOST_BANDS
from gridsched.presentation.numbers import units_word
from gridsched.presentation.pitfalls import pitfalls
from gridsched.presentation.sentences import known_measure, listed, spanned
from gridsched.presentation.tables import PageTable, narrow_table, ranking_table

LARGEST_EMBEDDED_TABLE = 20_000
"""Tables of more bytes are linked, from the folder beside the page, and not embedded."""

MOST_ANSWERS = 3
MOST_LIMITS = 3


def study_section(study: Study, folder: Path) -> dict[str, Any]:
    """The section of a finished study: what `reports/study.html.j2` shows, by name.

    Parameters
    ----------
    study : Study
        The study.
    folder : path
        Its folder of results.
    """
    dataset = results.read(folder / "study.nc")
    experiment = study.experiment(0)
    figures = [figure_view(each, folder) for each in experiment.figures]
    main = next(iter(figures), None)
    found, own = pitfalls(study, dataset), study.page_tables(dataset)
    specifications = [Specification(**each.specification) for each in experiment.figures]
    ranking = _ranking(study, [each for each in specifications if each.compares or not own], folder, dataset)
    cannot = dataset.attrs.get("cannot")
    not_run = [f"Not run: {cannot}."] if cannot else []
    tables = [outcome_table(dataset), _facts(dataset), *own[0 if ranking else 1 :]]
    return {
        "name": study.name,
        "title": study.title,
        "question": study.question,
        "description": study.description,
        "answers": main["sentences"][:MOST_ANSWERS] if main else [],
        "table": ranking or next(iter(own), None),
        "main": main,
        "limits": [*not_run, *study.cautions(dataset), *(each.found for each in found)][:MOST_LIMITS],
        "more": figures[1:],
        "conventions": [*study.conventions(dataset), *failures_told(study)],
        "pitfalls": found,
        "tables": [each for each in tables if each is not None],
        "files": [f"{study.name}/tables/{each.name}.csv" for each in experiment.tables],
        "seed": str(dataset.attrs.get("seed", "")),
        "runs": f"{study.name}/runs.csv",
        "configuration_hash": str(dataset.attrs.get("configuration_hash", "")),
    }


def _ranking(
    study: Study, specifications: Sequence[Specification], folder: Path, dataset: xr.Dataset
) -> PageTable | None:
    """The table of the first ranking of schedulers."""
    labels = getattr(study, "shown_labels", getattr(study, "labels", ()))
    written = dict(zip(labels, getattr(study, "schedulers", ()), strict=True))
    knows = {label: scheduler_made(each).information for label, each in written.items()}
    for specification in specifications:
        if specification.form == "ranking" and specification.hue == "scheduler":
            numbers = _numbers(folder / "figures" / f"{specification.name}.csv", specification)
            if len(numbers):
                return ranking_table(numbers, specification, knows, str(dataset.attrs.get("reference", "")))
    return None


def _facts(dataset: xr.Dataset) -> PageTable | None:
    """Workloads: what was left out or repaired, and their checksums."""
    if "workload_checksum" not in dataset:
        return None
    checksums = dataset["workload_checksum"]
    rows = []
    for labels in product(*(checksums[dim].values for dim in checksums.dims)):
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


def figure_view(figure: Figure, folder: Path) -> dict[str, Any]:
    """A figure with what it shows and how to read it."""
    specification = Specification(**figure.specification)
    title, stem = specification.title, folder / "figures" / figure.name
    table = stem.with_name(f"{figure.name}.csv")
    text = finding_file(folder / "figures", figure.name).read_text(encoding="utf-8")
    sentences = [line for line in text.splitlines() if line]
    numbers = _numbers(table, specification)
    return {
        "title": title,
        "sentences": sentences,
        "headline": sentences[0] if sentences else title,
        "alternative": f"{title}. {' '.join(sentences)}",  # for those who cannot see it
        "caption": caption(specification, numbers),
        "image": data_address(stem.with_name(f"{figure.name}.svg"), "image/svg+xml"),
        "table": data_address(table, "text/csv") if table.stat().st_size <= LARGEST_EMBEDDED_TABLE else None,
        "table_path": f"{folder.name}/figures/{figure.name}.csv",
        "anchor": anchor(folder.name, figure.name),
        "narrow": narrow_table(numbers, specification),
    }


def _numbers(path: Path, specification: Specification) -> pd.DataFrame:
    """Numbers of a figure; texts that are empty stay so."""
    if path.stat().st_size <= 1:
        return pd.DataFrame()
    labels = dict.fromkeys((*AXES, specification.hue, specification.facets, specification.lanes), str)
    # a label may be "None" or "NA", or look like a number
    table = pd.read_csv(path, keep_default_na=False, na_values=[""], dtype=labels)
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
    form, hue = specification.form, specification.hue
    stems = (name.removesuffix("_quantile").removesuffix("_series") for name in specification.measures)
    measures = listed([known_measure(stem).words for stem in stems])
    relative = specification.reference and specification.relation in numbers
    many = hue in numbers and numbers[hue].nunique() > MOST_BANDS
    bands = "" if many else "; bands and bars: 95 % intervals"
    shown = {
        "ranking": f"Dots: {measures}{', relative to the reference' if relative else ''}.",
        "response": f"Lines and points: {measures} over {specification.x.replace('_', ' ')}{bands}.",
        "distribution": f"Lines: share of jobs with at most this {measures}.",
        "series": f"Lines: {measures}, first replicate.",
    }
    parts = [shown[form]] if form in shown and measures else []
    if form == "ranking" and relative:
        parts.append(
            "Filled: differs significantly, corrected for all comparisons of this study. "
            "Bars: simultaneous 95 % intervals."
        )
    elif form == "ranking" and "low" in numbers and numbers["low"].notna().any():
        parts.append("Bars: 95 % intervals.")
    if form in ("ranking", "response") and "number" in numbers and numbers["number"].max() > 1:
        counts = numbers["number"].dropna().astype(int).tolist()
        parts.append(f"{units_word(numbers).capitalize()}: {spanned(counts)}.")
    return " ".join([*parts, specification.caption]).strip()
