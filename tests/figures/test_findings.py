"""Findings: the right best, nothing sure where intervals overlap, words for tables with nothing to tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched.experiments.captions import caption
from gridsched.experiments.tasks import function_at
from gridsched.figures import findings

NAN = float("nan")

CATALOGUES = (
    "gridsched.experiments.arena.figures:ARENA_FIGURES",
    "gridsched.experiments.forecasts.figures:FORECAST_FIGURES",
    "gridsched.experiments.calibration.figures:CALIBRATION_FIGURES",
    "gridsched.experiments.models.figures:MODEL_FIGURES",
    "gridsched.experiments.placements.figures:PLACEMENT_FIGURES",
    "gridsched.experiments.readings.figures:READINGS_FIGURES",
    "gridsched.figures.prediction:PREDICTION_FIGURES",
    "gridsched.systems.calendars.figures:CALENDAR_FIGURES",
    "gridsched.systems.calendars.figures:CASE_FIGURES",
    "gridsched.systems.dynamic_grid.figures.overview:DYNAMIC_FIGURES",
    "gridsched.systems.jscheduler.figures:SELF_SCHEDULING_FIGURES",
    "gridsched.systems.superscheduler.figures.overview:GRID_FIGURES",
    "gridsched.systems.superscheduler.figures.overview:SCENARIO_FIGURES",
)


def told(
    catalogue: str, kind: str, numbers: pd.DataFrame, attributes: Mapping[str, Any] | None = None
) -> str:
    place = next(each for each in CATALOGUES if each.partition(":")[0].endswith(catalogue))
    finding: findings.Finding = function_at(f"{place.partition(':')[0]}:FINDINGS")[kind]
    return finding(numbers, attributes or {"reference": "easy"})


@pytest.mark.parametrize("catalogue", CATALOGUES)
def test_every_kind_of_figure_has_a_finding_and_a_caption(catalogue: str) -> None:
    kinds = set(function_at(catalogue))
    assert kinds <= set(function_at(f"{catalogue.partition(':')[0]}:FINDINGS"))
    assert all(caption(kind)["text"] for kind in kinds)


def rows(*values: tuple[str, float, float, float], **more: Any) -> pd.DataFrame:
    """Schemes with mean, low and high."""
    return pd.DataFrame(values, columns=["scheme", "mean", "low", "high"]).assign(**more)


# --- what all share -------------------------------------------------------------------------------


def test_the_best_is_named_and_is_sure_only_where_its_interval_lies_apart() -> None:
    apart = findings.extremes(rows(("b", 5, 4, 6), ("a", 1, 0.5, 2)), "scheme", "wait")
    assert apart.startswith("The lowest wait is 1 (0.5 to 2), under a; the highest 5 (4 to 6), under b.")
    assert "apart from all others" in apart
    near = findings.extremes(rows(("b", 5, 4, 6), ("a", 3, 1, 4.5)), "scheme", "wait")
    assert "The interval of a overlaps with that of b." in near
    assert "apart" not in near


def test_tables_of_one_of_none_and_of_the_same() -> None:
    assert findings.extremes(rows(), "scheme", "wait") == findings.NOTHING
    assert findings.extremes(rows(("a", NAN, NAN, NAN)), "scheme", "wait") == findings.NOTHING
    assert findings.extremes(rows(("a", 2, NAN, NAN)), "scheme", "wait") == "a alone has a wait: 2."
    same = findings.extremes(rows(("a", 2, 1, 3), ("b", 2, 1, 3)), "scheme", "wait")
    assert same == "All 2 have the same wait: 2."
    assert findings.against(rows(), "scheme", "ratio", 1.0) == findings.NOTHING


def test_sides_of_a_comparison_are_counted() -> None:
    table = rows(("a", 0.5, 0.4, 0.6), ("b", 0.9, 0.7, 1.1), ("c", 2, 1.5, 3))
    text = findings.against(table, "scheme", "ratio", 1.0)
    assert "is 0.5 (0.4 to 0.6), under a; the highest 2 (1.5 to 3), under c." in text
    assert "Of 3: 1 surely below 1, 1 surely above 1, 1 not sure." in text
    best = findings.against(table, "scheme", "ratio", 1.0, highest_first=True)
    assert best.startswith("The highest ratio is 2")


def test_without_intervals_nothing_is_sure() -> None:
    text = findings.against(rows(("a", 0.5, NAN, NAN), ("b", 2, NAN, NAN)), "scheme", "ratio", 1.0)
    assert findings.NO_INTERVALS in text
    assert "surely" not in text


@given(
    st.lists(
        st.tuples(st.floats(0.01, 100), st.floats(0, 1), st.floats(0, 1)),
        min_size=1,
        max_size=8,
    )
)
def test_a_claim_of_certainty_has_an_interval_that_says_so(values: list[tuple[float, float, float]]) -> None:
    table = rows(*((f"s{i}", mean, mean * (1 - a), mean * (1 + b)) for i, (mean, a, b) in enumerate(values)))
    text = findings.against(table, "scheme", "ratio", 1.0)
    below, above = int((table["high"] < 1).sum()), int((table["low"] > 1).sum())
    assert ("surely below" in text) == (below > 0 and len(table) > 2 and findings.has_intervals(table))
    assert ("surely above" in text) == (above > 0 and len(table) > 2 and findings.has_intervals(table))
    lowest = findings.lowest(table)["scheme"]
    assert f"under {lowest}" in text


@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=9))
def test_lists_of_names_are_short_and_on_one_line(labels: list[str]) -> None:
    text = findings.listed(labels)
    assert "\n" not in text
    assert len(text) < 6 * 60


# --- other conditions -----------------------------------------------------------------------------


def test_effects_name_the_scheduler_that_other_conditions_hurt_least() -> None:
    table = pd.DataFrame(
        [("local", 1.5, 1.4, 1.6, 90), ("moving", 1.1, 1.0, 1.2, 80), ("slow", 1.9, 1.7, 2.1, 95)],
        columns=["scheduler", "mean", "low", "high", "killed"],
    ).assign(scenario="failures", system="x", baseline="calm", extra_work=0.05)
    text = told("arena.figures", "arena_effects", table, {"reference": "local"})
    assert "The lowest mean response relative to calm is 1.1 (1 to 1.2), not sure, under moving" in text
    assert "less than under local, 1.5 (1.4 to 1.6), under moving, and more under slow." in text
    assert "killed: from 80 under moving to 95 under slow" in text
    assert "up to 5 %" in text
    calm = told("arena.figures", "arena_effects", table.assign(killed=NAN, extra_work=NAN))
    assert "killed" not in calm


def ranking(scenario: str, *values: tuple[str, float, str]) -> pd.DataFrame:
    """Means of policies in a scenario, and who is surely behind each."""
    table = pd.DataFrame(values, columns=["scheme", "mean", "ahead_of"])
    return table.assign(workload=scenario, baseline="log", metric="response_time", low=NAN, high=NAN)


# --- local policies -------------------------------------------------------------------------------


def waits(*values: tuple[str, float, float, float], **more: Any) -> pd.DataFrame:
    return rows(*values, workload="log", estimate="requested", metric="wait_time", **more)


@given(st.floats(0, 1).filter(lambda share: 0 < share < 1))
def test_nearly_all_is_not_all(share: float) -> None:
    assert findings.percent(share) != findings.percent(1.0)


def queue(*lengths: float) -> pd.DataFrame:
    return pd.DataFrame({"queue_length": lengths}).assign(
        workload="log", scheme="fcfs", estimate="requested", utilisation=0.5
    )


def test_runs_with_reservations_are_not_compared_by_delay() -> None:
    values = [("plain", "mean", 2.0, False), ("other", "mean", 3.0, False), ("reserved", "mean", 90.0, True)]
    table = pd.DataFrame(values, columns=["scheduler", "aggregate", "mean", "asks"])
    text = told("calendars.figures", "calendar_delays", table.assign(case="c", estimates="actual"))
    assert "queuing delay without reservations" in text
    assert "the highest 3, under other" in text
    assert "With reservations it is 90 under reserved" in text


def test_schedulers_that_are_not_surely_worse_than_the_best_calendars_are_named() -> None:
    values = [("a", "mean", 1.0, 1.0), ("b", "mean", 1.1, 0.9), ("c", "mean", 4.0, 2.0)]
    values += [("a", "work_weighted", 1.0, 1.0), ("b", "work_weighted", 1.2, 1.1)]
    table = pd.DataFrame(values, columns=["scheduler", "aggregate", "mean", "to_best_low"])
    text = told("calendars.figures", "calendar_delays", table.assign(case="c", estimates="x", asks=False))
    assert "That of b is not surely higher than the lowest." in text
    assert "All 2 aggregates have the same lowest, but not surely by the mean over jobs." in text
    assert findings.NO_INTERVALS not in text


def test_who_may_lose_is_named_where_no_loss_is_sure() -> None:
    unsure = rows(
        ("r-i", 3.1, 0.7, 13.0), metric="wait", relative_to="local", home="A", scenario="x", policy="y"
    )
    sure = unsure.assign(scheme="s-i", home="B", low=2.0)
    text = told("superscheduler.figures.overview", "grid_waits", pd.concat([unsure, sure]))
    assert "the largest is 3.1 (0.7 to 13) times at A" in text


# --- grids ----------------------------------------------------------------------------------------


def arena(*values: tuple[str, str, float, float, float, float]) -> pd.DataFrame:
    columns = ["scheduler", "system", "ratio", "low", "high", "beaten_by"]
    return pd.DataFrame(values, columns=columns).assign(scenario="two", beats=0)


def test_ideal_machines_are_not_the_best_scheduler_and_ties_are_said() -> None:
    table = arena(
        ("ideal", "ideal machine", 0.1, 0.05, 0.2, 0),
        ("s-i", "superscheduler", 0.4, 0.3, 0.5, 0),
        ("central", "superscheduler", 0.5, 0.4, 0.6, 0),
        ("local", "local", 1.0, 1.0, 1.0, 2),
        ("calendars", "calendars", NAN, NAN, NAN, NAN),
    )
    text = told("arena.figures", "arena_ranking", table, {"reference": "local"})
    assert text.startswith("s-i has the shortest mean response of 3 schedulers: 0.4 (0.3 to 0.5) times")
    assert "Not surely worse: central." in text
    assert "The longest is that of local: 1." in text
    assert "calendars: cannot schedule this grid." in text


def test_a_best_scheduler_that_is_sure_and_one_without_intervals() -> None:
    sure = arena(("a", "x", 0.4, 0.3, 0.5, 0), ("b", "x", 1, 1, 1, 1))
    assert "All others are surely worse." in told("arena.figures", "arena_ranking", sure)
    unknown = arena(("a", "x", 0.4, NAN, NAN, 0), ("b", "x", 1, NAN, NAN, 0))
    text = told("arena.figures", "arena_ranking", unknown)
    assert findings.NO_INTERVALS in text
    assert "surely" not in text


def test_a_sweep_says_which_value_is_enough() -> None:
    table = arena(
        ("self-scheduling, k 1", "jscheduler", 0.9, 0.8, 1.0, 2),
        ("self-scheduling, k 2", "jscheduler", 0.62, 0.5, 0.7, 0),
        ("self-scheduling, k 4", "jscheduler", 0.6, 0.5, 0.7, 0),
        ("local", "local", 1.0, 1.0, 1.0, 2),
    )
    text = told("arena.figures", "arena_ranking", table, {"reference": "local"})
    assert (
        "self-scheduling has 0.9 with k 1, 0.62 with k 2 and 0.6 with k 4: by these means k 2 is enough"
        in text
    )


def test_a_sweep_whose_largest_value_is_best_says_how_much_the_next_one_loses() -> None:
    table = arena(
        ("self-scheduling, k 2", "jscheduler", 0.66, 0.5, 0.7, 0),
        ("self-scheduling, k 3", "jscheduler", 0.6, 0.5, 0.7, 0),
        ("local", "local", 1.0, 1.0, 1.0, 2),
    )
    text = told("arena.figures", "arena_ranking", table.assign(clusters=3), {"reference": "local"})
    assert "k 3, which asks every cluster, has the shortest mean; with k 2 it is 10 % longer" in text
    assert "longer, but that is not sure." in text
    more = told("arena.figures", "arena_ranking", table.assign(clusters=9), {"reference": "local"})
    assert "k 3, the largest that was run" in more
    assert "enough" not in more


def test_the_cheapest_of_the_unbeaten_is_named_with_its_interval() -> None:
    table = arena(
        ("best", "x", 0.49, 0.4, 0.6, 0),
        ("dear", "x", 0.56, 0.4, 0.8, 0),
        ("cheap", "x", 0.59, 0.4, 0.9, 0),
        ("beaten", "x", 0.8, 0.7, 0.9, 1),
        ("local", "local", 1.0, 1.0, 1.0, 3),
    ).assign(messages_per_job=[32.0, 12.0, 1.8, 1.0, 0.0], moved=0.2)
    text = told("arena.figures", "arena_cost", table)
    assert "cheap sends fewest of those than which no scheduler is surely better: 1.8 a job" in text
    assert "0.59 (0.4 to 0.9)" in text
    lone = told("arena.figures", "arena_cost", table[table["scheduler"] != "cheap"].iloc[[0, 2, 3]])
    assert "All that send fewer are surely worse than some scheduler" in lone


def test_the_best_under_each_load_is_not_sure_where_intervals_overlap() -> None:
    columns = ["scheduler", "load", "response_time_mean", "mean", "low", "high"]
    values = [
        ("a", 0.8, 10.0, 0.5, 0.4, 1.1),
        ("b", 0.8, 12.0, 0.6, 0.5, 1.2),
        ("a", 1.2, 12.0, 0.4, 0.3, 0.5),
        ("b", 1.2, 18.0, 0.9, 0.8, 0.95),
    ]
    table = pd.DataFrame(values, columns=columns).assign(scenario="x", system="x")
    text = told("arena.figures", "arena_loads", table)
    assert "That is not sure at 0.8, where intervals overlap." in text
    assert "At 0.8 it is not even surely shorter than under the reference." in text
    assert "grows least under a, to 1.2 times, and most under b, to 1.5 times" in text


def test_overview_of_schemes_leaves_out_those_without_machines() -> None:
    def of(metric: str, relative_to: str, *values: tuple[str, float, float, float]) -> pd.DataFrame:
        return rows(*values, metric=metric, relative_to=relative_to, scenario="heavy", policy="fcfs")

    table = pd.concat(
        [
            of(
                "response_time_mean",
                "local",
                ("local", 1, 1, 1),
                ("s-i", 0.5, 0.4, 0.6),
                ("r-i", 0.9, 0.7, 1.2),
                ("ideal-srpt", 0.01, 0.01, 0.02),
            ),
            of("transferred", "", ("local", 0, 0, 0), ("s-i", 0.3, 0.2, 0.4), ("r-i", 0.1, 0.1, 0.2)),
        ]
    )
    text = told("superscheduler.figures.overview", "grid_overview", table)
    assert "relative to local is 0.5 (0.4 to 0.6), under s-i" in text
    assert "0.9 (0.7 to 1.2), not sure, under r-i" in text
    assert "s-i moves 30 % of the jobs." in text
    assert "ideal" not in text


def test_overview_says_who_loses_behind_a_mean_that_improves() -> None:
    def of(metric: str, home: str, *values: tuple[str, float, float, float]) -> pd.DataFrame:
        return rows(*values, metric=metric, home=home, relative_to="local", scenario="x", policy="fcfs")

    table = pd.concat(
        [
            of("response_time_mean", "", ("local", 1, 1, 1), ("s-i", 0.3, 0.2, 0.5), ("r-i", 0.4, 0.3, 0.6)),
            of("transferred", "", ("local", 0, 0, 0), ("s-i", 0.3, 0.2, 0.4), ("r-i", 0.1, 0.1, 0.2)),
            of("waiting_share", "A", ("local", 0.94, 0.9, 0.97)),
            of("waiting_share", "B", ("local", 0.06, 0.03, 0.1)),
            of("wait_time_mean_home", "A", ("local", 1, 1, 1), ("s-i", 0.3, 0.2, 0.4)),
            of("wait_time_mean_home", "B", ("local", 1, 1, 1), ("s-i", 3.0, 2.0, 4.0), ("r-i", 9.0, 0.5, 50)),
            of("wait_time_mean_others", "", ("local", 1, 1, 1), ("s-i", 1.3, 0.8, 1.8)),
        ]
    )
    text = told("superscheduler.figures.overview", "grid_overview", table)
    assert "so their order is not sure" in text
    assert "users of A do 94 % of the waiting" in text
    assert "wait up to 1.3 (0.8 to 1.8) times as long as under local, not sure, under s-i" in text
    assert "Users of B surely wait longer under some scheme, most at B under s-i: 3 (2 to 4) times." in text


def test_nobody_loses_unless_an_interval_says_so() -> None:
    unsure = rows(
        ("s-i", 1.4, 0.8, 2.0), metric="wait", relative_to="local", home="A", scenario="x", policy="y"
    )
    text = told("superscheduler.figures.overview", "grid_waits", unsure)
    assert "At no cluster do users surely wait longer" in text
    assert "does not mean that there is none: the largest is 1.4 (0.8 to 2) times at A" in text
    assert "Ideal" not in text
    ideal = pd.concat([unsure, unsure.assign(scheme="ideal-fcfs", mean=9.0, low=8.0)])
    text = told("superscheduler.figures.overview", "grid_waits", ideal)
    assert "At no cluster" in text
    assert "Ideal machines are left out." in text
    sure = pd.concat([unsure, unsure.assign(home="B", mean=3.0, low=2.0, high=4.0)])
    assert "Users of B surely lose" in told("superscheduler.figures.overview", "grid_waits", sure)


def test_reservations_that_others_do_not_pay_for() -> None:
    def of(measure: str, aggregate: str, *values: tuple[float, float, float, float]) -> pd.DataFrame:
        return pd.DataFrame(values, columns=["value", "mean", "low", "high"]).assign(
            case="c", scheduler="s", measure=measure, aggregate=aggregate
        )

    granted = of("acceptance", "", (0.1, 0.9, NAN, NAN))
    below = pd.concat([granted, of("delay_others_ratio", "mean", (0.1, 0.5, 0.4, 0.7))])
    falls = told("calendars.figures", "calendar_reservations", below)
    assert "their mean delay falls, as jobs that reserve ask to start later" in falls
    unsure = pd.concat([granted, of("delay_others_ratio", "mean", (0.1, 1.5, 0.9, 2.7))])
    text = told("calendars.figures", "calendar_reservations", unsure)
    assert "whether it grows is not sure" in text
    assert "90 % of the reservations are granted." in text


def test_aggregates_that_disagree_are_told() -> None:
    columns = ["scheduler", "aggregate", "mean"]
    values = [
        ("a", "mean", 1.0),
        ("b", "mean", 2.0),
        ("a", "work_weighted", 4.0),
        ("b", "work_weighted", 3.0),
    ]
    table = pd.DataFrame(values, columns=columns).assign(case="c", estimates="actual", asks=False)
    text = told("calendars.figures", "calendar_delays", table)
    assert "under a; the highest 2, under b." in text
    assert "Aggregates disagree on the best: a by the mean over jobs; b by the mean weighted by work." in text


def test_sites_that_gain_and_lose() -> None:
    columns = ["group", "mean", "low", "high"]
    values = [("sites", 2.0, 1.5, 3.0), ("north", 3.0, 2.0, 4.0), ("west", 0.5, 0.4, 0.8), ("s", 1.1, 0.9, 2)]
    table = pd.DataFrame(values, columns=columns).assign(case="default", metric="response_time")
    text = told("dynamic_grid.figures.overview", "dynamic_sites", table)
    assert "is 2 (1.5 to 3) times that in the grid." in text
    assert "Shorter in the grid, by their intervals: north. Longer: west. Not sure: s." in text


def test_a_ratio_that_is_sure_beside_a_difference_that_is_not_and_queues_that_last() -> None:
    columns = ["group", "mean", "low", "high", "gain_low", "gain_high"]
    values = [("sites", 18.0, 7.0, 50.0, 1e5, 3e5), ("west", 28.0, 11.0, 71.0, -1e4, 4e5)]
    table = pd.DataFrame(values, columns=columns).assign(case="default", metric="response_time")
    text = told("dynamic_grid.figures.overview", "dynamic_sites", table.assign(alone=200_000.0))
    assert "Not sure: west; by ratios alone west would be." in text
    assert "all these intervals are too narrow" in text
    short = told("dynamic_grid.figures.overview", "dynamic_sites", table.assign(alone=600.0))
    assert "too narrow" not in short


def test_a_departure_at_which_nothing_moves() -> None:
    values = [("grid", -10.0, 0.0), ("grid", 5.0, 0.0), ("local", -10.0, 4.0)]
    still = pd.DataFrame(values, columns=["use", "time", "processors"])
    attributes = {"departure_site": "south", "departure_absence": 3600.0}
    text = told("dynamic_grid.figures.overview", "dynamic_departure", still, attributes)
    assert (
        text
        == "south leaves the grid for 1 h. No grid job runs on it at that moment, so nothing has to move."
    )
    moving = still.assign(processors=[8.0, 0.0, 4.0])
    moved = told("dynamic_grid.figures.overview", "dynamic_departure", moving, attributes)
    assert "grid jobs hold 8 of its processors. The last has gone 5 s later." in moved


def test_self_scheduling_says_where_it_is_worse() -> None:
    columns = ["metric", "k", "mean", "low", "high"]
    values = [("wait", 2, 3.0, 2.0, 4.0), ("slowdown", 1, 0.5, 0.4, 0.9)]
    table = pd.DataFrame(values, columns=columns).assign(factor="none", mode="plan", measure="wait_time")
    text = told("jscheduler.figures", "improvement_wait_time", table)
    assert "smallest wait of 2 clusters: 3 (2 to 4) times." in text
    assert "surely worse than in the original scenario in 1 of 2 runs" in text


EMPTY: dict[str, tuple[str, ...]] = {
    "arena_ranking": ("scenario", "scheduler", "system", "ratio", "low", "high", "beaten_by"),
    "arena_cost": ("scenario", "scheduler", "messages_per_job", "moved", "ratio", "low", "high", "beaten_by"),
    "arena_loads": ("scenario", "scheduler", "system", "load", "response_time_mean", "mean", "low", "high"),
    "arena_estimates": ("scenario", "scheduler", "system", "estimate_error", "mean", "low", "high"),
    "arena_effects": ("scenario", "scheduler", "system", "baseline", "mean", "low", "high", "killed"),
    "conditions_effects": ("baseline", "workload", "scheme", "metric", "mean", "low", "high", "killed"),
    "conditions_ranking": ("baseline", "workload", "scheme", "metric", "mean", "low", "high", "ahead_of"),
    "policies_ranking": ("baseline", "workload", "scheme", "metric", "mean", "low", "high", "value", "beats"),
    "readings_claims": ("claim", "where", "robustness", "mean", "low", "high", "default"),
    "readings_choices": ("choice", "claim", "where", "mean", "low", "high"),
    "resampled_means": ("workload", "scheme", "metric", "mean", "low", "high"),
    "users_going_on": ("workload", "response", "mean", "low", "high", "share"),
    "users_productivity": ("workload", "scheme", "metric", "mean", "low", "high"),
    "policies_means": ("workload", "scheme", "estimate", "metric", "mean", "low", "high"),
    "policies_differences": ("workload", "scheme", "estimate", "metric", "mean", "low", "high"),
    "policies_distribution": ("workload", "scheme", "estimate", "metric", "quantile", "value", "beyond"),
    "policies_classes": ("workload", "scheme", "estimate", "metric", "job_class", "mean", "jobs"),
    "recorded_waits": ("workload", "scheme", "estimate", "metric", "statistic", "value"),
    "load": ("workload", "scheme", "estimate", "bin_time", "utilisation", "queue_length"),
    "workload": ("variable", "label", "value"),
    "gantt": ("cluster", "job_number", "first_processor", "processors", "start_time", "end_time"),
    "grid_overview": ("scenario", "policy", "scheme", "metric", "relative_to", "mean", "low", "high"),
    "grid_policies": ("scenario", "policy", "scheme", "metric", "relative_to", "mean", "low", "high"),
    "grid_sensitivity": (),
    "grid_waits": ("scenario", "policy", "scheme", "home", "metric", "relative_to", "mean", "low", "high"),
    "grid_utilisation": ("scenario", "policy", "scheme", "cluster", "metric", "mean", "low", "high"),
    "grid_flows": ("scenario", "policy", "scheme", "home", "cluster", "metric", "mean", "low", "high"),
    "calendar_delays": ("case", "scheduler", "estimates", "aggregate", "mean", "asks"),
    "calendar_classes": ("scheduler", "aggregate", "job_class", "mean"),
    "calendar_clusters": ("scheduler", "aggregate", "job_class", "cluster", "mean", "drawn"),
    "calendar_trade": ("scheduler", "cluster", "measure", "mean"),
    "calendar_cost": ("case", "scheduler", "measure", "mean"),
    "calendar_reservations": ("case", "scheduler", "value", "measure", "aggregate", "mean", "low", "high"),
    "calendar_staleness": ("case", "scheduler", "value", "measure", "aggregate", "mean", "low", "high"),
    "calendar_options": ("case", "scheduler", "parameter", "value", "aggregate", "mean", "low", "high"),
    "dynamic_map": ("case", "users", "cluster", "work", "share", "links"),
    "dynamic_sites": ("case", "group", "metric", "mean", "low", "high"),
    "dynamic_joining": ("site", "line", "party", "metric", "mean", "low", "high"),
    "dynamic_overhead": ("sweep", "mean", "low", "high"),
    "dynamic_churn": ("sweep", "mean", "low", "high"),
    "dynamic_sweeps": ("sweep", "mean", "low", "high"),
    "dynamic_variants": ("sweep", "mean", "low", "high"),
    "dynamic_departure": ("site", "use", "time", "processors"),
    "multicluster_curves": ("point", "scheme", "measure", "group", "x", "mean", "low", "high"),
    "multicluster_advantage": ("point", "scheme", "measure", "group", "x", "mean", "low", "high"),
    "multicluster_queues": ("point", "scheme", "measure", "group", "x", "mean", "low", "high"),
    "multicluster_points": ("point", "scheme", "measure", "group", "x", "mean", "low", "high"),
    "multicluster_schemes": ("point", "scheme", "measure", "group", "x", "mean", "low", "high"),
    "example_handed_over": ("cluster", "job_number", "start_time", "end_time", "late"),
    "example_improved": ("cluster", "job_number", "start_time", "end_time", "late"),
    "improvement_bounded_slowdown": ("factor", "mode", "metric", "k", "measure", "mean", "low", "high"),
    "improvement_wait_time": ("factor", "mode", "metric", "k", "measure", "mean", "low", "high"),
    "prediction_worth": ("factor", "mode", "estimates", "metric", "k", "measure", "mean", "low", "high"),
    "plan_and_exact": ("factor", "mode", "metric", "k", "measure", "mean", "low", "high"),
    "retraining_effect": ("factor", "mode", "metric", "k", "measure", "mean", "low", "high"),
    "centre_table": ("centre", "measure", "statistic", "source", "mean"),
    "offered_loads": ("factor", "centre", "processors", "cpu_factor", "load"),
    "prediction_quality": ("measure", "workload", "predictor", "value"),
    "prediction_intervals": ("predictor", "actual_interval", "predicted_interval", "jobs", "share"),
    "forecast_coverage": ("workload", "truth", "predictor", "correction", "coverage", "width"),
    "forecast_horizons": ("workload", "truth", "predictor", "range", "coverage", "median_width"),
    "model_shares": ("quantity", "size_class", "source", "value"),
    "model_quantiles": ("kind", "size_class", "source", "quantile", "value", "ks"),
    "size_spread": ("quantity", "machine", "spread", "nodes", "value"),
    "calibration_overview": ("workload", "layers", "half", "ratio", "correlation", "near"),
    "calibration_layers": ("workload", "layers", "half", "ratio", "correlation", "near"),
    "placement_shares": ("placement", "node_order", "mean", "low", "high", "published", "change"),
    "placement_curves": ("placement", "node_order", "arrived", "mean", "low", "high", "waiting_low"),
}
"""Columns of the numbers of each kind of figure."""


@pytest.mark.parametrize("catalogue", CATALOGUES)
def test_figures_without_data_have_a_sentence(catalogue: str) -> None:
    for kind in function_at(catalogue):
        finding = function_at(f"{catalogue.partition(':')[0]}:FINDINGS")[kind]
        empty = pd.DataFrame({column: [] for column in EMPTY[kind]})
        text = finding(empty, {"reference": "easy"})
        assert text.endswith("."), kind
        assert "nan" not in text.lower(), kind
        assert "surely shorter" not in text, kind
