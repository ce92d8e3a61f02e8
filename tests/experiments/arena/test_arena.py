"""The arena: every system on the same jobs, and what its comparisons say."""

from __future__ import annotations

from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gridsched import results
from gridsched.errors import ConfigurationError
from gridsched.experiments import files
from gridsched.experiments.arena.config import ArenaStudy
from gridsched.experiments.arena.figures import arena_cost, arena_ranking, ranked
from gridsched.experiments.arena.grids import ArenaGrid, schedule
from gridsched.experiments.arena.report import arena_view
from gridsched.experiments.arena.stages import MEASURES, pair_table, run_scheduler
from gridsched.experiments.config import load_study
from gridsched.experiments.tasks import OwnFile
from gridsched.platform import Cluster
from gridsched.presentation.page import build_report
from gridsched.replication import holm, times_interval, times_significance
from gridsched.simulation import simulate
from gridsched.systems.base import Scheduler
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.systems.dynamic_grid.scheduler import DynamicGrid
from gridsched.systems.ideal.scheduler import Ideal
from gridsched.systems.jscheduler.costs import COST
from gridsched.systems.jscheduler.scheduler import JScheduler
from gridsched.systems.multicluster.scheduler import Multicluster
from gridsched.systems.superscheduler.scheduler import Superscheduler
from gridsched.workloads import Workload
from tests.presentation.test_page import NASTY
from tests.support.pages import Page
from tests.support.studies import made, run_study

SCHEDULERS: dict[str, Scheduler] = {
    "local": Superscheduler(scheme="local"),
    "s-i": Superscheduler(scheme="s-i"),
    "central": Superscheduler(scheme="central"),
    "ideal": Ideal("fcfs"),
    "self-scheduling": JScheduler(k=1),
    "least load": Multicluster(dispatcher="dll", local="easy", rounds="arrival", measure=False),
    "calendars": Calendars(),
    "dynamic": DynamicGrid(),
}


def jobs(seed: int, number: int = 60, processors: int = 16) -> Workload:
    """A crowd of jobs with requested times above their run times."""
    random = np.random.default_rng(seed)
    run = random.integers(1, 2000, number)
    return Workload(
        name=f"jobs {seed}",
        submit_time=np.sort(random.integers(0, 20_000, number)),
        run_time=run,
        requested_processors=random.integers(1, processors + 1, number),
        requested_time=run * random.integers(1, 4, number),
        processors_available=processors,
    )


def grid(speeds: tuple[float, ...] = (1.0, 1.0), **options: Any) -> ArenaGrid:
    """Machines of 16 processors with a crowd each."""
    clusters = [Cluster(processors=16, name=f"M{i}", speed=speed) for i, speed in enumerate(speeds)]
    return ArenaGrid(workloads=[jobs(i) for i in range(len(speeds))], clusters=clusters, **options)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_job_runs_once_after_its_submission(name: str) -> None:
    scheduled = schedule(SCHEDULERS[name], grid(align="none"))
    merged, _ = grid(align="none").merged()
    assert scheduled.attrs["jobs_not_run"] == 0
    assert (scheduled["start_time"].values >= merged.submit_time).all()
    # an ideal machine gives all its processors to one job, so that it can be faster
    if name != "ideal":
        assert (scheduled["end_time"].values - scheduled["start_time"].values >= merged.run_time).all()


@pytest.mark.parametrize("name", SCHEDULERS)
def test_only_what_draws_depends_on_the_seed(name: str) -> None:
    first, second = (schedule(SCHEDULERS[name], grid(seed=seed)) for seed in (1, 2))
    assert first.equals(second) or SCHEDULERS[name].draws
    assert name != "self-scheduling" or not first.equals(second)


def test_replicates_draw_anew(tmp_path: Path) -> None:
    """Replicates with the same jobs differ by what the scheduler draws alone."""
    workloads = [{"name": f"M{i}", "synthetic": {"machine": "M4", "jobs": 30}} for i in range(2)]
    schedulers = ["local", {"name": "asks one", "scheduler": "jscheduler", "k": 1}]
    study = ArenaStudy.model_validate(
        {
            "name": "anew",
            "kind": "arena",
            "title": "Anew",
            "scenarios": [{"name": "drawn", "clusters": workloads}],
            "schedulers": schedulers,
            "replicates": 2,
        }
    )
    pairs = list(zip(grid().workloads, grid().clusters, strict=True))
    files.write(results.grids_dataset({0: pairs, 1: pairs}), tmp_path / "grids.nc")
    for label in study.labels:
        run_scheduler(study, "drawn", label, tmp_path / "grids.nc", 1, tmp_path / "run.nc")
        first, second = np.split(results.read(tmp_path / "run.nc")["start_time"].values.ravel(), 2)
        assert np.array_equal(first, second) == (label == "local")


@pytest.mark.parametrize("name", ["local", "s-i", "central", "self-scheduling"])
def test_one_machine_leaves_no_choice(name: str) -> None:
    alone = grid((1.0,), align="none")
    expected = simulate(alone.workloads[0], alone.clusters[0], "easy")
    scheduled = schedule(SCHEDULERS[name], alone)
    np.testing.assert_array_equal(scheduled["start_time"].values, expected["start_time"].values)
    np.testing.assert_array_equal(scheduled["end_time"].values, expected["end_time"].values)
    assert not scheduled["moved"].values.any()


@pytest.mark.parametrize("name", ["self-scheduling", "least load", "calendars", "dynamic"])
def test_the_unit_of_speed_does_not_matter(name: str) -> None:
    slow, fast = (schedule(SCHEDULERS[name], grid((unit, 2 * unit))) for unit in (1.0, 375.0))
    xr.testing.assert_equal(slow, fast)


def test_a_home_without_queue_keeps_its_jobs() -> None:
    scheduled = schedule(SCHEDULERS["local"], grid())
    assert not scheduled["moved"].values.any()
    assert scheduled.attrs["messages"] == 0


def test_ideal_machines_move_nothing_that_could_be_named() -> None:
    assert (schedule(SCHEDULERS["ideal"], grid())["moved"].values == -1).all()


@pytest.mark.parametrize("name", SCHEDULERS)
def test_machines_of_different_speed_that_give_whole_nodes(name: str) -> None:
    clusters = [
        Cluster(processors=16, processors_per_node=node, node_exclusive=True, speed=speed, name=f"{node}")
        for node, speed in ((4, 1.0), (2, 2.0))
    ]
    unlike = ArenaGrid(workloads=[jobs(i) for i in range(2)], clusters=clusters)
    assert not SCHEDULERS[name].incompatibility(unlike.platform)
    assert schedule(SCHEDULERS[name], unlike).attrs["jobs_not_run"] == 0


ONE_SPEED = {**DynamicGrid.cannot, "speed": "this one likes one speed only"}
"""What the dynamic grid can do, and these tests let it refuse."""


def test_what_cannot_be_scheduled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DynamicGrid, "cannot", ONE_SPEED)
    unfit = grid((1.0, 2.0))
    assert "different speed" in SCHEDULERS["dynamic"].incompatibility(unfit.platform)
    with pytest.raises(ConfigurationError, match="different speed"):
        schedule(SCHEDULERS["dynamic"], unfit)


def test_who_asks_more_machines_than_there_are_asks_all() -> None:
    xr.testing.assert_identical(schedule(JScheduler(k=30), grid()), schedule(JScheduler(k=2), grid()))


def test_one_workload_for_each_machine() -> None:
    with pytest.raises(ConfigurationError, match="1 workloads for 2 clusters"):
        ArenaGrid(workloads=[jobs(1)], clusters=[Cluster(processors=16), Cluster(processors=16)])


@given(load=st.floats(0.1, 10), error=st.floats(0, 3))
def test_conditions(load: float, error: float) -> None:
    before = jobs(3)
    after = ArenaGrid(workloads=[before], clusters=[Cluster(processors=16)]).under(load, error).workloads[0]
    first = before.submit_time[0]
    assert abs(after.submit_time - first - (before.submit_time - first) / load).max() <= 0.5
    estimate = before.run_time + error * (before.requested_time - before.run_time)
    assert (abs(after.requested_time - estimate) < 1).all()
    np.testing.assert_array_equal(after.run_time, before.run_time)


def test_usual_conditions_change_nothing() -> None:
    before = grid()
    for workload, same in zip(before.workloads, before.under().workloads, strict=True):
        np.testing.assert_array_equal(workload.submit_time, same.submit_time)
        np.testing.assert_array_equal(workload.requested_time, same.requested_time)


@pytest.mark.parametrize(("load", "error"), [(0.0, 1.0), (-1.0, 1.0), (1.0, -0.1), (np.nan, 1.0)])
def test_impossible_conditions(load: float, error: float) -> None:
    with pytest.raises(ConfigurationError, match="use a positive load"):
        grid().under(load, error)


# --- how sure differences are ---------------------------------------------------------------------


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_by_its_definition(probabilities: list[float]) -> None:
    ordered = sorted(range(len(probabilities)), key=lambda i: probabilities[i])
    expected, largest = [0.0] * len(probabilities), 0.0
    for rank, i in enumerate(ordered):
        largest = max(largest, min(1.0, (len(probabilities) - rank) * probabilities[i]))
        expected[i] = largest
    np.testing.assert_allclose(holm(probabilities), expected)


def test_holm_leaves_out_what_was_not_tested() -> None:
    np.testing.assert_allclose(holm([0.01, np.nan, 0.04]), [0.02, np.nan, 0.04])


@given(st.lists(st.tuples(st.floats(1, 100), st.floats(1, 100)), min_size=3, max_size=8))
def test_interval_at_the_probability_touches_one(pairs: list[tuple[float, float]]) -> None:
    values, reference = np.array(pairs).T
    probability = float(times_significance(values, reference))
    if 1e-9 < probability < 1 - 1e-9:
        found = times_interval(values, reference, 1 - probability)
        near = found.low if found.mean > 1 else found.high
        assert near == pytest.approx(1.0, rel=1e-6)


def test_equal_values_are_no_finding() -> None:
    assert times_significance([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == 1.0


def test_pairs_are_named_better_first() -> None:
    sums = np.array([[10.0, 12.0, 11.0], [20.0, 24.0, 22.5], [np.nan] * 3])
    dims = ("scenario", "load", "estimate_error", "scheduler", "block")
    study = xr.Dataset(
        {f"{name}_by_block": (dims, sums[None, None, None]) for name in MEASURES},
        {"scenario": ["s"], "load": [1.0], "estimate_error": [1.0], "scheduler": ["a", "b", "unfit"]},
    )
    pairs = pair_table(study)
    assert list(pairs["better"]) == ["a"] * len(MEASURES)
    assert list(pairs["worse"]) == ["b"] * len(MEASURES)
    assert pairs["ratio"].iloc[0] == pytest.approx(33 / 66.5)
    assert (pairs["corrected"] < 0.05).all()


# --- studies --------------------------------------------------------------------------------------

M4 = {"name": "M4", "synthetic": {"machine": "M4", "jobs": 40}, "node_exclusive": False}
SAME = {**M4, "name": "same"}
OTHER = {
    "name": "M5",
    "synthetic": {"machine": "M5", "jobs": 60, "sizes": {"exponent": 2}},
    "node_exclusive": False,
}
STUDY: dict[str, Any] = {
    "name": "tiny",
    "kind": "arena",
    "title": NASTY.replace("\n", " "),
    "description": NASTY,
    "replicates": 3,
    "scenarios": [{"name": "alike", "clusters": [M4, SAME]}, {"name": "mixed", "clusters": [M4, OTHER]}],
    "schedulers": [
        "local",
        "central",
        {"name": "wait $x$", "scheduler": "jscheduler", "k": 2},
        {"name": "dynamic grid", "scheduler": "dynamic-grid"},
        {"name": "own", "scheduler": "jscheduler", "k": 2, "metric": "config/costs/example.py:reluctant"},
        "ideal-srpt",
    ],
    "loads": [1.0, 2.0],
    "estimate_errors": [0.0, 1.0],
}


def write(folder: Path, values: dict[str, Any]) -> Path:
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the study of these tests."""
    base = tmp_path_factory.mktemp("arena")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DynamicGrid, "cannot", ONE_SPEED)
        run_study(ArenaStudy.model_validate(STUDY), base, 1, shown=True)
    return base


def test_means_are_those_of_the_plays(folder: Path) -> None:
    study = ArenaStudy.model_validate(STUDY)
    whole = results.read(folder / "tiny" / "study.nc").sel(scenario="alike")
    scheduled = results.read(made(folder, "alike, " + study.labels[1]))
    machines = results.grids_from_dataset(results.read(made(folder, "alike, replicates 0 to 2")))
    submit = np.concatenate(
        [
            ArenaGrid(workloads=[w for w, _ in pairs], clusters=[c for _, c in pairs])
            .under(2.0)
            .merged()[0]
            .submit_time
            for pairs in machines.values()
        ]
    )
    response = scheduled["end_time"].sel(load=2.0, estimate_error=1.0).values - submit
    found = whole["response_time_mean"].sel(scheduler="central", load=2.0, estimate_error=1.0)
    assert float(found) == pytest.approx(response.mean())
    assert float(whole["jobs_common"]) == len(submit) == 3 * 80
    assert whole.attrs["configuration_hash"] == study.checksum()


def test_reference_has_ratio_one_and_others_theirs(folder: Path) -> None:
    whole = results.read(folder / "tiny" / "study.nc")
    for name in MEASURES:
        ratio = whole[f"{name}_mean"] / whole[f"{name}_mean"].sel(scheduler="local", drop=True)
        xr.testing.assert_allclose(whole[f"{name}_ratio"], ratio.transpose(*whole[f"{name}_ratio"].dims))


def test_who_cannot_schedule_a_grid_is_said_to(folder: Path) -> None:
    whole = results.read(folder / "tiny" / "study.nc").sel(scheduler="dynamic grid")
    assert str(whole["unfit"].sel(scenario="alike").values) == ""
    assert "speed" in str(whole["unfit"].sel(scenario="mixed").values)
    assert np.isnan(whole["response_time_mean"].sel(scenario="mixed")).all()
    assert not np.isnan(whole["response_time_mean"].sel(scenario="alike")).any()


def test_tables(folder: Path) -> None:
    means = pd.read_csv(folder / "tiny" / "tables" / "means.csv")
    runs = pd.read_csv(folder / "tiny" / "runs.csv")
    pairs = pd.read_csv(folder / "tiny" / "tables" / "comparisons.csv")
    assert len(means) == (6 + 5) * 4 * len(MEASURES)
    assert len(runs) == 2 * 6, "all loads, estimates and replicates of a scheduler on a scenario together"
    assert runs["run"].is_unique
    assert len(pairs) == (15 + 10) * 4 * len(MEASURES)
    assert ((pairs["ratio"] <= 1) | pairs["ratio"].isna()).all()


def test_ideal_machines_beat_nobody(folder: Path) -> None:
    """Counted are schedulers that are surely better or worse, after correction."""
    whole = results.read(folder / "tiny" / "study.nc")
    pairs = pd.read_csv(folder / "tiny" / "tables" / "comparisons.csv")
    sure = pairs[(pairs["corrected"] < 0.05) & (pairs["measure"] == "response_time")]
    assert "ideal-srpt" in set(sure["better"])
    for label, scenario in product(whole["scheduler"].values, whole["scenario"].values):
        part = whole.sel(scheduler=label, scenario=scenario, load=1.0, estimate_error=1.0)
        if np.isnan(part["response_time_mean"]):
            continue
        here = sure[(sure["scenario"] == scenario) & (sure["load"] == 1) & (sure["estimate_error"] == 1)]
        better = here[(here["worse"] == label) & (here["better"] != "ideal-srpt")]
        worse = here[(here["better"] == label) & (here["worse"] != "ideal-srpt")]
        assert len(better) == int(part["response_time_beaten_by"])
        assert len(worse) == int(part["response_time_beats"])


def test_page_says_who_is_best_under_each_condition(folder: Path) -> None:
    study = ArenaStudy.model_validate(STUDY)
    whole = results.read(folder / "tiny" / "study.nc")
    conditions = arena_view(study, folder / study.name)["conditions"]
    assert len(conditions) == whole["response_time_mean"].isel(scheduler=0).size
    for found in conditions:
        error = {"perfect": 0.0, "users'": 1.0}[found.estimates]
        means = whole["response_time_mean"].sel(
            scenario=found.scenario, load=float(found.load), estimate_error=error
        )
        schedulers = means.where(whole["system"] != "ideal machine", drop=True).to_series().dropna()
        assert found.best == schedulers.idxmin()
        assert found.longest.removesuffix(", not surely worse") == schedulers.idxmax()
        assert schedulers.idxmax() not in found.equals.split("; ")


def test_ranking_is_by_the_geometric_mean(folder: Path) -> None:
    whole = results.read(folder / "tiny" / "study.nc")
    order = ranked(whole)
    usual = whole["response_time_ratio"].sel(load=1.0, estimate_error=1.0)
    means = [float(np.exp(np.log(usual.sel(scheduler=label)).mean())) for label in order]
    assert means == sorted(means)


def test_page_takes_text_literally_and_says_what_is_unfit(folder: Path) -> None:
    build_report([ArenaStudy.model_validate(STUDY)], folder / "report.html")
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert not page.open
    assert page.foreign == []
    assert NASTY.split("\n")[0] in page.text
    assert "cannot schedule this grid: clusters of different speed" in page.text


def test_page_says_where_nothing_can_be_sure(folder: Path, tmp_path: Path) -> None:
    whole = {**STUDY["scenarios"][0], "block": 10_000_000}
    few = {"scenarios": [whole], "schedulers": ["local", "central"], "replicates": 1}
    study = ArenaStudy.model_validate({**STUDY, **few, "loads": [1.0], "estimate_errors": [1.0]})
    run_study(study, tmp_path, 1, shown=True)
    (alone,) = arena_view(study, tmp_path / study.name)["tables"]
    assert "in 1 block, too few to be sure of anything" in alone["facts"]
    assert {row.interval for row in alone["rows"]} == {""}
    several = arena_view(ArenaStudy.model_validate(STUDY), folder / STUDY["name"])["tables"]
    assert all("in 3 blocks; " in table["facts"] for table in several)


def test_page_speaks_of_ideal_machines_where_there_are_any(folder: Path) -> None:
    lines = arena_view(ArenaStudy.model_validate(STUDY), folder / STUDY["name"])["conventions"]
    assert any("Ideal machines" in line for line in lines)
    assert not any("MUSCLE" in line for line in lines)


def test_runs_do_not_depend_on_the_other_systems() -> None:
    study = ArenaStudy.model_validate(STUDY)
    fewer = deepcopy(STUDY)
    fewer["schedulers"] = fewer["schedulers"][1:]
    fewer["title"] = "other"
    ours, theirs = (
        {task.name: task.key for task in each.experiment(1).tasks if task.stage == "simulate"}
        for each in (study, ArenaStudy.model_validate(fewer))
    )
    assert theirs.items() <= ours.items()
    assert len(theirs) < len(ours)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"schedulers": ["local"]}, "schedulers"),
        ({"schedulers": ["local", "locl"]}, "did you mean local?"),
        ({"schedulers": ["local", "local"]}, "there twice"),
        (
            {
                "schedulers": [
                    "local",
                    {"name": "x", "scheduler": "calendars", "slots": [[1, 60], [None, 90]]},
                ]
            },
            "90 s",
        ),
        ({"schedulers": ["local", {"name": "x", "scheduler": "jscheduler", "k": 0}]}, "k"),
        ({"schedulers": ["local", {"name": "x", "scheduler": "jscheduler", "kk": 1}]}, "unknown key"),
        ({"schedulers": ["local", {"name": "x", "scheduler": "muscle", "threads": 2}]}, "unknown key"),
        (
            {"schedulers": ["local", {"name": "x", "scheduler": "jscheduler", "metric": "wat"}]},
            "did you mean wait",
        ),
        (
            {"schedulers": ["local", {"name": "x", "scheduler": "jscheduler", "metric": "no.py:f"}]},
            "no file no.py",
        ),
        ({"reference": "best"}, "known are local"),
        ({"policies": ["easy", "fcfs"]}, "write at most 1"),
        ({"policies": ["central"]}, "central is no local policy"),
        ({"estimates": ["actual"]}, "vary estimate_errors"),
        ({"loads": [0.5]}, "give 1 too"),
        ({"loads": [0.0, 1.0]}, "loads"),
        ({"estimate_errors": [0.0]}, "give 1 too"),
    ],
)
def test_mistakes_in_a_study(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigurationError, match="study") as caught:
        load_study(write(tmp_path, {**STUDY, **changes}))
    assert expected in str(caught.value)


def test_a_change_of_a_cost_plays_again() -> None:
    tasks = ArenaStudy.model_validate(STUDY).experiment(1).tasks
    using = [task for task in tasks if OwnFile("config/costs/example.py") in task.inputs]
    assert {task.labels["scheduler"] for task in using} == {"own"}


def test_example_costs_are_good() -> None:
    for name in ("reluctant", "tightest"):
        jscheduler = JScheduler(k=2, metric=COST.load(f"config/costs/example.py:{name}"))
        scheduled = schedule(jscheduler, grid(align="none"))
        assert scheduled.attrs["jobs_not_run"] == 0


def test_jobs_that_gain_little_stay_at_home() -> None:
    def stubborn(at_home: int) -> float:
        return 1.0 - at_home

    scheduled = schedule(JScheduler(k=2, metric=stubborn), grid(align="none"))
    local = schedule(SCHEDULERS["local"], grid(align="none"))
    np.testing.assert_array_equal(scheduled["start_time"].values, local["start_time"].values)
    assert not scheduled["moved"].values.any()


def test_means_out_of_sight_stand_at_the_edge_with_their_ratio(folder: Path) -> None:
    """One far scheduler must not press the others together."""
    whole = results.read(folder / "tiny" / "study.nc")
    far = whole.copy(deep=True)
    scheduler = {"scheduler": "central", "scenario": "alike", "load": 1.0, "estimate_error": 1.0}
    for name, value in (("", 123.0), ("_low", 100.0), ("_high", 150.0)):
        far[f"response_time_ratio{name}"].loc[scheduler] = value
    figure, numbers = arena_ranking(far)
    panel = figure.axes[0]
    assert panel.get_xlim()[1] < 10
    assert "123" in {text.get_text() for text in panel.texts}
    assert 123.0 in set(numbers["ratio"])
    figure, numbers = arena_cost(far)
    assert figure.axes[0].get_ylim()[1] < 10
    assert "123" in {text.get_text() for text in figure.axes[0].texts}
    assert "ideal-srpt" not in set(numbers["scheduler"])
