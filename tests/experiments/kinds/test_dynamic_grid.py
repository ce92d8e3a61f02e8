"""Studies of dynamic grids: configuration, cases, runs, replicates, and what figures say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from gridsched import results
from gridsched.experiments.claims import load_claims
from gridsched.experiments.collection import ALL
from gridsched.experiments.config import load_study
from gridsched.experiments.kinds.dynamic_grid import findings
from gridsched.experiments.kinds.dynamic_grid.config import ALONE, DynamicGridStudy
from gridsched.experiments.kinds.dynamic_grid.stages import DynamicPlatform, platforms, simulate_case
from gridsched.experiments.prepare import derived_seed
from gridsched.platform import Platform
from gridsched.simulation import simulate
from gridsched.systems.dynamic_grid.graphs import graph_of_edges, grid_graph
from gridsched.systems.dynamic_grid.measures import dynamic_measures
from gridsched.systems.dynamic_grid.membership import Stay, draw_membership
from gridsched.systems.dynamic_grid.scheduler import DynamicGrid
from gridsched.workloads import Workload
from tests.conftest import REPOSITORY
from tests.support.errors import says
from tests.support.studies import changed, log_text, made, message_about, run_study, study_in

SEED = 7
SITES = {"north": 16, "south": 8, "west": 6}
STUDY: dict[str, Any] = {
    "name": "tiny",
    "kind": "dynamic-grid",
    "title": "Tiny",
    "scenarios": [
        {
            "name": "sites",
            "graph": "chain",
            "clusters": [
                {"name": name, "file": f"{name}.swf", "processors": processors}
                for name, processors in SITES.items()
            ],
            "stream": {"name": "guests", "file": "guests.swf", "processors": 20},
            "graphs": [
                {"name": "chain", "edges": [["north", "south"], ["south", "west"]]},
                {"name": "some", "mean_degree": 1.4},
            ],
        }
    ],
    "schedulers": [
        {
            "name": "default",
            "scheduler": "dynamic-grid",
            "policy": "fcfs",
            "migration_cost": 1.5,
            "delta_t": 300,
        }
    ],
    "replicates": 2,
    "sweeps": [
        {"name": "graphs", "factor": "graph", "values": ["isolated", "some", "complete"]},
        {"name": "overhead", "factor": "overhead", "values": [1.0, 2], "among": {"policy": ["fcfs", "easy"]}},
        {"name": "churn", "factor": "mean_stay", "values": [90_000]},
        {
            "name": "joining",
            "factor": "without",
            "values": ["north", "west"],
            "among": {"policy": ["fcfs", "easy"]},
        },
        {"name": "stream", "factor": "stream", "values": [False]},
        {"name": "share", "factor": "grid_share", "values": [0.5, 1.0]},
        {
            "name": "superscheduler",
            "factor": "scheduler",
            "values": ["s-i"],
            "among": {"stream": [True, False]},
        },
    ],
    "departure": {"site": "south", "time": 500_000, "absence": 20_000, "margin": 9000},
}


def write_inputs(folder: Path) -> Path:
    """Logs of the study, with jobs that the machines cannot hold."""
    largest = {"north": 20, "south": 8, "west": 3, "guests": 18}
    for seed, (name, size) in enumerate(largest.items(), start=1):
        (folder / f"{name}.swf").write_text(log_text(seed, 90, size), encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with the logs."""
    monkeypatch.chdir(write_inputs(tmp_path))
    return tmp_path


def study_of(**changes: Any) -> DynamicGridStudy:
    """The study with other values of some keys."""
    return DynamicGridStudy.model_validate({**STUDY, **changes})


# --- configuration --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("scenarios.0.clusters", [], ["scenarios[sites].clusters: found []; write at least 1"]),
        ("scenarios.0.clusters.1.name", "north", ["clusters: 'north' is there twice"]),
        ("scenarios.0.clusters.1.name", "guests", ["clusters, stream: 'guests' is there twice"]),
        ("scenarios.0.clusters.1.name", "grid", ["clusters: the name 'grid' stands for users"]),
        ("scenarios.0.clusters.1.speed", 2.0, ["clusters: their speeds differ"]),
        (
            "scenarios.0.clusters.1.node_exclusive",
            True,
            ["a node of south runs one job only", "node_exclusive: false"],
        ),
        (
            "scenarios.0.graphs.0.edges",
            [["north", "east"]],
            ["graphs[chain]: edge", "unknown cluster 'east'"],
        ),
        (
            "scenarios.0.graphs.0.edges",
            [["north", "north"]],
            ["graphs[chain]: edge", "two different clusters"],
        ),
        ("scenarios.0.graphs.0.name", "ring", ["'ring' is a graph that is always there"]),
        ("scenarios.0.graphs.1.mean_degree", 3.0, ["graphs[some]: mean_degree is 3.0; use 0 to 2"]),
        ("scenarios.0.graphs.1.edges", [], ["give exactly one of mean_degree, edges"]),
        ("scenarios.0.graph", "chian", ["scenarios[sites]: graph: found 'chian'", "did you mean chain?"]),
        ("scenarios.0.without", "east", ["scenarios[sites]: without: found 'east'"]),
        ("schedulers.0.overhead", 0.5, ["schedulers[default]: overhead is 0.5"]),
        ("schedulers.0.migration_cost", -1.0, ["schedulers[default]: migration_cost is -1.0"]),
        ("scenarios.0.lease", 600, ["scenarios[sites]: lease: clusters that stay for good need none"]),
        ("schedulers.0.share", 0.5, ["schedulers[default].share: unknown key; did you mean grid_share?"]),
        ("schedulers.0", "local", ["schedulers: give dynamic-grid with its parameters"]),
        ("schedulers.0.overhead", [1.0, 2.0], ["schedulers: found [", "write at most 1"]),
        ("sweeps.0.factor", "graf", ["factor: unknown key 'graf'; did you mean graph?"]),
        ("sweeps.0.values", ["star"], ["sweeps[graphs]: graph: found 'star'"]),
        ("sweeps.0.values", [], ["values: found []; write at least 1"]),
        ("sweeps.1.values", [0.5], ["sweeps[overhead]: values: overhead is 0.5"]),
        ("sweeps.1.values", ["much"], ["sweeps[overhead]: values: overhead: found 'much'"]),
        ("sweeps.1.among", {"overhead": [1.0]}, ["among: 'overhead' is the factor itself"]),
        ("sweeps.1.among", {"polcy": ["fcfs"]}, ["among: unknown key 'polcy'; did you mean policy?"]),
        ("sweeps.1.name", "graphs", ["sweeps: 'graphs' is there twice"]),
        (
            "sweeps.6.among",
            {"grid_share": [0.5]},
            ["sweeps[superscheduler]: values: scheduler: a superscheduler knows no"],
        ),
        ("departure.site", "east", ["departure.site: found 'east'"]),
        ("departure.time", -1, ["departure.time: found -1"]),
        ("replicates", 0, ["replicates: found 0"]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_mistake_in_a_study(folder: Path, path: str, value: Any, expected: list[str]) -> None:
    says(message_about(folder, changed(STUDY, path, value)), *expected)


SYNTHETIC = {"name": "drawn", "synthetic": {"machine": "M4", "jobs": 10}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"scenarios": [{"name": "drawn", "clusters": [SYNTHETIC]}], "sweeps": [], "departure": None},
            "jobs share nodes",
        ),
        # clusters on their own have this label
        ({"schedulers": [{"name": "alone", "scheduler": "dynamic-grid"}]}, "choose another name"),
    ],
)
def test_what_a_study_may_not_have(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        study_of(**changes)


def test_cases_are_named_by_how_they_differ() -> None:
    study = study_of()
    labels = list(study.cases)
    assert labels[0] == ("sites", "default")
    assert len(labels) == len(set(labels)) == 19
    assert {
        ("sites, easy", "overhead 2"),
        ("sites", "mean_stay 90000"),
        ("sites, easy", "without west"),
        ("sites, without grid users", "default"),
        ("sites, without grid users", "scheduler s-i"),
    } <= set(labels)
    assert study.cases["sites, easy", "default"] == study.default.model_copy(update={"policy": "easy"})
    alone = [scenario for scenario, label in study.runs if label == ALONE]
    assert alone == ["sites", "sites, easy", "sites, without grid users"]


def test_only_what_is_drawn_depends_on_the_seed() -> None:
    study = study_of()
    keys = [{task.name: task.key for task in study.experiment(seed).tasks} for seed in (1, 2)]
    other = {name for name, key in keys[0].items() if keys[1][name] != key}
    random = {("sites", "graph some"), ("sites", "mean_stay 90000"), ("sites", "grid_share 0.5")}
    assert other == {", ".join(labels) for labels in {*random, ("sites", "scheduler s-i")}}


def test_figures_that_a_study_needs() -> None:
    names = [each.name for each in study_of().experiment(1).figures]
    responses = ("response-overhead", "response-share")
    assert names == ["users", "ranking", "joining", *responses, *HAND_DRAWN]
    little = [each.name for each in study_of(sweeps=[], departure=None).experiment(1).figures]
    assert little == ["users", "ranking", "making-place", "map"]


HAND_DRAWN = ("making-place", "map", "departure")


# --- runs -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the inputs and of the results of the study."""
    folder = write_inputs(tmp_path_factory.mktemp("finished"))
    return study_in(folder, study_of, SEED, results="", shown=True)


@pytest.fixture(scope="module")
def dataset(finished: Path) -> xr.Dataset:
    return results.read(finished / "tiny" / "study.nc")


@pytest.fixture(scope="module")
def prepared(finished: Path) -> Path:
    return made(finished, "sites, replicate 0")


@pytest.fixture(scope="module")
def workloads(prepared: Path) -> list[Workload]:
    """Workload of each cluster, and that of the grid's own users."""
    return [workload for workload, _ in results.grids_from_dataset(results.read(prepared))[0]]


@pytest.fixture(scope="module")
def platform(prepared: Path) -> DynamicPlatform:
    study = study_of()
    return next(platforms(prepared, study.grid.clusters, study.grid.align, "requested", SEED))


def mean_of(dataset: xr.Dataset, name: str, **where: str) -> float:
    """Mean over all blocks, weighted with the jobs."""
    part = dataset.sel({"scenario": "sites", "group": ALL, **where})
    weight = part["jobs"].fillna(0.0)
    return float((part[name].fillna(0.0) * weight).sum() / weight.sum())


def test_alone_is_every_cluster_by_itself(
    dataset: xr.Dataset, platform: DynamicPlatform, workloads: list[Workload]
) -> None:
    assert platform.stream_cluster is not None
    clusters = [*platform.clusters, platform.stream_cluster]
    users = [*zip((*SITES, "grid"), workloads, clusters, strict=True)]
    for name, jobs, cluster in users:
        for scenario, policy in (("sites", "fcfs"), ("sites, easy", "easy")):
            run = simulate(jobs, cluster, policy)
            expected = float((run["end_time"] - run["submit_time"]).mean())
            group = f"users of {name}"
            found = mean_of(dataset, "response_time_mean", scenario=scenario, scheduler=ALONE, group=group)
            assert found == pytest.approx(expected)
    assert [cluster.processors for _, _, cluster in users] == [16, 8, 6, 20]


def test_runs_are_those_of_the_library(
    platform: DynamicPlatform, workloads: list[Workload], dataset: xr.Dataset
) -> None:
    plain = DynamicGrid(migration_cost=1.5, delta_t=300, policy="fcfs")
    names = list(SITES)
    stays = draw_membership(
        names,
        int(platform.jobs.submit_time.max()),
        mean_stay=90_000,
        mean_absence=14_400,
        seed=derived_seed(SEED, "sites\nmembership\n0"),
    )
    drawn = derived_seed(SEED, "sites\ngraph some\n0")
    cases: dict[tuple[str, str], dict[str, Any]] = {
        ("sites, easy", "overhead 2"): {"options": replace(plain, overhead=2.0, policy="easy")},
        ("sites", "mean_stay 90000"): {"membership": stays},
        ("sites", "without west"): {"membership": {"west": []}},
        ("sites", "grid_share 0.5"): {
            "options": replace(plain, grid_share=0.5),
            "seed": derived_seed(SEED, "sites\nshare\n0"),
        },
        ("sites", "graph some"): {"links": grid_graph(names, "random", mean_degree=1.4, seed=drawn)},
    }
    chain = graph_of_edges(names, [("north", "south"), ("south", "west")])
    for (scenario, label), changes in cases.items():
        given_ = {"links": chain, "options": plain, "membership": None, "seed": 0, **changes}
        run = simulate(
            workloads,
            Platform(platform.clusters, links=given_["links"], membership=given_["membership"]),
            given_["options"],
            seed=given_["seed"],
            times="unit",
        )
        where = {"scenario": scenario, "scheduler": label}
        response = (run["end_time"] - run["submit_time"]).values
        home = run["home_cluster"].values
        assert mean_of(dataset, "response_time_mean", **where) == pytest.approx(response.mean())
        for group, own in {"grid": home < 0, "sites": home >= 0, "west": home == 2}.items():
            found = mean_of(dataset, "response_time_mean", group=f"users of {group}", **where)
            assert found == pytest.approx(response[own].mean())
        whole = dataset.sel(where).isel(replicate=0, estimates=0)
        summary = dynamic_measures(run)
        assert float(whole["suspensions"].sel(group=ALL)) == float(run["suspensions"].sum())
        for cluster in names:
            group = f"cluster {cluster}"
            for name in ("work_given", "yield_wait_max"):
                expected = float(summary[f"{name}_cluster"].sel(cluster=cluster))
                assert float(whole[name].sel(group=group)) == pytest.approx(expected, nan_ok=True)
            flow = float(summary["flow_work"].sel(home="grid", cluster=cluster))
            assert float(whole["flow_work"].sel(group=f"grid to {cluster}")) == flow
        linked = float(whole["adjacent"].sel(group="north to south"))
        assert linked == given_["links"].has_edge("north", "south")


def test_blocks_have_the_same_jobs_in_all_runs_of_a_scenario(dataset: xr.Dataset) -> None:
    jobs = dataset["jobs"].sel(scenario="sites").isel(estimates=0).dropna("scheduler", how="all")
    assert jobs.sizes["scheduler"] > 10
    unfinished = dataset["jobs_unfinished"].sel(scenario="sites", group=ALL).isel(estimates=0, replicate=0)
    rejected = unfinished.sel(scheduler=jobs["scheduler"]).fillna(0.0)
    missing = (jobs.sel(scheduler=ALONE) - jobs).fillna(0.0)
    assert (missing >= 0).all()
    of_dynamic = [label for label in jobs["scheduler"].values if label != "scheduler s-i"]
    lost = missing.sel(group=ALL, scheduler=of_dynamic).sum("replicate")
    assert (lost == rejected.sel(scheduler=of_dynamic)).all()
    assert set(dataset["replicates_are"].values) == {"blocks"}
    submitted = float(jobs.sel(scheduler="default", group=ALL).sum())
    left_out = float(dataset["left_out"].sum())
    assert submitted + left_out == 4 * 90
    assert left_out > 0


def test_a_superscheduler_has_the_same_jobs(platform: DynamicPlatform) -> None:
    study = study_of()
    run = simulate_case(platform, study.cases["sites", "scheduler s-i"], study.grid.graphs[0])
    np.testing.assert_array_equal(run["home_cluster"], platform.home)
    np.testing.assert_array_equal(run["job_number"], platform.jobs.job_number)
    np.testing.assert_array_equal(run["submit_time"], platform.jobs.submit_time)
    assert (run["start_time"].values >= run["submit_time"].values).sum() > 300


def test_a_cluster_that_never_joins_serves_its_users_alone(dataset: xr.Dataset) -> None:
    for scenario in ("sites", "sites, easy"):
        for cluster in ("north", "west"):
            part = dataset.sel(scenario=scenario, group=f"users of {cluster}")["response_time_mean"]
            xr.testing.assert_allclose(
                part.sel(scheduler=f"without {cluster}", drop=True), part.sel(scheduler=ALONE, drop=True)
            )


def test_waits_for_grid_jobs_keep_their_limit(dataset: xr.Dataset) -> None:
    whole = dataset.sel(group=ALL).isel(replicate=0, estimates=0)
    assert int(whole["yield_wait_share"].notnull().sum()) > 5
    assert float(whole["yield_wait_share"].max()) <= 1
    leaving = whole["leave_time_share"].sel(scenario="sites", scheduler="mean_stay 90000")
    assert 0 <= float(leaving) <= 1


def test_departure_shows_the_processors_in_use(
    finished: Path, platform: DynamicPlatform, workloads: list[Workload]
) -> None:
    dataset = results.read(finished / "tiny" / "departure.nc")
    stays = [Stay(begin=0, end=500_000), Stay(begin=520_000)]
    chain = graph_of_edges(list(SITES), [("north", "south"), ("south", "west")])
    run = simulate(
        workloads,
        Platform(platform.clusters, links=chain, membership={"south": stays}),
        study_of().default.made(),
        times="unit",
    )
    sent = run["sent_time"].values
    columns = ("job", "cluster", "processors", "start", "end", "held")
    rows = list(zip(*(run[f"segment_{name}"].values.tolist() for name in columns), strict=True))
    change = dataset["change"].values
    assert change[0] == -9000
    assert change[-1] == 20_000 + 9000
    for moment in change[:: max(1, len(change) // 40)][:-1]:
        expected = np.zeros((3, 3))
        for job, cluster, processors, start, end, held in rows:
            if start <= moment + 500_000 < end:
                expected[cluster, 2 if held else int(sent[job] >= 0)] += processors
        found = dataset["departure_used"].sel(change=moment).transpose("cluster", "use")
        np.testing.assert_array_equal(found, expected)
    away = (change >= 2000) & (change < 20_000)
    assert float(dataset["departure_used"].sel(cluster="south", use="grid")[away].sum()) == 0
    assert dataset.attrs["site"] == "south"


def test_nothing_moves_where_no_grid_job_runs(tmp_path: Path) -> None:
    departure = {"site": "one", "time": 1000, "absence": 5000}
    study = DynamicGridStudy.model_validate({**DRAWN, "replicates": 1, "sweeps": [], "departure": departure})
    run_study(study, tmp_path, SEED)
    dataset = results.read(tmp_path / "drawn" / "departure.nc")
    assert float(dataset["departure_tasks_moved"].sum()) == 0
    assert float(dataset["departure_jobs_suspended"]) == 0


# --- draws ----------------------------------------------------------------------------------------

DRAWN: dict[str, Any] = {
    "name": "drawn",
    "kind": "dynamic-grid",
    "title": "Drawn",
    "scenarios": [
        {
            "name": "sites",
            "graph": "complete",
            "clusters": [
                {
                    "name": name,
                    "synthetic": {"machine": machine, "jobs": 60, "sizes": {"exponent": -1}},
                    "node_exclusive": False,
                }
                for name, machine in {"one": "M4", "two": "M5"}.items()
            ],
        }
    ],
    "schedulers": [{"name": "default", "scheduler": "dynamic-grid", "policy": "fcfs"}],
    "replicates": 6,
    "sweeps": [{"name": "overhead", "factor": "overhead", "values": [1.0, 2.0]}],
}


def test_synthetic_workloads_are_drawn_anew_in_each_replicate(tmp_path: Path) -> None:
    whole = run_study(DynamicGridStudy.model_validate(DRAWN), tmp_path, SEED, shown=True)
    assert whole.sizes["replicate"] == 6
    assert set(whole["replicates_are"].values) == {"draws"}
    response = whole["response_time_mean"].sel(scenario="sites", group=ALL).isel(estimates=0)
    assert response.notnull().all()
    for label in response["scheduler"].values:
        assert len(set(response.sel(scheduler=label).values.tolist())) == 6
    assert whole["response_time_mean"].sel(group="users of grid").isnull().all()
    assert (whole["jobs"].sel(group="users of sites") == whole["jobs"].sel(group=ALL)).all()
    default = {key: value for key, value in DRAWN.items() if key != "replicates"}
    for values in ({**DRAWN, "replicates": 10}, default):
        study = DynamicGridStudy.model_validate(values)
        assert study.draws(study.grid) == 10


def test_replicates_of_logs_are_shaken(folder: Path) -> None:
    scenario = {**STUDY["scenarios"][0], "shaking": {"replicates": 3}}
    study = study_of(scenarios=[scenario], sweeps=STUDY["sweeps"][:1], departure=None)
    whole = run_study(study, folder, SEED)
    assert whole.sizes["replicate"] == 3
    assert set(whole["replicates_are"].values) == {"shaken logs"}
    response = whole["response_time_mean"].sel(scenario="sites", scheduler="default", group=ALL)
    assert len(set(response.values.ravel().tolist())) == 3


# --- what figures say -----------------------------------------------------------------------------


def test_sentences_and_intervals_never_contradict_each_other(finished: Path) -> None:
    """A group is significantly lower or higher exactly where its interval excludes the reference."""
    folder = finished / "tiny" / "figures"
    seen = 0
    for path in folder.glob("*.csv"):
        numbers = pd.read_csv(path)
        if "significant" not in numbers:
            continue
        tested = numbers[numbers["probability"].notna()]
        below, above = tested["ratio_high"] < 1, tested["ratio_low"] > 1
        assert (tested["significant"] == above.astype(int) - below.astype(int)).all(), path
        seen += len(tested)
    assert seen > 20


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(0.05, 2), st.booleans()), min_size=1, max_size=6))
def test_users_are_named_on_the_side_of_their_interval(found: list[tuple[float, float, bool]]) -> None:
    """Such as west with 28.4 [11.3, 71.3], which was called not sure."""
    rows = []
    for number, (centre, width, estimable) in enumerate([(0.0, 1.0, True), *found]):
        low, high = np.exp(centre - width), np.exp(centre + width)
        rows.append(
            {
                "scenario": "sites",
                "scheduler": "default",
                "group": ALL if number == 0 else f"users of c{number}",
                "measure": "response_time_mean",
                "ratio": np.exp(centre),
                "ratio_low": low if estimable else np.nan,
                "ratio_high": high if estimable else np.nan,
                "ratio_reason": "" if estimable else "too few replicates",
                "probability": 0.01 if estimable else np.nan,
                "significant": (int(low > 1) - int(high < 1)) if estimable else 0,
            }
        )
    specification = study_of().specifications[0]
    lines = findings.of_users(pd.DataFrame(rows), specification, {"reference": ALONE})
    assert "not differ significantly" in lines[0]
    text = " ".join(lines[1:])
    parts = {"lower": "", "higher": "", "not": ""}
    for part in text.removesuffix(".").split(";"):
        key = "not" if "not significantly" in part else "lower" if "lower" in part else "higher"
        parts[key] = part
    for row in rows[1:]:
        if np.isnan(row["probability"]):
            assert str(row["group"]) not in text
        elif row["significant"]:
            assert str(row["group"]) in parts["lower" if row["significant"] < 0 else "higher"]
        else:
            assert str(row["group"]) in parts["not"]


def test_the_effect_of_staying_out_is_that_of_the_pair() -> None:
    columns = ["scheduler", "group", "ratio", "significant"]
    values = [
        ("without west", "users of west", 28.4, 1),
        ("without west", "users of north", 1.1, 0),
        ("without north", "users of west", 2.0, 1),
        ("without north", "users of north", 0.5, -1),
    ]
    table = pd.DataFrame(values, columns=columns).assign(scenario="sites", probability=0.01)
    specification = next(each for each in study_of().specifications if each.name == "joining")
    lines = findings.joining(table, specification, {})
    assert lines[0] == "The mean response time is significantly higher for users of west if these stay out."
    assert lines[1] == "The mean response time is significantly lower for users of north if these stay out."
    assert "higher for one other group without north" in lines[2]


def test_a_single_cluster_sends_no_work_elsewhere() -> None:
    table = pd.DataFrame({"scheduler": ["default"], "users": ["one"], "cluster": ["one"], "work": [5.0]})
    specification: Any = None
    (line,) = findings.flows(table, specification, {})
    assert line.startswith("default: 0 % of the work of the clusters' users is done elsewhere")


def test_a_departure_at_which_nothing_moves() -> None:
    values = [("grid", -10.0, 0.0), ("grid", 5.0, 0.0), ("local", -10.0, 4.0)]
    still = pd.DataFrame(values, columns=["use", "time", "processors"]).assign(
        site="south", tasks_moved=3, jobs_suspended=1, duration=9.0
    )
    specification = study_of().specifications[0]
    assert findings.departure(still, specification, {}) == ["No grid job runs on south when it leaves."]
    moving = still.assign(processors=[8.0, 0.0, 4.0])
    assert findings.departure(moving, specification, {}) == [
        "Moved to neighbours when south leaves: three tasks; suspended: one job.",
        "The last grid job is gone after 9 s.",
    ]


def test_shipped_study_is_the_one_of_the_claims() -> None:
    """Every case that the ledger names is run."""
    study = load_study(REPOSITORY / "config" / "studies" / "dynamic-grid.yaml")
    assert isinstance(study, DynamicGridStudy)
    named: set[tuple[str, str]] = set()
    for claim in load_claims():
        if claim.paper == "dynamic-grid-model" and claim.source is not None:
            members: Sequence[dict[str, Any]] = getattr(claim, "chain", ({},))
            references = [claim.source.relative_to] if claim.source.relative_to else []
            for other in (*members, *references):
                select = {**claim.source.select, **other}
                both = [select[axis] for axis in ("scenario", "scheduler")]
                labels = [(each,) if isinstance(each, str) else each for each in both]
                named |= set(product(*labels))
    assert named <= study.runs.keys()
    assert len(named) > 20
