"""Readings in the ledger of all claims and on the page."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pandas as pd
import pytest
import xarray as xr

from gridsched.experiments import files
from gridsched.experiments.claim_stages import evaluate_claims
from gridsched.experiments.claims import load_claims
from gridsched.experiments.config import study_from
from gridsched.presentation.claims import claims_view
from gridsched.presentation.page import build_report
from tests.experiments.kinds.readings.test_study import dataset, place, study_of

__all__ = ["dataset", "place"]


def test_the_ledger_shows_what_readings_say(
    place: Path, dataset: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the study were about a paper of the ledger, and its first claim one of that."""
    paper = "learned-scheduler"
    known = next(claim for claim in load_claims() if claim.paper == paper)
    names = [known.id, *dataset["claim"].values[1:].tolist()]
    copytree(place / "results" / "tiny", tmp_path / "tiny")
    made = tmp_path / "tiny" / "study.nc"
    files.write(dataset.isel(pair=slice(0)).assign_coords(claim=names).assign_attrs(paper=paper), made)
    monkeypatch.chdir(place)
    study = study_from(study_of().values())
    evaluate_claims([study], [made], tmp_path / "claims.csv")
    table = pd.read_csv(tmp_path / "claims.csv").set_index(["paper", "id"])
    assert len(table) == len(load_claims())
    assert table["robustness"].notna().sum() == 1
    assert table.loc[(paper, known.id), "readings"] == 60
    views = {view["paper"]: view for view in claims_view(tmp_path / "claims.csv")}
    assert sum(views[paper]["over_readings"].values()) == 1
    assert all(not view["over_readings"] for name, view in views.items() if name != paper)
    assert {name: count for name, count in views[paper]["after_readings"].items() if count} == {
        table.loc[(paper, known.id), "robustness"]: 1
    }
    build_report([study], tmp_path / "report.html", claims=tmp_path / "claims.csv")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for text in (
        "What the paper leaves open",
        "How many processors?",
        "Interpretations of highest agreement",
    ):
        assert text in page
