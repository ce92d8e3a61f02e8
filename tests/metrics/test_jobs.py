"""Metrics against naive loops over the jobs, a schedule worked out by hand, and what must not matter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import inference
from gridsched.metrics import jobs as metrics
from tests.support.errors import refused
from tests.support.fields import assert_fields

RELAXED = settings(deadline=None)


@dataclass(frozen=True)
class Job:
    """A job of a test schedule; `start` -1 is a rejected job."""

    submit: int
    run: int
    processors: int
    start: int
    recorded_wait: int = -1

    @property
    def end(self) -> int:
        return self.start + self.run if self.started else -1

    @property
    def started(self) -> bool:
        return self.start >= 0


def run_dataset(jobs: list[Job], processors: int = 16, **attributes: object) -> xr.Dataset:
    """Run dataset of jobs that each run in one segment on one cluster."""

    def column(values: list[int]) -> np.ndarray:
        return np.array(values, dtype=np.int64)

    placed = [index for index, job in enumerate(jobs) if job.started]
    return xr.Dataset(
        {
            "submit_time": ("job", column([job.submit for job in jobs])),
            "run_time": ("job", column([job.run for job in jobs])),
            "processors": ("job", column([job.processors for job in jobs])),
            "start_time": ("job", column([job.start for job in jobs])),
            "end_time": ("job", column([job.end for job in jobs])),
            "recorded_wait_time": ("job", column([job.recorded_wait for job in jobs])),
            "segment_job": ("segment", column(placed)),
            "segment_cluster": ("segment", column([0] * len(placed))),
            "segment_processors": ("segment", column([jobs[index].processors for index in placed])),
            "segment_start": ("segment", column([jobs[index].start for index in placed])),
            "segment_end": ("segment", column([jobs[index].end for index in placed])),
            "cluster_processors": ("cluster", column([processors])),
        },
        {"job_number": ("job", column(list(range(1, len(jobs) + 1)))), "cluster": ["all"]},
        dict(attributes),
    )


@st.composite
def job_lists(draw: st.DrawFn, smallest: int = 0, largest: int = 25) -> list[Job]:
    """Jobs in submit order with ties, zero run times, waits of zero and rejections."""
    jobs = []
    submit = 0
    for _ in range(draw(st.integers(smallest, largest))):
        submit += draw(st.integers(0, 30))
        rejected = draw(st.integers(0, 9)) == 0
        wait = draw(st.sampled_from([0, 0, 1, 7, 60, 5000]))
        jobs.append(
            Job(
                submit=submit,
                run=draw(st.sampled_from([0, 1, 9, 10, 11, 3600, 3601, 20000])),
                processors=draw(st.integers(1, 16)),
                start=-1 if rejected else submit + wait,
                recorded_wait=draw(st.sampled_from([-1, 0, 3, 400])),
            )
        )
    return jobs


def naive_metrics(job: Job) -> dict[str, float]:
    wait = job.start - job.submit
    response = wait + job.run
    return {
        "wait_time": wait,
        "response_time": response,
        "slowdown": response / max(job.run, 1),
        "bounded_slowdown": max(1.0, response / max(job.run, 10)),
    }


def naive_class(job: Job) -> str:
    return f"{'long' if job.run > 3600 else 'short'} {'wide' if job.processors > 8 else 'narrow'}"


def waiting_at(jobs: list[Job], instant: int) -> int:
    return sum(job.submit <= instant < job.start for job in jobs if job.started)


def busy_at(jobs: list[Job], instant: int) -> int:
    return sum(job.processors for job in jobs if job.started and job.start <= instant < job.end)


@RELAXED
@given(job_lists())
def test_job_level_values_equal_a_loop_over_the_jobs(jobs: list[Job]) -> None:
    summary = metrics.summarise(run_dataset(jobs))
    assert summary["rejected"].item() == sum(not job.started for job in jobs)
    for job_class in metrics.JOB_CLASSES:
        members = [j for j in jobs if j.started and job_class in ("all", naive_class(j))]
        chosen = summary.sel(job_class=job_class)
        assert chosen["jobs"].item() == len(members)
        for name in metrics.METRICS:
            values = [naive_metrics(job)[name] for job in members]
            if not values:
                assert np.isnan(chosen[f"{name}_mean"].item())
                assert np.isnan(chosen[f"{name}_max"].item())
                assert np.isnan(chosen[f"{name}_quantile"]).all()
                continue
            assert chosen[f"{name}_mean"].item() == pytest.approx(sum(values) / len(values))
            assert chosen[f"{name}_max"].item() == max(values)
            np.testing.assert_allclose(chosen[f"{name}_quantile"], np.quantile(values, metrics.QUANTILES))


@RELAXED
@given(job_lists(smallest=1, largest=8), st.integers(1, 7))
def test_system_level_values_equal_a_walk_over_every_second(jobs: list[Job], bins: int) -> None:
    jobs = [Job(j.submit, min(j.run, 40), j.processors, j.start and min(j.start, j.submit + 7)) for j in jobs]
    summary = metrics.summarise(run_dataset(jobs, processors=50), bins=bins)
    started = [job for job in jobs if job.started]
    if not started:
        assert np.isnan(summary["utilisation"]).all()
        return
    first, last = min(job.submit for job in started), max(job.end for job in started)
    seconds = range(first, last)
    waiting = np.array([waiting_at(started, second) for second in seconds], dtype=float)
    busy = np.array([busy_at(started, second) for second in seconds], dtype=float)
    assert_fields(summary, makespan=last - first, queue_length_max=max(waiting, default=0))
    if last == first:
        assert np.isnan(summary["utilisation"].item())
        return
    assert_fields(
        summary,
        queue_length_mean=pytest.approx(waiting.mean()),
        utilisation_makespan=pytest.approx(busy.mean() / 50),
    )
    offered = busy[: max(job.submit for job in started) - first]
    mean = offered.mean() / 50 if len(offered) else np.nan
    assert summary["utilisation"].item() == pytest.approx(mean, nan_ok=True)
    # A bin may begin within a second: repeat every second so often that bins hold whole pieces.
    for name, values in (("queue_length_series", waiting), ("utilisation_series", busy / 50)):
        expected = np.repeat(values, bins).reshape(bins, -1).mean(axis=1)
        np.testing.assert_allclose(summary[name], expected, atol=1e-9)
    np.testing.assert_allclose(summary["bin_time"], first + (last - first) * np.arange(bins) / bins)


def test_a_schedule_worked_out_by_hand() -> None:
    jobs = [
        Job(submit=0, run=100, processors=4, start=0),
        Job(submit=10, run=5, processors=2, start=100),
        Job(submit=20, run=7200, processors=4, start=105),
        Job(submit=30, run=50, processors=400, start=-1),
    ]
    summary = metrics.summarise(run_dataset(jobs, processors=4, scheme="FCFS"), bins=1)
    assert_fields(
        summary.sel(job_class="all"),
        wait_time_mean=pytest.approx((0 + 90 + 85) / 3),
        response_time_mean=pytest.approx((100 + 95 + 7285) / 3),
        slowdown_mean=pytest.approx((1 + 95 / 5 + 7285 / 7200) / 3),
        bounded_slowdown_mean=pytest.approx((1 + 95 / 10 + 7285 / 7200) / 3),
    )
    # From 0 to 20, when the last job is submitted, the first job holds all
    assert_fields(
        summary,
        jobs=[3, 2, 0, 1, 0],
        rejected=1,
        makespan=7305,
        utilisation=1,
        utilisation_makespan=pytest.approx((400 + 10 + 28800) / (4 * 7305)),
        queue_length_mean=pytest.approx((90 + 85) / 7305),
        queue_length_max=2,
        scheme="FCFS",
    )
    assert summary["wait_time_mean"].attrs["units"] == "s"


def test_jobs_that_run_in_pieces_respond_late_and_wait_until_their_first_piece() -> None:
    run = run_dataset([Job(submit=0, run=20, processors=4, start=10)], processors=4)
    pieces = run.drop_dims("segment").assign(
        segment_job=("segment", [0, 0]),
        segment_cluster=("segment", [0, 0]),
        segment_processors=("segment", [4, 4]),
        segment_start=("segment", [10, 90]),
        segment_end=("segment", [20, 100]),
    )
    pieces["end_time"] = ("job", np.array([100]))
    summary = metrics.summarise(pieces).sel(job_class="all")
    assert_fields(
        summary,
        wait_time_mean=10,
        response_time_mean=100,
        bounded_slowdown_mean=5,
        utilisation_makespan=pytest.approx(0.2),
    )
    assert np.isnan(summary["utilisation"].item()), "all is submitted at one instant"


@RELAXED
@given(job_lists(smallest=1), st.integers(1, 10**6), st.randoms(use_true_random=False))
def test_neither_the_clock_nor_the_order_of_the_jobs_matters(
    jobs: list[Job], shift: int, random: Random
) -> None:
    later = [Job(j.submit + shift, j.run, j.processors, j.start + shift if j.started else -1) for j in jobs]
    random.shuffle(later)
    plain = metrics.summarise(run_dataset(jobs), batches=2)
    moved = metrics.summarise(run_dataset(later), batches=2)
    moved["bin_time"] = moved["bin_time"] - shift
    distinct = len({job.submit for job in jobs}) == len(jobs)
    parts = ("batch", "mean_low", "mean_high", "mean_reason")
    unordered = ["batch_jobs", *(f"{name}_{part}" for name in metrics.METRICS for part in parts)]
    # Jobs of one instant may change places, and then they may come into another batch.
    ignored = [] if distinct else unordered
    xr.testing.assert_allclose(plain.drop_vars(ignored), moved.drop_vars(ignored), atol=1e-6)


def test_warm_up_and_cool_down_leave_out_jobs_at_both_ends() -> None:
    jobs = [Job(submit=i, run=100, processors=1, start=i + 1000 * (i < 10 or i >= 80)) for i in range(100)]
    summary = metrics.summarise(run_dataset(jobs), warm_up=0.1, cool_down=0.2)
    assert summary["jobs"].sel(job_class="all").item() == 70
    assert summary["wait_time_max"].sel(job_class="all").item() == 0
    assert (summary.attrs["warm_up"], summary.attrs["cool_down"]) == (0.1, 0.2)
    assert metrics.summarise(run_dataset(jobs)).attrs["warm_up"] == 0.0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"warm_up": -0.1}, "warm_up"),
        ({"warm_up": 1.0}, "warm_up"),
        ({"cool_down": float("nan")}, "cool_down"),
        ({"batches": 1}, "batches"),
        ({"batches": 2.5}, "batches is 2.5; it must be a whole number from 2 on"),
        ({"bins": 0}, "bins"),
        ({"bins": 2.5}, "bins is 2.5; it must be a whole number from 1 on"),
        ({"confidence": 1.0}, "confidence"),
        ({"slowdown_threshold": 0.0}, "slowdown_threshold"),
        ({"warm_up": 0.5, "cool_down": 0.5}, "together"),
    ],
)
def test_settings_out_of_range_are_named(options: dict[str, Any], named: str) -> None:
    with refused(named):
        metrics.summarise(run_dataset([Job(0, 10, 1, 0)]), **options)


@RELAXED
@given(st.lists(st.one_of(st.none(), st.floats(0, 1e6)), max_size=80), st.integers(2, 10))
def test_batches_are_means_of_consecutive_jobs(values: list[float | None], batches: int) -> None:
    data = [math.nan if value is None else value for value in values]
    members: list[list[float]] = [[] for _ in range(batches)]
    for index, value in enumerate(data):
        if not math.isnan(value):
            members[index * batches // len(data)].append(value)
    means, numbers = metrics.batch_means(data, batches)
    assert numbers.tolist() == [len(batch) for batch in members]
    expected = [np.mean(batch) if batch else math.nan for batch in members]
    assert means == pytest.approx(expected, nan_ok=True)


def test_a_run_holds_the_memory_of_its_queue_as_often_as_jobs_and_idle_time_say() -> None:
    jobs = [Job(100 * i, 50 if i % 2 else 30, 2, 100 * i) for i in range(200)]
    assert metrics.relaxations(run_dataset(jobs)) == pytest.approx(200 / (10 / 40) ** 2)
    # some job waits for 50 of each 100 s, the last until its end
    late = [Job(job.submit, job.run, job.processors, job.start + 50) for job in jobs]
    busy = 200 * 50 / (19_900 + 50 + 50)
    assert metrics.relaxations(run_dataset(late)) == pytest.approx(3200 * (1 - busy) ** 2)
    assert math.isnan(metrics.relaxations(run_dataset(jobs[:1])))


def test_a_mean_without_a_valid_interval_says_why() -> None:
    growing = [Job(10 * i, 60, 1, 10 * i + 20 * i) for i in range(600)]
    found = metrics.summarise(run_dataset(growing)).sel(job_class="all")
    assert np.isnan(found["wait_time_mean_low"])
    assert found["wait_time_mean_reason"].item() != ""


def congested(jobs: int, factor: int) -> list[Job]:
    """Jobs whose waits rise and fall, `factor` times as long."""
    return [
        Job(submit=10 * i, run=60 + i % 7, processors=1, start=10 * i + factor * (i % 97))
        for i in range(jobs)
    ]


def test_differences_of_summaries_equal_paired_differences_of_the_jobs() -> None:
    slow, fast = run_dataset(congested(630, 9)), run_dataset(congested(630, 2))
    found = metrics.difference(metrics.summarise(slow), metrics.summarise(fast)).sel(job_class="all")
    for name in metrics.METRICS:
        (one, numbers), (other, _) = (
            metrics.batch_means(metrics.job_metrics(run)[name]) for run in (slow, fast)
        )
        memory, other_memory = (metrics.relaxations(run) for run in (slow, fast))
        expected = inference.difference(
            one,
            other,
            numbers,
            serial=True,
            relaxations=memory,
            reference_relaxations=other_memory,
        )
        assert found[f"{name}_difference"].item() == pytest.approx(float(expected.value))
        for bound in ("low", "high"):
            wanted = float(getattr(expected, bound))
            assert found[f"{name}_difference_{bound}"].item() == pytest.approx(wanted, nan_ok=True)
        assert found[f"{name}_difference_reason"].item() == expected.reason


def test_differences_broadcast_over_a_study_and_skip_what_is_not_the_same_jobs() -> None:
    jobs = congested(630, 9)
    rejecting = [Job(j.submit, j.run, j.processors, -1 if i < 100 else j.start) for i, j in enumerate(jobs)]
    schemes = [metrics.summarise(run_dataset(some)) for some in (jobs, congested(630, 2), rejecting)]
    study = xr.concat(schemes, xr.DataArray(["a", "b", "c"], dims="scheme"))
    found = metrics.difference(study, study.sel(scheme="a")).sel(job_class="all")
    values = found["wait_time_difference"]
    assert values.sel(scheme="a").item() == 0
    assert found["wait_time_difference_high"].sel(scheme="b").item() < 0
    assert np.isnan(values.sel(scheme="c").item())


@RELAXED
@given(job_lists())
def test_the_recorded_run_holds_the_waits_of_the_log(jobs: list[Job]) -> None:
    found = metrics.recorded(run_dataset(jobs, scheme="EASY"))
    accepted = [job for job in jobs if job.started]
    known = [job for job in accepted if job.recorded_wait >= 0]
    if not known or 2 * len(known) < len(accepted):
        assert found is None
        return
    assert found is not None
    assert found.attrs["scheme"] == "recorded"
    summary = metrics.summarise(found)
    everything = summary.sel(job_class="all")
    assert_fields(
        everything,
        jobs=len(known),
        wait_time_mean=pytest.approx(np.mean([job.recorded_wait for job in known])),
    )
    if len(known) < len(accepted):
        assert np.isnan(summary["utilisation"].item())
        assert np.isnan(summary["queue_length_mean"].item())
        return
    replayed = [Job(j.submit, j.run, j.processors, j.submit + j.recorded_wait) for j in known]
    expected = metrics.summarise(run_dataset(replayed))
    for name in ("utilisation", "makespan", "queue_length_mean", "queue_length_max", "utilisation_series"):
        np.testing.assert_allclose(summary[name], expected[name])


def test_the_utilisation_of_a_recorded_run_is_unknown_on_a_grid() -> None:
    run = run_dataset([Job(0, 10, 1, 0, recorded_wait=5)])
    grid = run.drop_dims("cluster").assign(cluster_processors=("cluster", [8, 8]))
    found = metrics.recorded(grid)
    assert found is not None
    summary = metrics.summarise(found)
    assert np.isnan(summary["utilisation"].item())
    assert summary["queue_length_max"].item() == 1


def test_the_run_itself_stays_as_it_is() -> None:
    run = run_dataset([Job(0, 10, 1, 3, recorded_wait=5), Job(0, 10, 1, -1)])
    before = run.copy(deep=True)
    metrics.summarise(run)
    metrics.recorded(run)
    xr.testing.assert_identical(run, before)
