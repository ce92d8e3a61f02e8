"""Dynamic grids whose nodes fail, whose users give up, whose jobs wait for others: engine against the oracle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.engine import lives as engine_lives
from gridsched.engine.lives import LIFE, Dependency, Fate
from gridsched.engine.records import FOREVER, JOB
from gridsched.nodes import NodeEvent
from gridsched.platform import Cluster
from gridsched.systems.dynamic_grid.graphs import graph_of_edges
from gridsched.systems.dynamic_grid.planning import GRID, DynamicSchedule, schedule_dynamic_grid
from gridsched.systems.fates import dependents_of, outages_of
from gridsched.workloads.dependencies import DEPENDENCY
from tests.oracles.dynamic_grid import Life, Outage, Repairs
from tests.oracles.local import POLICIES as NAIVE_POLICIES
from tests.systems.dynamic_grid.test_scheduler import (
    COMPOSED,
    Case,
    cases,
    local_policy,
    names_of,
    of_engine,
    of_oracle,
    oracle,
)

KINDS = {
    "after": Dependency.AFTER,
    "any": Dependency.AFTER_ANY,
    "ok": Dependency.AFTER_OK,
    "not ok": Dependency.AFTER_NOT_OK,
}
FATES = {
    "": Fate.COMPLETED,
    "rejected": Fate.REJECTED,
    "gave up": Fate.GAVE_UP,
    "never eligible": Fate.NEVER_ELIGIBLE,
    "lost": Fate.LOST,
}


class LivedCase(NamedTuple):
    """A grid whose clusters fail, and what its jobs live through."""

    case: Case
    clusters: list[Cluster]
    lives: list[Life]
    local: str


@st.composite
def node_events(draw: st.DrawFn, nodes: int) -> list[NodeEvent]:
    """What happens to the nodes of a cluster; now and then to all of them at once."""
    events: list[NodeEvent] = []
    times = st.integers(0, 60)
    name = st.sampled_from([*(f"node{k}" for k in range(nodes)), "*"])
    for _ in range(draw(st.integers(1, 4))):
        node, begin = draw(name), draw(times)
        kinds = draw(st.sampled_from([("down", "up"), ("down", "up"), ("drain", "resume"), ("maintenance", "")]))
        length = draw(st.sampled_from([0, 1, 5, 20]))
        if kinds[0] == "maintenance":
            start = begin + draw(st.sampled_from([0, 1, 4, 10, 30]))
            window = {"start": start, "end": start + length + 1}
            events.append(NodeEvent(time=begin, node=node, kind="maintenance", **window))
            continue
        events.append(NodeEvent(time=begin, node=node, kind=kinds[0]))  # type: ignore[arg-type]
        if draw(st.integers(0, 5)):
            events.append(NodeEvent(time=begin + length, node=node, kind=kinds[1]))  # type: ignore[arg-type]
    return events


@st.composite
def lived_cases(draw: st.DrawFn, *, fails: bool, jobs_live: bool) -> LivedCase:
    """Small grids as those of `cases`, with failures, or users who give up and dependencies, or both."""
    case = draw(cases(alike=draw(st.booleans())))
    clusters = []
    for i, processors in enumerate(case.processors):
        node = case.nodes[i]
        per_node = node if node > 1 else draw(st.sampled_from([k for k in (1, 2, 3) if processors % k == 0]))
        events = draw(node_events(processors // per_node)) if fails and draw(st.integers(0, 3)) else []
        clusters.append(
            Cluster(
                name=f"c{i}",
                processors=processors,
                processors_per_node=per_node,
                node_exclusive=node > 1,
                speed=float(case.speeds[i]),
                events=events,
                requeue=draw(st.sampled_from(["place", "place", "end", "lost"])),
                checkpoint_interval=draw(st.sampled_from([0, 0, 1, 3, 7])),
                checkpoint_cost=draw(st.sampled_from([0, 1, 2])),
            )
        )
    lives = []
    for j, job in enumerate(case.jobs):
        gives_up = math.inf
        needs: list[tuple[int, str, int]] = []
        if jobs_live:
            gives_up = draw(st.sampled_from([math.inf, math.inf, job.submit_time + draw(st.integers(-2, 20))]))
            others = draw(st.lists(st.integers(0, j - 1), max_size=2, unique=True)) if j else []
            if draw(st.booleans()):
                delays = st.sampled_from([0, 0, 3])
                needs = [(on, draw(st.sampled_from(list(KINDS))), draw(delays)) for on in others]
        lives.append(Life(max(gives_up, 0), jobs_live and draw(st.integers(0, 4)) == 4, tuple(needs)))
    local = draw(st.sampled_from(["fcfs", "easy", "conservative"]) | st.sampled_from([*NAIVE_POLICIES, *COMPOSED]))
    return LivedCase(case, clusters, lives, local)


def life_records(case: Case, lives: Sequence[Life]) -> engine_lives.Lives:
    """Lives as the engine has them."""
    needs = [
        (j, on, int(KINDS[kind]), delay) for j, life in enumerate(lives) for on, kind, delay in life.needs
    ]
    table = np.zeros(len(needs), DEPENDENCY)
    for name, values in zip(("job", "on", "kind", "delay"), zip(*needs, strict=True), strict=False):
        table[name] = values
    jobs = np.zeros(len(lives), LIFE)
    jobs["submit"] = [job.submit_time for job in case.jobs]
    jobs["gives_up"] = [FOREVER if math.isinf(life.gives_up) else int(life.gives_up) for life in lives]
    jobs["unmet"] = 1 + np.bincount(table["job"], minlength=len(lives))
    jobs["failed"] = [life.failed for life in lives]
    return engine_lives.allocate(jobs, *dependents_of(table, len(lives)))


def run(lived: LivedCase) -> tuple[DynamicSchedule, engine_lives.Lives]:
    case = lived.case
    names = names_of(len(case.processors))
    lives = life_records(case, lived.lives)
    done = schedule_dynamic_grid(
        np.array([(j.submit_time, j.run_time, j.estimate, j.processors) for j in case.jobs], JOB),
        np.array([GRID if j.home is None else j.home for j in case.jobs], np.int64),
        lived.clusters,
        graph_of_edges(names, [(names[i], names[j]) for i, j in case.edges]),
        case.options,
        case.membership,
        policies=[local_policy(lived.local)] * len(names),
        overrun=case.overrun,
        lives=lives,
    )
    return done, lives


def naive_outages(clusters: Sequence[Cluster]) -> list[Outage]:
    rows = outages_of(tuple(clusters))
    names = ("cluster", "first", "end", "start", "until", "announced")
    return [Outage(*(int(row[name]) for name in names), bool(row["drained"])) for row in rows]


def naive_repairs(clusters: Sequence[Cluster]) -> list[Repairs]:
    """How clusters whose nodes fail treat jobs that are killed."""
    return [
        Repairs(each.requeue, each.checkpoint_interval, each.checkpoint_cost if each.checkpoint_interval else 0)
        if each.events
        else Repairs()
        for each in clusters
    ]


@pytest.mark.parametrize(("fails", "jobs_live"), [(True, False), (False, True), (True, True)])
@given(data=st.data())
@settings(max_examples=120)
def test_engine_equals_the_oracle(fails: bool, jobs_live: bool, data: st.DataObject) -> None:
    lived = data.draw(lived_cases(fails=fails, jobs_live=jobs_live))
    naive = oracle(
        lived.case,
        lived.local,
        lives=lived.lives,
        outages=naive_outages(lived.clusters),
        repairs=naive_repairs(lived.clusters),
    )
    done, lives = run(lived)
    assert of_engine(done, naive) == of_oracle(naive)
    assert lives.jobs["fate"].tolist() == [int(FATES[state.fate]) for state in naive.states]
    assert done.killed.tolist() == [state.killed for state in naive.states]
    entered = np.array([state.entry > 0 for state in naive.states], np.bool_)
    eligible: Any = lives.jobs["eligible"][entered]
    assert eligible.tolist() == [state.eligible for state in naive.states if state.entry > 0]
