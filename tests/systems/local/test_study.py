"""Studies of local policies: the same jobs under other conditions."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from gridsched import results
from gridsched.experiments.config import study_from
from gridsched.experiments.parts import WorkloadConfig
from gridsched.experiments.prepare import selected_jobs
from gridsched.figures import style
from gridsched.replication import holm, times_interval, times_significance
from gridsched.systems.local.figures.conditions import conditions_effects, conditions_ranking
from gridsched.systems.local.report import local_view
from tests.support.studies import made, run_study

JOBS = 400
BATCHES = 10


def log(path: Path) -> None:
    """A log of a crowded cluster of 16 processors, in which some jobs were cancelled while they waited."""
    rng = np.random.default_rng(5)
    lines = ["; MaxProcs: 16"]
    submit = 0
    for number in range(1, JOBS + 1):
        submit += int(rng.integers(0, 500))
        run, size = int(rng.integers(60, 2000)), int(rng.choice([1, 2, 4, 8]))
        wait, memory, status = int(rng.integers(0, 3000)), int(rng.choice([100, 900])), 1
        if number % 10 == 0:
            run, status = -1, 5
        fields = [
            number,
            submit,
            wait,
            run,
            size,
            -1,
            -1,
            size,
            2500,
            memory * 1024,
            status,
            *[1] * 5,
            -1,
            -1,
        ]
        lines.append(" ".join(map(str, fields)))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a study with its results, figures too."""
    here = tmp_path_factory.mktemp("conditions")
    log(here / "log.swf")
    run_study(study(here), here, 1, shown=True)
    return here


def study(here: Path) -> Any:
    """A log under four conditions."""
    file = str(here / "log.swf")
    nodes = [{"count": 4, "cores": 4, "memory": 2048}]
    return study_from(
        {
            "name": "conditions",
            "title": "Conditions",
            "common": {"baseline": "plain"},
            "scenarios": [
                {"name": "plain", "file": file, "baseline": None},
                {"name": "wait", "file": file, "cancelled": "wait"},
                {"name": "fail", "file": file, "failures": {"mean_time_between": 40_000}},
                {"name": "memory", "file": file, "nodes": nodes},
            ],
            "schedulers": ["fcfs", "easy"],
            "reference": "easy",
            "metrics": {"batches": BATCHES},
        }
    )


@pytest.fixture(scope="module")
def dataset(folder: Path) -> xr.Dataset:
    """The dataset of the study."""
    return results.read(folder / "conditions" / "study.nc")


def test_jobs_that_are_the_same_everywhere_are_compared(folder: Path, dataset: xr.Dataset) -> None:
    runs = {
        (scenario, policy): results.read(made(folder, f"{scenario}, {policy}, requested run times"))
        for scenario in ("plain", "wait", "fail", "memory")
        for policy in ("fcfs", "easy")
    }
    numbers: set[int] | None = None
    for run in runs.values():
        patient = run["gives_up_time"].values < 0 if "gives_up_time" in run else True
        own = set(run["job_number"].values[(run["start_time"].values >= 0) & patient].tolist())
        numbers = own if numbers is None else numbers & own
    assert numbers is not None
    assert len(numbers) == JOBS - JOBS // 10
    assert (dataset["jobs_shared"] == len(numbers)).all()
    sums = {}
    for place, run in runs.items():
        kept = np.isin(run["job_number"].values, sorted(numbers))
        response = (run["end_time"].values - run["submit_time"].values)[kept].astype(np.float64)
        sums[place] = np.array([part.sum() for part in np.array_split(response, BATCHES)])
        mean = dataset["response_time_shared"].sel(workload=place[0], scheme=place[1]).item()
        assert mean == pytest.approx(response.mean())
    for scenario, policy in runs:
        found = dataset.sel(workload=scenario, scheme=policy, estimate="requested")
        expected = times_interval(sums[scenario, policy], sums["plain", policy])
        for suffix, value in zip(("", "_low", "_high"), expected, strict=True):
            assert found[f"response_time_effect{suffix}"].item() == pytest.approx(float(value))
        against = sums[scenario, policy].sum() / sums[scenario, "easy"].sum()
        assert found["response_time_against"].item() == pytest.approx(against)
        rivals = [other for other in ("fcfs", "easy") if other != policy]
        ahead = [
            other
            for other in rivals
            if times_interval(sums[scenario, policy], sums[scenario, other]).high < 1
        ]
        assert str(found["response_time_ahead_of"].values) == ";".join(ahead)


def test_what_became_of_jobs_is_told_by_scenario(dataset: xr.Dataset) -> None:
    fates = dataset.sel(scheme="fcfs", estimate="requested")
    assert fates["executions_killed"].sel(workload="fail") > 0
    assert fates["jobs_gave_up"].sel(workload="wait") > 0
    assert np.isnan(fates["executions_killed"].sel(workload="plain"))
    assert set(dataset["baseline"].values.tolist()) == {"plain"}


def test_figures_of_conditions_have_a_row_for_each(folder: Path, dataset: xr.Dataset) -> None:
    figures = folder / "conditions" / "figures"
    assert {path.stem for path in figures.glob("*.png")} == {
        "conditions_effects",
        "conditions_ranking",
        "load-plain",
        "workload-plain",
    }
    _, effects = conditions_effects(dataset)
    _, ranking = conditions_ranking(dataset)
    assert effects["workload"].unique().tolist() == ["wait", "fail", "memory"]
    assert ranking["workload"].unique().tolist() == ["plain", "wait", "fail", "memory"]
    assert (ranking.loc[ranking["scheme"] == "easy", "mean"] == 1).all()
    assert len(effects) == 3 * 2 * 2
    assert style.WIDTH > 0
    view = local_view(study(folder), folder / "conditions")
    assert view["fates"]
    assert "Conditions are compared" in " ".join(view["conventions"])
    (wait,) = [table for table in view["tables"] if table["workload"] == "wait"]
    assert [row.gave_up != "" for row in wait["rows"]][:2] == [True, True]


def test_figures_of_conditions_may_have_nothing_to_compare(dataset: xr.Dataset) -> None:
    nothing = dataset.assign(response_time_effect=np.nan * dataset["response_time_effect"])
    nothing = nothing.assign(bounded_slowdown_effect=np.nan * dataset["bounded_slowdown_effect"])
    assert conditions_effects(nothing)[1].empty


def test_failures_depend_on_the_seed_alone_where_they_are_drawn(folder: Path) -> None:
    tasks = {seed: study(folder).experiment(seed).tasks for seed in (1, 2)}
    changed = [
        one.labels["scenario"]
        for one, two in zip(*tasks.values(), strict=True)
        if one.key != two.key and one.labels
    ]
    assert changed == ["fail", "fail"]


@pytest.fixture(scope="module")
def paired(tmp_path_factory: pytest.TempPathFactory) -> xr.Dataset:
    """A study in which all pairs of policies are compared, with policies that predict."""
    here = tmp_path_factory.mktemp("pairs")
    log(here / "log.swf")
    run_study(
        study_from(
            {
                "name": "pairs",
                "title": "Pairs",
                "scenarios": [{"name": "log", "file": str(here / "log.swf")}],
                "schedulers": [
                    "easy",
                    "sjbf",
                    {"name": "known", "scheduler": "easy", "order": "shortest", "prediction": "actual"},
                    {"name": "easy++", "scheduler": "easy++", "correction": ["doubling", "requested"]},
                ],
                "pairs": True,
                "metrics": {"batches": BATCHES},
            }
        ),
        here,
        1,
        shown=True,
    )
    return results.read(here / "pairs" / "study.nc")


def test_every_two_policies_are_compared(paired: xr.Dataset) -> None:
    labels = ["easy", "sjbf", "known", "easy++, correction doubling", "easy++, correction requested"]
    own = paired.sel(workload="log", estimate="requested", job_class="all", scheme=labels)
    found: set[tuple[str, str]] = set()
    pairs = list(combinations(labels, 2))
    for metric in ("response_time", "bounded_slowdown"):
        batch = {label: own[f"{metric}_batch"].sel(scheme=label).values for label in labels}
        for label in labels:
            expected = times_interval(batch[label], batch["easy"])
            for suffix, value in zip(("", "_low", "_high"), expected, strict=True):
                assert own[f"{metric}_ratio{suffix}"].sel(scheme=label).item() == pytest.approx(float(value))
        sure = holm([float(times_significance(batch[one], batch[other])) for one, other in pairs]) < 0.05
        expected_pairs = {
            (one, other) if batch[one].mean() < batch[other].mean() else (other, one)
            for (one, other), certain in zip(pairs, sure, strict=True)
            if certain
        }
        beats = own[f"{metric}_beats"]
        found = {
            (label, other)
            for label in labels
            for other in str(beats.sel(scheme=label).values).split(";")[:-1]
        }
        assert found == expected_pairs
    assert found


def test_a_log_can_be_replayed_without_incomplete_jobs(tmp_path: Path) -> None:
    lines = [f"{j} {j} 0 {run} 1 -1 -1 1 {asked} {' -1' * 9}" for j, run, asked in JOBS_OF_LOG]
    (tmp_path / "log.swf").write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n", encoding="utf-8")
    config = WorkloadConfig(name="log", file=str(tmp_path / "log.swf"), leave_out_incomplete=True)
    made = selected_jobs(config, tmp_path / "log.swf")
    assert made.job_number.tolist() == [1, 4]
    assert (made.left_out["run time 0"], made.left_out["no requested time"]) == (2, 1)


JOBS_OF_LOG = [(1, 5, 10), (2, 0, 10), (3, 5, -1), (4, 50, 10), (5, 0, -1)]
"""Job number, run time, requested time."""
