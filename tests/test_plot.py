"""Figures of single runs from Python: they show the numbers of the runs, or say why they cannot."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

import gridsched as gs
from gridsched.errors import ConfigurationError
from gridsched.figures import runs as figures
from gridsched.metrics.jobs import busy_processors, job_metrics, queue_length, time_average
from gridsched.results import SEGMENT, Schedule, in_one_piece, run_dataset
from gridsched.runs import labelled_runs
from tests.support.errors import each_refused

CLUSTERS = [gs.Cluster(name="north", processors=8), gs.Cluster(name="$south_1$", processors=4)]


def made_up(
    jobs: int = 200, seed: int = 0, *, factor: float = 1.0, scheme: str = "easy", **attributes: Any
) -> xr.Dataset:
    """Run on two clusters of jobs that wait for random times; it need not be a schedule."""
    rng = np.random.default_rng(seed)
    workload = gs.Workload(
        name="made up",
        submit_time=np.cumsum(rng.integers(0, 600, jobs)),
        run_time=rng.integers(1, 4000, jobs),
        requested_processors=rng.integers(1, 3, jobs),
    )
    cluster = rng.integers(0, 2, jobs)
    start = workload.submit_time + (factor * rng.integers(0, 90_000, jobs) * (rng.random(jobs) < 0.7)).astype(
        np.int64
    )
    segments = in_one_piece(start, workload.run_time, cluster, workload.processors)
    schedule = Schedule(start_time=start, run_time=workload.run_time, segments=segments)
    return run_dataset(workload, np.full(jobs, -1), CLUSTERS, schedule, {"scheme": scheme, **attributes})


def preempted() -> xr.Dataset:
    """Three jobs on two clusters; the first is stopped and goes on elsewhere, the last is too large."""
    workload = gs.Workload(
        name="three",
        submit_time=np.array([0, 10, 20]),
        run_time=np.array([100, 50, 10]),
        requested_processors=np.array([4, 6, 99]),
    )
    pieces = [(0, 0, 4, 0, 40), (0, 1, 4, 60, 120), (1, 0, 6, 40, 90)]
    schedule = Schedule(
        start_time=np.array([0, 40, -1]),
        run_time=workload.run_time,
        end_time=np.array([120, 90, -1]),
        segments=np.array(pieces, SEGMENT),
    )
    return run_dataset(workload, np.full(3, -1), CLUSTERS, schedule, {"scheme": "moving"})


def without_clusters(run: xr.Dataset) -> xr.Dataset:
    """Run as of ideal machines."""
    return run.drop_dims("segment")


def texts(figure: Figure) -> list[str]:
    return [found.get_text() for found in figure.findobj(Text)]


def rows_of(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def test_the_module_is_a_name_of_the_package() -> None:
    import gridsched.plot

    assert gs.plot is gridsched.plot


def test_gantt_has_a_panel_for_each_cluster_and_a_rectangle_for_each_execution() -> None:
    figure = gs.plot.gantt(preempted())
    assert isinstance(figure, Figure)
    found = [
        sum(len(drawn.get_paths()) for drawn in axes.collections if isinstance(drawn, PatchCollection))
        for axes in figure.axes
    ]
    assert found == [0, 2, 1]
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["", "north", r"\$south_1\$"]
    assert {"1", "2", "3", "waits\n(white: rejected)"} <= set(texts(figure))


@pytest.mark.parametrize(
    ("run", "problem"),
    [
        (
            made_up(61),
            r"easy on made up: 61 jobs: .* this run has 61; use gridsched.plot.load",
        ),
        (
            without_clusters(preempted()),
            r"on which clusters jobs run .*; use gridsched.plot.load or compare",
        ),
        (preempted().drop_vars("start_time"), "has no start_time; give what gridsched.simulate returns"),
        (xr.concat([preempted()] * 2, "run"), "holds several runs"),
        (made_up(3).to_dataframe(), "DataFrame is no run"),
    ],
)
def test_gantt_says_why_it_cannot_show_a_run(run: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        gs.plot.gantt(run)


def test_gantt_shows_named_nodes_only_where_there_are_some() -> None:
    run = made_up(3)
    each_refused(
        (ConfigurationError, "on which nodes jobs run", lambda: gs.plot.gantt(run, nodes=["zzz"])),
        (
            ConfigurationError,
            "nodes has no effect on processors",
            lambda: gs.plot.gantt(run, by="processors", nodes=["zzz"]),
        ),
    )


def test_load_shows_exact_averages() -> None:
    run = made_up()
    figure, numbers = figures.load(run, [], 40)
    edges = np.linspace(run["submit_time"].to_numpy().min(), run["end_time"].to_numpy().max(), 41)
    np.testing.assert_array_equal(numbers["bin_time"], edges[:-1])
    np.testing.assert_allclose(numbers["utilisation"], time_average(busy_processors(run), edges) / 12)
    np.testing.assert_allclose(numbers["waiting_jobs"], time_average(queue_length(run), edges))
    drawn = figure.axes[1].lines[0]
    np.testing.assert_array_equal(np.asarray(drawn.get_xdata()), edges)
    np.testing.assert_array_equal(np.asarray(drawn.get_ydata())[:-1], numbers["waiting_jobs"])
    assert "easy on made up: 200 jobs" in texts(figure)


def test_load_of_clusters_adds_up_to_that_of_all() -> None:
    run = made_up()
    _, whole = figures.load(run)
    figure, parts = figures.load(run, ["north", "$south_1$"])
    by_cluster = {name: part.reset_index() for name, part in parts.groupby("cluster")}
    for column, weights in (("utilisation", (8 / 12, 4 / 12)), ("waiting_jobs", (1, 1))):
        total = sum(
            weight * by_cluster[name][column]
            for name, weight in zip(("north", "$south_1$"), weights, strict=True)
        )
        np.testing.assert_allclose(total, whole[column])
    assert len(figure.axes) == 4
    assert len(gs.plot.load(run, clusters=True).axes) == 4
    assert len(gs.plot.load(run, clusters="north").axes) == 2


def test_load_without_clusters_shows_the_queue_and_says_what_is_not_known() -> None:
    run = without_clusters(made_up())
    shown = texts(gs.plot.load(run))
    assert "not known: the run does not say on which processors jobs run" in shown
    with pytest.raises(ConfigurationError, match="does not say on which clusters jobs run; leave clusters="):
        gs.plot.load(run, clusters=True)


def test_load_says_why_it_cannot_show_a_run() -> None:
    run = made_up(5)
    each_refused(
        (
            ConfigurationError,
            r"no cluster 'west'; there are north, \$south_1\$",
            lambda: gs.plot.load(run, clusters=["west"]),
        ),
        (ConfigurationError, "bins is 0", lambda: gs.plot.load(run, bins=0)),
        (
            ConfigurationError,
            "bins is 2.5; it must be a whole",
            lambda: gs.plot.load(run, bins=cast(Any, 2.5)),
        ),
        (
            ConfigurationError,
            "no job of this run was started",
            lambda: gs.plot.load(run.assign(start_time=("job", np.full(5, -1)))),
        ),
    )
    many = run.isel(cluster=np.zeros(13, np.int64)).assign_coords(cluster=[f"c{i}" for i in range(13)])
    with pytest.raises(ConfigurationError, match="at most 12 clusters, these are 13; name some"):
        gs.plot.load(many, clusters=True)


def test_load_of_a_run_of_no_duration() -> None:
    run = made_up(1, factor=0.0)
    run = run.assign(end_time=run["start_time"], segment_end=run["segment_start"])
    assert isinstance(gs.plot.load(run), Figure)


def test_compare_has_the_means_of_the_jobs_that_all_runs_started() -> None:
    first, second = made_up(), made_up(factor=3.0, scheme="fcfs")
    start = second["start_time"].to_numpy().copy()
    start[:7] = -1
    second = second.assign(start_time=("job", start))
    _, numbers = figures.compare({"a": first, "b": second})
    assert (numbers["jobs"] == 193).all()
    for row in numbers.to_dict("records"):
        metrics = job_metrics(first if row["run"] == "a" else second)[row["measure"]][7:]
        assert row["mean"] == pytest.approx(metrics.mean())
        assert np.isnan(row["low"]) or row["low"] < row["mean"] < row["high"]
    figure = gs.plot.compare([first, second])
    assert rows_of(figure.axes[0]) == ["easy", "fcfs"]
    assert "made up: 193 jobs, without 7 that not all runs started" in texts(figure)


def test_compare_draws_the_distribution_of_waits() -> None:
    run = made_up(50)
    waits = run["start_time"].to_numpy() - run["submit_time"].to_numpy()
    line = gs.plot.compare([run]).axes[3].lines[0]
    times, shares = np.asarray(line.get_xdata())[1:-1], np.asarray(line.get_ydata())[1:-1]
    np.testing.assert_allclose(shares, [(waits <= time).mean() for time in times])
    assert times.tolist() == sorted(set(waits.tolist()))


def test_compare_of_very_many_waits_keeps_the_ends_of_the_distribution() -> None:
    times, shares = figures._distribution(np.arange(10_000.0))
    assert len(times) <= 2000
    assert (times[0], times[-1], shares[-1]) == (0, 9999, 1)
    np.testing.assert_allclose(shares, (times + 1) / 10_000)


def test_compare_when_nobody_waits() -> None:
    assert isinstance(gs.plot.compare([made_up(factor=0.0)]), Figure)


def test_runs_of_one_scheduler_are_distinguished_by_what_differs() -> None:
    base = {"policies": "easy, easy", "estimates": "requested", "overrun": "doubling", "seed": 0}
    changes: list[dict[str, Any]] = [{}, {"estimates": "actual"}, {"overrun": "increments"}, {"seed": 7}]
    runs = [made_up().assign_attrs({**base, **own}) for own in changes]
    assert rows_of(gs.plot.compare(runs[:2]).axes[0]) == ["requested", "actual"]
    assert rows_of(gs.plot.compare(runs[1:3]).axes[0]) == ["actual", "requested"]
    labels = ["requested, doubling, seed 0", "actual", "requested, increments", "requested, doubling, seed 7"]
    assert list(labelled_runs(runs)) == labels
    mixed = [runs[0], runs[1], made_up(scheme="fcfs")]
    assert list(labelled_runs(mixed)) == ["easy, requested", "easy, actual", "fcfs"]
    assert list(labelled_runs([made_up()])) == ["easy"]
    with pytest.raises(ConfigurationError, match=r"distinguished: easy, easy; give \{label: run\}"):
        gs.plot.compare([made_up(), made_up()])
    assert rows_of(gs.plot.compare({"one": made_up(), "$x$": made_up()}).axes[0]) == ["one", r"\$x\$"]


@pytest.mark.parametrize(
    ("runs", "problem"),
    [
        ([], "shows 1 to 20 runs, these are 0"),
        ([made_up(3)] * 21, "shows 1 to 20 runs, these are 21"),
        (made_up(3), "this is one run; give several"),
        ([made_up(3), made_up(4)], "3 jobs and .* 4 jobs: job_number differs; compare runs of the same jobs"),
        ([made_up(3), made_up(3, seed=1)], "submit_time differs"),
        ([made_up(3), 7], "int is no run"),
    ],
)
def test_compare_says_why_it_cannot_show_runs(runs: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        gs.plot.compare(runs)


def test_runs_without_a_job_that_all_started_cannot_be_compared() -> None:
    never = made_up(3).assign(start_time=("job", np.full(3, -1)))
    with pytest.raises(ConfigurationError, match="no job was started in all of these runs"):
        gs.plot.compare({"a": never, "b": made_up(3)})


def test_a_run_shows_first_what_matters() -> None:
    run = preempted()
    assert next(iter(run.attrs)) == "title"
    assert run.attrs["title"] == "moving on three: 3 jobs, 1 rejected"
    assert list(run.data_vars)[:5] == ["submit_time", "start_time", "end_time", "processors", "run_time"]
    shown = repr(run)
    assert "moving on three: 3 jobs, 1 rejected" in shown
    assert len(shown.splitlines()) < 45
