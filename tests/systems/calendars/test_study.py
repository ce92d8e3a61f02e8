"""Studies of imprecise calendars: configuration, measures, stages, and what must not depend on chunks."""

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
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import results
from gridsched.errors import ConfigurationError
from gridsched.experiments.claims import evaluate, load_claims
from gridsched.experiments.config import load_study
from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.systems.calendars.measures import (
    AGGREGATES,
    LENGTHS,
    VARIABLES,
    JobOutcomes,
    contributions,
    delays,
    length_class,
    measure,
)
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.systems.calendars.study.config import CalendarStudy, CaseConfig
from gridsched.systems.calendars.study.stages import divide, partition, prepare_case
from gridsched.systems.calendars.tree import Level, Manager, SlotPlan, describe
from gridsched.traces import clean, read_swf
from tests.conftest import REPOSITORY
from tests.support.studies import changed, log_text, message_about, run_study

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
            "paper": {"table": "figure-7", "alone": "alone", "together": "together"},
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


def write_logs(folder: Path) -> None:
    """Logs of the study, with average CPU times that are sometimes unknown."""
    for number, (name, largest) in enumerate((("north", 8), ("south", 5)), start=1):
        lines = []
        for line in log_text(number, 120, largest).splitlines():
            fields = line.split()
            if len(fields) == 18 and fields[0].isdigit():
                fields[5] = "-1" if int(fields[0]) % 7 == 0 else f"{int(fields[3]) * 0.6:.1f}"
            lines.append(" ".join(fields))
        (folder / f"{name}.swf").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with the logs."""
    write_logs(tmp_path)
    monkeypatch.chdir(tmp_path)
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
        ("scenarios.1.paper.together", "both", ["[parts].paper.together: found 'both'; known are alone"]),
        ("scenarios.1.paper.table", "figure-8", ["paper.table: found 'figure-8'", "'figure-9'"]),
        ("scenarios.1.partitions.workload", {"name": "x", "synthetic": {"jobs": 5}}, ["only a log"]),
        ("scenarios.1.partitions.run_time", "user", ["run_time: found 'user'", "'cpu'"]),
        ("scenarios.1.partitions.clusters.1.name", "SMALL", ["one file where case does not count"]),
        ("scenarios.1.partitions.clusters.1.processors", None, ["clusters[twin].processors: missing"]),
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
    message = message_about(folder, changed(STUDY, path, value))
    for part in expected:
        assert part in message


def test_log_must_exist(folder: Path) -> None:
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    (folder / "south.swf").unlink()
    with pytest.raises(ConfigurationError, match=r"scenarios\[pair\].clusters\[south\].file: found"):
        load_study("study.yaml")


def study_of(**changes: Any) -> CalendarStudy:
    """The study with other values of some keys."""
    return CalendarStudy.model_validate({**STUDY, **changes})


def test_plain_values_give_the_study_back() -> None:
    study = study_of()
    assert CalendarStudy.model_validate(study.values()) == study


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


def test_runs_of_a_case() -> None:
    study = study_of()
    assert len(study.runs(study.scenario("parts"))) == 2 * 3


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
def test_contributions_add_up_to_the_aggregates(jobs: list[tuple[int, int, int]]) -> None:
    wait, run, size = np.array(jobs).T
    parts = contributions(wait + run, run, size)
    assert parts.shape == (len(AGGREGATES), len(jobs))
    np.testing.assert_allclose(parts.sum(axis=1), naive_delays(jobs), rtol=1e-9)
    np.testing.assert_allclose(delays(wait + run, run, size), naive_delays(jobs), rtol=1e-9)


def test_no_jobs_have_no_delay() -> None:
    nothing = np.empty(0, np.int64)
    assert np.isnan(delays(nothing, nothing, nothing)).all()
    assert contributions(nothing, nothing, nothing).shape == (4, 0)


def test_length_classes_are_those_of_the_paper() -> None:
    assert [LENGTHS[k] for k in length_class(np.array([0, 9, 10, 99, 100, 999, 1000, 9**9]))] == [
        label for label in LENGTHS[1:] for _ in range(2)
    ]


@settings(max_examples=40)
@given(JOBS, st.randoms(use_true_random=False))
def test_measures_are_those_of_a_naive_count(jobs: list[tuple[int, int, int]], random: Any) -> None:
    wait, run, size = np.array(jobs).T
    submit = np.sort(np.array([random.randint(0, 300_000) for _ in jobs]))
    home = np.array([random.randint(0, 2) for _ in jobs])
    ran = np.array([random.random() < 0.8 for _ in jobs])
    start = np.where(ran, submit + wait, -1)
    done = measure(
        JobOutcomes(
            submit_time=submit,
            run_time=run,
            processors=size,
            home=home,
            start_time=start,
            end_time=np.where(ran, start + run, -1),
            block=submit // 86400,
            blocks=5,
            other=size > 10,
            nodes=np.array([64, 64, 64]),
            supplied=np.array([3600.0, 0.0, 7200.0]),
            consumed=np.array([0.0, 10800.0, 0.0]),
            local=np.array([0.0, 3600.0, 3600.0]),
            moved=size > 60,
            postponed=np.empty(0),
            counts={},
        )
    )
    assert set(done) == set(VARIABLES)
    kept = [(place, job) for place, job in enumerate(jobs) if ran[place]]
    for number, _ in enumerate(LENGTHS):
        own = [
            job for _, job in kept if number in (0, 1 + sum(job[1] >= border for border in (10, 100, 1000)))
        ]
        delay = np.asarray(done["delay"])[:, number]
        if own:
            np.testing.assert_allclose(delay, naive_delays(own), rtol=1e-9)
            blocks = np.asarray(done["delay_by_block"])[:, number]
            np.testing.assert_allclose(blocks.sum(axis=-1), delay, rtol=1e-9)
        assert np.isnan(delay).all() == (not own)
        assert np.asarray(done["jobs"])[number] == len(own)
    for cluster in range(3):
        own = [job for place, job in kept if home[place] == cluster]
        assert np.asarray(done["jobs_by_cluster"])[cluster] == len(own)
        if own:
            here = np.asarray(done["delay_by_cluster"])[:, 0, cluster]
            np.testing.assert_allclose(here, naive_delays(own), rtol=1e-9)
    others = [job for _, job in kept if job[2] > 10]
    if others:
        np.testing.assert_allclose(np.asarray(done["delay_others"]), naive_delays(others), rtol=1e-9)
    assert np.asarray(done["balance"]).tolist() == [-1.0, 3.0, -2.0]
    assert (done["clusters_lending"], done["clusters_supplying"]) == (2.0, 2.0)
    assert done["transferred"] == sum(job[2] > 60 for _, job in kept)
    if kept:
        span = max(submit[k] + wait[k] + run[k] for k, _ in kept) - min(submit[k] for k, _ in kept)
        assert done["makespan"] == span
        if span:
            assert np.asarray(done["utilisation"])[0] == pytest.approx(3600 / (64 * span))


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
        turn = len(seen)
        if by_user:
            turn = seen.index(who) if who in seen else len(seen)
        if not by_user or who not in seen:
            seen.append(who)
        assert found == alike[turn % len(alike)]


def test_partitions_count_what_they_leave_out(folder: Path) -> None:
    study = study_of()
    partitions = study.scenario("parts").partitions
    assert partitions is not None
    log = read_swf("north.swf")
    unknown = log.average_cpu_time < 0
    loaded = partition(partitions, "north.swf")
    left_out = dict(loaded[0][0].left_out)
    assert left_out["no CPU time"] == unknown.sum()
    kept = sum(len(workload) for workload, _ in loaded)
    assert kept + sum(left_out.values()) == len(log)
    assert not any(workload.left_out for workload, _ in loaded[1:])
    assert max(int(workload.processors.max()) for workload, _ in loaded) == 4
    everything = partitions.model_copy(update={"unknown": "wall"})
    more = partition(everything, "north.swf")
    assert more[0][0].repaired["no CPU time"] == unknown.sum()
    by_number = {int(n): t for w, _ in more for n, t in zip(w.job_number, w.run_time, strict=True)}
    for number, cpu, wall in zip(log.job_number, log.average_cpu_time, log.run_time, strict=True):
        if int(number) in by_number:
            assert by_number[int(number)] == (wall if cpu < 0 else math.ceil(cpu))


# --- stages ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, xr.Dataset]:
    """The study as run once, with its folder."""
    root = tmp_path_factory.mktemp("calendars")
    write_logs(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        return root / "made" / "tiny", run_study(study_of(), root / "made", SEED)


def test_dataset_holds_every_run(made: tuple[Path, xr.Dataset]) -> None:
    folder, whole = made
    study = study_of()
    known = whole["makespan"].notnull()
    for case in study.scenarios:
        for scheduler in study.labels:
            runs = known.sel(case=case.name, scheduler=scheduler)
            assert bool(runs.all()) == (scheduler in study.labels_in(case))
    assert whole["delay_by_block"].dims == (
        *("case", "scheduler", "estimates"),
        *("aggregate", "job_class", "block"),
    )
    assert list(whole["cluster"].values) == ["north", "south", "small", "twin", "large"]
    np.testing.assert_allclose(
        whole["delay_by_block"].sum("block").where(whole["delay"].notnull()), whole["delay"], rtol=1e-9
    )
    run_rows = pd.read_csv(folder / "runs.csv")
    assert len(run_rows) == run_rows["run"].nunique() == int(known.sum())
    table = pd.read_csv(folder / "tables" / "means.csv")
    assert len(table) == int(whole["delay"].notnull().sum())
    clusters = pd.read_csv(folder / "tables" / "clusters.csv")
    assert clusters.groupby(["case", "scheduler", "estimates"])["balance"].sum().abs().max() < 1e-6


def test_nothing_is_lost(made: tuple[Path, xr.Dataset]) -> None:
    _, whole = made
    known = whole["makespan"].notnull()
    jobs = whole["jobs"].sel(job_class="all").where(known)
    assert bool((jobs == whole["submitted"].sel(job_class="all")).where(known, True).all())
    work = (whole["supplied_total"] + whole["local_work_total"]).where(known)
    expected = whole["submitted_work_total"].broadcast_like(work).where(known)
    np.testing.assert_allclose(work, expected, rtol=1e-9)
    every = whole["jobs"].sum("job_class", skipna=False)
    assert bool((every == 2 * whole["jobs"].sel(job_class="all")).where(known, True).all())


def test_runs_are_those_of_the_library(folder: Path, made: tuple[Path, xr.Dataset]) -> None:
    _, whole = made
    jobs = [
        clean(read_swf(f"{name}.swf", name=name), processors=size)
        for name, size in (("north", 16), ("south", 8))
    ]
    clusters = [Cluster(processors=16, name="north"), Cluster(processors=8, name="south")]
    leaves = [Manager(name=c.name, children=[c], promote_processors=2, bump=60) for c in clusters]
    options = Calendars(slots=SlotPlan(levels=[(8, 10), (4, 120), (None, 2400)]))
    managed = replace(options, managers=Manager(name="top", children=leaves))
    run = simulate(jobs, clusters, managed, estimates="requested", align="start", times="unit")
    here = whole.sel(case="pair", scheduler="together", estimates="requested")
    for name in ("operations", "messages", "bumped", "promoted", "slots_max"):
        assert float(here[name]) == run.attrs[name]
    assert here["supplied"].sel(cluster="north") == run["supplied"].values[0] / 3600
    wait = (run["start_time"] - run["submit_time"]).values
    assert float(here["wait_time_mean"].sel(job_class="all")) == pytest.approx(wait.mean())
    easy = whole.sel(case="pair", scheduler="easy", estimates="requested")
    for workload, cluster in zip(jobs, clusters, strict=True):
        alone = simulate(workload, cluster, "easy", estimates="requested")
        mean = float((alone["start_time"] - alone["submit_time"]).mean())
        assert float(easy["wait_time_mean_by_cluster"].sel(cluster=cluster.name)) == pytest.approx(mean)
    own = whole.sel(case="pair", scheduler="alone", estimates="actual")
    parts = [simulate([w], c, options, estimates="actual") for w, c in zip(jobs, clusters, strict=True)]
    assert float(own["operations"]) == sum(part.attrs["operations"] for part in parts)
    assert float(own["slots_max"]) == max(part.attrs["slots_max"] for part in parts)
    assert float(own["transferred"]) == 0


def test_reservations_grow_with_their_share(made: tuple[Path, xr.Dataset]) -> None:
    _, whole = made
    case = whole.sel(case="pair", estimates="actual")
    asked = case["reservations_granted"] + case["reservations_refused"]
    few, many = (float(asked.sel(scheduler=name)) for name in ("reserved", "more reserved"))
    jobs = float(case["submitted"].sel(job_class="all"))
    assert 0 < few < many < jobs
    assert abs(many / jobs - 0.5) < 0.15
    others = case["jobs_others"].dropna("scheduler")
    assert len(set(others.values.tolist())) == 1
    assert float(others[0]) == jobs - many
    assert np.isnan(float(case["acceptance"].sel(scheduler="alone")))
    assert 0 < float(case["acceptance"].sel(scheduler="reserved")) <= 1


def test_scaled_case_has_the_same_schedule(folder: Path, tmp_path: Path) -> None:
    """A machine and jobs a thousand times as large: the same starts, for the same number of operations."""
    ordinary_case = STUDY["scenarios"][0]
    values: dict[str, Any] = {"scenarios": [ordinary_case, {**ordinary_case, "name": "huge", "scale": 1000}]}
    values |= {"schedulers": [STUDY["schedulers"][0], STUDY["schedulers"][7]], "estimates": ["actual"]}
    values["reservations"] = {}
    whole = run_study(study_of(**values), tmp_path / "scaled", SEED)
    ordinary, huge = whole.sel(case="pair"), whole.sel(case="huge")
    for name in ("delay", "wait_time_mean", "operations", "slots_touched", "slots_max", "makespan"):
        np.testing.assert_allclose(huge[name].values, ordinary[name].values, rtol=1e-9)
    assert float(huge["processors"].sum()) == 24_000


def test_paper_stands_beside(made: tuple[Path, xr.Dataset]) -> None:
    _, whole = made
    assert whole["paper_supplied"].sel(case="parts", cluster="large").item() == 281.0
    assert bool(whole["paper_supplied"].sel(case="pair").isnull().all())
    assert whole["paper_together"].sel(case="parts").item() == "together"


def test_claims_find_what_they_need(made: tuple[Path, xr.Dataset]) -> None:
    """The shipped claims are about variables that a study has."""
    _, whole = made
    claims = [claim for claim in load_claims() if claim.paper == "imprecise-calendars"]
    names = {claim.source.study for claim in claims if claim.source is not None}
    verdicts = evaluate(claims, dict.fromkeys(names, whole))
    assert len(verdicts) == len(claims) > 200


# --- real logs ------------------------------------------------------------------------------------

PAPER_JOBS = [939, 2267, 1597, 1594, 2549, 1759, 1700, 2119, 1630, 1483]


def workloads_of(case: CaseConfig, mirror: Path, target: Path) -> list[Any]:
    """Workloads and clusters of a case of a shipped study."""
    files = {"CTC-SP2-1996": "CTC-SP2-1996-3.1-cln", "KTH-SP2-1996": "KTH-SP2-1996-2.1-cln"}
    files["LANL-CM5-1994"] = "LANL-CM5-1994-4.1-cln"
    logs = {each.name: mirror / f"{files[str(each.archive)]}.swf.gz" for each in case.workloads}
    prepare_case(case, SEED, logs, target)
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
        assert np.bincount(length_class(workload.run_time), minlength=5)[1:].tolist() == classes


def test_partitions_have_jobs_of_their_size(archive_mirror: Path, tmp_path: Path) -> None:
    study = shipped("partitions")
    pairs = workloads_of(study.scenario("March"), archive_mirror, tmp_path / "march.nc")
    assert [len(workload) for workload, _ in pairs] == [1719, 1718, 1585, 1077, 331, 204]
    for workload, cluster in pairs:
        assert (workload.processors == cluster.processors).all()
    left_out = pairs[0][0].left_out
    assert left_out["no CPU time"] == 1335
    whole = workloads_of(study.scenario("whole-log"), archive_mirror, tmp_path / "whole.nc")[0][0]
    assert whole.left_out["larger than the machine"] == 5
