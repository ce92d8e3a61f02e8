"""Studies of the arena: loads, estimates, other conditions, and who cannot take part."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import gridsched as gs
from gridsched import results
from gridsched.experiments.collection import ALL
from gridsched.experiments.comparing import under
from gridsched.experiments.config import study_from
from gridsched.experiments.kinds.arena import ArenaStudy
from gridsched.experiments.prepare import derived_seed
from gridsched.experiments.tasks import OwnFile
from gridsched.presentation.page import build_report
from gridsched.systems.base import Scheduler
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.systems.dynamic_grid.scheduler import DynamicGrid
from gridsched.systems.ideal.scheduler import Ideal
from gridsched.systems.jscheduler.scheduler import JScheduler
from gridsched.systems.multicluster.scheduler import Multicluster
from gridsched.systems.superscheduler.scheduler import Superscheduler
from tests.experiments.kinds.test_grid import crowd
from tests.presentation.test_page import NASTY
from tests.support.fields import assert_fields
from tests.support.studies import made, message_about, read_page, run_study

ONE_SPEED = {**DynamicGrid.cannot, "speed": "this one likes one speed only"}
"""What the dynamic grid can do, and these tests let it refuse."""

M4 = {"name": "M4", "synthetic": {"machine": "M4", "jobs": 40}, "node_exclusive": False}
SAME = {**M4, "name": "same"}
OTHER = {
    "name": "M5",
    "synthetic": {"machine": "M5", "jobs": 60, "sizes": {"exponent": 2}},
    "node_exclusive": False,
}
OWN = "config/costs/example.py:reluctant"
STUDY: dict[str, Any] = {
    "name": "tiny",
    "kind": "arena",
    "title": NASTY.replace("\n", " "),
    "description": NASTY,
    "replicates": 4,
    "scenarios": [{"name": "alike", "clusters": [M4, SAME]}, {"name": "mixed", "clusters": [M4, OTHER]}],
    "schedulers": [
        "local",
        "central",
        {"name": "wait $x$", "scheduler": "jscheduler", "k": 2},
        {"name": "dynamic grid", "scheduler": "dynamic-grid"},
        {"name": "own", "scheduler": "jscheduler", "k": 2, "metric": OWN},
        "ideal-srpt",
    ],
    "loads": [1.0, 2.0],
    "estimates": ["requested", "actual", {"share": 0.5}],
}
HALF = "requested, 0.5 of the error"


def arena(**changes: Any) -> ArenaStudy:
    """The study of these tests with some keys changed."""
    study = study_from({**STUDY, **changes})
    assert isinstance(study, ArenaStudy)
    return study


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the study of these tests, figures too."""
    base = tmp_path_factory.mktemp("arena")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DynamicGrid, "cannot", ONE_SPEED)
        run_study(arena(), base, 1, shown=True)
    return base


@pytest.fixture(scope="module")
def dataset(folder: Path) -> xr.Dataset:
    """The dataset of the study."""
    return results.read(folder / "tiny" / "study.nc")


def test_loads_are_scenarios_and_errors_are_estimates(dataset: xr.Dataset) -> None:
    assert_fields(
        dataset,
        scenario=["alike", "alike, load 2", "mixed", "mixed, load 2"],
        load=[1, 2, 1, 2],
        estimates=["requested", "actual", HALF],
        scenario_without_load=["alike"] * 2 + ["mixed"] * 2,
    )


@pytest.mark.parametrize(
    ("scenario", "estimates", "load", "error"),
    [("alike", "requested", 1, 1), ("alike, load 2", HALF, 2, 0.5), ("mixed", "actual", 1, 0)],
)
def test_measures_are_those_of_the_simulation(
    folder: Path, dataset: xr.Dataset, scenario: str, estimates: str, load: float, error: float
) -> None:
    grids = results.grids_from_dataset(
        results.read(made(folder, f"{scenario.partition(',')[0]}, replicates 0 to 3"))
    )
    for replicate, pairs in grids.items():
        platform = gs.Platform([cluster for _, cluster in pairs]).with_policy("easy")
        jobs = [under(workload, load, share=error) for workload, _ in pairs]
        for label, scheduler in (("central", "central"), ("wait $x$", gs.JScheduler(k=2))):
            seed = derived_seed(1, f"{scenario}\n{replicate}") % 2**31
            run = gs.simulate(jobs, platform, scheduler, seed=seed)
            found = dataset.sel(
                scenario=scenario, scheduler=label, estimates=estimates, replicate=replicate, group=ALL
            )
            response = (run["end_time"] - run["submit_time"]).values
            assert_fields(
                found,
                response_time_mean=pytest.approx(response.mean()),
                messages_per_job=run.attrs["messages"] / len(response),
            )


def test_a_random_scheduler_draws_anew_in_each_replicate(tmp_path: Path) -> None:
    file = crowd(tmp_path / "log.swf", 3, 80)
    clusters = [{"name": name, "file": file, "processors": 16} for name in "ab"]
    scenario = {"name": "log", "clusters": clusters, "shaking": {"replicates": 5, "seconds": 0}}
    study = {
        "name": "random",
        "kind": "arena",
        "title": "Random",
        "scenarios": [scenario],
        "schedulers": ["local", {"name": "random", "scheduler": "wrand", "local": "easy", "measure": False}],
    }
    found = run_study(study_from(study), tmp_path, 1)["response_time_mean"].sel(group=ALL)
    assert len(set(found.sel(scheduler="local").values.ravel().tolist())) == 1
    assert len(set(found.sel(scheduler="random").values.ravel().tolist())) == 5


# --- estimates and loads --------------------------------------------------------------------------


def jobs(seed: int, number: int = 60) -> gs.Workload:
    """Jobs with requested times above their run times, and some without."""
    rng = np.random.default_rng(seed)
    run = rng.integers(1, 2000, number)
    return gs.Workload(
        name=f"jobs {seed}",
        submit_time=np.sort(rng.integers(0, 20_000, number)),
        run_time=run,
        requested_processors=rng.integers(1, 17, number),
        requested_time=np.where(rng.random(number) < 0.1, -1, run * rng.integers(1, 4, number)),
        processors_available=16,
    )


@given(load=st.floats(0.1, 10), error=st.floats(0, 3))
def test_conditions(load: float, error: float) -> None:
    before = jobs(3)
    after = under(before, load, share=error)
    first = before.submit_time[0]
    assert abs(after.submit_time - first - (before.submit_time - first) / load).max() <= 0.5
    known = before.requested_time > 0
    estimate = before.run_time + error * (before.requested_time - before.run_time)
    assert (abs(after.requested_time - estimate)[known] <= 1).all()
    np.testing.assert_array_equal(after.requested_time[~known], before.requested_time[~known])
    np.testing.assert_array_equal(after.run_time, before.run_time)


def test_users_give_up_as_long_after_their_submissions_under_another_load() -> None:
    before = jobs(3)
    before = replace(before, gives_up_time=np.where(before.run_time > 50, before.submit_time + 500, -1))
    after = under(before, 0.5)
    assert before.gives_up_time is not None
    assert after.gives_up_time is not None
    known = before.gives_up_time >= 0
    np.testing.assert_array_equal(after.gives_up_time >= 0, known)
    np.testing.assert_array_equal((after.gives_up_time - after.submit_time)[known], 500)


def test_drawn_errors_are_lognormal_and_repeat_with_their_seed() -> None:
    before = jobs(3)
    first, again, other = (under(before, deviation=0.3, seed=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.requested_time, again.requested_time)
    assert (first.requested_time != other.requested_time).any()
    long = before.run_time > 100  # rounding to whole seconds counts little
    errors = np.log(first.requested_time[long] / before.run_time[long])
    assert abs(errors.mean()) < 4 * 0.3 / np.sqrt(long.sum())
    assert errors.std() == pytest.approx(0.3, rel=0.2)


def test_no_error_is_the_actual_run_time_and_all_of_it_the_requested_time() -> None:
    before, cluster = jobs(4), gs.Cluster(processors=16)
    assert under(before) is before
    expected = gs.simulate(before, cluster, "easy", estimates="actual")
    found = gs.simulate(under(before, share=0.0), cluster, "easy")
    np.testing.assert_array_equal(found["start_time"], expected["start_time"])


SCHEDULERS: dict[str, Scheduler] = {
    "s-i": Superscheduler(scheme="s-i"),
    "ideal": Ideal("fcfs"),
    "JScheduler": JScheduler(k=1),
    "least load": Multicluster(dispatcher="dll", local="easy", rounds="arrival", measure=False),
    "random": Multicluster(dispatcher="wrand", local="easy", rounds="arrival", measure=False),
    "calendars": Calendars(),
    "dynamic": DynamicGrid(),
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_only_what_draws_depends_on_the_seed(name: str) -> None:
    clusters = [gs.Cluster(processors=16, name=f"M{number}") for number in range(2)]
    first, second = (
        gs.simulate([jobs(1), jobs(2)], clusters, SCHEDULERS[name], seed=seed)["start_time"]
        for seed in (1, 2)
    )
    assert first.equals(second) or SCHEDULERS[name].draws
    assert name not in ("JScheduler", "random") or not first.equals(second)


def test_runs_in_which_nothing_is_drawn_do_not_depend_on_the_seed() -> None:
    study = arena(scenarios=[{"name": "alike", "clusters": [{**M4, "name": "a"}, SAME]}])
    of = [{task.name: task for task in study.experiment(seed).tasks if task.labels} for seed in (1, 2)]
    for name, task in of[0].items():
        same = task.arguments["seed"] == of[1][name].arguments["seed"]
        assert same == (task.labels["scheduler"] not in ("wait $x$", "own"))


def test_estimates_are_drawn_by_the_seed_for_all_schedulers_alike() -> None:
    study = arena(estimates=[{"deviation": 0.5}])
    seeds = {task.arguments["seed"] for task in study.experiment(7).tasks if task.labels}
    assert seeds == {7}


# --- who cannot take part, and other conditions ---------------------------------------------------


def test_who_cannot_schedule_a_grid_is_named_with_the_reason(folder: Path, dataset: xr.Dataset) -> None:
    own = dataset["response_time_mean"].sel(scheduler="dynamic grid", group=ALL)
    assert own.sel(scenario="mixed").isnull().all()
    assert own.sel(scenario="alike").notnull().all()
    assert "mixed, dynamic grid" in dataset.attrs["cannot"]
    build_report([arena()], folder / "report.html")
    page = read_page(folder / "report.html")
    assert not page.open
    assert page.foreign == []
    assert NASTY.split("\n")[0] in page.text
    assert "different speed" in page.text


def numbers(folder: Path, study: str, figure: str) -> pd.DataFrame:
    """Numbers behind a figure."""
    return pd.read_csv(folder / study / "figures" / f"{figure}.csv")


def test_words_agree_with_the_tests_of_the_pairs(folder: Path) -> None:
    """Whoever is called different from the best is so by the test of that pair, and the other way round."""
    ranking = numbers(folder, "tiny", "ranking")
    text = (folder / "tiny" / "figures" / "ranking.txt").read_text()
    for scenario, part in ranking.groupby("scenario"):
        for _, row in part.iterrows():
            assert (row["significant"] != 0) == (row["ratio_low"] > 1 or row["ratio_high"] < 1)
        better = part[(part["significant"] == -1) & (part["scheduler"] != "ideal-srpt")]
        if f"{scenario}:" in text:
            line = text.split(f"{scenario}: ")[1].split(" has ")[0]
            assert line in set(better["scheduler"])
            assert part.set_index("scheduler").loc[line, "ratio"] == better["ratio"].min()
    assert "ideal-srpt has" not in text


CALM, FAILING = "calm", "failing"


def failing() -> ArenaStudy:
    """Two machines with a node for each processor, which fail often in one of two scenarios."""
    clusters = [
        {"name": name, "synthetic": {"machine": "M4", "jobs": 60}, "node_exclusive": False} for name in "AB"
    ]
    study = study_from(
        {
            "name": "failures",
            "kind": "arena",
            "title": "Failures",
            "replicates": 5,
            "common": {"clusters": clusters},
            "scenarios": [
                {"name": CALM},
                {"name": FAILING, "baseline": CALM, "failures": {"mean_time_between": 400_000}},
            ],
            "schedulers": ["local", "central", "ideal-fcfs"],
        }
    )
    assert isinstance(study, ArenaStudy)
    return study


def test_effects_are_ratios_to_the_baseline_of_the_same_jobs(tmp_path: Path) -> None:
    dataset = run_study(failing(), tmp_path, 1, shown=True)
    assert dataset["baseline"].values.tolist() == [CALM, CALM]
    assert Ideal.cannot["failures"] in dataset.attrs["cannot"]
    own = dataset.sel(estimates="requested")
    assert (own["executions_killed"].sel(scenario=FAILING, scheduler="local", group=ALL) > 0).all()
    assert (own["jobs"].sel(group=ALL, scheduler="local") == 120).all()
    effects = numbers(tmp_path, "failures", "effects").set_index("scheduler")
    assert sorted(effects.index) == ["central", "local"]
    assert (effects["scenario"] == FAILING).all()
    for label in ("central", "local"):
        means = own["response_time_mean"].sel(group=ALL, scheduler=label).mean("replicate")
        expected = float(means.sel(scenario=FAILING) / means.sel(scenario=CALM))
        assert effects.loc[label, "ratio"] == pytest.approx(expected)
    text = (tmp_path / "failures" / "figures" / "effects.txt").read_text()
    assert text.startswith(f"{FAILING}: mean response time")


def test_scenarios_share_what_does_not_depend_on_failures() -> None:
    tasks = {task.name: task for task in failing().experiment(1).tasks}
    assert "failures" not in str([task.arguments for task in tasks.values() if task.stage == "prepare"])
    assert (
        tasks[f"{FAILING}, local, requested run times"].key
        != tasks[f"{CALM}, local, requested run times"].key
    )


# --- configuration --------------------------------------------------------------------------------


def beside_baseline(**choice: Any) -> dict[str, Any]:
    """Scenarios of which the second, with this choice, is compared with the first."""
    first = {"name": "alike", "clusters": [M4, SAME], "schedulers": ["local", "central"]}
    return {"scenarios": [first, {**first, "name": "other", "baseline": "alike", **choice}]}


def test_runs_do_not_depend_on_the_other_schedulers() -> None:
    fewer = deepcopy(STUDY)
    fewer["schedulers"] = fewer["schedulers"][1:]
    fewer["title"] = "other"
    ours, theirs = (
        {task.name: task.key for task in each.experiment(1).tasks if task.stage == "simulate"}
        for each in (arena(), study_from(fewer))
    )
    assert theirs.items() <= ours.items()
    assert len(theirs) < len(ours)


@pytest.mark.parametrize(
    ("key", "values"), [("policies", ["easy", "sjf", "fcfs"]), ("loads", [1.0, 2.0, 0.5])]
)
def test_a_second_policy_or_load_repeats_runs_and_a_third_does_not(key: str, values: list[Any]) -> None:
    one, two, three = (
        {
            task.key
            for task in arena(**{"loads": [1.0], key: values[:number]}).experiment(1).tasks
            if task.labels
        }
        for number in (1, 2, 3)
    )
    assert not one & two
    assert two < three


def test_a_function_of_the_user_is_part_of_the_key() -> None:
    (task,) = [
        task
        for task in arena(loads=[1.0], estimates=["requested"]).experiment(1).tasks
        if task.labels.get("scheduler") == "own" and task.labels["scenario"] == "alike"
    ]
    assert [each.file for each in task.inputs if isinstance(each, OwnFile)] == [OWN.partition(":")[0]]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"schedulers": ["local"]}, "schedulers"),
        ({"schedulers": ["local", "locl"]}, "did you mean local?"),
        ({"schedulers": ["local", "local"]}, "there twice"),
        ({"schedulers": ["local", {"name": "x", "scheduler": "jscheduler", "k": 0}]}, "k"),
        ({"schedulers": ["local", {"name": "x", "scheduler": "jscheduler", "kk": 1}]}, "unknown key"),
        (
            {"schedulers": ["local", {"name": "x", "scheduler": "jscheduler", "metric": "no.py:f"}]},
            "no file no.py",
        ),
        ({"reference": "best"}, "known are local"),
        ({"policies": ["central"]}, "central is no local policy"),
        ({"loads": [0.5]}, "give 1 too"),
        ({"loads": [0.0, 1.0]}, "loads"),
        ({"loads": [1.0, 1.0]}, "there twice"),
        ({"estimate_errors": [0.5]}, "estimate_errors: unknown key"),
        ({"estimates": [{"share": 0}]}, "share"),
        ({"estimates": [{"share": 1}]}, "1 stands for requested times"),
        ({"estimates": [{"share": 0.5, "deviation": 1}]}, "give exactly one of share, deviation"),
        ({"estimates": [{"share": 0.5}, {"share": 0.5}]}, "there twice"),
        ({"estimates": ["guessed"]}, "found 'guessed'"),
        (
            beside_baseline(estimates=["clairvoyant"]),
            "no estimates are those of 'alike', which has requested",
        ),
        (beside_baseline(schedulers=["own"]), "no schedulers are those of 'alike', which has local, central"),
    ],
)
def test_mistakes(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    assert expected in message_about(tmp_path, {**STUDY, **changes})
