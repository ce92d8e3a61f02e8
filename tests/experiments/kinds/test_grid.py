"""Studies of grids: sweeps on logs, local policies, mistakes, and words that agree with their tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridsched as gs
from gridsched import results
from gridsched.experiments.collection import ALL
from gridsched.experiments.comparing import lines_of
from gridsched.experiments.config import study_from
from gridsched.experiments.kinds.grid import GridStudy
from gridsched.experiments.prepare import derived_seed
from gridsched.presentation.page import build_report
from tests.presentation.test_page import NASTY
from tests.support.errors import says
from tests.support.fields import assert_fields
from tests.support.studies import changed, made, message_about, read_page, run_study

SEED = 3


def crowd(path: Path, seed: int, jobs: int = 600) -> str:
    """Name of a log of a crowded cluster of 16 processors, whose load is near 0.8 in every part of it."""
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.exponential(420, jobs)).astype(int)
    run, size = rng.integers(60, 3000, jobs), rng.choice([1, 2, 4, 8], jobs)
    log = gs.Workload(
        name=path.stem,
        submit_time=submit,
        wait_time=np.ones(jobs, np.int64),
        run_time=run,
        requested_processors=size,
        allocated_processors=size,
        requested_time=2 * run,
        status=np.ones(jobs, np.int64),
        user=np.ones(jobs, np.int64),
        processors_available=16,
        unix_start_time=800_000_000,
    )
    gs.write_swf(log, path)
    return str(path)


# --- a sweep on clusters made from logs -----------------------------------------------------------

K = [1, 2, 4, 8]


def sweep(here: Path, **more: Any) -> GridStudy:
    """JScheduler with several K and local scheduling, on four clusters made from logs."""
    clusters = [
        {
            "name": f"C{number}",
            "file": crowd(here / f"log{number}.swf", number),
            "processors": 8 if number == 0 else 16,
        }
        for number in range(4)
    ]
    values = {
        "name": "sweep",
        "kind": "grid",
        "title": "Sweep",
        "question": "How many clusters should be sampled?",
        "scenarios": [{"name": "logs", "clusters": clusters}],
        "schedulers": [{"name": "self-scheduling", "scheduler": "jscheduler", "k": K}, "local"],
        "reference": "local",
        **more,
    }
    study = study_from(values)
    assert isinstance(study, GridStudy)
    return study


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the sweep with its results, figures too."""
    here = tmp_path_factory.mktemp("sweep")
    run_study(sweep(here), here, SEED, shown=True)
    return here


def numbers(folder: Path, figure: str) -> pd.DataFrame:
    """Numbers behind a figure."""
    return pd.read_csv(next(folder.glob(f"*/figures/{figure}.csv")))


def said(folder: Path, figure: str) -> str:
    """What a figure shows, in words."""
    return next(folder.glob(f"*/figures/{figure}.txt")).read_text(encoding="utf-8")


def test_a_sweep_on_logs_shows_ranking_effect_utilisation_and_response(swept: Path) -> None:
    ranking = numbers(swept, "ranking")
    assert sorted(ranking["scheduler"]) == sorted([*(f"self-scheduling, k {k}" for k in K), "local"])
    assert ranking["ratio"].between(0.01, 10).all()
    assert (ranking.loc[ranking["scheduler"] == "local", "ratio"] == 1).all()
    users = numbers(swept, "users")
    assert set(users["group"]) == {f"users of C{number}" for number in range(4)}
    assert users["ratio"].between(0.001, 100).all()
    utilisation = numbers(swept, "utilisation")
    assert set(utilisation["group"]) == {f"cluster C{number}" for number in range(4)}
    assert utilisation["value"].between(0, 1).all()
    response = numbers(swept, "response-k")
    assert sorted(response["k"]) == K
    assert set(response["scheduler_without_k"]) == {"self-scheduling"}
    assert "Nothing" not in "".join(said(swept, name) for name in ("ranking", "users", "response-k"))


def test_measures_are_those_of_the_simulation(swept: Path) -> None:
    dataset = results.read(swept / "sweep" / "study.nc")
    ((pairs),) = results.grids_from_dataset(results.read(made(swept, "logs, replicate 0"))).values()
    seed = derived_seed(SEED, "logs\n0") % 2**31
    platform = gs.Platform([cluster for _, cluster in pairs]).with_policy("easy")
    for label, scheduler in (("local", "local"), ("self-scheduling, k 2", gs.JScheduler(k=2))):
        run = gs.simulate([workload for workload, _ in pairs], platform, scheduler, seed=seed)
        own = dataset.sel(scenario="logs", scheduler=label, estimates="requested")
        response = (run["end_time"] - run["submit_time"]).values
        home = run["home_cluster"].values
        for group, of in ((ALL, home >= 0), ("users of C1", home == 1)):
            weights = own["jobs"].sel(group=group).fillna(0).values
            means = own["response_time_mean"].sel(group=group).fillna(0).values
            assert weights.sum() == of.sum()
            assert (weights * means).sum() / weights.sum() == pytest.approx(response[of].mean())
        moved = np.unique(
            run["segment_job"].values[run["segment_cluster"].values != home[run["segment_job"].values]]
        )
        assert own["transferred"].sel(replicate=0, group=ALL).item() == pytest.approx(len(moved) / len(home))
        once = own["utilisation_makespan"].sel(group="cluster C2").values
        at = run["segment_cluster"].values == 2
        busy = (run["segment_processors"] * (run["segment_end"] - run["segment_start"])).values[at].sum()
        span = run["end_time"].values.max() - run["submit_time"].values.min()
        assert once[0] == pytest.approx(busy / (16 * span))
        assert np.isnan(once[1:]).all()


def test_a_page_does_not_contradict_itself(swept: Path) -> None:
    """What is said of the best follows from the tests of the very pairs, in words, table and figure."""
    ranking = numbers(swept, "ranking")
    best = ranking.sort_values("ratio", kind="stable").iloc[0]
    text = said(swept, "ranking")
    others = ranking[~ranking["scheduler"].isin([best["scheduler"], "local"])]
    if best["significant"] == -1:
        assert text.startswith(f"{best['scheduler']} has the lowest")
        assert ("All other schedulers differ significantly" in text) == (not others["best"].any())
    else:
        assert "has the lowest" not in text
    significant = ranking[ranking["significant"] != 0]
    assert ((significant["ratio_low"] > 1) | (significant["ratio_high"] < 1)).all()
    equal = ranking[(ranking["significant"] == 0) & ranking["ratio_low"].notna()]
    assert ((equal["ratio_low"] <= 1) & (equal["ratio_high"] >= 1)).all()
    messages = numbers(swept, "messages").set_index("scheduler")["significant"]
    assert messages.to_dict() == ranking.set_index("scheduler")["significant"].to_dict()


def test_the_base_of_a_sweep_belongs_to_its_line(tmp_path: Path) -> None:
    schedulers: list[Any] = [
        "s-i",
        {"name": "slow, phi 600", "scheduler": "s-i", "phi": 600},
        {"name": "slow, phi 900", "scheduler": "s-i", "phi": 900},
        {"name": "other", "scheduler": "s-i", "phi": 900, "epsilon": 60},
        "local",
    ]
    study = sweep(tmp_path, schedulers=schedulers)
    assert lines_of(study.schedulers, "phi") == {"s-i": ["s-i", "slow, phi 600", "slow, phi 900"]}
    loud = [{**each, "name": each["name"].upper()} for each in schedulers[1:3]]
    named = sweep(tmp_path, schedulers=["local", *loud])
    assert lines_of(named.schedulers, "phi") == {"SLOW": ["SLOW, PHI 600", "SLOW, PHI 900"]}
    listed = {"name": "J", "scheduler": "easy", "reservations": [1, 2, 3], "order": ["fcfs", "shortest"]}
    crossed = sweep(tmp_path, schedulers=["local", listed])
    assert list(lines_of(crossed.schedulers, "reservations")) == ["J, order fcfs", "J, order shortest"]
    assert study.coordinates["scheduler"]["phi"] == {"s-i": 60, "slow, phi 600": 600, "slow, phi 900": 900}
    assert [each.name for each in study.specifications if each.name.startswith("response")] == [
        "response-phi"
    ]


# --- replicates -----------------------------------------------------------------------------------

M4 = {"name": "M4", "synthetic": {"machine": "M4", "jobs": 40}}
M5 = {"name": "M5", "synthetic": {"machine": "M5", "jobs": 60, "sizes": {"exponent": 2}}}


def test_what_a_scheduler_draws_differs_from_replicate_to_replicate(tmp_path: Path) -> None:
    """The same jobs in all replicates of one written-out log that is shaken by nothing."""
    file = crowd(tmp_path / "log.swf", 1, 150)
    clusters = [{"name": name, "file": file, "processors": 16} for name in "abc"]
    values = {
        "name": "drawn",
        "kind": "grid",
        "title": "Drawn",
        "scenarios": [{"name": "logs", "clusters": clusters, "shaking": {"replicates": 4, "seconds": 0}}],
        "schedulers": [{"name": "k1", "scheduler": "jscheduler", "k": 1}, "local"],
    }
    dataset = run_study(study_from(values), tmp_path, SEED)
    own = dataset["response_time_mean"].sel(scenario="logs", group=ALL, estimates="requested")
    assert len(set(own.sel(scheduler="local").values.tolist())) == 1
    assert len(set(own.sel(scheduler="k1").values.tolist())) == 4


def test_synthetic_clusters_are_drawn_ten_times_by_default(tmp_path: Path) -> None:
    values = {
        "name": "drawn",
        "kind": "grid",
        "title": "Drawn",
        "scenarios": [{"name": "two", "clusters": [M4, M5]}],
        "schedulers": ["local", "central"],
    }
    dataset = run_study(study_from(values), tmp_path, SEED)
    waits = dataset["wait_time_mean"].sel(scheduler="local", group=ALL).values.ravel()
    assert len(set(waits.tolist())) == 10
    submitted = dataset["jobs_submitted"].sel(scheduler="local")
    assert (submitted.sel(group=ALL) == 100).all()
    assert (submitted.sel(group="cluster M5") == 60).all()
    assert set(dataset["cluster_speed"].sel(scheduler="local", group="cluster M4").values.ravel()) == {1300}


# --- local policies -------------------------------------------------------------------------------

STUDY: dict[str, Any] = {
    "name": "tiny",
    "kind": "grid",
    "title": NASTY.replace("\n", " "),
    "description": NASTY,
    "scenarios": [
        {"name": "drawn", "clusters": [M4, M5]},
        {
            "name": "with-a-log",
            "estimates": ["actual"],
            "clusters": [
                M4,
                {
                    "name": "own",
                    "file": "own.swf",
                    "processors_per_node": 8,
                    "node_exclusive": True,
                    "speed": 500,
                },
            ],
        },
    ],
    "schedulers": ["local", "s-i", {"name": "r-i, often", "scheduler": "r-i", "sigma": 60}, "ideal-srpt"],
    "policies": ["easy", "sjf"],
    "replicates": 3,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with the log of the study."""
    crowd(tmp_path / "own.swf", 2, 60)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_local_policies_make_scenarios_with_the_first_as_baseline(folder: Path) -> None:
    study = study_from(STUDY)
    dataset = run_study(study, folder, 1, shown=True)
    labels = [f"{name}, {policy}" for name in ("drawn", "with-a-log") for policy in ("easy", "sjf")]
    assert_fields(
        dataset,
        scenario=labels,
        policy=["easy", "sjf"] * 2,
        baseline=[f"{name}, easy" for name in ("drawn",) * 2 + ("with-a-log",) * 2],
    )
    effects = numbers(folder, "effects")
    assert set(effects["scenario"]) == {label for label in labels if label.endswith("sjf")}
    assert dataset["wait_time_mean"].sel(estimates="actual", scenario="drawn, easy").isnull().all()
    build_report([study], folder / "report.html")
    page = read_page(folder / "report.html")
    assert not page.open
    assert page.foreign == []
    assert NASTY.split("\n")[0] in page.text


def test_scenarios_of_other_estimates_are_shown_with_the_first_of_theirs(folder: Path) -> None:
    first = {**STUDY["scenarios"][0], "estimates": ["requested", "actual"]}
    study = study_from(
        {**changed(STUDY, "scenarios.0", first), "schedulers": ["local", "s-i"], "policies": ["easy"]}
    )
    run_study(study, folder, 1, shown=True)
    for figure in ("ranking", "messages", "users", "means"):
        shown = numbers(folder, figure)[["scenario", "estimates"]].drop_duplicates()
        assert shown.values.tolist() == [["drawn", "requested"], ["with-a-log", "actual"]]
    assert "no values" not in said(folder, "flows-2")
    assert set(numbers(folder, "estimates")["scenario"]) == {"drawn"}
    build_report([study], folder / "report.html")
    says(read_page(folder / "report.html").words, "drawn (requested)", "with-a-log (actual)")


def test_an_ideal_machine_is_a_bound(folder: Path) -> None:
    dataset = run_study(study_from(STUDY), folder, 1, shown=True)
    ideal = dataset.sel(scheduler="ideal-srpt", scenario="drawn, easy", estimates="requested")
    assert ideal["utilisation"].sel(group="cluster M4").isnull().all()
    assert ideal["response_time_mean"].sel(group="users of M4").notnull().all()
    for name in ("ranking", "messages", "users"):
        assert "ideal-srpt has" not in said(folder, name)


def test_the_same_machine_has_the_same_draws_in_every_scenario(folder: Path) -> None:
    run_study(study_from({**STUDY, "schedulers": ["local"]}), folder, 1)
    grids = [
        results.grids_from_dataset(results.read(made(folder, f"{name}, replicates 0 to 2")))
        for name in ("drawn", "with-a-log")
    ]
    assert grids[0][1][0][0].equals(grids[1][1][0][0])
    assert grids[1][0][1][0].equals(grids[1][1][1][0])
    assert not np.array_equal(grids[0][0][0][0].submit_time, grids[0][1][0][0].submit_time)


def test_schedules_of_the_first_replicate_are_kept_or_none(folder: Path) -> None:
    study = {**STUDY, "schedulers": ["local", "central"], "policies": ["easy"]}
    dataset = run_study(study_from(study), folder, 5)
    kept = [results.read(path) for path in folder.rglob("*.schedule.nc")]
    assert len(kept) == 4
    for run in kept:
        own = dataset.sel({axis: run.attrs[axis] for axis in ("scenario", "scheduler", "estimates")})
        mean = own["wait_time_mean"].sel(replicate=0, group=ALL).item()
        assert float((run["start_time"] - run["submit_time"]).mean()) == pytest.approx(mean)
    run_study(study_from({**study, "name": "none", "schedules": "none"}), folder, 5)
    assert not list((folder / "none").rglob("*.schedule.nc"))


def test_a_killed_job_counts_as_one_with_all_of_its_pieces(tmp_path: Path) -> None:
    jobs = [[0, 5000, 5000, 1], [10, 400, 400, 4], [900, 3000, 3000, 2], [4000, 900, 900, 4]]
    clusters = [{"name": name, "processors": 4, "jobs": jobs} for name in ("A", "B")]
    scenario = {"name": "one", "clusters": clusters, "failures": {"mean_time_between": 9000}}
    values = {"name": "s", "kind": "grid", "title": "S", "scenarios": [scenario], "schedulers": ["local"]}
    whole = run_study(study_from(values), tmp_path, 1).squeeze()
    assert whole["executions_killed"].sel(group=ALL) > 0
    assert whole["jobs"].sel(group=ALL) == 2 * len(jobs)
    work = sum(run * size for _, run, _, size in jobs)
    used = (
        whole["utilisation_makespan"].sel(group=["cluster A", "cluster B"]).sum()
        * 4
        * whole["makespan"].sel(group=ALL)
    )
    assert float(used) == pytest.approx(2 * work * (1 + float(whole["extra_work_share"].sel(group=ALL))))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=8))
def test_workloads_of_a_grid_come_back(jobs: list[tuple[int, int, int]]) -> None:
    submit, run, size = np.array(sorted(jobs)).T
    empty = np.empty(0, np.int64)
    first = gs.Workload(name="a", submit_time=submit, run_time=run, requested_processors=size)
    second = gs.Workload(
        name="b", submit_time=empty, run_time=empty, requested_processors=empty, header=("x",)
    )
    clusters = [gs.Cluster(processors=4, name="a"), gs.Cluster(processors=8, speed=2.5, name="b")]
    pairs = list(zip([first, second], clusters, strict=True))
    back = results.grids_from_dataset(results.grids_dataset({3: pairs, 5: pairs[:1]}))
    assert list(back) == [3, 5]
    for found, given_pair in zip([*back[3], *back[5]], [*pairs, pairs[0]], strict=True):
        assert found[0].equals(given_pair[0])
        assert found[1] == given_pair[1]


# --- configuration --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("scenarios.0.clusters.1.name", "M4", ["scenarios[drawn].clusters: 'M4' is there twice"]),
        ("scenarios.1.name", "Drawn", ["would be one file where case does not count"]),
        ("scenarios.0.clusters", [], ["scenarios[drawn].clusters: found []; write at least 1"]),
        ("scenarios.1.clusters.1.speed", None, ["own has no speed", "clock speed in MHz"]),
        ("scenarios.0.estimates", ["predicted"], ["scenarios[drawn].estimates[item 1]: found 'predicted'"]),
        ("schedulers.1", "si", ["schedulers[item 2]: found 'si'; unknown scheduler; did you mean"]),
        ("schedulers.1", "local", ["schedulers: 'local' is there twice"]),
        ("schedulers.2.sigma", 0, ["schedulers[r-i, often]: sigma is 0"]),
        ("schedulers.2.tau", 3, ["schedulers[r-i, often].tau: unknown key"]),
        ("schedulers.2.scheduler", "ideal-srpt", ["schedulers[r-i, often].sigma: unknown key"]),
        ("schedulers.2.partners", {"M4": ["M9"]}, ["scenario drawn has no cluster 'M9'; known are M4, M5"]),
        ("reference", "central", ["reference: found 'central'", "known are local, s-i, r-i, often"]),
        ("scenarios.1.clusters.1.file", "no.swf", ["clusters[own].file: found 'no.swf'; there is no such"]),
        ("replicates", 0, ["replicates: found 0"]),
        ("policies", ["easy", "best"], ["policies[item 2]: found 'best'"]),
        ("schedules", "some", ["schedules: found 'some'", "'first' or 'none'"]),
        ("workloads", [], ["workloads: unknown key"]),
        ("scenarios.0.schedulers", ["s-j"], ["scenarios[drawn].schedulers: found 's-j'; did you mean s-i"]),
        ("scenarios.0.clusters.0.synthetic.sizes", {"exponent": 1, "utilisation": 0.5}, ["give one of them"]),
        (
            "scenarios.0.clusters.0.synthetic.sizes",
            {"weighting": "uniform", "utilisation": 0.5},
            ["'uniform' has nothing to adjust"],
        ),
        (
            "scenarios.0.clusters.0.synthetic.sizes",
            {"weighting": "uniform", "exponent": 2},
            ["exponent: the weighting 'uniform' has nothing to adjust"],
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_mistake_in_a_study(folder: Path, path: str, value: Any, expected: list[str]) -> None:
    says(message_about(folder, changed(STUDY, path, value)), *expected)
