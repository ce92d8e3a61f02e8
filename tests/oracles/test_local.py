"""The oracle against schedules computed by hand; the conformance cases hold many more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.local import POLICIES, CountedProcessors, Job, Policy, simulate, simulate_policy
from tests.oracles.nodes import Part
from tests.support.strategies import workloads

# On 4 processors: 2 run, the head needs all 4, then a short narrow, a long narrow and a wide job.
BLOCKED = [Job(0, 10, 10, 2), Job(1, 5, 5, 4), Job(2, 8, 8, 1), Job(2, 20, 20, 1), Job(3, 4, 4, 2)]


# One processor is left until the shadow time 10: for job 2 (9 s), or for job 3 (5 s) first, after
# which job 2 would end at 14; only first fit lets it delay job 1.
HOLE = [Job(0, 10, 10, 3), Job(0, 10, 10, 4), Job(0, 9, 9, 1), Job(0, 5, 5, 1)]


@pytest.mark.parametrize(
    ("jobs", "backfilling", "backfill_order", "starts"),
    [
        (BLOCKED, "none", "queue", [0, 10, 15, 15, 15]),
        # Job 4 waits for the two processors that jobs 2 and 3 took; job 1 for the end of all.
        (BLOCKED, "first_fit", "queue", [0, 22, 2, 2, 10]),
        # Shadow time 10 without extra processors: job 2 ends at 10, job 3 would end at 22. Job 4 (2 wide)
        # meets one free processor.
        (BLOCKED, "easy", "queue", [0, 10, 2, 15, 15]),
        # Job 3 is planned at 15, behind job 1; job 4 too, beside it.
        (BLOCKED, "conservative", "queue", [0, 10, 2, 15, 15]),
        (HOLE, "easy", "queue", [0, 10, 0, 20]),
        (HOLE, "easy", "shortest", [0, 10, 20, 0]),
        (HOLE, "first_fit", "shortest", [0, 14, 5, 0]),
    ],
)
def test_schedules_by_hand(jobs: list[Job], backfilling: str, backfill_order: str, starts: list[int]) -> None:
    found = simulate(jobs, 4, order="fcfs", backfilling=backfilling, backfill_order=backfill_order)
    assert found == starts


def test_score_goes_highest_first_and_ties_by_submit_order() -> None:
    jobs = [Job(0, 10, 10, 1), Job(1, 10, 10, 1), Job(2, 10, 10, 1), Job(3, 10, 10, 1)]
    last_first = [0, 30, 20, 10]
    assert simulate(jobs, 1, order=lambda now, submit, estimate, p: submit, backfilling="none") == last_first
    assert simulate(jobs, 1, order=lambda now, submit, estimate, p: 0.0, backfilling="none") == [
        0,
        10,
        20,
        30,
    ]


def test_jobs_larger_than_the_cluster_are_rejected() -> None:
    jobs = [Job(0, 1, 1, 5), Job(0, 1, 1, 4)]
    for name in POLICIES:
        assert simulate_policy(jobs, 4, name) == [-1, 0]


PASSES = ("instant", "event", "arrivals-first")


@given(workloads())
def test_every_policy_gives_a_schedule_without_oversubscription(case: tuple[list[Job], int]) -> None:
    jobs, processors = case
    for name in POLICIES:
        for passes in PASSES:
            starts = simulate_policy(jobs, processors, name, passes=passes)
            for job, start in zip(jobs, starts, strict=True):
                assert start >= job.submit_time or (start == -1 and job.processors > processors)
                used = [
                    other.processors
                    for other, begin in zip(jobs, starts, strict=True)
                    if 0 <= begin <= start < begin + other.run_time
                ]
                assert sum(used) <= processors


@given(workloads(accurate=True))
def test_conservative_without_surprises_never_delays_the_plan_of_an_earlier_job(
    case: tuple[list[Job], int],
) -> None:
    jobs, processors = case
    starts = simulate_policy(jobs, processors, "conservative")
    for n in range(1, len(jobs)):
        assert simulate_policy(jobs[:n], processors, "conservative") == starts[:n]


class ClassicEasy(CountedProcessors):
    """EASY as it is usually told: the head's shadow time, and the extra processors there."""

    def queue_pass(self) -> None:
        queue = self.queue()
        while queue and self.size(queue[0]) <= self.free():
            self.start_now(queue.pop(0))
        if not queue:
            return
        head = self.size(queue.pop(0))

        def free_at(time: int) -> int:
            holding = [j for j in self.running if j not in self.left]
            return self.free() + sum(self.size(j) for j in holding if self.expected[j] <= time)

        shadow = min(t for t in map(self.expected.__getitem__, self.running) if free_at(t) >= head)
        extra = free_at(shadow) - head
        order = self.policy.backfill_order
        for j in queue if order == "queue" else self.ordered(order, queue):
            if self.size(j) <= self.free() and self.now + self.jobs[j].estimate <= shadow:
                self.start_now(j)
            elif self.size(j) <= self.free() and self.size(j) <= extra:
                extra -= self.size(j)
                self.start_now(j)

    def start_now(self, j: int) -> None:
        self.begin(j, [Part(0, 1, self.size(j), 0, {})])


@given(
    workloads(),
    st.sampled_from(["fcfs", "shortest", "lxf"]),
    st.sampled_from(["queue", "smallest"]),
    st.sampled_from(PASSES),
)
def test_easy_with_one_reservation_is_shadow_time_and_extra_processors(
    case: tuple[list[Job], int], order: str, backfill_order: str, passes: str
) -> None:
    jobs, processors = case
    policy = Policy(order, "easy", 1, backfill_order)
    classic = ClassicEasy(jobs, processors, policy, passes=passes).simulate()
    assert classic.first_start == simulate(
        jobs, processors, order=order, backfilling="easy", backfill_order=backfill_order, passes=passes
    )
