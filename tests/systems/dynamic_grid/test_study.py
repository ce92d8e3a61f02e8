"""Studies of dynamic grids: configuration, cases, stages, and what must not depend on chunks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from gridsched import results
from gridsched.experiments.captions import caption
from gridsched.experiments.config import load_study
from gridsched.experiments.prepare import derived_seed, prepare_workload
from gridsched.metrics import jobs as metrics
from gridsched.platform import Platform
from gridsched.replication import ratio_interval, times_interval
from gridsched.simulation import simulate
from gridsched.systems.dynamic_grid.graphs import grid_graph
from gridsched.systems.dynamic_grid.measures import GRID_USERS, TIMES, WEEK, summarise_dynamic
from gridsched.systems.dynamic_grid.membership import draw_membership
from gridsched.systems.dynamic_grid.scheduler import DynamicGrid
from gridsched.systems.dynamic_grid.study.config import (
    ALL_USERS,
    CASE_KEYS,
    CLUSTER_USERS,
    DynamicGridStudy,
)
from gridsched.systems.dynamic_grid.study.stages import (
    DynamicPlatform,
    simulate_case,
)
from tests.support.studies import changed, log_text, made, message_about, run_study

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


def write_inputs(folder: Path) -> None:
    """Logs of the study, with jobs that the machines cannot hold."""
    for seed, (name, largest) in enumerate(
        {"north": 20, "south": 8, "west": 3, "guests": 18}.items(), start=1
    ):
        (folder / f"{name}.swf").write_text(log_text(seed, 90, largest), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with the logs."""
    write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
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
        ("sweeps.1.values", ["much"], ["sweeps[overhead]: overhead: found 'much'"]),
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
    message = message_about(folder, changed(STUDY, path, value))
    for part in expected:
        assert part in message


def test_synthetic_sites_must_share_their_nodes() -> None:
    site = {"name": "drawn", "synthetic": {"machine": "M4", "jobs": 10}}
    with pytest.raises(ValueError, match="jobs share nodes"):
        study_of(scenarios=[{"name": "drawn", "clusters": [site]}], sweeps=[], departure=None)


def test_plain_values_give_the_study_back() -> None:
    study = study_of()
    assert DynamicGridStudy.model_validate(study.values()) == study


def test_cases_are_named_by_how_they_differ() -> None:
    study = study_of()
    labels = list(study.cases)
    assert labels[0] == "default"
    assert len(labels) == len(set(labels)) == 19
    assert {
        "policy easy, overhead 2",
        "mean_stay 90000",
        "policy easy, without west",
        "stream no",
        "scheduler s-i, stream no",
    } <= set(labels)
    assert study.cases["policy easy"] == study.default.model_copy(update={"policy": "easy"})
    assert study.policies == ["fcfs", "easy"]


def test_cases_with_chance_are_repeated() -> None:
    study = study_of()
    twice = {run.case for run in study.runs if run.replicate == 1}
    assert twice == {"graph some", "mean_stay 90000", "grid_share 0.5", "scheduler s-i"}


def test_figures_that_a_study_needs() -> None:
    names = study_of().study_figures
    assert names == [
        *("dynamic_map", "dynamic_sites", "dynamic_joining", "dynamic_overhead", "dynamic_churn"),
        *("dynamic_sweeps", "dynamic_variants", "dynamic_departure"),
    ]
    assert study_of(sweeps=[], departure=None).study_figures == ["dynamic_map", "dynamic_sites"]
    for name in names:
        assert caption(name)["text"]


# --- stages ---------------------------------------------------------------------------------------


def prepared(study: DynamicGridStudy, folder: Path) -> dict[str, Path]:
    """Prepared workloads of a study by name."""
    paths = {workload.name: folder / "workloads" / f"{workload.name}.nc" for workload in study.all_workloads}
    for workload in study.all_workloads:
        prepare_workload(workload, SEED, workload.file, paths[workload.name])
    return paths


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the inputs and of the results of the study, all runs in one chunk."""
    folder = tmp_path_factory.mktemp("finished")
    write_inputs(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_study(study_of(), folder, SEED)
    return folder


@pytest.fixture(scope="module")
def dataset(finished: Path) -> xr.Dataset:
    return results.read(finished / "tiny" / "study.nc")


@pytest.fixture(scope="module")
def platform(finished: Path) -> DynamicPlatform:
    names = [*SITES, "guests"]
    paths = {name: made(finished, f"workload {name}") for name in names}
    return DynamicPlatform.of(study_of(), paths)


def jobs_by_name(run: xr.Dataset) -> dict[tuple[int, int], tuple[int, int]]:
    """Start and end of each job by home and job number."""
    keys = zip(run["home_cluster"].values.tolist(), run["job_number"].values.tolist(), strict=True)
    times = zip(run["start_time"].values.tolist(), run["end_time"].values.tolist(), strict=True)
    return dict(zip(keys, times, strict=True))


def test_alone_is_every_site_by_itself(finished: Path, platform: DynamicPlatform) -> None:
    whole = results.read(made(finished, "every cluster on its own, easy"))
    for home, jobs, cluster in platform.users:
        run = simulate(jobs, cluster, "easy")
        own = whole["home_cluster"].values == home
        wait = (whole["start_time"] - whole["submit_time"]).values[own]
        np.testing.assert_array_equal(wait, (run["start_time"] - run["submit_time"]).values)
        np.testing.assert_array_equal(
            (whole["end_time"] - whole["start_time"]).values[own], run["run_time"].values
        )
    assert [cluster.processors for _, _, cluster in platform.users] == [16, 8, 6, 20]


def test_runs_are_those_of_the_library(platform: DynamicPlatform, dataset: xr.Dataset) -> None:
    plain = DynamicGrid(migration_cost=1.5, delta_t=300, policy="fcfs")
    options = replace(plain, overhead=2.0, policy="easy")
    names = list(SITES)
    seed = derived_seed(SEED, "tiny\nmembership\n1")
    cases: dict[tuple[str, int], dict[str, Any]] = {
        ("policy easy, overhead 2", 0): {"options": options},
        ("mean_stay 90000", 1): {
            "membership": draw_membership(
                names,
                int(platform.jobs.submit_time.max()),
                mean_stay=90_000,
                mean_absence=14_400,
                seed=seed,
            )
        },
        ("without west", 0): {"membership": {"west": []}},
        ("grid_share 0.5", 1): {
            "options": replace(plain, grid_share=0.5),
            "seed": derived_seed(SEED, "tiny\nshare\n1"),
        },
        ("graph some", 1): {
            "links": grid_graph(
                names, "random", mean_degree=1.4, seed=derived_seed(SEED, "tiny\ngraph some\n1")
            )
        },
    }
    chain = study_of().graph_of("chain", 0)
    for (case, replicate), changes in cases.items():
        given_ = {"links": chain, "options": plain, "membership": None, "seed": 0, **changes}
        run = simulate(
            [*platform.workloads, platform.stream],
            Platform(platform.clusters, links=given_["links"], membership=given_["membership"]),
            given_["options"],
            seed=given_["seed"],
            times="unit",
        )
        summary = summarise_dynamic(run)
        found = dataset.sel(case=case).isel(replicate=replicate)
        for name in ("response_time_mean", "flow_work", "work_given", "yield_wait_max", "suspensions"):
            np.testing.assert_allclose(found[name].values, summary[name].values)
        np.testing.assert_array_equal(found["adjacent"], run["adjacent"])


def test_replicates_are_averaged(dataset: xr.Dataset) -> None:
    part = dataset.sel(case="mean_stay 90000")
    assert (part["leaves"].sum("cluster") > 0).all()
    assert (
        part["leaves"].isel(replicate=0).values.tolist() != part["leaves"].isel(replicate=1).values.tolist()
    )
    sums = (part["response_time_mean"] * part["jobs"]).sum("users").mean("replicate")
    assert float(part["response_time_by_week"].sel(group=ALL_USERS).sum()) == pytest.approx(float(sums))
    once = dataset["makespan"].notnull()
    assert bool(once.all())
    assert np.isnan(dataset["jobs"].sel(case="default").isel(replicate=1)).all()


def test_weekly_sums_are_those_of_the_jobs_one_by_one(
    finished: Path, platform: DynamicPlatform, dataset: xr.Dataset
) -> None:
    case = study_of().cases["graph complete"]
    run = simulate_case(study_of(), platform, case, SEED, 0)
    alone = results.read(made(finished, "every cluster on its own, fcfs"))
    rejected = np.flatnonzero(~np.isin(run["outcome"].values, (1, 2)))
    assert not len(rejected)
    groups = {**{name: [i] for i, name in enumerate(SITES)}, GRID_USERS: [-1]}
    groups |= {CLUSTER_USERS: [0, 1, 2], ALL_USERS: [-1, 0, 1, 2]}
    part = dataset.sel(case="graph complete")
    for name, of_run in (("response_time_by_week", run), ("alone_response_time_by_week", alone)):
        expected = {group: np.zeros(dataset.sizes["week"]) for group in groups}
        rows = zip(
            run["home_cluster"].values, run["submit_time"].values, of_run["end_time"].values, strict=True
        )
        for home, submit, end in rows:
            for group, homes in groups.items():
                if home in homes:
                    expected[group][submit // WEEK] += end - submit
        for group, values in expected.items():
            np.testing.assert_allclose(part[name].sel(group=group), values)
    total = metrics.job_metrics(run)["bounded_slowdown"].sum()
    assert float(part["bounded_slowdown_by_week"].sel(group=ALL_USERS).sum()) == pytest.approx(total)


def test_superscheduler_has_the_same_jobs(platform: DynamicPlatform) -> None:
    study = study_of()
    case = study.cases["scheduler s-i, stream no"]
    run = simulate_case(study, platform, case, SEED, 0)
    partners = {"north": ("south",), "south": ("north", "west"), "west": ("south",)}
    from gridsched.systems.superscheduler.scheduler import Superscheduler

    expected = simulate(
        platform.workloads,
        Platform(platform.clusters).with_policy("fcfs"),
        Superscheduler(scheme="s-i", partners=partners),
    )
    assert jobs_by_name(run) == jobs_by_name(expected)
    with_stream = simulate_case(study, platform, study.cases["scheduler s-i"], SEED, 1)
    np.testing.assert_array_equal(with_stream["home_cluster"], platform.home)
    np.testing.assert_array_equal(with_stream["job_number"], platform.jobs.job_number)
    np.testing.assert_array_equal(with_stream["submit_time"], platform.jobs.submit_time)
    ran = with_stream["start_time"].values >= 0
    segments = with_stream["segment_job"].values
    assert sorted(segments.tolist()) == np.flatnonzero(ran).tolist()
    np.testing.assert_array_equal(
        with_stream["segment_start"].values, with_stream["start_time"].values[segments]
    )
    cluster = with_stream["segment_cluster"].values
    assert (np.array(list(SITES.values()))[cluster] >= platform.jobs.processors[segments]).all()


def test_gains_follow_from_the_sums(dataset: xr.Dataset) -> None:
    for name in TIMES:
        for case in ("default", "mean_stay 90000", "policy easy, overhead 2"):
            part = dataset.sel(case=case, group="north")
            ours, alone, jobs = (
                part[variable].values
                for variable in (f"{name}_by_week", f"alone_{name}_by_week", "jobs_by_week")
            )
            used = jobs > 0
            gain = ratio_interval((alone - ours)[used], jobs[used], signed=True)
            factor = times_interval(alone[used], ours[used])
            for found, expected in ((f"{name}_gain", gain), (f"{name}_factor", factor)):
                values = [float(part[f"{found}{end}"]) for end in ("", "_low", "_high")]
                np.testing.assert_allclose(values, [float(bound) for bound in expected])
            mean = float(part[f"group_{name}_mean"])
            assert mean == pytest.approx(ours.sum() / jobs.sum())
    policy = {"default": "fcfs", "policy easy, overhead 2": "easy"}
    for case, local in policy.items():
        total = dataset["alone_response_time_by_week"].sel(case=case).sum("week")
        count = dataset["jobs_by_week"].sel(case=case).sum("week")
        xr.testing.assert_allclose(
            (total / count).drop_vars("case"),
            dataset["alone_response_time_mean"].sel(policy=local, drop=True),
        )


def test_changes_are_against_the_default_value(dataset: xr.Dataset) -> None:
    part = dataset.sel(sweep="overhead", case="policy easy, overhead 2", group=ALL_USERS)
    base = dataset.sel(case="policy easy", group=ALL_USERS)["response_time_by_week"].values
    ours = dataset.sel(case="policy easy, overhead 2", group=ALL_USERS)["response_time_by_week"].values
    expected = times_interval(ours, base)
    assert float(part["response_time_change"]) == pytest.approx(float(expected.mean))
    assert float(part["response_time_change_low"]) == pytest.approx(float(expected.low))
    assert float(part["sweep_value"]) == 2
    assert str(part["sweep_line"].values) == "policy easy"
    inside = dataset["in_sweep"].sel(sweep="overhead")
    assert set(dataset["case"].values[inside.values > 0]) == {
        *("default", "policy easy", "overhead 1", "overhead 2"),
        *("policy easy, overhead 1", "policy easy, overhead 2"),
    }
    # without the grid's users only those of the clusters can be compared
    stream = dataset.sel(sweep="stream", case="stream no")["response_time_change"]
    assert float(stream.sel(group=CLUSTER_USERS)) > 0
    assert np.isnan(stream.sel(group=[GRID_USERS, ALL_USERS])).all()


def test_a_site_that_never_joins_serves_its_users_alone(dataset: xr.Dataset) -> None:
    for policy, prefix in (("fcfs", ""), ("easy", "policy easy, ")):
        for site in ("north", "west"):
            part = dataset.sel(case=f"{prefix}without {site}", group=site)
            for end in ("", "_low", "_high"):
                assert float(part[f"response_time_gain{end}"]) == pytest.approx(0.0, abs=1e-9)
            gain = dataset.sel(case=f"{prefix}without {site}", party="own")["response_time_joining_gain"]
            with_site = dataset.sel(case=f"{prefix.removesuffix(', ')}" or "default", group=site)
            alone = dataset["alone_response_time_mean"].sel(policy=policy, group=site)
            assert float(gain) == pytest.approx(float(alone - with_site["group_response_time_mean"]))
    assert np.isnan(dataset["response_time_joining_gain"].sel(case="default")).all()


def test_others_are_all_but_the_site(dataset: xr.Dataset) -> None:
    without, joined = (dataset.sel(case=case) for case in ("without north", "default"))
    sums = [part["response_time_by_week"].sum("week") for part in (without, joined)]
    jobs = joined["jobs_by_week"].sum("week")
    other = [float(s.sel(group=ALL_USERS) - s.sel(group="north")) for s in sums]
    count = float(jobs.sel(group=ALL_USERS) - jobs.sel(group="north"))
    found = dataset.sel(case="without north", party="others")
    assert float(found["response_time_joining_gain"]) == pytest.approx((other[0] - other[1]) / count)
    assert float(found["response_time_joining_factor"]) == pytest.approx(other[0] / other[1])


def test_jobs_are_accounted_for(dataset: xr.Dataset) -> None:
    submitted = dataset["jobs_submitted"].sum("users")
    left_out = dataset["left_out"].sum()
    assert float(submitted + left_out) == 4 * 90
    assert float(left_out) > 0
    ended = dataset["jobs"].sel(case="default").isel(replicate=0).sum()
    lost = dataset["stranded_or_rejected"].sel(case="default")
    assert float(ended + lost) == float(submitted)
    assert float(dataset["jobs_without_requested_time"].sum()) > 0
    assert "a user" in str(dataset["workload_acknowledgement"].sel(users=GRID_USERS).values)
    assert dataset["workload_name"].sel(users=GRID_USERS) == "guests"


def test_waits_for_grid_jobs_keep_their_limit(dataset: xr.Dataset) -> None:
    known = dataset["yield_wait_share"].dropna("case")
    assert known.sizes["case"] > 5
    assert float(known.max()) <= 1
    leaving = dataset["leave_time_share"].sel(case="mean_stay 90000")
    assert 0 <= float(leaving) <= 1


def test_departure_shows_the_processors_in_use(dataset: xr.Dataset, platform: DynamicPlatform) -> None:
    study = study_of()
    from gridsched.systems.dynamic_grid.membership import Stay

    stays = [Stay(begin=0, end=500_000), Stay(begin=520_000)]
    run = simulate(
        [*platform.workloads, platform.stream],
        Platform(platform.clusters, links=study.graph_of("chain", 0), membership={"south": stays}),
        study.default.options(),
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
    assert dataset.attrs["departure_site"] == "south"


def test_tables(finished: Path, dataset: xr.Dataset) -> None:
    runs = pd.read_csv(finished / "tiny" / "runs.csv")
    assert len(runs) == 23
    assert runs["run"].is_unique
    assert runs.set_index(["case", "replicate"]).loc[("policy easy, overhead 2", 0), "overhead"] == 2
    means = pd.read_csv(finished / "tiny" / "tables" / "means.csv")
    chosen = (means["case"] == "mean_stay 90000") & (means["group"] == "grid")
    row = means[chosen & (means["measure"] == "response_time")].iloc[0]
    part = dataset.sel(case="mean_stay 90000", group="grid")
    assert row["mean"] == pytest.approx(float(part["group_response_time_mean"]))
    assert row["factor_low"] == pytest.approx(float(part["response_time_factor_low"]))


def test_a_grid_without_users_of_its_own(folder: Path) -> None:
    study = study_of(
        scenarios=[{**STUDY["scenarios"][0], "stream": None}],
        sweeps=STUDY["sweeps"][:1],
        departure=None,
        replicates=1,
    )
    whole = run_study(study, folder, SEED)
    assert whole["users"].values.tolist() == [*SITES, GRID_USERS]
    assert float(whole["jobs_submitted"].sel(users=GRID_USERS)) == 0
    assert np.isnan(whole["group_response_time_mean"].sel(group=GRID_USERS)).all()
    assert whole["group_response_time_mean"].sel(group=CLUSTER_USERS).notnull().all()


def test_parameters_are_those_of_the_cases(dataset: xr.Dataset) -> None:
    table = dataset["parameters"].sel(case="policy easy, overhead 2")
    for key, text in {"policy": "easy", "overhead": "2", "graph": "chain"}.items():
        assert str(table.sel(parameter=key).values) == text
    assert set(table["parameter"].values) == set(CASE_KEYS)


def test_shipped_study_is_the_one_of_the_claims() -> None:
    """Every case that the ledger names is run."""
    from gridsched.experiments.claims import load_claims
    from tests.conftest import REPOSITORY

    study = load_study(REPOSITORY / "config" / "studies" / "dynamic-grid.yaml")
    assert isinstance(study, DynamicGridStudy)
    named: set[str] = set()
    for claim in load_claims():
        if claim.paper == "dynamic-grid-model" and claim.source is not None:
            selections: list[Mapping[str, Any]] = [claim.source.select, claim.source.relative_to or {}]
            selections += getattr(claim, "chain", ())
            for selection in selections:
                case = selection.get("case", ())
                named |= {case} if isinstance(case, str) else set(case)
    assert named <= set(study.cases)
    assert len(named) > 15
