"""Self-scheduling against the naive oracle: where jobs go, when they start, and what makes no difference."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, cast, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridsched.errors import WorkloadError
from gridsched.metrics.jobs import summarise
from gridsched.platform import Cluster, Platform
from gridsched.policies.local import LocalPolicy, OverrunName
from gridsched.simulation import simulate
from gridsched.systems import grids
from gridsched.systems.jscheduler.costs import predicted_wait
from gridsched.systems.jscheduler.scheduler import (
    JScheduler,
    MetricName,
    PredictionsName,
    Simulation,
    TiesName,
    draw_samples,
)
from gridsched.traces import merge_workloads
from gridsched.verification import verify
from gridsched.workloads import Workload, load_machines, synthesise
from tests.conftest import REPOSITORY
from tests.oracles import grid as naive_self_scheduling
from tests.oracles import local as naive
from tests.oracles.grid import Choices, GridCluster
from tests.oracles.local import Job
from tests.support import strategies
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.jscheduler import SelfSchedule, Submissions, in_short, self_schedule, simulation_of
from tests.support.nodes import jobs_of
from tests.systems.superscheduler.test_scheduler import platform, with_one_score

METRICS: tuple[MetricName, ...] = get_args(MetricName)
MODES: tuple[PredictionsName, ...] = get_args(PredictionsName)
PREDICTING: tuple[MetricName, ...] = ("wait", "slowdown", "response")
FACTORS = (1, 2, 3, 4, 5, 8)
"""CPU factors of the platform of the paper."""


class Case(NamedTuple):
    """Jobs, what they want, and the resources that they choose among."""

    jobs: list[Job]
    resources: list[GridCluster]
    jscheduler: JScheduler
    overrun: OverrunName = "doubling"
    seed: int = 0


def submissions(jobs: list[Job]) -> Submissions:
    columns = np.array(jobs, np.int64).reshape(-1, 4).T
    return Submissions(*(np.ascontiguousarray(column) for column in columns))


def simulation(case: Case, samples: NDArray[np.int16] | None = None) -> Simulation:
    return simulation_of(
        submissions(case.jobs),
        *platform(case.resources),
        case.jscheduler,
        samples=samples,
        seed=case.seed,
        overrun=case.overrun,
    )


def choices(done: SelfSchedule) -> Choices:
    """A schedule in the words of the oracle."""
    places = zip(done.start_time.tolist(), done.resource.tolist(), strict=True)
    return Choices(list(places), done.queries)


def run(case: Case, samples: NDArray[np.int16] | None = None) -> Choices:
    """What the engine says."""
    simulated = simulation(case, samples)
    simulated.run()
    return choices(in_short(simulated.result()))


def drawn(case: Case) -> NDArray[np.int16]:
    """The samples that the engine draws."""
    processors = np.array([job.processors for job in case.jobs], np.int64)
    return draw_samples(processors, platform(case.resources)[0], case.jscheduler, case.seed)


def expected(case: Case, samples: NDArray[np.int16] | None = None, **others: Any) -> Choices:
    """What the oracle says; `others` are further arguments of it."""
    samples = drawn(case) if samples is None else samples
    given = {
        "samples": [[m for m in row if m >= 0] for row in samples[:, : case.jscheduler.k].tolist()],
        "metrics": [case.jscheduler.metric] * len(case.jobs),
        "predictions": case.jscheduler.predictions,
        "overrun": case.overrun,
        "ties": case.jscheduler.ties,
    }
    return naive_self_scheduling.self_schedule(case.jobs, case.resources, **{**given, **others})


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    metric: MetricName | None = None,
    predictions: PredictionsName | None = None,
    k: int | None = None,
) -> Case:
    """Small grids of all kinds, or crowds; speeds are often those of whole factors."""
    crowded = draw(st.booleans())
    jobs, resources = draw(strategies.crowds() if crowded else strategies.grids(16, 5))
    if draw(st.booleans()):
        speeds = st.sampled_from([1.0, 1.0, 1 / 2, 1 / 3, 1 / 5, 3.0])
        resources = [resource._replace(speed=draw(speeds)) for resource in resources]
    wanted = draw(st.sampled_from(METRICS if metric is None else (metric,)))
    mode = draw(st.sampled_from(MODES if predictions is None else (predictions,)))
    asked = k or draw(st.integers(1, len(resources)) | st.just(len(resources)))
    ties = draw(st.sampled_from(get_args(TiesName)))
    jscheduler = JScheduler(metric=wanted, k=asked, predictions=mode, ties=ties)
    return Case(
        [Job(job.submit_time, job.run_time, job.estimate, job.processors) for job in jobs],
        with_one_score(resources),
        jscheduler,
        draw(st.sampled_from(get_args(OverrunName))),
        draw(st.integers(0, 9)),
    )


def job_on(job: Job, machine: Cluster) -> Job:
    """A job as it is on a cluster."""
    run_time, estimate = machine.duration(np.array([job.run_time, job.estimate])).tolist()
    (processors,) = machine.allocation(np.array([job.processors])).tolist()
    return Job(job.submit_time, run_time, estimate, processors)


# --- against the oracle ---------------------------------------------------------------------------


@pytest.mark.parametrize("predictions", MODES)
@pytest.mark.parametrize("metric", METRICS)
@given(data=st.data())
@settings(max_examples=40)
def test_every_metric_equals_the_oracle(
    metric: MetricName, predictions: PredictionsName, data: st.DataObject
) -> None:
    case = data.draw(cases(metric=metric, predictions=predictions))
    assert run(case) == expected(case)


@pytest.mark.parametrize("predictions", MODES)
@pytest.mark.parametrize("policy", [*naive.POLICIES])
@given(case=strategies.crowds(), metric=st.sampled_from(METRICS), seed=st.integers(0, 9))
@settings(max_examples=15)
def test_every_named_policy_equals_the_oracle(
    policy: str, predictions: PredictionsName, case: Any, metric: MetricName, seed: int
) -> None:
    jobs = [Job(job.submit_time, job.run_time, job.estimate, job.processors) for job in case[0]]
    resources = [cluster._replace(**naive.POLICIES[policy]._asdict()) for cluster in case[1]]
    jscheduler = JScheduler(metric=metric, k=2, predictions=predictions)
    done = self_schedule(submissions(jobs), platform(resources)[0], [policy] * 2, jscheduler, seed=seed)
    case_of = Case(jobs, resources, jscheduler, seed=seed)
    assert choices(done) == expected(case_of)


# --- by hand --------------------------------------------------------------------------------------


SINGLES = [GridCluster(1), GridCluster(1)]


def own_cost(
    now: int,
    wait: int,
    estimate: int,
    processors: int,
    waiting: int,
    work_left: int,
    idle: int,
    size: int,
    at_home: int,
) -> float:
    """A cost that looks at everything, in whole numbers, so that ties are the same everywhere."""
    return float(
        3 * wait + 2 * estimate - 50 * at_home + waiting * processors + work_left // size - idle + now % 7
    )


@given(case=cases(metric="wait"), data=st.data())
def test_costs_of_ones_own_equal_the_oracle(case: Case, data: st.DataObject) -> None:
    places = st.integers(-1, len(case.resources) - 1)
    home = data.draw(st.lists(places, min_size=len(case.jobs), max_size=len(case.jobs)))
    own = replace(case.jscheduler, metric=own_cost)
    done = self_schedule(
        submissions(case.jobs),
        *platform(case.resources),
        own,
        seed=case.seed,
        overrun=case.overrun,
        home=np.array(home, int),
    )
    assert choices(done) == expected(case, metrics=[own_cost] * len(case.jobs), home=home)


@given(case=cases(metric="wait"))
def test_a_named_metric_as_a_cost_is_that_metric(case: Case) -> None:
    own = replace(case.jscheduler, metric=predicted_wait)
    jobs, grid = submissions(case.jobs), platform(case.resources)
    done = self_schedule(jobs, *grid, own, seed=case.seed, overrun=case.overrun)
    assert choices(done) == run(case)


def no_number(wait: int, idle: int) -> float:
    """Not a number where a machine is idle."""
    return (wait - wait) / (idle - idle) if idle else float(wait)


def failing(wait: int) -> float:
    if wait >= 0:
        raise ValueError("no")
    return 0.0


def one(submit_time: int, run_time: int, estimate: int | None = None) -> Job:
    """A job of one processor."""
    return Job(submit_time, run_time, run_time if estimate is None else estimate, 1)


FIRST_SLOWER = [GridCluster(1, speed=0.5), GridCluster(1)]
ONE_SLOW = [GridCluster(1), GridCluster(1, speed=0.01)]
# Resource 0 is busy until 10, resource 1, ten times as fast, until 9, resource 2 of an eighth of the speed is
# idle. The last job, 100 s long, would wait 10, 9 or 0 s and run 100, 10 or 800 s.
UNLIKE = [GridCluster(1), GridCluster(1, speed=10.0), GridCluster(1, speed=1 / 8)]
ON_UNLIKE = [one(0, 10), one(0, 90), one(0, 100)]
# Resource 0 is busy until 200,000, resource 1 until 150,000; there a job takes 100 times as long.
FAR_AHEAD = [one(0, 200_000), one(0, 1500)]
# Resource 0 runs a job until 1000; resource 1 runs one of 5 s, and another of 3 s waits.
BUSY = [one(0, 1000), one(0, 5), one(0, 3), one(1, 7)]

BY_HAND: list[tuple[str, list[Job], list[GridCluster], list[list[int]], list[tuple[int, int]]]] = [
    *(
        (metric, ON_UNLIKE, UNLIKE, [[0], [1], [0, 1, 2]], [place])
        for metric, place in {"wait": (0, 2), "slowdown": (0, 2), "response": (9, 1)}.items()
    ),
    # Without the idle one: 9 against 10 s of wait, slowdowns of 1.9 and 1.1
    *(
        (metric, ON_UNLIKE, UNLIKE[:2], [[0], [1], [0, 1]], [place])
        for metric, place in {"wait": (9, 1), "slowdown": (10, 0), "response": (9, 1)}.items()
    ),
    *(
        (metric, [*FAR_AHEAD, one(0, 10)], ONE_SLOW, [[0], [1], [0, 1]], [(150_000, 1)])
        for metric in PREDICTING
    ),
    # With 600 s, which are 60,000 there, its response is better on resource 0, its slowdown is not
    *(
        (metric, [*FAR_AHEAD, one(0, 600)], ONE_SLOW, [[0], [1], [0, 1]], [place])
        for metric, place in zip(PREDICTING, [(150_000, 1), (150_000, 1), (200_000, 0)], strict=True)
    ),
    # Ties go to the first completion, then to the first named
    *(
        (metric, [one(0, 10)], SINGLES, [sample], [(0, sample[0])])
        for metric in PREDICTING
        for sample in ([0, 1], [1, 0])
    ),
    *((metric, [one(0, 10)], FIRST_SLOWER, [[0, 1]], [(0, 1)]) for metric in PREDICTING),
    # Slowdowns of 100 / 98 and 50 / 49 are equal; in float64 the second wait is less than 2 / 98 of 49 s
    ("slowdown", [one(0, 1), one(0, 1), one(0, 49)], FIRST_SLOWER, [[0], [1], [0, 1]], [(1, 1)]),
    # Older policies look at what is there
    ("queued-jobs", BUSY, SINGLES, [[0], [1], [1], [1, 0]], [(1000, 0)]),
    ("work-left", BUSY, SINGLES, [[0], [1], [1], [0, 1]], [(8, 1)]),
    # Work counts for each processor, and only what is left of it: 999 of 1000 s on one of 200 processors
    ("work-left", BUSY, [GridCluster(200), GridCluster(1)], [[0], [1], [1], [1, 0]], [(1, 0)]),
    # Their ties go to the first named
    *((metric, [one(0, 10)], FIRST_SLOWER, [[0, 1]], [(0, 0)]) for metric in ("queued-jobs", "work-left")),
    # Jobs of one instant see those before them
    ("wait", [one(5, 10)] * 4, SINGLES, [[0, 1]] * 4, [(5, 0), (5, 1), (15, 0), (15, 1)]),
    # The second job sees the end at 5, and that the first outruns its estimate then: 5 s more
    ("wait", [one(0, 100, 5), one(0, 5), one(5, 3)], SINGLES, [[0], [1], [0, 1]], [(5, 1)]),
    # Outrun estimates count as work: at 15 the job of resource 0 is expected to end at 20, that of 1 at 17
    (
        "work-left",
        [one(0, 100, 10), one(0, 17), *[one(15, 2)] * 3],
        SINGLES,
        [[0], [1], *[[0, 1]] * 3],
        [(17, 1), (19, 1), (100, 0)],
    ),
]
"""Metric, jobs, resources, whom each job asks, and start and resource of the last jobs."""


@pytest.mark.parametrize("predictions", MODES)
@pytest.mark.parametrize(("metric", "jobs", "resources", "samples", "places"), BY_HAND)
def test_places_found_by_hand(
    metric: MetricName,
    jobs: list[Job],
    resources: list[GridCluster],
    samples: list[list[int]],
    places: list[tuple[int, int]],
    predictions: PredictionsName,
) -> None:
    """By engine and oracle; -1 fills up samples."""
    width = max(len(sample) for sample in samples)
    filled = np.array([sample + [-1] * (width - len(sample)) for sample in samples], np.int16)
    case = Case(jobs, resources, JScheduler(metric=metric, k=width, predictions=predictions))
    found = run(case, filled)
    assert found == expected(case, filled)
    assert found.places[-len(places) :] == places


def test_scores_see_users() -> None:
    jobs = submissions([Job(0, 10, 10, 1), Job(1, 10, 10, 1), Job(2, 10, 10, 1)])
    own = LocalPolicy(name="own", order=lambda user: 1.0 * user)
    done = self_schedule(jobs, [Cluster(processors=1)], [own], JScheduler(k=1), user=np.array([1, 2, 3]))
    assert done.start_time.tolist() == [0, 20, 10]


# --- samples --------------------------------------------------------------------------------------


def machines(*sizes: int) -> list[Cluster]:
    return [Cluster(name=f"c{m}", processors=size) for m, size in enumerate(sizes)]


HOLDING = machines(4, 4, 1, 4, 4, 4)
HOLD = (0, 1, 3, 4, 5)
"""Clusters, and which of them hold a job of two processors."""


def test_a_sample_begins_that_for_more_and_holds_what_fits() -> None:
    resources = machines(*range(1, 13))
    processors = np.random.default_rng(0).integers(1, 14, 20_000)
    samples = {k: draw_samples(processors, resources, JScheduler(k=k), seed=5) for k in (1, 3, 12, 40)}
    for few, more in pairwise(samples.values()):
        assert few.dtype == np.int16
        assert np.array_equal(few, more[:, : few.shape[1]])
    assert samples[40].shape == (20_000, 12)
    for job, sample in zip(processors.tolist(), samples[40].tolist(), strict=True):
        fitting = [m for m in range(12) if m + 1 >= job]
        assert sorted(sample[: len(fitting)]) == fitting
        assert set(sample[len(fitting) :]) <= {-1}


def test_samples_hold_resources_with_enough_whole_nodes() -> None:
    whole = Cluster(name="whole", processors=8, processors_per_node=4, node_exclusive=True)
    samples = draw_samples(np.array([4, 5, 7, 8]), [whole, *machines(7)], JScheduler(k=2), seed=0)
    assert [sorted(sample) for sample in samples.tolist()] == [[0, 1], [0, 1], [0, 1], [-1, 0]]
    narrow = Cluster(name="narrow", processors=4, processors_per_node=4, node_exclusive=True)
    assert draw_samples(np.array([5]), [narrow], JScheduler(k=1), seed=0).tolist() == [[-1]]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("sampling", "most"), [("distinct", 50.8), ("repeated", 60.0)])
def test_samples_are_uniform(sampling: Any, most: float, seed: int) -> None:
    """99.99 % of chi-squares of 19 and 24 degrees of freedom are below 50.8 and 60."""
    jscheduler = JScheduler(k=2, sampling=sampling)
    samples = draw_samples(np.full(100_000, 2), HOLDING, jscheduler, seed)
    pairs, times = np.unique(samples, axis=0, return_counts=True)
    twice = sampling == "repeated"
    assert pairs.tolist() == [[a, b] for a in HOLD for b in HOLD if twice or a != b]
    mean = 100_000 / len(pairs)
    assert ((times - mean) ** 2 / mean).sum() < most
    assert draw_samples(np.array([5]), HOLDING, jscheduler, seed).tolist() == [[-1, -1]]


def test_samples_depend_on_the_seed() -> None:
    one, other = (draw_samples(np.full(1000, 2), HOLDING, JScheduler(k=2), seed) for seed in (0, 1))
    assert (one != other).any(axis=1).mean() > 0.9


def test_a_normal_directory_names_its_middle_most() -> None:
    resources = machines(1, *[4] * 9)
    samples = draw_samples(np.full(50_000, 2), resources, JScheduler(k=2, sampling="normal"), 0)
    times = np.bincount(samples.ravel(), minlength=10)
    assert times[0] == 0
    # Places in ninths of the directory, a sixth of it wide: the middle ninth is within a third of it
    assert times[5] / times.sum() == pytest.approx(0.2611, abs=0.01)
    assert times[5] > times[4] > times[3] > times[2] > times[1] > 0


def test_own_cluster_is_asked_first_where_it_can_hold_the_job() -> None:
    resources = machines(4, 4, 1, 4)
    processors, home = np.array([2, 2, 2] * 2_000), np.array([3, 2, -1] * 2_000)
    samples = draw_samples(processors, resources, JScheduler(k=4, sampling="home"), 0, home)
    assert (samples[0::3, 0] == 3).all()
    assert {tuple(sorted(sample)) for sample in samples.tolist()} == {(-1, 0, 1, 3)}
    assert {tuple(sample[1:3]) for sample in samples[0::3].tolist()} == {(0, 1), (1, 0)}
    for own in (samples[1::3], samples[2::3]):
        assert set(own[:, 0].tolist()) == {0, 1, 3}
    jobs = submissions([Job(0, 5, 5, 2)] * 3)
    done = self_schedule(
        jobs, resources, ["easy"] * 4, JScheduler(k=1, sampling="home"), home=np.array([3, 1, 0])
    )
    assert done.resource.tolist() == [3, 1, 0]


def test_k_clusters_for_each_processor() -> None:
    resources, processors = machines(1, 2, 4, 4, 4, 4), np.array([1, 2, 3, 4])
    samples = draw_samples(processors, resources, JScheduler(k=2, k_per="processor"), 0)
    assert (samples >= 0).sum(axis=1).tolist() == [2, 4, 4, 4]
    alone = draw_samples(processors, resources, JScheduler(k=6), 0)
    assert np.array_equal(samples, np.where(samples >= 0, alone, -1))
    done = self_schedule(
        Submissions(np.zeros(4, np.int64), np.ones(4, np.int64), np.ones(4, np.int64), processors),
        resources,
        ["easy"] * 6,
        JScheduler(k=2, k_per="processor"),
    )
    assert done.queries == 14


def test_draws_of_one_job_say_nothing_of_the_next() -> None:
    first = draw_samples(np.full(100_001, 2), machines(4, 4, 4, 4), JScheduler(k=1), seed=3)[:, 0]
    counts = np.zeros((4, 4))
    np.add.at(counts, (first[:-1], first[1:]), 1)
    # Chi-square of 15 degrees of freedom.
    assert ((counts - 6250) ** 2 / 6250).sum() < 44.3


@given(cases())
@settings(max_examples=40)
def test_a_job_asks_the_first_of_a_longer_sample(case: Case) -> None:
    longer = JScheduler(k=len(case.resources))
    assert run(case) == run(case, drawn(case._replace(jscheduler=longer)))


@given(case=cases(), data=st.data())
@settings(max_examples=60)
def test_asking_all_is_an_exhaustive_choice(case: Case, data: st.DataObject) -> None:
    """Of all resources that hold a job, in the order of the sample; more than these make no difference."""
    resources = platform(case.resources)[0]
    case = case._replace(jscheduler=JScheduler(k=len(resources), predictions=case.jscheduler.predictions))
    orders = [data.draw(st.permutations(range(len(resources)))) for _ in case.jobs]
    fitting = [
        [m for m in order if job_on(job, resources[m]).processors <= resources[m].processors]
        for job, order in zip(case.jobs, orders, strict=True)
    ]
    samples = np.full((len(case.jobs), len(resources)), -1, np.int16)
    for j, some in enumerate(fitting):
        samples[j, : len(some)] = some
    most = max((len(some) for some in fitting), default=0) or 1
    enough = case._replace(jscheduler=JScheduler(k=most, predictions=case.jscheduler.predictions))
    found = run(case, samples)
    assert found == expected(case, samples) == run(enough, samples)
    assert found.queries == sum(len(some) for some in fitting if len(some) > 1)


@given(cases(k=1))
@settings(max_examples=40)
def test_one_resource_is_a_random_dispatch_that_asks_nobody(case: Case) -> None:
    done = run(case)
    assert done.queries == 0
    assert [m for _, m in done.places] == drawn(case)[:, 0].tolist()
    for m, resource in enumerate(case.resources):
        machine = platform([resource])[0][0]
        own = [j for j, (_, where) in enumerate(done.places) if where == m]
        alone = [job_on(case.jobs[j], machine) for j in own]
        names = ("order", "backfilling", "reservations", "backfill_order")
        policy = {name: getattr(resource, name) for name in names}
        starts = naive.simulate(alone, resource.processors, **policy, overrun=case.overrun)
        assert [done.places[j][0] for j in own] == starts


# --- what makes no difference ---------------------------------------------------------------------


@given(case=cases(), room=st.sampled_from([1, 2]))
@settings(max_examples=60)
def test_room_makes_no_difference(case: Case, room: int) -> None:
    wide = run(case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grids, "FIRST_ROOM", room)
        assert run(case) == wide


def test_room_for_a_long_queue() -> None:
    """More jobs wait than there is room for at first, on the faster of two resources."""
    jobs = [Job(t, 10, 10, 1) for t in range(2500)]
    resources = [GridCluster(1), GridCluster(1, speed=1e-3)]
    samples = np.tile(np.array([0, 1], np.int16), (2500, 1))
    for predictions in MODES:
        case = Case(jobs, resources, JScheduler(metric="response", k=2, predictions=predictions))
        places = run(case, samples).places
        assert [m for _, m in places].count(0) > 2 * grids.FIRST_ROOM
        on_first = [start for start, m in places if m == 0]
        assert on_first == list(range(0, 10 * len(on_first), 10))


@given(case=cases(), times=st.lists(st.integers(0, 120), max_size=6))
@settings(max_examples=60)
def test_pauses_make_no_difference(case: Case, times: list[int]) -> None:
    through = run(case)
    starts = np.array([start for start, _ in through.places], np.int64)
    halting = simulation(case)
    everyone = np.arange(len(case.jobs))
    for until in sorted(times):
        halting.run(until)
        begun = (starts >= 0) & (starts < until)
        assert halting.result().start_time.tolist() == np.where(begun, starts, -1).tolist()
        ends = halting.ends(everyone)
        assert ((ends >= 0) == begun).all()
    halting.run()
    done = in_short(halting.result())
    assert choices(done) == through
    ended = np.where(starts >= 0, starts + done.run_time, -1)
    assert halting.ends(everyone).tolist() == ended.tolist()
    assert halting.is_rejected(everyone).tolist() == (starts < 0).tolist()
    halting.run()
    assert choices(in_short(halting.result())) == through


@given(case=cases(), times=st.lists(st.integers(0, 120), max_size=4), seed=st.integers(0, 99))
@settings(max_examples=60)
def test_estimates_given_at_pauses_count_for_later_jobs(case: Case, times: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    halting = simulation(case)
    jobs = list(case.jobs)
    for until in sorted(times):
        halting.run(until)
        later = np.array([j for j, job in enumerate(jobs) if job.submit_time >= until], np.int64)
        seconds = random.integers(1, 40, len(later))
        halting.estimate(later, seconds)
        for j, estimate in zip(later.tolist(), seconds.tolist(), strict=True):
            jobs[j] = jobs[j]._replace(estimate=estimate)
        if len(later) < len(jobs):
            before = len(jobs) - len(later) - 1
            with refused(f"job {before} is submitted already"):
                halting.estimate(np.arange(before, len(jobs)), np.full(len(jobs) - before, 7))
    halting.run()
    assert choices(in_short(halting.result())) == expected(case._replace(jobs=jobs))


def stream(jobs: int) -> tuple[Submissions, list[Cluster], list[str]]:
    """A busy stream, and five resources of different policies."""
    random = np.random.default_rng(8)
    run_time = np.ceil(random.lognormal(4, 1.5, jobs)).astype(np.int64)
    columns = Submissions(
        submit_time=np.cumsum(random.integers(0, 30, jobs)),
        run_time=run_time,
        estimate=np.maximum(run_time * random.integers(1, 7, jobs) // 3, 1),
        processors=2 ** random.integers(0, 5, jobs),
    )
    sizes = {"fcfs": 16, "sjf": 8, "easy": 16, "lxwf": 32, "conservative": 8}
    resources = [
        Cluster(name=name, processors=size, speed=1 / (1 + m)) for m, (name, size) in enumerate(sizes.items())
    ]
    return columns, resources, list(sizes)


def digest() -> str:
    """Hash of the schedules of a small stream, by every metric in both modes."""
    jobs, resources, policies = stream(60)
    content = hashlib.sha256()
    for predictions in MODES:
        for metric in METRICS:
            jscheduler = JScheduler(metric=metric, k=3, predictions=predictions)
            done = self_schedule(jobs, resources, policies, jscheduler, seed=2)
            for values in (done.start_time, done.resource, done.run_time):
                content.update(values.tobytes())
            content.update(f"{done.queries} {done.corrections}".encode())
    return content.hexdigest()


@pytest.mark.parametrize("disable_jit", ["0", "1"])
def test_schedules_are_the_same_in_every_process(disable_jit: str) -> None:
    """With another order of sets, and without compiled kernels."""
    code = "from tests.systems.jscheduler.test_scheduler import digest; print(digest())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "5", "NUMBA_DISABLE_JIT": disable_jit},
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
    )
    assert done.stdout.strip() == digest()


# --- factors --------------------------------------------------------------------------------------


def whole_factors() -> list[tuple[float, int, int]]:
    """Speeds, by which number a run time is multiplied there, and by which it is divided."""
    return [(1 / factor, factor, 1) for factor in FACTORS] + [
        (float(factor), 1, factor) for factor in FACTORS
    ]


def test_durations_of_whole_factors_are_exact() -> None:
    random = np.random.default_rng(4)
    seconds = np.concatenate([np.arange(2_000_000), random.integers(0, 20_000_001, 1_000_000)])
    for speed, multiple, divisor in whole_factors():
        assert np.array_equal(
            Cluster(processors=1, speed=speed).duration(seconds), -(-seconds * multiple // divisor)
        )


def test_run_times_of_whole_factors_are_exact_in_the_engine() -> None:
    """Jobs of all lengths run one after the other on a cluster of each speed."""
    factors = whole_factors()
    each = 5000
    length = np.random.default_rng(6).integers(0, 20_000_001, each * len(factors))
    where = np.repeat(np.arange(len(factors)), each)
    resources = [Cluster(name=f"c{m}", processors=1, speed=speed) for m, (speed, _, _) in enumerate(factors)]
    simulated = simulation_of(
        Submissions(np.zeros_like(length), length, np.ones_like(length), np.ones_like(length)),
        resources,
        ["fcfs"] * len(factors),
        JScheduler(k=1),
        samples=where[:, None].astype(np.int16),
    )
    simulated.run()
    ends, done = simulated.ends(np.arange(len(length))), simulated.result()
    for m, (_, multiple, divisor) in enumerate(factors):
        own = where == m
        exact = -(-length[own] * multiple // divisor)
        found = (ends[own], done.start_time[own] + exact, done.run_time[own].cumsum())
        assert all(np.array_equal(end, np.cumsum(exact)) for end in found)


# --- datasets -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def busy() -> Workload:
    """Jobs of two synthetic machines as one stream."""
    machine = load_machines()["M3"]
    return merge_workloads([synthesise(machine, jobs=300, seed=k, load_scale=2.0) for k in range(2)])[0]


SITES = [
    Cluster(name=f"site {m}", processors=size, processors_per_node=8, node_exclusive=True, speed=speed)
    for m, (size, speed) in enumerate([(1152, 1.0), (512, 1 / 2), (1152, 2.0), (64, 1.0)])
]


@pytest.mark.parametrize("predictions", MODES)
@pytest.mark.parametrize("metric", METRICS)
def test_simulated_runs_are_verified(
    busy: Workload, metric: MetricName, predictions: PredictionsName
) -> None:
    jscheduler = JScheduler(metric=metric, k=3, predictions=predictions)
    done = simulate(busy, SITES, jscheduler, seed=1)
    verify(done)
    assert_fields(done, metric=metric, parameter_metric=metric, parameter_predictions=predictions)
    assert_fields(done, parameter_k=3, seed=1, jobs_rejected=0, policies="easy, easy, easy, easy")
    where = done["segment_cluster"].values
    for m, site in enumerate(SITES):
        mine = where == m
        assert mine.any()
        own = done.isel(job=mine, segment=mine)
        taken = site.allocation(busy.processors[mine])
        assert_fields(own, run_time=site.duration(busy.run_time[mine]), segment_processors=taken)
    assert done.identical(simulate(busy, Platform(SITES).with_policy(["easy"] * 4), jscheduler, seed=1))
    # what the function says that studies use
    columns = Submissions(busy.submit_time, busy.run_time, done["estimate"].values, busy.processors)
    alone = self_schedule(columns, SITES, ["easy"] * 4, jscheduler, seed=1)
    found = alone._asdict()
    assert_fields(done, **{name: found[name] for name in ("start_time", "queries", "corrections")})


def test_who_asks_more_waits_less(busy: Workload) -> None:
    means = []
    for k in (1, 2, 4):
        done = simulate(busy, SITES, JScheduler(k=k), estimates="actual")
        summary = summarise(done).sel(job_class="all")
        means.append((float(summary["wait_time_mean"]), float(summary["bounded_slowdown_mean"])))
        assert means[-1][0] == pytest.approx(float((done["start_time"] - done["submit_time"]).mean()))
    waits, slowdowns = zip(*means, strict=True)
    assert waits[0] > waits[1] > waits[2] >= 0
    assert slowdowns[0] > slowdowns[2] >= 1


def test_estimates_of_a_run(busy: Workload) -> None:
    given = np.full(len(busy), 600)
    assert_fields(simulate(busy, SITES, JScheduler(k=4), estimates=given), estimate=given, estimates="given")
    actual = simulate(busy, SITES, JScheduler(k=4), estimates="actual")
    same = simulate(busy, SITES, JScheduler(k=4), estimates=busy.run_time)
    assert_fields(actual, start_time=same["start_time"])


@given(case=cases(), data=st.data())
@settings(max_examples=40)
def test_no_more_clusters_are_asked_than_there_are(case: Case, data: st.DataObject) -> None:
    """The number to ask is an upper bound."""
    every = case._replace(jscheduler=replace(case.jscheduler, k=len(case.resources)))
    more = replace(case.jscheduler, k=len(case.resources) + data.draw(st.integers(1, 100)))
    assert run(case._replace(jscheduler=more)) == run(every)


def test_jobs_ask_others_with_another_seed(busy: Workload) -> None:
    first, second = (simulate(busy, SITES, JScheduler(k=1), seed=seed) for seed in (1, 2))
    assert not first["segment_cluster"].equals(second["segment_cluster"])


def test_times_of_a_home_are_those_of_its_speed() -> None:
    """Jobs of 10 s on a cluster of speed 2 take 20 s at speed 1 and 40 s at speed 1/2, and are asked so."""
    columns = {"run_time": [10] * 3, "requested_time": [15] * 3, "requested_processors": [2] * 3}
    jobs = jobs_of(submit_time=[0] * 3, **columns)
    fast, slow = (Cluster(name=f"at {speed}", processors=2, speed=speed) for speed in (2.0, 0.5))
    for workload in ([jobs, None], replace(jobs, home=np.zeros(3, np.int64))):
        done = simulate(workload, [fast, slow], JScheduler(k=2))
        # Waits of 0 and 0 s tie for the sooner end; then the slow cluster is free; then 15 and 60 s remain.
        assert_fields(done, segment_cluster=[0, 1, 0], run_time=[10, 40, 10], start_time=[0, 0, 10])
        assert_fields(done, jobs_transferred=1)
    unit = simulate([jobs, None], [fast, slow], JScheduler(k=2), times="unit")
    assert_fields(unit, run_time=[5, 20, 5])


def test_a_cost_may_look_at_the_home() -> None:
    def stubborn(at_home: int) -> float:
        return 1.0 - at_home

    home = [0, 1, 2, 1, 0, 2]
    jobs = jobs_of(submit_time=range(6), run_time=[100] * 6, requested_processors=[1] * 6, home=home)
    done = simulate(jobs, machines(1, 1, 1), JScheduler(k=3, metric=stubborn))
    assert_fields(done, segment_cluster=home, jobs_transferred=0)
    assert "stubborn" in done.attrs["metric"]
    assert " at 0x" not in done.attrs["parameter_metric"]


def test_a_job_that_no_resource_can_hold_is_rejected_and_counted() -> None:
    jobs = jobs_of(submit_time=[0, 1, 2], run_time=[10, 20, 30], requested_processors=[1, 9, 4])
    slow = [Cluster(name=f"{size} processors", processors=size, speed=0.5) for size in (2, 4)]
    done = simulate(jobs, slow, JScheduler(k=2))
    verify(done)
    # Only the first job has a choice
    assert_fields(done, run_time=[20, 20, 60], segment_job=[0, 2], jobs_rejected=1, queries=2)
    assert done["segment_cluster"].values[1] == 1


# --- mistakes -------------------------------------------------------------------------------------


ONES = np.ones(2, np.int64)
SAMPLES = np.zeros((2, 2), np.int16)
PAIR = machines(1, 1)
EIGHTH = Cluster(processors=1, speed=1 / 8)


def on_pair(**change: Any) -> object:
    """Two jobs on two clusters, but for changes."""
    given: dict[str, Any] = {
        "jobs": Submissions(ONES, ONES, ONES, ONES),
        "resources": PAIR,
        "policies": ["easy", "easy"],
        "jscheduler": JScheduler(k=2),
    }
    return self_schedule(**{**given, **change})


def paused(jobs: list[int], seconds: list[int]) -> None:
    """Estimates given after 5 s, when the first of two jobs is submitted."""
    submitted = Submissions(np.array([0, 9]), ONES, ONES, ONES)
    halted = simulation_of(submitted, [EIGHTH], ["easy"], JScheduler(k=1))
    halted.run(5)
    halted.estimate(np.array(jobs), np.array(seconds))


def at_homes(*home: int) -> object:
    return draw_samples(ONES[:1], PAIR, JScheduler(k=2), 0, np.array(home))


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (
            lambda: JScheduler(metric=cast(Any, "best")),
            "metric is 'best'; use one of wait, slowdown, response, queued-jobs, work-left",
        ),
        (
            lambda: JScheduler(predictions=cast(Any, "guess")),
            "predictions is 'guess'; use one of exact, plan",
        ),
        (lambda: JScheduler(k=0), "k is 0; use a whole number from 1 on"),
        (lambda: JScheduler(k=cast(Any, 2.5)), "k is 2.5; use a whole number"),
        (
            lambda: JScheduler(metric=lambda price: price),
            "unknown parameter 'price'; a cost may take now, wait",
        ),
        (
            lambda: on_pair(jscheduler=JScheduler(k=2, metric=no_number)),
            "cost no_number: not a number for the job at index 0",
        ),
        (
            lambda: on_pair(jscheduler=JScheduler(k=2, metric=failing)),
            "cost failing: not a number for the job at index 0",
        ),
        (lambda: at_homes(2), "home: give the index of one of the 2 clusters"),
        (lambda: at_homes(-2), "home: give the index of one of the 2 clusters"),
        (lambda: at_homes(0, 1), "home: give the index of one of the 2 clusters"),
        (lambda: on_pair(samples=SAMPLES[:1]), "samples: shape (1, 2) for 2 jobs that ask 2 clusters each"),
        (lambda: on_pair(samples=SAMPLES[:, :1]), "samples: shape (2, 1)"),
        (lambda: on_pair(samples=SAMPLES[0]), "samples: shape (2,)"),
        (lambda: on_pair(samples=SAMPLES + np.int16(2)), "samples: give indices of the 2 clusters, or -1"),
        (lambda: on_pair(samples=SAMPLES - np.int16(2)), "samples: give indices of the 2 clusters, or -1"),
        (
            lambda: on_pair(samples=SAMPLES, jobs=Submissions(ONES, ONES, ONES, 2 * ONES)),
            "is named to a job it cannot hold",
        ),
        (
            lambda: on_pair(overrun="sometimes"),
            "overrun is 'sometimes'; use one of doubling, increments",
        ),
        (lambda: on_pair(policies=["easy"]), "2 clusters and 1 policies"),
        (lambda: on_pair(policies=["lxf", "lxwf"]), "only one order that is a score"),
        (lambda: on_pair(policies=["easy", "lazy"]), "unknown policy 'lazy'"),
        (lambda: on_pair(resources=[PAIR[0]] * 2), "give each a name of its own"),
        (lambda: on_pair(resources=[], policies=[]), "no clusters; give at least one"),
        (
            lambda: on_pair(jobs=Submissions(ONES, ONES, ONES << 30, ONES), resources=[PAIR[0], EIGHTH]),
            "an estimate of 1073741824 s would exceed",
        ),
        (lambda: paused([0], [5]), "job 0 is submitted already"),
        (lambda: paused([1], [0]), "from 0 to 0 s"),
        (lambda: paused([1], [2**30]), "would exceed"),
        (
            lambda: draw_samples(ONES, [PAIR[0]] * 40_000, JScheduler(k=1), 0),
            "40000 clusters; at most 32767",
        ),
    ],
)
def test_mistakes_are_refused(wrong: Callable[[], object], complaint: str) -> None:
    with refused(complaint):
        wrong()


def test_no_jobs_at_all() -> None:
    done = self_schedule(submissions([]), PAIR, ["easy"] * 2, JScheduler(k=2))
    assert_fields(done, start_time=[], resource=[], queries=0, corrections=0)


def test_unclean_workloads_are_refused() -> None:
    odd = jobs_of(name="odd", submit_time=[1], run_time=[-1], requested_processors=[1])
    with refused("odd: 1 jobs have no run time", error=WorkloadError):
        simulate(odd, PAIR, JScheduler(k=2))


def test_more_clusters_to_ask_than_there_are_is_a_warning() -> None:
    """And the run is that of as many as there are, and says so."""
    jobs = synthesise("M3", jobs=60, seed=1)
    clusters = [Cluster(name=name, processors=1152) for name in ("a", "b", "c")]
    with pytest.warns(UserWarning, match=r"k is 8, but there are 3 clusters.*as with k=3"):
        many = simulate(jobs, clusters, JScheduler(k=8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        all_three = simulate(jobs, clusters, JScheduler(k=3))
    for asked in (many, all_three):
        assert_fields(asked, start_time=all_three["start_time"], clusters_asked=3)
