"""Coverage of forecasts of our own simulation."""

from __future__ import annotations

from typing import Any

from gridsched.forecasting import judge, make_forecasts, timeline_of_run
from gridsched.policies.local import Conventions
from tests.forecasting.test_forecast import EASY, run

__all__ = ["run"]


def test_intervals_cover_what_they_say(run: Any) -> None:
    """Of our own simulation, as they are; corrected, also where the policy is another one."""
    made = make_forecasts(timeline_of_run(run), EASY, Conventions(), instants=150, jobs=6, futures=40, seed=4)
    table = judge(made)
    worth = table[table["range"] == "all"].set_index(["predictor", "correction"])
    coverage: Any = worth["coverage"].to_dict()
    width: Any = worth["width"].to_dict()
    assert 0.72 < coverage["futures", "raw"] < 0.88
    for method in ("futures", "combined", "estimates"):
        assert 0.7 < coverage[method, "as it goes"] < 0.9
    assert width["combined", "as it goes"] < 0.5 * width["null model", "raw"]
