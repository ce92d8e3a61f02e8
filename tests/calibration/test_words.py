"""A calibration in words, and the check that a replay is one that the cluster could have executed."""

from __future__ import annotations

import numpy as np
import pytest

from gridsched.calibration.layers import LAYERS, PARAMETERS, simulated_waits, verify_waits
from gridsched.calibration.words import described
from gridsched.errors import ScheduleError
from tests.calibration.logs import log, site


def test_every_parameter_has_words() -> None:
    whole = {f"{name} 7" if name == "priority" else name: 2.0 for name in PARAMETERS}
    told = dict(described(whole))
    assert list(told) == list(LAYERS)
    assert all(told.values())
    assert "queue 7 come 2 h earlier" in told["queues"]
    assert "queue gpu7 come 2 h" in dict(described(whole, "gpu{}".format))["queues"]


def test_words_have_signs_and_units() -> None:
    assert dict(described({"size": -1.5}))["order"] == "a job with twice the processors comes 1.5 h later"
    longer = dict(described({"length": -1.5}))["order"]
    assert longer == "a job with twice the requested time comes 1.5 h earlier"
    (text,) = dict(described({"long": 3600.0, "long_share": 0.55, "daytime": 1.0})).values()
    assert text.startswith("jobs that request more than 1 h use together at most 55 %")
    assert text.endswith("on weekdays from 8 to 18 h")


@pytest.mark.parametrize("given", [{}, {"queue_share": 0.5}, {"held": 1.0}, {"processors": 1.3}])
def test_replays_are_verified(given: dict[str, float]) -> None:
    whole = site(log(600, seed=4))
    waits = simulated_waits(whole, given)
    verify_waits(whole, given, waits, whole.history)
    broken = "while they are held" if "held" in given else "in use, of"
    with pytest.raises(ScheduleError, match=broken):
        verify_waits(whole, given, np.zeros_like(waits), whole.history)
