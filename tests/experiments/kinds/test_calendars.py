"""Studies of imprecise calendars: configuration, measures, runs, what is shown, and the logs of the paper."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsched as gs
from gridsched import results
from gridsched.errors import ConfigurationError
from gridsched.experiments.claims import evaluate, load_claims
from gridsched.experiments.collection import ALL
from gridsched.experiments.config import load_study
from gridsched.experiments.kinds.calendars import (
    BORDERS,
    LENGTHS,
    OTHERS,
    CalendarScenario,
    CalendarStudy,
    divide,
    partition,
    prepare_partitions,
)
from gridsched.experiments.prepare import prepare_grids
from gridsched.metrics.jobs import job_metrics
from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.systems.calendars.measures import DELAYS, contributions, delays_of_groups
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.systems.calendars.tree import Level, Manager, SlotPlan, describe
from gridsched.traces import clean, read_swf
from tests.conftest import REPOSITORY
from tests.support.errors import says
from tests.support.studies import changed, log_text, message_about, run_study, study_in

SEED = 5
MIXED = {"scheduler": "calendars", "slots": [[8, 10], [4, 120], [None, 2400]]}
STUDY: dict[str, Any] = {
    "name": "tiny",
    "kind": "calendars",
    "title": "Tiny",
    "scenarios": [
        {
            "name": "pair",
            "clusters": [
                {"name": "north", "file": "north.swf", "processors": 16},
                {"name": "south", "file": "south.swf", "processors": 8},
            ],
        },
        {
            "name": "parts",
            "partitions": {
                "workload": {"name": "whole", "file": "north.swf"},
                "clusters": [
                    {"name": "small", "processors": 2},
                    {"name": "twin", "processors": 2},
                    {"name": "large", "processors": 4},
                ],
                "run_time": "cpu",
            },
            "schedulers": ["alone", "together", "easy"],
        },
    ],
    "schedulers": [
        {"name": "alone", **MIXED, "levels": []},
        {"name": "together", **MIXED, "levels": [{"promote_processors": 2, "bump": 60}, {}]},
        {"name": "late news", **MIXED, "levels": [{"promote_processors": 2}, {"period": 600}]},
        {"name": "low threshold", **MIXED, "threshold": 0.75, "levels": []},
        {"name": "fine", "scheduler": "calendars", "slots": [[None, 60]], "levels": []},
        {"name": "reserved", **MIXED, "refused": "queue", "levels": []},
        {"name": "more reserved", **MIXED, "refused": "queue", "levels": []},
        "easy",
    ],
    "reservations": {"reserved": {"share": 0.25}, "more reserved": {"share": 0.5}},
    "estimates": ["actual", "requested"],
}


def write_logs(folder: Path) -> Path:
    """Logs of the study, with average CPU times that are sometimes unknown."""
    for number, (name, largest) in enumerate((("north", 8), ("south", 5)), start=1):
        lines = []
        for line in log_text(number, 120, largest).splitlines():
            fields = line.split()
            if len(fields) == 18 and fields[0].isdigit():
                fields[5] = "-1" if int(fields[0]) % 7 == 0 else f"{int(fields[3]) * 0.6:.1f}"
            lines.append(" ".join(fields))
        (folder / f"{name}.swf").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with the logs."""
    monkeypatch.chdir(write_logs(tmp_path))
    return tmp_path


# --- configuration --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("schedulers.4.slots", [], ["schedulers[fine].slots: slots: 0 levels; use 1 to"]),
        ("schedulers.4.slots", [[4, 60]], ["[fine].slots: slots: the last level has 4 slots; use None"]),
        ("schedulers.4.slots", [[4, 60], [None, 100]], ["slots: 100 s are no larger multiple of 60 s"]),
        ("schedulers.4.slots", [[0, 60], [None, 120]], ["level 0 has 0 slots; use 1 or more"]),
        ("scenarios", [], ["scenarios: found []; write at least 1"]),
        ("scenarios.0.clusters", [], ["scenarios[pair]: give exactly one of clusters, partitions"]),
        ("scenarios.1.align", "clock", ["scenarios[parts]: align: partitions keep"]),
        (
            "scenarios.0.schedulers",
            ["alone", "alon"],
            ["scenarios[pair].schedulers: found 'alon'; did you mean alone?"],
        ),
        ("scenarios.1.partitions.workload", {"name": "x", "synthetic": {"jobs": 5}}, ["only a log"]),
        ("scenarios.1.partitions.run_time", "user", ["run_time: found 'user'", "'cpu'"]),
        ("scenarios.1.partitions.clusters.1.name", "SMALL", ["one file where case does not count"]),
        ("scenarios.1.partitions.clusters.1.processors", None, ["clusters[twin]: processors: missing"]),
        (
            "scenarios.1.partitions.clusters.2",
            {"name": "large", "processors": 4, "processors_per_node": 3},
            ["clusters[large]: processors: 4 are not whole nodes of 3"],
        ),
        ("scenarios.0.clusters.1.file", "no.swf", ["scenarios[pair].clusters[south].file: found 'no.swf'"]),
        ("scenarios.0.scale", 0, ["scenarios[pair].scale: found 0"]),
        ("schedulers.7", "eazy", ["schedulers[item 8]: found 'eazy'", "did you mean easy"]),
        (
            "schedulers.7",
            {"name": "x", "scheduler": "easy", "threshold": 0.5},
            ["schedulers[x].threshold: unknown key"],
        ),
        ("schedulers.3.threshold", 0.0, ["schedulers[low threshold]: threshold is 0.0"]),
        ("schedulers.0.low_water", 1.0, ["schedulers[alone]: low_water is 1.0"]),
        ("schedulers.1.levels", [{}], ["schedulers[together]: levels: one level has nobody above it"]),
        ("schedulers.1.levels", [{"period": 5}, {}], ["levels: period: the first level does not"]),
        ("schedulers.1.levels", [{}, {"bump": 5}], ["levels: bump: the last level does not"]),
        ("schedulers.1.levels", [{}, {"borrow_limit": 5}, {}], ["levels: borrow_limit: the middle"]),
        ("schedulers.1.levels", [{}, {"children": 2}], ["levels: children: the last level"]),
        ("schedulers.1.levels", [{}, {"children": 0}, {}], ["levels[item 2]: children is 0"]),
        ("reservations.reserved.share", 1.5, ["reservations.reserved.share: found 1.5"]),
        ("reservations.reserved.lead", [50, 10], ["lead: the second must not be less"]),
        ("reservations.resrved", {"share": 0.1}, ["reservations: found 'resrved'; did you mean reserved?"]),
        ("reservations.easy", {"share": 0.1}, ["reservations: 'easy' grants none; local policies start"]),
        ("schedulers.1.name", "alone", ["schedulers: 'alone' is there twice"]),
        ("estimates", ["predicted"], ["estimates[item 1]: found 'predicted'", "'requested'"]),
        ("reference", "lone", ["reference: found 'lone'; did you mean alone?"]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_mistake_in_a_study(folder: Path, path: str, value: Any, expected: list[str]) -> None:
    says(message_about(folder, changed(STUDY, path, value)), *expected)


def study_of(**changes: Any) -> CalendarStudy:
    """The study with other values of some keys."""
    return CalendarStudy.model_validate({**STUDY, **changes})


def test_runs_depend_on_what_they_use_only() -> None:
    def key(values: dict[str, Any]) -> str:
        tasks = CalendarStudy.model_validate(values).experiment(SEED).tasks
        (found,) = (task.key for task in tasks if task.name == "pair, alone, actual run times")
        return found

    before = key(STUDY)
    other = deepcopy(STUDY)
    other["title"] = "Another"
    other["schedulers"][4]["slots"] = [[None, 30]]
    other["scenarios"][1]["scale"] = 2
    other["schedulers"][1]["low_water"] = 0.25
    assert key(other) == before
    other["schedulers"][0]["slots"] = [[8, 10], [None, 2400]]
    assert key(other) != before


def test_tree_of_levels() -> None:
    clusters = tuple(Cluster(processors=4, name=f"c{k}") for k in range(5))
    scheduler = Calendars(
        levels=[
            Level(promote_processors=2),
            Level(children=2, promote_duration=60, period=30),
            Level(placement="unbiased"),
        ]
    )
    tree = scheduler.tree(clusters)
    assert isinstance(tree, Manager)
    assert list(describe(tree)) == [
        "level 3, 1: placement unbiased",
        "level 2, 1: promote_duration 60, period 30, placement lowest",
        "c0 (4 processors): promote_processors 2, placement lowest",
        "c1 (4 processors): promote_processors 2, placement lowest",
        "level 2, 2: promote_duration 60, period 30, placement lowest",
        "c2 (4 processors): promote_processors 2, placement lowest",
        "c3 (4 processors): promote_processors 2, placement lowest",
        "c4 (4 processors): promote_processors 2, placement lowest",
    ]
    assert scheduler.tree(clusters[:1]) == clusters[0]
    with pytest.raises(ConfigurationError, match="there are none, but 5 clusters"):
        Calendars(levels=[]).tree(clusters)


# --- measures -------------------------------------------------------------------------------------

JOBS = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(0, 3000), st.integers(1, 64)), min_size=1, max_size=30
)


def naive_delays(jobs: list[tuple[int, int, int]]) -> list[float]:
    """The four aggregates of (wait, run time, processors), in plain Python."""
    responses = [max(wait + run, 1) for wait, run, _ in jobs]
    runs = [max(run, 1) for _, run, _ in jobs]
    each = [response / run for response, run in zip(responses, runs, strict=True)]
    work = [run * size for run, (_, _, size) in zip(runs, jobs, strict=True)]
    return [
        sum(each) / len(each),
        sum(d * w for d, w in zip(each, work, strict=True)) / sum(work),
        sum(responses) / sum(runs),
        math.exp(sum(map(math.log, each)) / len(each)),
    ]


@given(JOBS)
def test_contributions_add_up_to_the_averages(jobs: list[tuple[int, int, int]]) -> None:
    wait, run, size = np.array(jobs).T
    parts, weights = contributions(wait + run, run, size)
    assert parts.shape == weights.shape == (len(DELAYS), len(jobs))
    np.testing.assert_allclose(parts.sum(axis=1), naive_delays(jobs), rtol=1e-9)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-9)


def test_no_jobs_have_no_delay() -> None:
    nothing = np.empty(0, np.int64)
    assert contributions(nothing, nothing, nothing)[0].shape == (4, 0)


@settings(max_examples=40)
@given(JOBS, st.integers(1, 5), st.randoms(use_true_random=False))
def test_delays_of_blocks_average_to_those_of_all_jobs(
    jobs: list[tuple[int, int, int]], blocks: int, random: Any
) -> None:
    wait, run_time, size = np.array(jobs).T
    ran = np.array([random.random() < 0.8 for _ in jobs])
    run = xr.Dataset({"run_time": ("job", run_time), "processors": ("job", size)})
    values = {"response_time": np.where(ran, (wait + run_time).astype(float), np.nan)}
    members = {ALL: np.arange(len(jobs)), "some": np.flatnonzero(size > 10)}
    whole = delays_of_groups(run, values, members)
    parts = delays_of_groups(run, values, members, np.sort(np.arange(len(jobs)) % blocks))
    jobs_in = {
        group: np.bincount((np.sort(np.arange(len(jobs)) % blocks))[own][ran[own]], minlength=blocks)
        for group, own in members.items()
    }
    for group, own in members.items():
        expected = naive_delays([jobs[i] for i in own if ran[i]]) if ran[own].any() else [math.nan] * 4
        found = [float(whole[name].sel(group=group)) for name in DELAYS]
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        for name, measure in DELAYS.items():
            value = parts[name].sel(group=group).values
            weight = (
                jobs_in[group][: len(value)]
                if measure.weight == "jobs"
                else parts[measure.weight].sel(group=group).values
            )
            if ran[own].any():
                average = np.nansum(value * weight) / weight.sum()
                np.testing.assert_allclose(average, float(whole[name].sel(group=group)), rtol=1e-9)


# --- partitions -----------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(1, 8), st.integers(1, 4)), max_size=40),
    st.lists(st.sampled_from([2, 4, 8]), min_size=1, max_size=5),
    st.booleans(),
)
def test_jobs_go_to_the_smallest_partition_in_turn(
    jobs: list[tuple[int, int]], sizes: list[int], by_user: bool
) -> None:
    sizes = [*sizes, 8]
    processors, user = np.array(jobs, np.int64).reshape(-1, 2).T
    place = divide(processors, user, np.array(sizes), by_user=by_user)
    turns: dict[int, list[int]] = {}
    for (asked, who), found in zip(jobs, place.tolist(), strict=True):
        size = min(each for each in sizes if each >= asked)
        alike = [index for index, each in enumerate(sizes) if each == size]
        seen = turns.setdefault(size, [])
        turn = seen.index(who) if by_user and who in seen else len(seen)
        if not by_user or who not in seen:
            seen.append(who)
        assert found == alike[turn % len(alike)]


def test_partitions_count_what_they_leave_out(folder: Path) -> None:
    partitions = study_of().scenario("parts").partitions
    assert partitions is not None
    log = read_swf("north.swf")
    unknown = log.average_cpu_time < 0
    loaded = partition(partitions, "north.swf")
    left_out = dict(loaded[0][0].left_out)
    assert left_out["no CPU time"] == unknown.sum()
    assert sum(len(workload) for workload, _ in loaded) + sum(left_out.values()) == len(log)
    assert not any(workload.left_out for workload, _ in loaded[1:])
    assert max(int(workload.processors.max()) for workload, _ in loaded) == 4
    more = partition(partitions.model_copy(update={"unknown": "wall"}), "north.swf")
    assert more[0][0].repaired["no CPU time"] == unknown.sum()
    by_number = {int(n): t for w, _ in more for n, t in zip(w.job_number, w.run_time, strict=True)}
    for number, cpu, wall in zip(log.job_number, log.average_cpu_time, log.run_time, strict=True):
        if int(number) in by_number:
            assert by_number[int(number)] == (wall if cpu < 0 else math.ceil(cpu))


def test_partitions_are_the_clusters_that_are_configured(folder: Path) -> None:
    nodes = {"processors_per_node": 2, "node_exclusive": True}
    own: dict[str, Any] = {"name": "large", "processors": 4, **nodes, "speed": 2}
    values = changed(STUDY, "scenarios.1.partitions.clusters.2", own)
    partitions = CalendarStudy.model_validate(values).scenario("parts").partitions
    *_, (_, large) = partition(partitions, "north.swf")
    assert large == Cluster(**own)


# --- stages ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the study as run once."""
    return study_in(write_logs(tmp_path_factory.mktemp("calendars")), study_of, SEED) / "tiny"


@pytest.fixture(scope="module")
def whole(made: Path) -> xr.Dataset:
    return results.read(made / "study.nc")


def runs_of(whole: xr.Dataset, name: str) -> xr.DataArray:
    """A measure of whole runs."""
    return whole[name].sel(group=ALL).isel(replicate=0)


def test_dataset_holds_every_run(made: Path, whole: xr.Dataset) -> None:
    study = study_of()
    known = runs_of(whole, "makespan").notnull()
    for scenario in study.scenarios:
        for scheduler in study.labels:
            runs = known.sel(scenario=scenario.name, scheduler=scheduler)
            assert bool(runs.all()) == (scheduler in study.labels_in(scenario))
    assert whole["delay_mean"].dims == ("scenario", "scheduler", "estimates", "replicate", "group")
    assert whole["replicates_are"].values.tolist() == ["blocks", "blocks"]
    groups = [ALL, *LENGTHS, OTHERS, "users of north", "cluster south", "users of twin, under 10 s"]
    assert set(groups) <= set(whole["group"].values.tolist())
    run_rows = pd.read_csv(made / "runs.csv")
    assert len(run_rows) == run_rows["run"].nunique() == int(known.sum())
    assert set(DELAYS) <= set(pd.read_csv(made / "tables" / "measures.csv"))


def test_nothing_is_lost(whole: xr.Dataset) -> None:
    known = runs_of(whole, "makespan").notnull()
    jobs = whole["jobs"].sum("replicate")
    submitted = runs_of(whole, "jobs_submitted").where(known, 0)
    assert bool((jobs.sel(group=ALL) == submitted).all())
    assert bool((jobs.sel(group=list(LENGTHS)).sum("group") == submitted).all())
    traded = runs_of(whole, "supplied") + runs_of(whole, "local_work")
    has = traded.notnull()
    np.testing.assert_allclose(
        traded.where(has, 0), runs_of(whole, "work_submitted").where(has, 0), rtol=1e-9
    )
    assert float(abs(whole["balance"].isel(replicate=0).sum("group")).max()) < 1e-6


def test_blocks_average_to_the_naive_delays(folder: Path, whole: xr.Dataset) -> None:
    jobs, clusters = logs()
    run = simulate(jobs, clusters, "easy", estimates="requested")
    values = {name: column.tolist() for name, column in job_metrics(run).items()}
    own = whole.sel(scenario="pair", scheduler="easy", estimates="requested")
    rows = list(
        zip(
            values["wait_time"],
            run["run_time"].values.tolist(),
            run["processors"].values.tolist(),
            strict=True,
        )
    )
    length = np.searchsorted(BORDERS, run["run_time"].values, side="right")
    home = run["home_cluster"].values
    for group, chosen in (
        (ALL, np.ones(len(rows), bool)),
        (LENGTHS[3], length == 3),
        ("users of south", home == 1),
    ):
        expected = naive_delays(
            [(int(w), r, p) for (w, r, p), mine in zip(rows, chosen, strict=True) if mine]
        )
        for (name, measure), value in zip(DELAYS.items(), expected, strict=True):
            parts = own[[name, measure.weight]].sel(group=group).dropna("replicate")
            weight = parts[measure.weight]
            assert float((parts[name] * weight).sum() / weight.sum()) == pytest.approx(value)
    both = (home == 1) & (length == 3)
    expected = naive_delays([(int(w), r, p) for (w, r, p), mine in zip(rows, both, strict=True) if mine])
    place = {"group": f"users of south, {LENGTHS[3]}", "replicate": 0}
    assert [float(own[name].sel(place)) for name in DELAYS] == pytest.approx(expected)


def logs() -> tuple[list[Any], list[Cluster]]:
    """Workloads and clusters of the scenario `pair`."""
    sizes = {"north": 16, "south": 8}
    jobs = [clean(read_swf(f"{name}.swf", name=name), processors=size) for name, size in sizes.items()]
    return jobs, [Cluster(processors=size, name=name) for name, size in sizes.items()]


def test_runs_are_those_of_the_library(folder: Path, whole: xr.Dataset) -> None:
    jobs, clusters = logs()
    leaves = [Manager(name=c.name, children=[c], promote_processors=2, bump=60) for c in clusters]
    options = Calendars(slots=SlotPlan(levels=[(8, 10), (4, 120), (None, 2400)]))
    managed = replace(options, managers=Manager(name="top", children=leaves))
    run = simulate(jobs, clusters, managed, estimates="requested")
    here = whole.sel(scenario="pair", estimates="requested", replicate=0)
    together = here.sel(scheduler="together")
    for name in ("operations", "bumped", "promoted", "slots_max"):
        assert float(together[name].sel(group=ALL)) == run.attrs[name]
    assert float(together["supplied"].sel(group="cluster north")) == run["supplied"].values[0] / 3600
    away = run["segment_cluster"].values != run["home_cluster"].values[run["segment_job"].values]
    moved = len(set(run["segment_job"].values[away].tolist()))
    assert float(together["transferred"].sel(group=ALL)) == pytest.approx(moved / run.sizes["job"])
    span = int(run["end_time"].max() - run["submit_time"].min())
    held = (run["segment_processors"] * (run["segment_end"] - run["segment_start"])).values
    for index, cluster in enumerate(clusters):
        expected = held[run["segment_cluster"].values == index].sum() / (cluster.processors * span)
        found = together["utilisation_makespan"].sel(group=f"cluster {cluster.name}")
        assert float(found) == pytest.approx(expected)
    alone = whole.sel(scenario="pair", scheduler="alone", estimates="actual", replicate=0)
    parts = [simulate([w], [c], options, estimates="actual") for w, c in zip(jobs, clusters, strict=True)]
    assert float(alone["operations"].sel(group=ALL)) == sum(part.attrs["operations"] for part in parts)
    assert float(alone["slots_max"].sel(group=ALL)) == max(part.attrs["slots_max"] for part in parts)
    assert float(alone["transferred"].sel(group=ALL)) == 0


def test_calendars_without_managers_are_one_cluster_after_the_other(folder: Path) -> None:
    jobs, clusters = logs()
    options = Calendars(slots=SlotPlan(levels=[(8, 10), (4, 120), (None, 2400)]), levels=[])
    run = gs.simulate(jobs, clusters, options, estimates="actual")
    gs.verify(run)
    for index, (workload, cluster) in enumerate(zip(jobs, clusters, strict=True)):
        part = gs.simulate([workload], [cluster], options, estimates="actual")
        own = run["home_cluster"].values == index
        first = run["submit_time"].values[own].min()
        for name in ("start_time", "end_time", "planned_start"):
            found, expected = run[name].values[own] - first, part[name].values
            # Slots of both begin at a multiple of 10 s, and the first job comes at time 0
            np.testing.assert_array_equal(found, expected)


def test_reservations_grow_with_their_share(whole: xr.Dataset) -> None:
    own = whole.sel(scenario="pair", estimates="actual")
    asked = runs_of(own, "reservations_granted") + runs_of(own, "reservations_refused")
    few, many = (float(asked.sel(scheduler=name)) for name in ("reserved", "more reserved"))
    jobs = float(runs_of(own, "jobs_submitted").sel(scheduler="alone"))
    assert 0 < few < many < jobs
    assert abs(many / jobs - 0.5) < 0.15
    assert set(own["jobs"].sel(group=OTHERS).sum("replicate").values.tolist()) == {jobs - many}
    acceptance = runs_of(own, "acceptance")
    assert np.isnan(float(acceptance.sel(scheduler="alone")))
    assert 0 < float(acceptance.sel(scheduler="reserved")) <= 1


def test_scaled_scenario_has_the_same_schedule(folder: Path, tmp_path: Path) -> None:
    """A machine and jobs a thousand times as large: the same starts, for the same number of operations."""
    ordinary = STUDY["scenarios"][0]
    values: dict[str, Any] = {"scenarios": [ordinary, {**ordinary, "name": "huge", "scale": 1000}]}
    values |= {"schedulers": [STUDY["schedulers"][0], STUDY["schedulers"][7]], "estimates": ["actual"]}
    values["reservations"] = {}
    whole = run_study(study_of(**values), tmp_path / "scaled", SEED)
    for name in (*DELAYS, "wait_time_mean", "operations", "slots_touched", "slots_max", "makespan"):
        pair, huge = (
            whole[name].sel(scenario=place, group=[ALL, *LENGTHS]).values for place in ("pair", "huge")
        )
        np.testing.assert_allclose(huge, pair, rtol=1e-9)
    processors = whole["cluster_processors"].sel(scenario="huge", scheduler="alone").isel(replicate=0)
    assert float(processors.sum()) == 24_000


def test_synthetic_clusters_are_replicated(tmp_path: Path) -> None:
    clusters = [{"name": name, "synthetic": {"machine": "M5", "jobs": 60}} for name in ("a", "b")]
    values = {"scenarios": [{"name": "drawn", "clusters": clusters}], "replicates": 3}
    whole = run_study(study_of(**values), tmp_path, SEED)
    assert whole["replicates_are"].values.tolist() == ["draws"]
    waits = whole["delay_mean"].sel(scenario="drawn", scheduler="reserved", estimates="actual", group=ALL)
    assert len(set(waits.values.tolist())) == 3


def test_claims_find_what_they_need(whole: xr.Dataset) -> None:
    """The shipped claims are about variables that a study has."""
    claims = [claim for claim in load_claims() if claim.paper == "imprecise-calendars"]
    names = {claim.source.study for claim in claims if claim.source is not None}
    assert len(evaluate(claims, dict.fromkeys(names, whole))) == len(claims) > 200
    known = set(map(str, whole.variables))
    assert {name for claim in claims if claim.source is not None for name in claim.source.variables} <= known


# --- real logs ------------------------------------------------------------------------------------

PAPER_JOBS = [939, 2267, 1597, 1594, 2549, 1759, 1700, 2119, 1630, 1483]


def workloads_of(scenario: CalendarScenario, mirror: Path, target: Path) -> list[Any]:
    """Workloads and clusters of a scenario of a shipped study."""
    names = {"CTC-SP2-1996": "CTC-SP2-1996-3.1-cln", "KTH-SP2-1996": "KTH-SP2-1996-2.1-cln"}
    names["LANL-CM5-1994"] = "LANL-CM5-1994-4.1-cln"
    found = {each.name: mirror / f"{names[str(each.archive)]}.swf.gz" for each in scenario.workloads}
    if scenario.partitions is None:
        prepare_grids(scenario.name, scenario.clusters, [0], SEED, found, target)
    else:
        prepare_partitions(scenario.name, scenario.partitions, found, target)
    (pairs,) = results.grids_from_dataset(results.read(target)).values()
    return list(pairs)


def shipped(name: str) -> CalendarStudy:
    """A study of the repository."""
    study = load_study(REPOSITORY / "config" / "studies" / f"calendars-{name}.yaml")
    assert isinstance(study, CalendarStudy)
    return study


def test_windows_have_the_jobs_of_the_paper(archive_mirror: Path, tmp_path: Path) -> None:
    pairs = workloads_of(shipped("clusters").scenario("CTC"), archive_mirror, tmp_path / "ctc.nc")
    assert [len(workload) for workload, _ in pairs] == PAPER_JOBS
    assert {cluster.processors for _, cluster in pairs} == {336}
    work = sum(int(workload.processors @ workload.run_time) for workload, _ in pairs)
    assert round(work / 3600) == 261_365 + 237_033
    promoted = sum(
        int(((workload.processors > 112) | (workload.run_time >= 12 * 3600)).sum()) for workload, _ in pairs
    )
    assert promoted == 2070


def test_months_have_nearly_the_jobs_of_the_paper(archive_mirror: Path, tmp_path: Path) -> None:
    study = shipped("slots")
    for name, classes in (("October", [157, 1007, 496, 747]), ("November", [195, 581, 376, 832])):
        ((workload, cluster),) = workloads_of(study.scenario(name), archive_mirror, tmp_path / f"{name}.nc")
        assert cluster.processors == 100
        length = np.searchsorted(BORDERS, workload.run_time, side="right")
        assert np.bincount(length).tolist() == classes


def test_partitions_have_jobs_of_their_size(archive_mirror: Path, tmp_path: Path) -> None:
    study = shipped("partitions")
    pairs = workloads_of(study.scenario("March"), archive_mirror, tmp_path / "march.nc")
    assert [len(workload) for workload, _ in pairs] == [1719, 1718, 1585, 1077, 331, 204]
    for workload, cluster in pairs:
        assert (workload.processors == cluster.processors).all()
    assert min(int(workload.submit_time.min()) for workload, _ in pairs) == 0
    assert pairs[0][0].left_out["no CPU time"] == 1335
    whole = workloads_of(study.scenario("whole-log"), archive_mirror, tmp_path / "whole.nc")[0][0]
    assert whole.left_out["larger than the machine"] == 5
