"""The stage that sets the claims of the papers against the results."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pandas as pd
import xarray as xr

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.claims import Claim, claims_table, evaluate, labels_of, load_claims
from gridsched.experiments.config import Study
from gridsched.experiments.tasks import Figure, function_at


def evaluate_claims(studies: Sequence[Study], datasets: Sequence[str | Path], target: str | Path) -> None:
    """Write the table of all claims as CSV.

    Parameters
    ----------
    studies : sequence of Study
        The studies that were run; claims about others are listed as not run.
    datasets : sequence of path
        Their datasets, in the same order.
    target : path
        The table: the columns of `claims.claims_table`; in `dataset` and `figure` the files that hold and
        show our value, from the folder of results on; and where studies of readings judged the claim, in
        `robustness`, `share`, `readings` and `condition` what they found. Empty where there is none.
    """
    known = {study.name: study for study in studies}
    read = {name: results.read(path) for name, path in zip(known, datasets, strict=True)}
    claims = load_claims()
    table = claims_table(evaluate(claims, read))
    # Figures do not depend on the seed
    figures = {name: study.experiment(0).figures for name, study in known.items()}
    shown = [_files(claim, figures) for claim in claims]
    table["dataset"], table["figure"] = zip(*shown, strict=True)
    files.write_table(table.merge(_over_readings(known, read), how="left", on=_CLAIM), target)


_CLAIM = ["paper", "id"]

_READINGS = ("robustness", "share", "readings", "condition")


def _over_readings(studies: Mapping[str, Study], datasets: Mapping[str, xr.Dataset]) -> pd.DataFrame:
    """What studies of readings found, one row a claim; the first one that judged it."""
    empty = pd.DataFrame(columns=[*_CLAIM, *_READINGS], dtype=object)
    tables = [
        function_at(study.verdicts)(datasets[name]) for name, study in studies.items() if study.verdicts
    ]
    found: pd.DataFrame = pd.concat([empty, *tables]).drop_duplicates(_CLAIM)
    return found


def _files(claim: Claim, figures: Mapping[str, Sequence[Figure]]) -> tuple[str, str]:
    """Files of the dataset and the figure behind a claim."""
    if claim.source is None or claim.source.study not in figures:
        return "", ""
    study = claim.source.study
    name = figure_showing(figures[study], claim.source.variables[0], labels_of(claim))
    return f"{study}/study.nc", f"{study}/figures/{name}.svg" if name else ""


def figure_showing(figures: Sequence[Figure], variable: str, labels: Collection[str]) -> str | None:
    """Figure of a study that shows a variable, the one of a labelled part where there is one.

    Parameters
    ----------
    figures : sequence of Figure
        Figures of the study.
    variable : str
        Variable of its dataset.
    labels : collection of str
        What of it is looked for: names of scenarios, cases, schemes...

    Returns
    -------
    str or None
        Name of the figure's files without ending; None where only the dataset and its tables have numbers.
    """
    meant = [figure for figure in figures if figure.title in labels]
    showing = (each.name for each in (*meant, *figures) if variable in each.specification["measures"])
    return next(showing, None)
