"""The claims ledger: verdicts worked by hand, mistakes in files, and the ledger that is shipped."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gridsched import inference
from gridsched.errors import ConfigurationError
from gridsched.experiments.claims import COLUMNS, ClaimVerdict, claims_table, evaluate, load_claims
from gridsched.experiments.collection import ALL
from gridsched.experiments.config import load_study
from gridsched.experiments.kinds.calendars import LENGTHS
from gridsched.experiments.kinds.dynamic_grid.config import DynamicGridStudy
from gridsched.experiments.kinds.jscheduler.platforms import load_platform
from gridsched.io import resource
from tests.conftest import REPOSITORY
from tests.support.errors import refused
from tests.support.fields import assert_fields

Loader = Callable[..., Any]

REPEATS = 3
"""How often the replicates of an example are repeated, so that there are enough for an interval."""

TEN = [7.0, 10.0, 13.0]
LOW, HIGH = (float(bound) for bound in inference.mean(TEN * REPEATS)[1:3])
"""Interval of the replicates TEN, about 8.1 to 12.3."""


def repeated(values: list[float] | float, times: int = REPEATS) -> list[float] | float:
    if not isinstance(values, list) or len(values) < 2:
        return values
    more = [math.nan] * len(values) if any(map(math.isnan, values)) else values
    return values + more * (times - 1)


@pytest.fixture
def verdicts(tmp_path: Path) -> Loader:
    """Verdicts of entries of a claim file, given the datasets of the studies."""

    def judge(entries: list[dict[str, Any]], studies: dict[str, xr.Dataset]) -> list[ClaimVerdict]:
        return evaluate(load_claims([write(tmp_path, entries)]), studies)

    return judge


@pytest.fixture
def judged(verdicts: Loader) -> Loader:
    """Verdict of one entry."""
    return lambda entry, studies: verdicts([entry], studies)[0]


def write(folder: Path, entries: Any, **head: Any) -> Path:
    file = folder / "paper.yaml"
    content = {"paper": "p", "citation": "P", "claims": entries, **head}
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return file


def claim(kind: str, **keys: Any) -> dict[str, Any]:
    return {"id": "c", "kind": kind, "where": "Table 1", "statement": "It is so", **keys}


def value(paper: float, tolerance: dict[str, float], **ours: Any) -> dict[str, Any]:
    source = {"study": "s", "variable": "wait", **ours}
    return claim("value", paper_value=paper, tolerance=tolerance, ours=source)


def order(chain: list[dict[str, Any]], **ours: Any) -> dict[str, Any]:
    return claim("order", chain=chain, ours={"study": "s", "variable": "wait", **ours})


def bound(side: str, paper: float, **ours: Any) -> dict[str, Any]:
    return claim("bound", bound=side, paper_value=paper, ours={"study": "s", "variable": "wait", **ours})


def waits(**schemes: list[float] | float) -> dict[str, xr.Dataset]:
    """A study with replicates of one variable by scheme; single numbers are values without replicates."""
    values = np.array([repeated(each) for each in schemes.values()])
    dims = ("scheme", "replicate")[: values.ndim]
    return {"s": xr.Dataset({"wait": (dims, values)}, coords={"scheme": list(schemes)})}


def scenarios(**schemes: list[list[float]]) -> dict[str, xr.Dataset]:
    """As `waits`, for the scenarios heavy and light."""
    values = np.array([[repeated(each) for each in own] for own in schemes.values()])
    coords = {"scheme": list(schemes), "scenario": ["heavy", "light"]}
    return {"s": xr.Dataset({"wait": (("scheme", "scenario", "replicate"), values)}, coords=coords)}


# --- verdicts of one entry ------------------------------------------------------------------------

JOBS_OF_HOMES = xr.Dataset(
    {
        "jobs_home": (("scheme", "home", "replicate"), [[[30.0, 10.0], [10.0, 10.0]]]),
        "jobs": (("scheme", "replicate"), [[40.0, 20.0]]),
    },
    coords={"scheme": ["local"], "home": ["M1", "M2"]},
)
"""Jobs of a home and all jobs, which have no dimension home."""
FAST_TO_LOCAL = {"select": {"scheme": "fast"}, "relative_to": {"scheme": "local"}}
CENTRAL_TO_SENDER = {"select": {"scheme": "central"}, "relative_to": {"scheme": "sender"}, "form": "ratio"}
SHARE_OF_HOME = {
    "variable": "jobs_home",
    "select": {"scheme": "local", "home": "M1"},
    "relative_to": {"variable": "jobs"},
    "form": "ratio",
}
ABC = waits(a=[1.0, 1.0], b=[9.0, 9.1], c=[20.0, 20.0])
CHAIN = waits(a=[1.0, 2.0, 3.0], b=[2.0, 3.1, 3.9], c=[0.5, 5.5, 3.8])
PLACES = waits(ideal=[1.0, 1.1], a=[2.0, 2.0], b=[3.0, 3.1], local=[9.0, 9.2])
NOT_COMPARED = "s has a value of wait for fast that cannot be compared."


def of_a(side: str, paper: float) -> dict[str, Any]:
    return bound(side, paper, select={"scheme": "a"})


def ordered(*chain: str | list[str]) -> dict[str, Any]:
    return order([{"scheme": scheme} for scheme in chain])


def of_local(paper: float, **tolerance: float) -> dict[str, Any]:
    return value(paper, tolerance, select={"scheme": "local"})


CASES: list[tuple[dict[str, Any], dict[str, xr.Dataset], dict[str, Any]]] = [
    # beyond the tolerance only an interval that holds the paper's value could help
    *(
        (of_local(paper, absolute=0.5), run, {"verdict": verdict})
        for run in (waits(local=[10.0]), waits(local=10.0))
        for paper, verdict in ((10.5, "reproduced"), (10.9, "partly"), (11.0, "partly"), (11.1, "not"))
    ),
    # a relative tolerance is a share of the paper's value
    *(
        (of_local(paper, relative=0.05), waits(local=95.0), {"verdict": verdict})
        for paper, verdict in ((100.0, "reproduced"), (100.1, "partly"), (-100.0, "not"))
    ),
    # about the same has no side
    *(
        (
            value(1, {"relative": 0.1}, **CENTRAL_TO_SENDER),
            waits(sender=10.0, central=10.0 * ours),
            {"verdict": verdict},
        )
        for ours, verdict in (
            (1.1, "reproduced"),
            (1.19, "partly"),
            (0.81, "partly"),
            (1.3, "not"),
            (0.5, "not"),
        )
    ),
    (
        value(0.7, {"absolute": 0.1}, **SHARE_OF_HOME),
        {"s": JOBS_OF_HOMES},
        {"verdict": "reproduced", "our_value": pytest.approx(40 / 60)},
    ),
    # orders of two
    *(
        (ordered("fast", "local"), waits(local=[10.0, 100.0, 1000.0], fast=fast), {"verdict": verdict})
        for fast, verdict in (
            ([9.0, 110.0, 980.0], "partly"),  # differences -1, 10, -20
            ([10.0, 100.0, 1000.0], "not"),  # no difference
            ([10.0, 99.0, 1002.0], "not"),
            ([9.0, 90.0, 900.0], "reproduced"),
            ([9.0, math.nan, math.nan], "partly"),  # a single pair
        )
    ),
    (
        ordered("fast", "local"),
        waits(local=2.0, fast=1.0),
        {"verdict": "reproduced", "our_value": -1, "low": -1, "high": -1},
    ),
    # a chain is as good as its weakest link
    (ordered("a", "b"), CHAIN, {"verdict": "reproduced"}),
    (
        ordered("a", "b", "c"),
        CHAIN,
        {
            "verdict": "partly",
            "our_value": pytest.approx(-0.8 / 3),
            "remark": "Shown: b minus c, the least clear of 2 comparisons. Not significant: b minus c.",
        },
    ),
    (ordered("b", "a", "c"), CHAIN, {"verdict": "not"}),
    # labels of one place are compared with both neighbours
    (
        ordered("ideal", ["a", "b"], "local"),
        PLACES,
        {"verdict": "reproduced", "remark": "Shown: ideal minus a, the least clear of 4 comparisons."},
    ),
    (
        ordered(["a", "local"], "b"),
        PLACES,
        {
            "verdict": "not",
            "remark": "Shown: local minus b, the least clear of 2 comparisons. Does not hold: local minus b.",
        },
    ),
    (
        order([{"scenario": "heavy"}, {"scenario": "light"}], **FAST_TO_LOCAL, form="ratio"),
        scenarios(local=[[10.0, 20.0], [1.0, 2.0]], fast=[[2.0, 4.0], [0.5, 1.0]]),
        {"verdict": "reproduced", "our_value": pytest.approx(0.2 - 0.5)},
    ),
    # a reference of 0, and replicates that the two sides do not share
    (
        value(1, {"absolute": 1}, **FAST_TO_LOCAL, form="ratio"),
        waits(local=[0.0, 0.0], fast=[1.0, 2.0]),
        {"verdict": "not run", "why": NOT_COMPARED},
    ),
    (
        ordered("fast", "local"),
        waits(local=[1.0, math.nan], fast=[math.nan, 2.0]),
        {"verdict": "not run", "why": NOT_COMPARED},
    ),
    # a bound of a known number includes its edge or not
    *(
        (of_a(side, 1), waits(a=1.0), {"verdict": verdict})
        for side, verdict in (
            ("at most", "reproduced"),
            ("at least", "reproduced"),
            ("below", "not"),
            ("above", "not"),
        )
    ),
    (of_a("below", 5), waits(a=[1.0]), {"verdict": "partly"}),
    (
        bound("below", 10, select={"scheme": ["a", "b", "c"]}),
        ABC,
        {
            "verdict": "partly",
            "our_value": 20,
            "remark": "Shown: c, the least clear of 3 comparisons. Does not hold: c.",
        },
    ),
    (
        bound("below", 10, select={"scheme": ["a", "b"]}),
        ABC,
        {"verdict": "reproduced", "our_value": pytest.approx(9.05)},
    ),
    (
        bound("above", 2, **FAST_TO_LOCAL, form="factor"),
        waits(local=[10.0, 20.0], fast=[4.0, 8.0]),
        {"verdict": "reproduced", "our_value": pytest.approx(2.5)},
    ),
]


@pytest.mark.parametrize(("entry", "run", "expected"), CASES)
def test_verdict(
    judged: Loader, entry: dict[str, Any], run: dict[str, xr.Dataset], expected: dict[str, Any]
) -> None:
    assert_fields(judged(entry, run), **expected)


def test_labels_of_one_place_are_written_in_braces(judged: Loader) -> None:
    assert judged(ordered("ideal", ["a", "b"], "local"), PLACES).claim.stated == "ideal < {a, b} < local"


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paper", "verdict"),
    [
        (10.4, "reproduced"),
        (10.5, "reproduced"),  # the edge of the tolerance
        (10.9, "reproduced"),  # within twice the tolerance and inside the interval
        (11.1, "partly"),  # inside the interval only
        (HIGH - 0.001, "partly"),
        (HIGH + 0.001, "not"),
        (7.0, "not"),
    ],
)
def test_plain_value(judged: Loader, paper: float, verdict: str) -> None:
    """Mean 10; tolerance 0.5."""
    got = judged(value(paper, {"absolute": 0.5}, select={"scheme": "local"}), waits(local=TEN))
    assert_fields(got, verdict=verdict, our_value=10, difference=pytest.approx(10 - paper))
    assert [got.low, got.high] == pytest.approx([LOW, HIGH])


def test_one_replicate_has_no_interval_and_a_known_number_is_exact(judged: Loader) -> None:
    entry = value(10.0, {"absolute": 0.0}, select={"scheme": "local"})
    one = judged(entry, waits(local=[10.0]))
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert one.remark.startswith("No interval: ")
    known = judged(entry, waits(local=10.0))
    assert known.low == known.high == known.our_value == 10
    assert known.remark == ""
    equal = judged(entry, waits(local=[10.0, 10.0, math.nan]))
    assert equal.low == equal.high == 10


FORMS = [
    # ours is 0.5, 2 and -10
    ("ratio", 0.52, "reproduced"),
    ("ratio", 0.9, "partly"),
    ("ratio", 1.1, "not"),
    ("factor", 1.98, "reproduced"),
    ("factor", 21.0, "partly"),
    ("factor", 0.9, "not"),
    ("difference", -10.01, "reproduced"),
    ("difference", -500.0, "partly"),
    ("difference", 0.4, "not"),
]


@pytest.mark.parametrize(("form", "paper", "verdict"), FORMS)
def test_relative_value(judged: Loader, form: str, paper: float, verdict: str) -> None:
    """Local waits are 10, 20, 30; half as long under S-I."""
    run = waits(local=[10.0, 20.0, 30.0], fast=[5.0, 10.0, 15.0])
    ours = {"select": {"scheme": "fast"}, "relative_to": {"scheme": "local"}, "form": form}
    got = judged(value(paper, {"absolute": 0.05}, **ours), run)
    assert_fields(
        got,
        verdict=verdict,
        our_value=pytest.approx({"ratio": 0.5, "factor": 2.0, "difference": -10.0}[form]),
        difference=pytest.approx(got.our_value - paper),
    )
    if form != "difference":
        assert_fields(got, low=pytest.approx(got.our_value), high=pytest.approx(got.our_value))


@given(
    ours=st.floats(-10, 10).map(lambda x: round(x, 3)),
    paper=st.floats(-10, 10).map(lambda x: round(x, 3)),
    tolerance=st.sampled_from([0.0, 0.1, 1.0]),
)
def test_differences_agree_in_tolerance_or_sign(
    tmp_path_factory: pytest.TempPathFactory, ours: float, paper: float, tolerance: float
) -> None:
    source = {"select": {"scheme": "fast"}, "relative_to": {"scheme": "local"}, "form": "difference"}
    file = write(tmp_path_factory.mktemp("claims"), [value(paper, {"absolute": tolerance}, **source)])
    (got,) = evaluate(load_claims([file]), waits(local=[0.0, 0.0], fast=[ours, ours]))
    if abs(ours - paper) <= tolerance - 1e-9:
        assert got.verdict == "reproduced"
    elif abs(ours - paper) > 2 * tolerance + 1e-9:
        assert got.verdict == ("partly" if ours * paper > 0 else "not")


# --- orders ---------------------------------------------------------------------------------------

SURE = waits(local=[10.0, 100.0, 1000.0], fast=[9.0, 89.0, 905.0])
"""A tenth less: the interval of the difference leaves out 0, though the waits themselves vary far more."""


def test_order_is_paired(verdicts: Loader) -> None:
    forward, backward = (
        verdicts([order([{"scheme": a}, {"scheme": b}])], SURE)[0]
        for a, b in (("fast", "local"), ("local", "fast"))
    )
    assert forward.verdict == "reproduced"
    wanted = inference.difference([9.0, 89.0, 905.0] * REPEATS, [10.0, 100.0, 1000.0] * REPEATS)
    bounds = [-107 / 3, float(wanted.low), float(wanted.high)]
    assert [forward.our_value, forward.low, forward.high] == pytest.approx(bounds)
    assert math.isnan(forward.difference)
    assert "fast minus local" in forward.why
    assert backward.verdict == "not"


@pytest.mark.parametrize(
    ("heavy", "light", "verdict"),
    [
        ([-1.0, -1.1], [-0.9, -1.0], "reproduced"),
        ([-1.0, -1.1], [1.0, 1.1], "partly"),
        ([-1.0, -1.1], [-1.0, 0.9], "partly"),
        ([1.0, 1.1], [-1.0, 0.9], "partly"),
        ([1.0, 1.1], [0.0, 0.0], "not"),
    ],
)
def test_order_over_scenarios(judged: Loader, heavy: list[float], light: list[float], verdict: str) -> None:
    run = scenarios(local=[[0.0, 0.0], [0.0, 0.0]], fast=[heavy, light])
    chain = [{"scheme": "fast"}, {"scheme": "local"}]
    got = judged(order(chain, select={"scenario": ["heavy", "light"]}), run)
    assert got.verdict == verdict
    for name, differences in (("heavy", heavy), ("light", light)):
        fails = sum(differences) >= 0
        failing = got.remark.partition("Does not hold:")[2].partition(".")[0]
        assert (f"fast minus local in {name}" in failing) == fails


@pytest.mark.parametrize(
    ("other", "verdict"),
    [([20.0, 21.0, 22.0], "reproduced"), ([11.0, 14.0, 17.0], "partly"), ([5.0, 6.0, 7.0], "not")],
)
def test_studies_are_compared_by_their_intervals(judged: Loader, other: list[float], verdict: str) -> None:
    """Means 10 and, say, 14, whose intervals overlap: paired they would differ by exactly 4."""
    run = {"s": waits(fast=TEN)["s"], "t": waits(fast=other)["s"]}
    got = judged(order([{"scheme": "fast"}, {"study": "t", "scheme": "fast"}]), run)
    assert_fields(got, verdict=verdict, our_value=pytest.approx(10 - other[1]))
    theirs = inference.mean(other * REPEATS)
    assert [got.low, got.high] == pytest.approx([LOW - float(theirs.high), HIGH - float(theirs.low)])
    assert got.studies == "s, t"


# --- bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("side", "paper", "verdict"),
    [
        ("below", HIGH + 0.001, "reproduced"),
        ("below", HIGH - 0.001, "partly"),
        ("below", 10, "not"),
        ("at most", 10, "partly"),
        ("at most", 9.9, "not"),
        ("above", LOW - 0.001, "reproduced"),
        ("above", LOW + 0.001, "partly"),
        ("above", 10, "not"),
        ("at least", 10, "partly"),
        ("at least", 10.1, "not"),
    ],
)
def test_bound(judged: Loader, side: str, paper: float, verdict: str) -> None:
    got = judged(bound(side, paper, select={"scheme": "a"}), waits(a=TEN))
    assert_fields(got, verdict=verdict, our_value=10, difference=pytest.approx(10 - paper))
    assert [got.low, got.high] == pytest.approx([LOW, HIGH])
    assert got.claim.stated == f"{side} {paper:.10g}"


# --- replicates of another dimension --------------------------------------------------------------


def sums_by_week(**schemes: list[float]) -> dict[str, xr.Dataset]:
    """A study of a log: sums of waits by week of submission, and those of the original scenario."""
    weeks = {name: values * 8 for name, values in schemes.items()}
    original = weeks.pop("original")
    return {
        "s": xr.Dataset(
            {"wait": (("scheme", "week"), list(weeks.values())), "original_wait": (("week",), original)},
            coords={"scheme": list(weeks), "week": np.arange(len(original))},
        )
    }


WEEKS = sums_by_week(
    original=[30.0, 60.0, 90.0, 0.0], fast=[10.0, 21.0, 29.0, 0.0], slow=[40.0, 50.0, 100.0, 0.0]
)


def test_weeks_take_the_place_of_replicates(judged: Loader) -> None:
    """Three times as long in the original scenario; the interval is that of the ratio over weeks."""
    ours = {
        "select": {"scheme": "fast"},
        "relative_to": {"variable": "original_wait"},
        "form": "factor",
        "replicates": "week",
    }
    got = judged(value(3, {"absolute": 0.1}, **ours), WEEKS)
    expected = inference.ratio([30.0, 60.0, 90.0, 0.0] * 8, [10.0, 21.0, 29.0, 0.0] * 8, serial=True)
    assert got.verdict == "reproduced"
    assert [got.our_value, got.low, got.high] == pytest.approx(
        [3.0, float(expected.low), float(expected.high)]
    )
    assert got.low < 3 < got.high


@pytest.mark.parametrize(("scheme", "verdict"), [("fast", "reproduced"), ("slow", "not")])
def test_bounds_pair_the_weeks(judged: Loader, scheme: str, verdict: str) -> None:
    ours = {
        "select": {"scheme": scheme},
        "relative_to": {"variable": "original_wait"},
        "form": "ratio",
        "replicates": "week",
    }
    assert judged(bound("below", 1, **ours), WEEKS).verdict == verdict


def test_orders_pair_the_weeks(judged: Loader) -> None:
    run = sums_by_week(original=[0.0] * 3, a=[10.0, 100.0, 1000.0], b=[11.0, 101.1, 1000.9])
    got = judged(order([{"scheme": "a"}, {"scheme": "b"}], replicates="week"), run)
    assert got.verdict == "reproduced"
    wanted = inference.difference([10.0, 100.0, 1000.0] * 8, [11.0, 101.1, 1000.9] * 8, serial=True)
    assert [got.low, got.high] == pytest.approx([float(wanted.low), float(wanted.high)])


@pytest.mark.parametrize(
    ("ours", "words"),
    [
        ({"select": {"scheme": "fast"}}, ["varies with week"]),
        ({"select": {"scheme": "fast", "week": 0}, "replicates": "week"}, ["no dimension 'week'", "scheme"]),
        ({"select": {"scheme": "fast"}, "replicates": "weak"}, ["ours.replicates", "'weak'", "week?"]),
        (
            {"select": {"scheme": "fast"}, "replicates": "scheme"},
            ["ours.select", "no dimension 'scheme'"],
        ),
    ],
)
def test_replicates_that_do_not_fit(verdicts: Loader, ours: dict[str, Any], words: list[str]) -> None:
    with refused(*words, error=ConfigurationError):
        verdicts([value(1, {"absolute": 1}, **ours)], WEEKS)


# --- what is no result ----------------------------------------------------------------------------


def test_not_run(verdicts: Loader) -> None:
    entries = [
        value(1, {"absolute": 1}, study="other"),
        {**value(1, {"absolute": 1}, select={"scheme": "central"}), "id": "scheme"},
        {**order([{"scheme": "fast"}, {"scheme": "ideal"}]), "id": "nan", "why": "Because."},
        {**bound("below", 3, select={"scheme": ["fast", "central"]}), "id": "half"},
    ]
    got = verdicts(entries, waits(fast=[1.0, 2.0], ideal=[math.nan, math.nan]))
    assert [one.verdict for one in got] == ["not run"] * 4
    assert [one.why for one in got] == [
        "The study other was not run.",
        "s was run without scheme central.",
        "s has no value of wait for ideal. Because.",
        "s was run without scheme central.",
    ]
    assert all(math.isnan(one.our_value) for one in got)


def test_inputs_and_untestable_claims_are_listed(verdicts: Loader) -> None:
    source = {"study": "s", "variable": "wait", "select": {"scheme": "local"}}
    entries = [
        claim("input", paper_value=60, unit="s"),
        {**claim("input", paper_value=9, ours=source), "id": "shown"},
        {**claim("input", paper_value="3 nodes", ours=source), "id": "text"},
        {**claim("input", paper_value=9, ours={**source, "study": "other"}), "id": "absent"},
        {**claim("untestable", why="The log is secret."), "id": "secret"},
    ]
    got = verdicts(entries, waits(local=[9.0, 10.0, 11.0]))
    assert [one.verdict for one in got] == ["input"] * 4 + ["not testable"]
    assert [one.claim.stated for one in got] == ["60 s", "9", "3 nodes", "9", ""]
    assert [one.our_value for one in got] == pytest.approx(
        [math.nan, 10, 10, math.nan, math.nan], nan_ok=True
    )
    assert got[1].difference == 1
    assert math.isnan(got[2].difference)
    assert got[4].why == "The log is secret."


@pytest.mark.parametrize(
    ("ours", "words"),
    [
        ({"variable": "waits"}, ["claim c of p", "ours.variable", "'waits'", "did you mean wait?"]),
        ({"select": {"schema": "local"}}, ["ours.select", "no dimension 'schema'", "scheme"]),
        ({"select": {"scheme": "local", "replicate": 1}}, ["no dimension 'replicate'"]),
        ({"select": {}}, ["varies with scheme", "select a label"]),
        (
            {"select": {"scheme": "local"}, "relative_to": {"home": "M1"}, "form": "ratio"},
            ["no dimension 'home'"],
        ),
        (
            {"select": {"scheme": "local"}, "relative_to": {"variable": "job"}, "form": "ratio"},
            ["ours.variable", "'job'"],
        ),
    ],
)
def test_claims_that_do_not_fit_their_study(verdicts: Loader, ours: dict[str, Any], words: list[str]) -> None:
    with refused(*words, error=ConfigurationError):
        verdicts([value(1, {"absolute": 1}, **ours)], waits(local=[1.0, 2.0], other=[1.0, 3.0]))


def test_what_has_one_label_may_be_left_out(verdicts: Loader) -> None:
    """A dimension in which one label alone has values, and the group, which is all jobs."""
    coords = {"scheduler": ["a", "b"], "group": [ALL, "users of x"], "replicate": [0, 1, 2]}
    values = np.full((2, 2, 3), np.nan)
    values[1] = [[9, 10, 11], [1, 2, 3]]
    study = {"s": xr.Dataset({"wait": (tuple(coords), values)}, coords)}
    entries = [
        value(10, {"absolute": 1}, select={}),
        {**value(2, {"absolute": 1}, select={"group": "users of x"}), "id": "of-x"},
    ]
    assert [one.our_value for one in verdicts(entries, study)] == [10, 2]


# --- the table ------------------------------------------------------------------------------------


def test_table(verdicts: Loader) -> None:
    entries = [
        {
            **value(12.5, {"absolute": 3}, select={"scheme": "local"}),
            "unit": "s",
            "why": "Old log.",
            "note": "Read.",
        },
        {**order([{"scheme": "fast"}, {"scheme": "local"}]), "id": "order"},
    ]
    table = claims_table(verdicts(entries, SURE | waits(local=[9.0, 11.0], fast=[1.0, 3.0])))
    assert tuple(table.columns) == COLUMNS
    assert table[["paper", "id", "where", "claim"]].values.tolist()[0] == ["p", "c", "Table 1", "It is so"]
    assert_fields(
        table,
        paper_value=["12.5 s", "fast < local"],
        our_value=pytest.approx([10, -8]),
        difference=pytest.approx([-2.5, math.nan], nan_ok=True),
        verdict=["reproduced", "reproduced"],
        why=["Old log. Read.", "Shown: fast minus local."],
        study=["s", "s"],
        variable=["wait", "wait"],
    )


def test_table_of_nothing() -> None:
    assert tuple(claims_table([]).columns) == COLUMNS


# --- files ----------------------------------------------------------------------------------------

GOOD = value(2.5, {"relative": 0.05}, select={"scheme": "local"})


def test_each_label_becomes_a_claim(verdicts: Loader) -> None:
    entry = {**value(0, {"absolute": 0}), "each": "scheme", "paper_value": {"local": 1, "s-i, delta 0.5": 5}}
    got = verdicts([entry], waits(**{"local": 1.0, "s-i, delta 0.5": 2.0}))
    assert [one.claim.id for one in got] == ["c-local", "c-s-i-delta-0-5"]
    assert [one.claim.statement for one in got] == ["It is so: local", "It is so: s-i, delta 0.5"]
    assert [(one.verdict, one.our_value) for one in got] == [("reproduced", 1), ("not", 2)]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({**GOOD, "kind": "values"}, ["claim c: kind: found 'values'", "value, order, bound"]),
        ({key: GOOD[key] for key in GOOD if key != "kind"}, ["claim c: kind: missing"]),
        ({key: GOOD[key] for key in GOOD if key != "id"}, ["claim 1: id: missing"]),
        ({**GOOD, "id": "no blanks"}, ["id: found 'no blanks'"]),
        ({**GOOD, "wheer": "Table 2"}, ["wheer: unknown key; did you mean where?"]),
        ({**GOOD, "paper": "q"}, ["claim c: paper"]),
        ({**GOOD, "statement": ""}, ["claim c: statement"]),
        ({**GOOD, "paper_value": "2.5"}, ["paper_value: found '2.5'; ", "number"]),
        ({**GOOD, "tolerance": {}}, ["tolerance: give exactly one of relative, absolute (found none)"]),
        ({**GOOD, "tolerance": {"relative": -1}}, ["tolerance.relative: found -1"]),
        (
            {**GOOD, "tolerance": {"relative": 0.1, "absolute": 1}},
            ["tolerance: give exactly one of relative, absolute (found relative, absolute)"],
        ),
        (value(1, {"absolute": 1}, form="ratio"), ["ours: ", "relative_to, form: give both or none"]),
        (value(1, {"absolute": 1}, relative_to={"scheme": "local"}), ["give both or none"]),
        (value(1, {"absolute": 1}, relative_to={}, form="ratio"), ["say what differs"]),
        (value(1, {"absolute": 1}, relative_to={"study": "t"}, form="ratio"), ["same study"]),
        (value(1, {"absolute": 1}, relative_to={"scheme": ["a", "b"]}, form="ratio"), ["'scheme'", "list"]),
        (
            value(1, {"absolute": 1}, relative_to={"scheme": "a"}, form="quotient"),
            ["ours.form", "'quotient'"],
        ),
        (value(1, {"absolute": 1}, select={"scheme": ["a", "b"]}), ["ours.select", "'scheme'", "each"]),
        (value(1, {"absolute": 1}, select={"scheme": True}), ["ours.select.scheme", "True"]),
        (value(1, {"absolute": 1}, select={"variable": "wait"}), ["variable stands beside select"]),
        (value(math.inf, {"absolute": 1}), ["paper_value", "finite"]),
        (claim("input", paper_value=math.nan), ["paper_value", "finite"]),
        (claim("input", paper_value=[1, 2]), ["claim c: paper_value: write text or a finite number"]),
        (claim("untestable"), ["why: missing"]),
        (claim("untestable", why=""), ["claim c: why"]),
        (order([{"scheme": "a"}]), ["chain", "at least 2"]),
        (order([{"scheme": "a"}, {"scheme": []}]), ["chain", "at least one label"]),
        (bound("under", 1), ["bound: found 'under'", "at most"]),
        ({**GOOD, "each": ["a"]}, ["claim c: each: found ['a']"]),
        ({**GOOD, "each": "home"}, ["claim c: paper_value: found 2.5; with `each`"]),
        ({**GOOD, "each": "scheme", "paper_value": {"a": 1}}, ["ours.select", "without scheme"]),
    ],
)
def test_bad_claims(tmp_path: Path, entry: dict[str, Any], words: list[str]) -> None:
    file = write(tmp_path, [entry])
    with refused(f"{file}: ", *words, error=ConfigurationError, one_line=True):
        load_claims([file])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["nothing in it; write key: value lines"]),
        ("- a", ["found ['a']"]),
        ("paper: p\ncitation: P\nclaim: []\n", ["claim: unknown key; did you mean claims?"]),
        ("paper: p\ncitation: P\n", ["claims: missing"]),
        ("paper: p\ncitation: P\nclaims: []\n", ["claims: found []", "at least 1"]),
        ("paper: p\ncitation: P\nclaims: [text]\n", ["claims[item 1]: found 'text'"]),
        ("paper: p\npaper: q\n", [":2: ", "'paper' is there twice"]),
        ("paper: [\n", ["not YAML"]),
        ("[a]: b\n", ["not YAML"]),
    ],
)
def test_bad_files(tmp_path: Path, text: str, words: list[str]) -> None:
    file = tmp_path / "paper.yaml"
    file.write_text(text, encoding="utf-8")
    with refused(str(file), *words, error=ConfigurationError):
        load_claims([file])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such file"):
        load_claims([tmp_path / "absent.yaml"])


def test_ids_are_unique_within_a_paper(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="claim c: id: is there twice for p"):
        load_claims([write(tmp_path, [GOOD, GOOD])])
    (tmp_path / "other").mkdir()
    files = [write(tmp_path, [GOOD]), write(tmp_path / "other", [GOOD], paper="q")]
    assert [(one.paper, one.id) for one in load_claims(files)] == [("p", "c"), ("q", "c")]


def test_examples_of_the_readme(tmp_path: Path) -> None:
    text = resource("resources", "claims", "README.md").read_text(encoding="utf-8")
    blocks = [block.partition("```")[0] for block in text.split("```yaml\n")[1:]]
    assert len(blocks) == 4
    for block in blocks:
        example = yaml.safe_load(block)
        claims = load_claims([write(tmp_path, example["claims"] if isinstance(example, dict) else example)])
        assert claims


# --- the shipped ledger ---------------------------------------------------------------------------

MACHINES = ["M1", "M2", "M3", "M4", "M5", "M6"]
SCHEMES = ["local", "s-i", "r-i", "sy-i", "central", "ideal-fcfs", "ideal-srpt"]
VARIANTS = [
    "r-i, delta 0.5",
    "r-i, delta 0.9",
    "r-i, sigma 60 s",
    "r-i, sigma 1800 s",
    "s-i, epsilon 60 s",
    "s-i, epsilon 600 s",
]
CENTRES = [centre.name for centre in load_platform().centres if not centre.absent]
CORRECTIONS = ("doubling", "requested", "increments")
Labels = dict[str, list[Any]]


def superscheduler(scenarios: list[str], schedulers: list[str]) -> Labels:
    groups = [ALL, *(f"{kind} {name}" for kind in ("users of", "cluster") for name in MACHINES)]
    return {"scenario": scenarios, "scheduler": schedulers, "estimates": ["requested"], "group": groups}


def jscheduler(factors: list[str], metrics: list[str], numbers: list[int]) -> Labels:
    runs = [(metric, k) for metric in metrics for k in numbers]
    return {
        "scenario": factors,
        "factor": factors,
        "scheduler": ["original", *(f"{metric}, k {k}" for metric, k in runs)],
        "predictions": ["", *["plan"] * len(runs)],
        "metric": ["", *(metric for metric, _ in runs)],
        "k": [np.nan, *(float(k) for _, k in runs)],
        "estimates": ["predicted", "requested", "actual"],
        "group": [ALL, *(f"users of {name}" for name in CENTRES)],
        "centre": CENTRES,
    }


def calendars(scenarios: list[str], schedulers: list[str], clusters: list[str]) -> Labels:
    users = [f"users of {name}" for name in clusters]
    both = [f"{who}, {length}" for who in users for length in LENGTHS]
    return {
        "scenario": scenarios,
        "scheduler": schedulers,
        "estimates": ["actual", "requested"],
        "group": [ALL, *LENGTHS, *users, *both, *(f"cluster {name}" for name in clusters)],
    }


def dynamic_grid() -> Labels:
    study = load_study(REPOSITORY / "config" / "studies" / "dynamic-grid.yaml")
    assert isinstance(study, DynamicGridStudy)
    scenarios, schedulers = (list(dict.fromkeys(labels)) for labels in zip(*study.runs, strict=True))
    groups = [ALL, *(f"users of {name}" for name in (*study.cluster_names, "grid", "sites"))]
    return {"scenario": scenarios, "scheduler": schedulers, "estimates": ["requested"], "group": groups}


def multicluster(scenarios: list[str], clusters: int = 4) -> Labels:
    return {
        "scenario": scenarios,
        "scheduler": ["muscle", "dll", "wrand"],
        "estimates": ["requested"],
        "group": [ALL, *(f"cluster C{number}" for number in range(1, clusters + 1))],
        "example_job": [f"J{number}" for number in range(1, 7)],
        "example_cluster": ["C1", "C2"],
        "example_row": list(range(1, 7)),
    }


RUN = ("scenario", "scheduler", "estimates", "replicate")
BESIDES: dict[str, dict[str, tuple[str, ...]]] = {
    "placements": {"allocated_full": RUN},
    "sequences": dict.fromkeys(("bounded_slowdown_mean", "utilisation_to_last_start"), (*RUN, "group")),
    "jscheduler": {"offered_load": ("scenario", "group")},
    "jscheduler-factors": {"offered_load": ("scenario", "group")},
}
"""Dimensions of variables that are not recorded, or known only for one label of the other dimensions."""


@pytest.fixture(scope="module")
def studies() -> dict[str, xr.Dataset]:
    """Datasets of ones with the labels of the shipped studies, and the variables of the recorded run."""
    months = ["one-month", "six-month", "one-month-synthetic", "six-month-synthetic"]
    logs = ["Lublin-1", "SDSC-SP2", "HPC2N", "Lublin-2"]
    labels: dict[str, Labels] = {
        "superscheduler-months": superscheduler(months, SCHEMES),
        "superscheduler-load": superscheduler(["heavy", "light"], SCHEMES),
        "superscheduler-local": superscheduler(
            [f"one-month, {policy}" for policy in ("easy", "ff", "sjf")], ["local", "s-i"]
        ),
        "superscheduler-sensitivity": superscheduler(
            ["heavy", "light", "one-month"], [*SCHEMES[:4], *VARIANTS]
        ),
        "superscheduler-models": {
            "size_class": ["1-8", "9-24", "25-56", "57-120", "121-248", "249-504", "505-1152"],
            "source": ["log", "paper"],
            "moment": [1, 2, 3],
            "machine": MACHINES,
            "spread": ["power law", "log-uniform", "uniform"],
        },
        "jscheduler": jscheduler(
            ["divide"], ["wait", "slowdown", "queued-jobs", "work-left"], list(range(1, 56))
        ),
        "jscheduler-factors": jscheduler(
            ["multiply", "none"], ["wait", "slowdown"], [1, 2, 3, 4, 8, 10, 16, 32, 55]
        ),
        "calendars-slots": calendars(
            ["October", "November"],
            [*(f"configuration {number}" for number in range(1, 7)), "conservative", "easy"],
            ["KTH"],
        ),
        "calendars-partitions": calendars(
            ["March"], ["conservative", "easy", "combined"], [f"P{number}" for number in range(1, 7)]
        ),
        "calendars-clusters": calendars(
            ["CTC"],
            ["alone", "two levels", "two levels, unbiased"],
            [f"C{number}" for number in range(1, 11)],
        ),
        "dynamic-grid": dynamic_grid(),
        "muscle-levels": multicluster([f"level-{level}" for level in range(20, 161, 20)]),
        "muscle-levels-own": multicluster(
            [f"{scheme}-{level}" for scheme in ("muscle", "dll", "wrand") for level in (40, 100)]
        ),
        "muscle-deadlines": multicluster(
            [f"level-{level}-ratio-{high}" for level in (40, 100) for high in (1, 3, 5, 7, 9)]
        ),
        "muscle-weights": multicluster([f"level-{level}" for level in (40, 100, 160)]),
        "muscle-size": multicluster([f"{number}-clusters" for number in (4, 6, 8, 10)], 10),
        "muscle-variants": multicluster(["level-40", "level-100", "sizes-normal", "sizes-log"]),
        "placements": {
            "scenario": ["nodes in random order", "nodes by name"],
            "scheduler": ["random", "dot product", "clustered", "packed", "best fit", "fragments"],
            "estimates": ["requested"],
        },
        "sequences": {
            "scenario": [*logs, *(f"{log}, backfilling" for log in logs)],
            "scheduler": ["fcfs", "wfp3", "unicep", "shortest", "f1"],
            "estimates": ["requested"],
            "group": [ALL],
        },
        "easy-plus-plus": {
            "scenario": ["KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE"],
            "scheduler": [
                *(f"{policy}{known}" for policy in ("easy", "sjbf") for known in ("", " actual", " double")),
                *(
                    f"{policy}, correction {each}"
                    for policy in ("easy recent", "easy++")
                    for each in CORRECTIONS
                ),
            ],
            "estimates": ["requested"],
            "group": [ALL],
        },
    }
    record = json.loads((REPOSITORY / "tests" / "golden" / "reproduction.json").read_text(encoding="utf-8"))
    return {
        name: ones(
            {
                variable: tuple(re.findall(r"(\w+) \d+", str(told).partition(")")[0]))
                for variable, told in record["datasets"].get(f"{name}/study.nc", {}).items()
            }
            | BESIDES.get(name, {}),
            own,
        )
        for name, own in labels.items()
    }


def ones(variables: dict[str, tuple[str, ...]], labels: Labels) -> xr.Dataset:
    """A dataset of ones, but for coordinates with these labels; other dimensions have three places."""
    coords = {name: (variables.get(name, (name,)), own) for name, own in labels.items()}
    sizes = {name: len(own) for name, own in labels.items()}
    filled = {
        name: (dims, np.ones([sizes.get(dim, 3) for dim in dims]))
        for name, dims in variables.items()
        if name not in labels and name not in dims
    }
    return xr.Dataset(filled, coords)


def test_shipped_claims_fit_their_studies(studies: dict[str, xr.Dataset]) -> None:
    got = evaluate(load_claims(), studies)
    assert len(got) > 200
    assert [one.claim.id for one in got if one.verdict == "not run"] == []
    lacking = [one.claim.id for one in got if one.claim.source is not None and math.isnan(one.our_value)]
    assert lacking == []


def test_shipped_claims_without_studies(studies: dict[str, xr.Dataset]) -> None:
    table = claims_table(evaluate(load_claims(), {}))
    assert set(table["verdict"]) == {"input", "not testable", "not run"}
    assert table["our_value"].isna().all()
    assert set(", ".join(table["study"]).split(", ")) - {""} == set(studies)


def test_shipped_claims_say_where_and_what() -> None:
    claims = load_claims()
    assert len({(one.paper, one.id) for one in claims}) == len(claims)
    assert {one.paper for one in claims} == {
        file.stem for file in resource("resources", "claims").glob("*.yaml")
    }
    for one in claims:
        assert one.stated or one.kind == "untestable"


def test_shipped_numbers_are_consistent_with_each_other() -> None:
    """Response less wait is the run time, and job shares follow from job counts, as the ledger has them."""
    stated = {one.id: getattr(one, "paper_value", math.nan) for one in load_claims()}
    columns = {
        ("5", "six-month"): MACHINES[:3],
        ("5", "one-month"): MACHINES[:3],
        ("6", "heavy"): MACHINES,
        ("6", "light"): MACHINES,
    }
    for (number, scenario), machines in columns.items():
        names = [f"{scenario}-{machine.lower()}" for machine in machines]
        jobs = {name: stated[f"table-{number}-jobs-{name}"] for name in names}
        for name in names:
            response, wait = stated[f"table-{number}-response-{name}"], stated[f"table-{number}-wait-{name}"]
            assert stated[f"table-{number}-run-{name}"] == response - wait
            share = jobs[name] / sum(jobs.values())
            assert stated[f"table-{number}-job-share-{name}"] == pytest.approx(share, abs=6e-5)


def test_shipped_model_means_follow_from_the_parameters() -> None:
    """Means of the size classes of Table 4, from the parameters that the workloads are drawn with."""
    from gridsched.workloads import load_machines

    stated = {one.id: getattr(one, "paper_value", None) for one in load_claims()}
    for size_class in load_machines()["M3"].classes:
        label = f"{size_class.low}-{size_class.high}"
        assert stated[f"table-4-share-{label}"] == size_class.share
        assert stated[f"table-4-interarrival-{label}"] == pytest.approx(
            size_class.interarrival.mean, rel=5e-4
        )
        assert stated[f"table-4-service-{label}"] == pytest.approx(size_class.service.mean, rel=5e-4)


def test_shipped_numbers_of_centres_are_those_of_the_platform() -> None:
    """Every row of Table 2 and every CPU factor, once, as the platform file has them too."""
    stated: dict[str, Any] = {one.id: getattr(one, "paper_value", None) for one in load_claims()}
    centres = load_platform().centres
    for centre in centres:
        slug = centre.name.lower()
        assert f"factor {centre.factor:g}" in stated[f"table-1-{slug}"]
        if not centre.absent:
            assert stated[f"table-1-factor-{slug}"] == centre.factor
        for column, number in (centre.paper or {}).items():
            assert stated[f"table-2-{column.replace('_', '-')}-{slug}"] == number
    rows = sum(centre.paper is not None for centre in centres)
    assert sum(name.startswith("table-2-") for name in stated) == 4 * rows + 4
    assert sum(name.startswith("table-1-factor-") for name in stated) == sum(not c.absent for c in centres)


def test_shipped_numbers_of_the_grid_follow_from_table_1() -> None:
    why = {one.id: one.why for one in load_claims() if one.paper == "xtreemos-jscheduler"}
    resources = [pair for centre in load_platform().centres for pair in centre.resources]
    assert f" {sum(count for count, _ in resources)}." in why["resources"]
    assert f"{sum(count * size for count, size in resources):,}" in why["processors"]
    assert f"{max(size for _, size in resources):,}" in why["sizes"]
