"""The table of claims in a run: which dataset and which figure is behind a row."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import yaml

from gridsched.experiments.claim_stages import evaluate_claims, figure_showing
from gridsched.experiments.claims import Claim, labels_of, load_claims
from gridsched.experiments.config import Study, load_study
from tests.conftest import REPOSITORY


@pytest.fixture(scope="module")
def studies() -> dict[str, Study]:
    listed = yaml.safe_load((REPOSITORY / "config" / "reproduction.yaml").read_text(encoding="utf-8"))
    # Their traces have to be fetched by hand, so that they are in no other configuration
    paths = [*listed["studies"], "config/studies/placements.yaml", "config/studies/sequences.yaml"]
    loaded = [load_study(REPOSITORY / path) for path in paths]
    return {study.name: study for study in loaded}


@pytest.mark.parametrize(
    ("variable", "labels", "figure"),
    [
        ("delay_mean", {"November", "configuration 1"}, "ranking"),
        ("delay_work_weighted", set(), "averages"),
        ("slots_max", set(), "cost"),
        ("jobs_submitted", {"November"}, None),
    ],
)
def test_figure_of_the_part_that_is_meant(
    variable: str, labels: set[str], figure: str | None, studies: dict[str, Study]
) -> None:
    figures = studies["calendars-slots"].experiment(1).figures
    assert figure_showing(figures, variable, labels) == figure


def test_every_figure_behind_a_claim_is_drawn(studies: dict[str, Study]) -> None:
    """And most claims that are judged have one."""
    judged: list[Claim] = [
        claim
        for claim in load_claims()
        if claim.kind in ("value", "order", "bound") and claim.source is not None
    ]
    drawn = {name: study.experiment(1).figures for name, study in studies.items()}
    with_figure = 0
    for claim in judged:
        assert claim.source is not None
        figures = drawn[claim.source.study]
        name = figure_showing(figures, claim.source.variables[0], labels_of(claim))
        if name is not None:
            with_figure += 1
            assert name in [figure.name for figure in figures], claim.id
    assert with_figure > 0.5 * len(judged)


def test_claims_without_studies_lead_nowhere(tmp_path: Path) -> None:
    evaluate_claims([], [], tmp_path / "claims.csv")
    table = pd.read_csv(tmp_path / "claims.csv", keep_default_na=False)
    assert len(table) == len(load_claims())
    assert set(table["dataset"]) == set(table["figure"]) == {""}
