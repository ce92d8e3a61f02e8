"""How often intervals hold the truth: a reduced form of `python -m tests.coverage`."""

from __future__ import annotations

from functools import partial

import pytest

from tests.coverage import sources
from tests.coverage.measuring import false_pages, measured

LEAST, MOST = 0.93, 0.97
"""Share that intervals of nominally 95 % have to hold."""

ERROR = 0.02
"""Two standard errors of a count of some 400."""


@pytest.mark.parametrize(
    "source",
    [
        partial(sources.queues, 1, 4000, 1),
        partial(sources.queues, 4, 4000, 2),
        partial(sources.queue_logs, 0.5, 5000, 400, 6),
        partial(sources.queue_logs, 0.7, 5000, 400, 7),
    ],
    ids=["M/M/1", "M/M/4", "one log, load 0.5", "one log, load 0.7"],
)
def test_intervals_hold_the_truth_as_often_as_they_say(source: sources.Source) -> None:
    for row in measured("", source()):
        assert LEAST - ERROR <= row["held"] <= MOST + ERROR, row
        assert row["shown"] > 0.9, row
        assert row.get("wrong", 0) <= 0.01, row


def test_pages_where_nothing_differs_seldom_say_so() -> None:
    for row in false_pages("", sources.equal_queues(4000, 10)):
        assert row["wrong"] <= 0.05 + ERROR, row


def test_logs_of_a_loaded_model_are_refused_rather_than_shown_wrong() -> None:
    """A log of 2,000 jobs of Lublin's model at load 0.9 has no steady state that it could tell of."""
    for row in measured("", sources.lublin_logs(0.9, 2000, 20, 1)):
        assert row["shown"] < 0.2, row


def test_the_known_mean_waits_of_queues() -> None:
    assert sources.erlang_wait(0.7, 1) == pytest.approx(0.7**2 / 0.3)
    assert sources.erlang_wait(0.7, 4) == pytest.approx(1.0001, abs=1e-3)
