"""Calibration of a present policy: what it may know, what it explains, and what is sure of another policy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from gridsched.calibration.ceiling import granular, mean_of_shaken, restarted_waits, shaken
from gridsched.calibration.composition import composition
from gridsched.calibration.fitting import Effort, Fitted, Trial, band, best_step, fit, gain, tried, tried_next
from gridsched.calibration.layers import (
    LAYERS,
    ORDERS,
    judged,
    layer_of,
    layers_in,
    simulated_waits,
    without_layer,
)
from gridsched.calibration.measures import EXPLAINED, NOT, PARTLY, UNKNOWN, Explained, explained, loss_of
from gridsched.calibration.null import null_waits
from gridsched.calibration.site import History, LoggedSite, from_dataset, site_of, steps
from gridsched.calibration.trust import answer_of, calibrated_orders, fit_error, trusted_changes
from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.workloads.usage import peaks
from tests.calibration.logs import log, site
from tests.support.fields import assert_fields

SHORT = Effort(drawn=6, kept=2, varied=2, rounds=3, layers=2)


@pytest.fixture(scope="module")
def whole() -> LoggedSite:
    """A log that EASY made: calibration has to find that nothing else is there."""
    return site(log(1200, seed=1))


def test_measures_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(1)
    simulated, recorded = rng.integers(0, 4000, 500), rng.integers(0, 4000, 500)
    told = explained(simulated, recorded)
    assert_fields(
        told,
        ratio=pytest.approx(simulated.mean() / recorded.mean()),
        correlation=pytest.approx(spearmanr(simulated, recorded).statistic),
    )
    near = [
        abs(a - b) <= 300 or (a <= 2 * b and b <= 2 * a) for a, b in zip(simulated, recorded, strict=True)
    ]
    assert told.near == pytest.approx(np.mean(near))
    assert loss_of(1.0, 1.0, 1.0) == 0
    assert loss_of(0.5, 0.5, np.e) == pytest.approx(1.25)
    assert loss_of(np.nan, 1.0, 1.0) == 1.0, "no rank is right where all waits are equal"


def test_a_log_that_easy_made_is_explained_by_easy(whole: LoggedSite) -> None:
    for half in ("first", "second"):
        assert judged(whole, simulated_waits(whole, {}), half) == pytest.approx((1.0, 1.0, 1.0))
    assert fit(whole, ["processors"], SHORT)[0].calibration == {}


def test_a_share_that_made_the_waits_is_found() -> None:
    free = site(log(1200, seed=2))
    given = {"long": 3600.0, "long_share": 0.6, "daytime": 0.0}
    limited = replace(free, recorded=simulated_waits(free, given))
    before = judged(limited, simulated_waits(limited, {}), "second")
    best = fit(limited, ["shares", "fair share"], Effort(16, 6, 6, 2, 1))[0].calibration
    after = judged(limited, simulated_waits(limited, best), "second")
    assert after.correlation > before.correlation + 0.1
    assert after.headline(UNKNOWN) == EXPLAINED
    assert best["long_share"] == pytest.approx(0.6, rel=0.1)


def test_a_layer_is_found_on_a_cluster_that_is_never_full() -> None:
    """EASY simulates equal waits there, so that nothing is told of their ranks."""
    free = site(log(1200, seed=2), 10_000)
    limited = replace(free, recorded=simulated_waits(free, {"processors": 0.0032}))
    assert (simulated_waits(limited, {}) == 0).all()
    best = fit(limited, ["idle waits", "order"], Effort(16, 6, 6, 2, 1))
    assert layers_in(best[0].calibration) == ["idle waits"]
    assert all(np.isfinite(each.loss) for each in band(best))


def test_waits_of_the_second_half_change_no_simulation(whole: LoggedSite) -> None:
    """No layer but outages knows anything that the second half recorded."""
    rng = np.random.default_rng(5)
    later = whole.second | (whole.submit + whole.recorded > whole.split)
    other = replace(whole, recorded=np.where(later, rng.permutation(whole.recorded), whole.recorded))
    for _ in range(8):
        calibration: dict[str, float] = {}
        for layer in LAYERS.values():
            calibration |= layer.draw(whole.history, rng)
        there = simulated_waits(whole, calibration)
        assert there.tolist() == simulated_waits(other, calibration).tolist()


def test_every_parameter_has_a_layer(whole: LoggedSite) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        for name, layer in LAYERS.items():
            drawn = layer.draw(whole.history, rng)
            assert {layer_of(each) for each in drawn} <= {name}
            assert without_layer(drawn, name) == {}
            assert layers_in(drawn) == ([name] if drawn else [])


def step(layer: str, saved: float) -> Trial:
    """A step with one candidate."""
    return Trial(layer, saved, [Fitted((0.5,), {layer: saved})])


def test_a_layer_has_to_save_something_where_it_was_not_fitted() -> None:
    base = Fitted((1.0, 1.0, 1.0), {})
    # each candidate is good in one block and bad in the others: nothing carries over
    lucky = [Fitted(losses, {"a": 1.0}) for losses in ((0.0, 2, 2), (2, 0.0, 2), (2, 2, 0.0))]
    assert gain(base, lucky) == -1.0
    good = Fitted((0.9, 0.8, 0.7), {"b": 1.0})
    # mean of 0.1, 0.2 and 0.3 less its standard error
    assert gain(base, [*lucky, good]) == pytest.approx(0.2 - 0.1 / 3**0.5)
    given_up = Fitted((np.inf,) * 3, {})
    assert gain(base, [given_up]) < -1
    assert gain(given_up, [good]) > 1, "what starts its jobs is better than what does not"
    assert gain(given_up, [given_up]) == 0
    assert best_step([step("order", 0.005), step("limits", -0.1)]) is None
    assert best_step([step("order", 0.02), step("limits", 0.1)]) == step("limits", 0.1)


def test_rounds_take_a_layer_each_and_what_has_no_name_at_last() -> None:
    effort = Effort(1, 1, 1, 4, 2)
    layers = ["limits", "order", "calendar", "idle waits"]
    first = [step("limits", 0.1), step("order", 0.05), step("calendar", -0.2), step("idle waits", 0.4)]
    assert tried_next(layers, [], effort) == layers
    assert tried_next(layers, [first], effort) == ["order", "calendar"]
    # idle waits saved most in the first round, but are not taken before the others are through
    assert best_step(first) == first[0]
    none = [step("order", 0.0), step("calendar", 0.0)]
    assert tried_next(layers, [first, none], effort) == ["idle waits"]
    assert tried_next(layers, [first, none, [step("idle waits", 0.1)]], effort) == []
    assert tried_next(layers[:3], [first[:3], none], effort) == []


def test_what_is_tried_is_the_same_for_all_who_ask(whole: LoggedSite) -> None:
    base = Fitted((1.0,) * 6, {"processors": 1.1})
    once = tried(whole, "shares", base, SHORT, seed=3)
    assert once == tried(whole, "shares", base, SHORT, seed=3)
    assert all(each.calibration["processors"] > 0 for each in once.fitted)
    assert [each.loss for each in once.fitted] == sorted(each.loss for each in once.fitted)
    # one queue only: there is nothing to try
    one = replace(whole, queue=np.zeros(len(whole), np.int64), queue_numbers=np.ones(1, np.int64))
    assert tried(one, "queues", base, SHORT) == Trial("queues", -np.inf, [])


def test_a_fit_sees_one_half_only(whole: LoggedSite) -> None:
    """Recorded waits of the half that is judged change nothing of the fit."""
    rng = np.random.default_rng(5)
    for half, hidden in (("first", whole.second), ("second", ~whole.second)):
        fitted = replace(whole, recorded=np.where(hidden, 0, whole.recorded))
        other = replace(whole, recorded=np.where(hidden, rng.permutation(whole.recorded), whole.recorded))
        shown = [fit(each, ["shares", "idle waits"], SHORT, half=half) for each in (fitted, other)]
        assert shown[0] == shown[1]


def test_the_band_holds_what_fits_about_as_well() -> None:
    fitted = [Fitted((0.5 + 0.01 * number,), {"processors": float(number)}) for number in range(10)]
    assert [each.calibration["processors"] for each in band(fitted)] == [0, 1, 2, 3]
    given_up = [Fitted((np.inf,), {"processors": float(number)}) for number in range(3)]
    assert band(given_up) == given_up[:1]


def test_idle_waits_are_those_with_enough_free_processors() -> None:
    whole = site(log(600, seed=5))
    rng = np.random.default_rng(2)
    slow = replace(whole, recorded=whole.recorded + rng.integers(0, 3000, 600))
    history = History(slow, np.ones(600, np.bool_))
    start = slow.submit + slow.recorded
    end = start + slow.run
    for job in rng.integers(0, 600, 40).tolist():
        moments = np.arange(slow.submit[job], start[job])
        busy = sum(
            (moments >= start[each]) * (moments < end[each]) * int(slow.processors[each])
            for each in np.flatnonzero((start < start[job]) & (end > slow.submit[job])).tolist()
        )
        assert history.idle[job] == np.count_nonzero(32 - busy >= slow.processors[job])


def test_restarts_know_the_present_and_nothing_of_the_future(whole: LoggedSite) -> None:
    """A log that EASY made is predicted from any recorded state, whatever was before."""
    mine = np.flatnonzero(whole.second)
    waits = restarted_waits(whole, {}, 7 * 86400, horizon=60 * 86400)
    assert (waits[~whole.second] == -1).all()
    assert waits[mine].tolist() == whole.recorded[mine].tolist()
    # the past does not matter, if those who ran and waited then are as the log says
    strange = replace(whole, recorded=np.where(whole.submit < whole.submit[200], 0, whole.recorded))
    assert restarted_waits(strange, {}, 7 * 86400, horizon=60 * 86400)[mine].tolist() == waits[mine].tolist()


def test_a_policy_beside_itself(whole: LoggedSite) -> None:
    later = shaken(whole, {}, "first day", "second")
    moved = shaken(whole, {}, "run times", "second")
    assert later.correlation > moved.correlation > 0.2
    assert moved == shaken(whole, {}, "run times", "second")
    assert judged(whole, mean_of_shaken(whole, {}), "second").correlation > 0.5
    seconds = replace(whole, recorded=np.arange(len(whole)) % 60)
    assert np.isnan(granular(seconds, "second").correlation)
    assert granular(whole, "second").correlation > 0.9


def test_what_waits_consist_of_by_hand() -> None:
    whole = site(log(600, seed=3))
    # one processor of 32 is used: whoever waits, waits idle, and for a job that has just ended
    calm = replace(
        whole,
        submit=np.arange(600) * 5000,
        recorded=np.full(600, 2000),
        run=np.full(600, 5000),
        processors=np.ones(600, np.int64),
        user=np.arange(600) % 2,
    )
    assert composition(calm, "second") == pytest.approx((0.0, 1.0, 0.5, 0.0, 1.0))
    assert composition(replace(calm, user=np.zeros(600, np.int64)), "second").own == 1.0
    assert composition(replace(calm, processors=np.full(600, 32)), "second").idle == 0.0


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
    with pytest.raises(WorkloadError, match=r"holds no queueing .*; give a longer log$") as caught:
        site_of(calm, 32)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("ratio", "correlation", "null", "headline"),
    [
        (1.0, 0.5, 0.4, EXPLAINED),
        (0.6, 0.9, np.nan, EXPLAINED),
        (0.59, 0.9, 0.4, PARTLY),
        (1.68, 0.9, 0.4, PARTLY),
        (1.0, 0.49, 0.4, PARTLY),
        (1.0, 0.6, 0.61, NOT),
        (0.49, 0.9, 0.4, NOT),
        (33.0, 0.9, 0.4, NOT),
        (np.nan, np.nan, 0.4, NOT),
        (1.0, np.nan, 0.4, NOT),
    ],
)
def test_a_headline_follows_the_measures(
    ratio: float, correlation: float, null: float, headline: str
) -> None:
    assert Explained(ratio, correlation, 0.5).headline(Explained(1.0, null, 0.5)) == headline


def test_the_error_of_a_fit_is_that_of_its_mean_and_of_another_half() -> None:
    rng = np.random.default_rng(3)
    assert fit_error(np.zeros(500)) == 0
    assert fit_error(np.full(500, -40.0)) == pytest.approx(40)
    # the standard error of independent differences is that of their mean
    errors = [fit_error(rng.normal(0, 100, 3200)) for _ in range(200)]
    expected = 2 * 100**2 / 3200  # of the mean, and as estimated
    assert np.mean(np.square(errors)) == pytest.approx(expected, rel=0.2)


@pytest.fixture(scope="module")
def conservative() -> LoggedSite:
    """A log that a policy made which no calibration has."""
    return site(log(4000, seed=6, policy="conservative", processors=38), 38)


def test_intervals_hold_what_another_policy_changes(conservative: LoggedSite) -> None:
    user = np.arange(len(conservative)) % 3
    told = trusted_changes(conservative, calibrated_orders(["fcfs", "lxf"]), user=user, effort=SHORT)
    assert told.headline == EXPLAINED
    second = conservative.second
    for row in told.changes.to_dict("records"):
        waits = simulated_waits(conservative, {}, order=ORDERS[row["policy"]])
        truth = (waits - conservative.recorded)[second].mean()
        assert row["low"] < truth < row["high"]
        assert row["low"] < row["high"]
    assert told.changes["verdict"].tolist() == ["more", "less"]
    users = told.groups["user"]
    assert len(users) == 6
    assert not (users["low"] >= users["high"]).any()
    assert set(told.groups) == {"user", "queue"}


def test_nothing_is_told_below_explained(conservative: LoggedSite) -> None:
    strange = replace(conservative, recorded=40 * conservative.recorded)
    told = trusted_changes(strange, calibrated_orders(["easy", "fcfs"]), user=strange.user, effort=SHORT)
    assert told.headline == NOT
    for table in (told.changes, *told.groups.values()):
        assert set(table["verdict"]) == {"cannot tell"}
        assert table[["low", "high"]].isna().to_numpy().all()
    assert told.changes["change"].notna().all(), "what was simulated is shown"


def test_an_interval_without_width_is_not_stated(whole: LoggedSite) -> None:
    exact, other = (simulated_waits(whole, {}, order=ORDERS[name]) for name in ("easy", "lxf"))
    for after in (exact, other):
        told = answer_of(whole, [(exact, after)], whole.second, is_told=True)
        assert np.isnan([told["low"], told["high"]]).all()
        assert (told["verdict"], "the same" in told["reason"]) == ("cannot tell", True)
        assert told["change"] == pytest.approx((after - exact)[whole.second].mean())
    few = np.arange(len(whole)) >= len(whole) - 20
    assert "fewer than 64" in answer_of(whole, [(exact, other)], few, is_told=True)["reason"]


def test_a_calibrated_site_has_some_policies() -> None:
    with pytest.raises(ConfigurationError, match=r"creasy.*fcfs, ff, easy"):
        calibrated_orders(["creasy"])
