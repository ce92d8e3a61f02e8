"""What `make trust` counts, on answers made by hand and on a world of a small log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gridsched.calibration.measures import EXPLAINED, PARTLY
from tests.calibration.logs import log
from tests.trust.__main__ import ALL, BY_USER, as_markdown, counted, summary
from tests.trust.worlds import CHOSEN, JUDGED, _in_partitions, _limited

ROWS = pd.DataFrame(
    [
        (CHOSEN[0], "a", "easy", EXPLAINED, 100.0, 20.0, 10.0, 30.0, "more"),
        (CHOSEN[0], "a", "lxf", EXPLAINED, 100.0, -20.0, 10.0, 30.0, "more"),
        (CHOSEN[0], "b", "easy", EXPLAINED, 100.0, 5.0, -10.0, 5.0, "not significant"),
        (CHOSEN[1], "a", "easy", PARTLY, 100.0, 50.0, np.nan, np.nan, "cannot tell"),
    ],
    columns=["log", "world", "policy", "headline", "recorded", "truth", "low", "high", "verdict"],
)


def test_counts_by_hand() -> None:
    assert counted(ROWS) == pytest.approx(
        {
            "worlds": 3,
            "questions": 4,
            "with an interval": 3,
            "interval holds the truth": 2 / 3,
            "wrong sign": 1 / 3,
            "large changes": 3,
            "of them with an interval": 2 / 3,
            "with a sign": 2 / 3,
        }
    )
    table = summary(ROWS.assign(user=ALL, jobs=0))
    assert table["headline"].tolist() == [EXPLAINED, PARTLY, "all"]
    assert "| chosen on | explained | 2 | 3 | 3 | 66.7 % | 33.3 % |" in as_markdown(table)
    assert not set(CHOSEN) & set(JUDGED)


def test_answers_about_single_users_are_counted_apart() -> None:
    site = ROWS.assign(user=ALL, jobs=0)
    users = [ROWS.assign(user=user, jobs=jobs, truth=-5.0) for user, jobs in ((3, 64), (4, 63))]
    table = summary(pd.concat([site, *users]))
    assert table["headline"].tolist() == [EXPLAINED, PARTLY, "all", BY_USER]
    assert table["questions"].tolist() == [3, 1, 4, 3], (
        "of user 4 and of waits that are explained in part nothing is asked"
    )
    assert table["wrong sign"].tolist()[-1] == pytest.approx(2 / 3)


def test_worlds_keep_their_limits_and_partitions() -> None:
    jobs = replace(log(600, seed=3), user=np.arange(600) % 2)
    limited = _limited(jobs, 32)
    assert (limited.truth["easy"] > 0).sum() > (replace(jobs).wait_time > 0).sum(), "the limit binds"
    parts = _in_partitions(jobs, 32)
    assert set(parts.truth) == {"fcfs", "ff", "easy", "sjf", "sjbf", "lxf", "lxwf"}
    assert parts.jobs.wait_time.mean() > jobs.wait_time.mean(), "two partitions wait longer than one pool"
