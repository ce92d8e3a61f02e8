"""The stage that sets the claims of the papers against the results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gridsched import results
from gridsched.claims import claims_table, evaluate, load_claims
from gridsched.study import files


def evaluate_claims(studies: Mapping[str, str | Path], target: str | Path) -> None:
    """Write the table of all claims as CSV.

    Parameters
    ----------
    studies : mapping of study name to path
        Datasets of the studies that were run; claims about others are listed as not run.
    target : path
        The table.
    """
    datasets = {name: results.read(path) for name, path in studies.items()}
    files.write_table(claims_table(evaluate(load_claims(), datasets)), target)
