"""Outages that a log shows: those that were put into a schedule are found, and nothing where none was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsched as gs
from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.nodes import NodeEvent, NodeType, read_events, write_events
from gridsched.traces.outages import InferredOutage, infer_outages, outage_events
from tests.support.fields import assert_fields

DAY = 86400


def busy_log(events: list[NodeEvent], seed: int = 1) -> gs.Workload:
    """Log of a cluster of 8 nodes with one processor each, with enough to do for ten days."""
    rng = np.random.default_rng(seed)
    count = 1500
    run = rng.integers(60, 7200, count)
    workload = gs.Workload(
        name="log",
        submit_time=np.sort(rng.integers(0, 10 * DAY, count)),
        run_time=run,
        requested_time=run,
        requested_processors=rng.choice([1, 1, 2, 4], count),
    )
    found = gs.simulate(workload, gs.Cluster(processors=8, events=events), "easy")
    wait = (found["start_time"] - found["submit_time"]).values
    return gs.Workload(
        name="log",
        submit_time=workload.submit_time,
        run_time=run,
        requested_time=run,
        requested_processors=workload.requested_processors,
        wait_time=wait,
        processors_available=8,
    )


def window(start: int, end: int, *nodes: str) -> list[NodeEvent]:
    return [NodeEvent(time=0, node=name, kind="maintenance", start=start, end=end) for name in nodes]


def test_a_cluster_that_was_never_out_shows_no_outage() -> None:
    assert infer_outages(busy_log([]), 8) == []


def test_an_outage_of_all_nodes_is_found_to_the_second() -> None:
    (found,) = infer_outages(busy_log(window(5 * DAY, 5 * DAY + 20_000, "*")), 8)
    # nothing could start before, so that nodes ran empty
    assert 5 * DAY - 7200 <= found.start <= 5 * DAY + 600
    assert_fields(found, end=5 * DAY + 20_000, processors=8, wanted=8)
    assert found.idle
    assert found.jobs > 0


def test_an_outage_of_some_nodes_is_found_at_a_lower_share() -> None:
    out = [f"node{k}" for k in (2, 3, 4, 5, 6, 7)]
    log = busy_log(window(5 * DAY, 6 * DAY, *out))
    assert infer_outages(log, 8) == []
    (found,) = infer_outages(log, 8, unused=0.6)
    assert not found.idle
    # a job that ran when it began held a processor for a while
    assert found.processors in (5, 6)
    assert 5 * DAY - 7200 <= found.start <= 5 * DAY + 7200
    assert found.end == pytest.approx(6 * DAY, abs=7200)


def test_short_spells_do_not_count_and_short_interruptions_do_not_end_one() -> None:
    columns: dict[str, Any] = {"requested_processors": np.array([4, 4, 4])}
    # all wait until 5000, but for one that runs from 2000 to 2100
    log = gs.Workload(
        name="x",
        submit_time=np.array([0, 0, 0]),
        wait_time=np.array([2000, 5000, 5000]),
        run_time=np.array([100, 10, 10]),
        **columns,
    )
    (one,) = infer_outages(log, 4, shortest=1000, gap=100)
    assert (one.start, one.end, one.idle) == (0, 5000, True)
    first, second = infer_outages(log, 4, shortest=1000, gap=99)
    assert (first.start, first.end, second.start, second.end) == (0, 2000, 2100, 5000)
    assert infer_outages(log, 4, shortest=5001, gap=100) == []


def test_jobs_that_would_not_fit_tell_nothing() -> None:
    log = gs.Workload(
        name="x",
        submit_time=np.array([0, 0]),
        wait_time=np.array([0, 20_000]),
        run_time=np.array([20_000, 10]),
        requested_processors=np.array([1, 8]),
    )
    assert infer_outages(log, 8, unused=0.5) == []
    assert infer_outages(log, 9, unused=0.5) != []


def test_the_table_of_a_naive_count() -> None:
    """Free processors and waiting jobs at every second, one after the other."""
    rng = np.random.default_rng(11)
    for _ in range(40):
        count = 12
        submit, wait = np.sort(rng.integers(0, 60, count)), rng.integers(0, 40, count)
        run, size = rng.integers(0, 30, count), rng.integers(1, 9, count)
        log = gs.Workload(
            name="x", submit_time=submit, wait_time=wait, run_time=run, requested_processors=size
        )
        start = submit + wait
        out = []
        for now in range(200):
            free = 10 - int(size[(start <= now) & (now < start + run)].sum())
            waits = (submit <= now) & (now < start) & (size <= free)
            idle = free >= 9.8 and waits.any()
            out.append(2 if idle else int(min(free, size[waits].sum()) >= 5))
        found = infer_outages(log, 10, unused=0.5, shortest=1, gap=0)
        drawn = np.zeros(200, np.int64)
        for each in found:
            assert (drawn[each.start : each.end] == 0).all()
            drawn[each.start : each.end] = 2 if each.idle else 1
        assert drawn.tolist() == out


@pytest.mark.parametrize("kind", ["maintenance", "drain", "down"])
def test_events_can_be_written_and_replayed(kind: Any, tmp_path: Path) -> None:
    log = busy_log(window(5 * DAY, 5 * DAY + 20_000, "*"))
    found = infer_outages(log, 8)
    events = outage_events(found, gs.Cluster(processors=8).node_types, kind=kind)
    write_events(events, tmp_path / "events.csv")
    assert read_events(tmp_path / "events.csv") == events
    again = gs.simulate(log, gs.Cluster(processors=8, events=events), "easy")
    gs.verify(again)
    starts = again["start_time"].values
    assert not ((starts > found[0].start) & (starts < found[0].end)).any()
    if kind == "maintenance":
        assert (starts == log.submit_time + log.wait_time).mean() > 0.9


def test_parts_of_a_cluster_are_its_last_nodes() -> None:
    outage = InferredOutage(start=100, end=200, processors=70, idle=False, jobs=1, wanted=70)
    nodes = [NodeType(name="a", count=2, cores=64), NodeType(count=3, cores=16, names=["x", "y", "z"])]
    assert [event.node for event in outage_events([outage], nodes)] == ["z", "y", "x"]
    small = InferredOutage(start=100, end=200, processors=15, idle=False, jobs=1, wanted=15)
    assert outage_events([small], nodes) == []
    whole = InferredOutage(start=100, end=200, processors=176, idle=False, jobs=1, wanted=176)
    assert [event.node for event in outage_events([whole], nodes, kind="down")] == ["*", "*"]


def test_mistakes() -> None:
    log = busy_log([])
    unknown = log.select(slice(None), wait_time=np.full(len(log), -1))
    with pytest.raises(WorkloadError, match="waits of 0 of 1,500 jobs"):
        infer_outages(unknown, 8)
    for options, problem in (
        ({"unused": 0.0}, "unused is 0.0"),
        ({"shortest": 0}, "shortest is 0"),
        ({"gap": -1}, "gap is -1"),
    ):
        with pytest.raises(ConfigurationError, match=problem):
            infer_outages(log, 8, **options)
    with pytest.raises(ConfigurationError, match="kind is 'up'"):
        outage_events([], [], kind="up")  # type: ignore[arg-type]
