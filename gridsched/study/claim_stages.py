"""The stage that sets the claims of the papers against the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gridsched import results
from gridsched.claims import Claim, claims_table, evaluate, labels_of, load_claims
from gridsched.study import files, plan
from gridsched.study.config import Study


def evaluate_claims(studies: Sequence[Study], datasets: Sequence[str | Path], target: str | Path) -> None:
    """Write the table of all claims as CSV.

    Parameters
    ----------
    studies : sequence of Study
        The studies that were run; claims about others are listed as not run.
    datasets : sequence of path
        Their datasets, in the same order.
    target : path
        The table: the columns of `gridsched.claims.claims_table`, and in `dataset` and `figure` the files
        that hold and show our value, from the folder of results on; empty where there is none.
    """
    known = {study.name: study for study in studies}
    read = {name: results.read(path) for name, path in zip(known, datasets, strict=True)}
    claims = load_claims()
    table = claims_table(evaluate(claims, read))
    table["dataset"] = [_dataset(claim, known) for claim in claims]
    table["figure"] = [_figure(claim, known) for claim in claims]
    files.write_table(table, target)


def _dataset(claim: Claim, studies: Mapping[str, Study]) -> str:
    return f"{claim.source.study}/study.nc" if claim.source and claim.source.study in studies else ""


def _figure(claim: Claim, studies: Mapping[str, Study]) -> str:
    if claim.source is None or claim.source.study not in studies:
        return ""
    study = studies[claim.source.study]
    name = plan.figure_showing(study, claim.source.variable, labels_of(claim))
    return f"{study.name}/figures/{name}.svg" if name else ""
