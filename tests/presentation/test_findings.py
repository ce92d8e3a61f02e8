"""Sentences of findings say what the tests of their comparisons support, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from gridsched import presentation
from gridsched.experiments.collection import labelled, table_of_runs
from gridsched.experiments.specification import Specification
from gridsched.presentation.findings import NOTHING
from gridsched.presentation.sentences import estimate_text, interval_text, listed
from gridsched.presentation.showing import attributes_of

RANKING = Specification(name="r", form="ranking", title="R", measures=("wait_time_mean",))


def study(waits: dict[str, dict[str, Any]], kind: str = "draws") -> xr.Dataset:
    """A study with these waits, by scenario and scheduler, one value a replicate."""
    runs = []
    for scenario, own in waits.items():
        for scheduler, values in own.items():
            data = np.asarray(values, np.float64)
            one = xr.Dataset(
                {
                    "wait_time_mean": (("replicate", "group"), data[:, None]),
                    "jobs": (("replicate", "group"), np.full((len(data), 1), 100.0)),
                },
                {"group": ["all jobs"], "replicate": np.arange(len(data))},
            )
            runs.append(labelled(one, scenario=scenario, scheduler=scheduler, replicates_are=kind))
    schedulers = list(dict.fromkeys(name for own in waits.values() for name in own))
    labels = {"scenario": list(waits), "scheduler": schedulers, "estimates": ["requested"]}
    whole = table_of_runs(runs, labels)
    whole.attrs = {"reference": "easy"}
    return whole


def draws(mean: float, seed: int, common: int = 0, count: int = 10) -> np.ndarray[Any, Any]:
    """Replicates of a mean wait that share most of their variation with others of the same `common`."""
    shared = np.random.default_rng(common).gamma(20, 1 / 20, count)
    return mean * shared * np.random.default_rng(seed).normal(1, 0.02, count)


def said(dataset: xr.Dataset, specification: Specification = RANKING) -> tuple[pd.DataFrame, list[str]]:
    """Numbers and sentences of a figure."""
    found = presentation.numbers(specification, dataset)
    return found, presentation.finding(specification, found, dataset.attrs)


def test_the_best_is_named_with_its_ratio_and_who_equals_it() -> None:
    waits = {"easy": draws(100, 1), "a": draws(50, 2), "b": draws(50.2, 3), "c": draws(200, 4)}
    numbers, sentences = said(study({"s": waits}))
    by = numbers.set_index("scheduler")
    assert by.loc["a", "significant"] == -1
    assert by.loc["c", "significant"] == 1
    assert by.loc["easy", "ratio"] == 1
    best = by["ratio"].idxmin()
    other = "b" if best == "a" else "a"
    assert sentences[0].startswith(f"{best} has the lowest mean wait time: ")
    assert f"{other} does not differ significantly from {best} in mean wait time." in sentences
    assert any("one a higher one" in line for line in sentences)


def test_a_series_without_numbers_shows_nothing() -> None:
    load = Specification(name="l", form="series", title="L", measures=("queue_length_series",), x="bin_time")
    assert presentation.finding(load, pd.DataFrame(columns=["measure", "value"]), {}) == NOTHING


def test_ideal_machines_are_no_best_schedulers() -> None:
    """A bound hides neither the best scheduler nor who does not differ from it."""
    waits = {"easy": draws(100, 1), "a": draws(50, 2), "b": draws(50.2, 3), "ideal-srpt": draws(5, 4)}
    dataset = study({"s": waits})
    found = presentation.numbers(RANKING, dataset)
    sentences = presentation.finding(RANKING, found, attributes_of(dataset))
    best = found.set_index("scheduler")["ratio"].drop("ideal-srpt").idxmin()
    assert set(found["scheduler"][found["best"].astype(bool)]) == {"a", "b"}
    assert sentences[0].startswith(f"{best} has the lowest mean wait time (ideal bounds aside): ")
    assert any("not differ significantly from" in line for line in sentences[1:2])


def test_scenarios_with_one_winner_say_where_it_is_not_sure() -> None:
    waits = {
        place: {"easy": draws(100, seed), "a": draws(50, seed + 1), "b": draws(other, seed + 2)}
        for place, seed, other in (("one", 1, 80.0), ("two", 5, 51.0))
    }
    found, sentences = said(study(waits))
    assert not found[found["scenario"] == "one"].set_index("scheduler").loc["b", "best"]
    if found[found["scenario"] == "two"].set_index("scheduler").loc["b", "best"]:
        assert "not everywhere significantly lower than b" in sentences[0]
    else:
        assert "not everywhere" not in sentences[0]


def test_nothing_is_claimed_where_nothing_differs() -> None:
    waits = {"easy": draws(100, 1), "a": draws(100, 2), "b": draws(100, 3)}
    _, sentences = said(study({"s": waits}))
    assert sentences == ["No scheduler differs significantly from easy in mean wait time."]


def test_a_scenario_is_named_as_it_is_where_a_sentence_begins_with_it() -> None:
    rows = [("s", 1.0, 50.0), ("s", 2.0, 80.0), ("t", 1.0, 20.0), ("t", 2.0, 30.0)]
    table = pd.DataFrame(rows, columns=["scenario", "k", "value"])
    table = table.assign(scheduler="easy", measure="wait_time_mean")
    over = Specification(name="k", form="response", title="K", measures=("wait_time_mean",), x="k")
    first, _ = presentation.finding(over, table, {})
    assert first == "s: mean wait time of easy is 50 s at 1 and 1.33 min at 2 (k)."
    (alone,) = presentation.finding(over, table[table["scenario"] == "s"], {})
    assert alone.startswith("Mean wait time of easy")


def test_too_few_replicates_compare_nothing() -> None:
    _, sentences = said(study({"s": {"easy": [100.0], "a": [10.0]}}))
    assert len(sentences) == 1
    assert "not estimable" in sentences[0]


def test_identical_runs_say_so() -> None:
    same = draws(100, 1)
    numbers, sentences = said(study({"s": {"easy": same, "a": same}}))
    assert "identical" in sentences[0]
    assert (numbers["significant"] == 0).all()


def test_the_same_ratio_everywhere_is_no_identity() -> None:
    numbers, sentences = said(study({"s": {"easy": draws(100, 1), "a": draws(100, 1) / 2}}))
    assert numbers.set_index("scheduler").loc["a", "significant"] == -1
    assert sentences[0] == "a has the lowest mean wait time: 0.5 [0.5, 0.5] of that of easy."
    _, sentences = said(study({"s": {"easy": [100.0] * 10, "a": [50.0] * 10, "b": [200.0] * 10}}))
    assert not any("identical" in line for line in sentences)


def test_a_twin_of_the_best_does_not_differ_from_it() -> None:
    best = draws(50, 2)
    waits = {"easy": draws(100, 1), "a": best, "b": best.copy(), "c": draws(80, 5)}
    _, sentences = said(study({"s": waits}))
    assert "b does not differ significantly from a in mean wait time." in sentences
    assert not any("All other" in line for line in sentences)


@pytest.mark.parametrize("waits", [[0.0] * 10, [46.0] * 3])
def test_who_cannot_be_compared_is_not_passed_over(waits: list[float]) -> None:
    _, sentences = said(study({"s": {"easy": draws(100, 1), "a": waits, "b": draws(50, 3)}}))
    assert sentences[0].startswith("Of those that can be compared, b has the lowest mean wait time")
    assert not any("All other" in line for line in sentences)


def test_all_baselines_of_a_figure_count_as_comparisons() -> None:
    noise = {place: draws(100, seed) for seed, place in enumerate(("a", "b", "a2", "b2"))}
    whole = study({place: {"easy": values} for place, values in noise.items()})
    whole = whole.assign_coords(baseline=("scenario", ["a", "b", "a", "b"]))
    effects = Specification(
        name="e", form="ranking", title="E", measures=("wait_time_mean",), reference="scenario"
    )
    both = presentation.numbers(effects, whole)
    one = presentation.numbers(replace(effects, where={"scenario": ["a", "a2"]}), whole)
    apart = both[both["scenario"] == "a2"]["probability"].item()
    assert apart == pytest.approx(min(2 * one["probability"].item(), 1))


def test_several_scenarios_are_named_where_the_winner_changes() -> None:
    waits = {
        "one": {"easy": draws(100, 1), "a": draws(50, 2), "b": draws(80, 3)},
        "two": {"easy": draws(100, 4), "a": draws(90, 5), "b": draws(40, 6)},
        "three": {"easy": draws(100, 7), "a": draws(100, 8), "b": draws(100.5, 9)},
    }
    _, sentences = said(study(waits))
    assert sentences[0] == "Best in mean wait time: a in one and b in two."
    assert any(line.startswith("In three no scheduler has a significantly lower") for line in sentences)


def test_statements_and_numbers_never_contradict_each_other() -> None:
    """What is called significant has an interval that excludes no effect."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        own = {name: draws(rng.uniform(80, 120), 10 * seed + i, seed) for i, name in enumerate("abcd")}
        numbers, sentences = said(study({"s": {"easy": draws(100, 99 + seed, seed), **own}}))
        for row in numbers.to_dict("records"):
            if row["scheduler"] == "easy":
                continue
            assert (row["ratio_high"] < 1 or row["ratio_low"] > 1) == (row["significant"] != 0)
        text = " ".join(sentences)
        lowest = numbers.sort_values("value").iloc[0]
        if "has the lowest" in text:
            assert text.startswith(str(lowest["scheduler"]))
            equals = [line for line in sentences if "not differ significantly from" in line]
            for row in numbers[~numbers["best"]].to_dict("records"):
                assert not any(line.startswith(f"{row['scheduler']} ") for line in equals)


def test_blocks_of_a_log_are_compared_as_a_series() -> None:
    rng = np.random.default_rng(1)
    base = 100 + rng.normal(0, 5, 60)
    numbers, _ = said(study({"s": {"easy": base, "a": base * 0.5 + rng.normal(0, 1, 60)}}, kind="blocks"))
    assert numbers.set_index("scheduler").loc["a", "significant"] == -1


@pytest.mark.parametrize("held", [5.0, 500.0])
def test_a_log_that_is_short_against_its_queue_gives_no_comparison(held: float) -> None:
    rng = np.random.default_rng(1)
    base = 100 + rng.normal(0, 5, 60)
    dataset = study({"s": {"easy": base, "a": base * 0.5 + rng.normal(0, 1, 60)}}, kind="blocks")
    first = dataset["wait_time_mean"].notnull() & (dataset["replicate"] == 0)
    dataset["relaxations"] = xr.full_like(dataset["wait_time_mean"], held).where(
        first & (dataset["scheduler"] == "a")
    )
    numbers, _ = said(dataset)
    row = numbers.set_index("scheduler").loc["a"]
    assert row["significant"] == (-1 if held > 20 else 0)
    assert np.isnan(row["low"]) == np.isnan(row["ratio_low"]) == (held < 20)
    assert ("memory" in row["reason"]) == ("memory" in row["ratio_reason"]) == (held < 20)


@pytest.mark.parametrize(
    ("row", "unit", "text"),
    [
        ({"value": 0.494, "low": 0.385, "high": 0.634}, "1", "0.494 [0.385, 0.634]"),
        ({"value": 5400, "low": 3600, "high": 7200}, "s", "1.5 [1, 2] h"),
        ({"value": 90, "low": np.nan, "high": np.nan}, "s", "1.5 min"),
    ],
)
def test_an_estimate_has_one_unit(row: dict[str, float], unit: str, text: str) -> None:
    assert estimate_text(row, unit) == text


def test_lists_and_intervals() -> None:
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a, 1", "b", "c"]) == "a, 1; b; and c"
    assert listed(list("abcdefgh"), 3) == "a, b, c and 5 more"
    assert interval_text(0.1, 0.25, share=True) == "[10, 25] %"
    assert interval_text(np.nan, 1) == ""
