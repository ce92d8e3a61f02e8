"""Calibration of a present policy: what it may know, what it explains, and what is sure of another policy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from gridsched.calibration.fitting import FEW, Fitted, Rung, band, candidates, fit
from gridsched.calibration.layers import (
    LAYERS,
    judged,
    layer_of,
    layers_in,
    simulated_waits,
    without_layer,
)
from gridsched.calibration.measures import explained
from gridsched.calibration.null import null_waits
from gridsched.calibration.site import LoggedSite, from_dataset, peaks, site_of, steps
from gridsched.calibration.trust import calibrated_orders, trusted_changes
from gridsched.errors import ConfigurationError, WorkloadError
from tests.calibration.logs import log, site

SHORT = (Rung(0.5, 0, 8), Rung(1.0, 4, 6))


@pytest.fixture(scope="module")
def whole() -> LoggedSite:
    """A log that EASY made: calibration has to find that nothing else is there."""
    return site(log(1200, seed=1))


def test_measures_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(1)
    simulated, recorded = rng.integers(0, 4000, 500), rng.integers(0, 4000, 500)
    told = explained(simulated, recorded)
    assert told.ratio == pytest.approx(simulated.mean() / recorded.mean())
    assert told.correlation == pytest.approx(spearmanr(simulated, recorded).statistic)
    near = [
        abs(a - b) <= 300 or (a <= 2 * b and b <= 2 * a) for a, b in zip(simulated, recorded, strict=True)
    ]
    assert told.near == pytest.approx(np.mean(near))
    assert explained(recorded, recorded).good
    assert not explained(3 * recorded, recorded).good
    assert np.isinf(explained(np.zeros(5), recorded[:5]).loss)


def test_a_log_that_easy_made_is_explained_by_easy(whole: LoggedSite) -> None:
    for half in ("first", "second"):
        assert judged(whole, simulated_waits(whole, {}), half) == pytest.approx((1.0, 1.0, 1.0))
    assert fit(whole, ["processors"], SHORT)[0].calibration == {}


def test_a_limit_that_made_the_waits_is_found() -> None:
    free = site(log(1200, seed=2))
    limited = replace(free, recorded=simulated_waits(free, {"user_jobs": 2.0}))
    before = judged(limited, simulated_waits(limited, {}), "second")
    best = fit(limited, ["limits"], FEW)[0].calibration
    after = judged(limited, simulated_waits(limited, best), "second")
    assert after.correlation > before.correlation + 0.1
    assert after.good


def test_waits_of_the_second_half_change_no_simulation(whole: LoggedSite) -> None:
    """No layer but outages knows anything that the second half recorded."""
    rng = np.random.default_rng(5)
    later = whole.second | (whole.submit + whole.recorded > whole.split)
    other = replace(whole, recorded=np.where(later, rng.permutation(whole.recorded), whole.recorded))
    for _ in range(8):
        calibration: dict[str, float] = {}
        for layer in LAYERS.values():
            calibration |= layer.draw(whole, rng)
        there = simulated_waits(whole, calibration)
        assert there.tolist() == simulated_waits(other, calibration).tolist()


def test_every_parameter_has_a_layer(whole: LoggedSite) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        for name, layer in LAYERS.items():
            drawn = layer.draw(whole, rng)
            assert {layer_of(each) for each in drawn} <= {name}
            assert without_layer(drawn, name) == {}
            assert layers_in(drawn) == ([name] if drawn else [])


def test_candidates_are_the_same_for_all_who_ask(whole: LoggedSite) -> None:
    first = candidates(whole, ["limits", "order"], SHORT[0], [], 0, 3)
    assert first == candidates(whole, ["limits", "order"], SHORT[0], [], 0, 3)
    assert first[0] == {}
    before = [Fitted(float(number), each) for number, each in enumerate(first)]
    second = candidates(whole, ["limits", "order"], SHORT[1], before[::-1], 1, 3)
    assert second[:4] == [each for number, each in enumerate(first) if each not in first[:number]][:4]
    assert len(second) == 10


def test_the_band_holds_what_fits_about_as_well() -> None:
    fitted = [Fitted(0.5 + 0.01 * number, {"processors": float(number)}) for number in range(10)]
    assert [each.calibration["processors"] for each in band(fitted[::-1])] == [0, 1, 2, 3]


def test_the_null_model_is_told_only_what_had_started() -> None:
    whole = site(log(1200, seed=4))
    waits = null_waits(whole, seed=1)
    assert (waits == null_waits(whole, seed=1)).all()
    assert set(waits.tolist()) <= {0.0, *whole.recorded.astype(float).tolist()}
    # the last jobs cannot change what is drawn for those submitted before they started
    changed = whole.recorded.copy()
    changed[-50:] += 10**6
    early = whole.submit <= (whole.submit + whole.recorded)[-50:].min()
    assert (null_waits(replace(whole, recorded=changed), seed=1)[early] == waits[early]).all()


def test_peaks_and_steps_by_hand() -> None:
    times = np.array([0, 5, 10, 10]), np.array([10, 15, 20, 12])
    assert peaks(*times, np.array([2, 3, 4, 1]), np.array([0, 0, 0, 1]), 3).tolist() == [7, 1, 0]
    whole = site(log(600, seed=3))
    begin = int(whole.submit[0])
    out = np.array([[begin + 100, begin + 300, 32], [begin + 200, begin + 400, 8]])
    when, capacity = steps(whole, 32, out)
    assert (when[1:] - begin).tolist() == [100, 200, 300, 400]
    assert capacity.tolist() == [32, 0, 0, 24, 32]


def test_a_site_is_stored_whole(whole: LoggedSite) -> None:
    again = from_dataset(whole.dataset())
    assert simulated_waits(again, {"held": 0.5}).tolist() == simulated_waits(whole, {"held": 0.5}).tolist()
    assert (again.name, again.size, again.week) == (whole.name, whole.size, whole.week)


def test_a_log_without_queueing_is_refused() -> None:
    calm = log(600, seed=3)
    calm = replace(calm, wait_time=np.zeros(600, np.int64))
    with pytest.raises(WorkloadError, match=r"first half holds no queueing .* without --calibrate") as caught:
        site_of(calm, 32)
    assert "\n" not in str(caught.value)


def test_what_is_sure_of_another_policy() -> None:
    whole = site(log(9000, seed=6))
    user = np.arange(len(whole)) % 3
    told = trusted_changes(whole, calibrated_orders(["easy", "fcfs"]), user=user, rungs=SHORT)
    assert told.explains["calibrated"].good
    rows = {row["policy"]: row for row in told.changes.to_dict("records")}
    assert rows["easy"]["verdict"] == "cannot tell"
    assert rows["fcfs"]["verdict"] == "more"
    assert rows["fcfs"]["low"] <= rows["fcfs"]["change"] <= rows["fcfs"]["high"]
    users = told.groups["user"]
    assert len(users) == 6
    assert (users["low"] <= users["high"]).all()
    assert set(told.groups) == {"user", "queue"}
    with pytest.raises(ConfigurationError, match=r"sjbf.*fcfs, ff, easy"):
        calibrated_orders(["sjbf"])
