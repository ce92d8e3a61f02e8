"""Checkpoints, against a job that is followed second by second."""

from hypothesis import given
from hypothesis import strategies as st

from gridsched.engine.checkpoints import saved_work, with_checkpoints, work_done


def _followed(work: int, interval: int, cost: int) -> tuple[int, list[int]]:
    """How long a job takes, and the work that is saved after each second."""
    done, kept, since, saved = 0, 0, 0, [0]
    while done < work:
        done += 1
        since += 1
        saved.append(kept)
        if interval > 0 and since == interval and done < work:
            for _ in range(cost):
                saved.append(kept)
            kept, since = done, 0
            saved[-1] = kept
    return len(saved) - 1, saved


@given(work=st.integers(1, 40), interval=st.integers(0, 12), cost=st.integers(0, 5))
def test_checkpoints_are_those_of_a_job_followed_by_the_second(work: int, interval: int, cost: int) -> None:
    length, saved = _followed(work, interval, cost)
    assert with_checkpoints(work, interval, cost) == length
    assert [saved_work(elapsed, interval, cost) for elapsed in range(length)] == saved[:-1]


@given(work=st.integers(1, 40), interval=st.integers(0, 12), cost=st.integers(0, 5))
def test_work_done_is_that_before_which_checkpoints_are_written(work: int, interval: int, cost: int) -> None:
    for done in range(1, work + 1):
        assert work_done(with_checkpoints(done, interval, cost), interval, cost) == done
    assert work_done(0, interval, cost) == 0
