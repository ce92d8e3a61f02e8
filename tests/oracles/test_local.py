"""The oracle against other definitions of EASY and conservative backfilling.

Schedules that are computed by hand are those of the conformance cases.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.local import CountedProcessors, Job, Policy, simulate, simulate_policy
from tests.oracles.nodes import Part
from tests.support.strategies import workloads

PASSES = ("instant", "event", "arrivals-first")


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
