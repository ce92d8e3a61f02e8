"""Maps of flows, and what is said of flows, users, conditions and messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from gridsched import presentation
from gridsched.experiments.specification import Specification
from gridsched.presentation.findings import NOTHING
from gridsched.presentation.grids import effects, flow_tables, gain_against_cost, of_users
from tests.support.legibility import assert_legible

ATTRIBUTES = {
    "reference": "local",
    "bounds": ["ideal-fcfs"],
    "schedulers": ["local", "central", "s-i", "ideal-fcfs"],
    "first_estimates": "requested",
}
FLOWS = Specification(name="flows", form="map", title="flows", measures=("flow_work",), facets="scheduler")


def flows(clusters: list[str], **tables: Any) -> pd.DataFrame:
    """Numbers of a map: work from each cluster to each, by scheduler."""
    rows = [
        {"measure": "flow_work", "scheduler": who, "group": f"{home} to {cluster}", "value": float(work)}
        for who, table in tables.items()
        for home, line in zip(clusters, table, strict=True)
        for cluster, work in zip(clusters, line, strict=True)
    ]
    return pd.DataFrame(rows)


def test_flows_come_back_as_tables_of_those_who_move_something() -> None:
    table = [[6.0, 4.0], [0.0, 10.0]]
    found = flow_tables(flows(["M 1", "M2"], local=np.eye(2) * 5, central=table), "scheduler")
    assert list(found) == ["central"]
    assert found["central"].to_numpy().tolist() == table
    assert list(found["central"].index) == ["M 1", "M2"]


def test_a_map_says_who_moves_most_and_from_where() -> None:
    numbers = flows(["a", "b"], local=np.eye(2), few=[[9, 1], [0, 10]], many=[[2, 8], [2, 8]])
    first, second = presentation.finding(FLOWS, numbers, ATTRIBUTES)
    assert "5 % (few) to 50 % (many)" in first
    assert second.startswith("80 %")
    assert "users of a" in second
    still = flows(["a", "b"], local=np.eye(2))
    assert presentation.finding(FLOWS, still, ATTRIBUTES) == ["No job ran elsewhere than at home."]
    nobody = pd.DataFrame(columns=["measure", "value"])
    assert presentation.finding(FLOWS, nobody, ATTRIBUTES) == NOTHING


@pytest.mark.parametrize(
    "clusters", [["A", "B"], ["$x_1$", "Blue Horizon at San Diego", "C"], list("abcdefghij")]
)
def test_maps_are_legible(clusters: list[str]) -> None:
    table = np.ones((len(clusters), len(clusters)))
    names = [f"scheduler {number}" for number in range(7)]
    figure, _ = presentation.draw(FLOWS, flows(clusters, **dict.fromkeys(names, table)), ATTRIBUTES)
    assert_legible(figure)


def compared(*values: tuple[str, float, int], **more: Any) -> pd.DataFrame:
    """Numbers of comparisons: scheduler, ratio and whether it is significant."""
    table = pd.DataFrame(values, columns=["scheduler", "ratio", "significant"])
    table["probability"] = np.where(np.isnan(table["ratio"]), np.nan, 0.5)
    return table.assign(
        measure="response_time_mean",
        value=3600.0 * table["ratio"],
        ratio_low=table["ratio"] * 0.9,
        ratio_high=table["ratio"] * 1.1,
        ratio_reason="",
        **more,
    )


def test_users_who_gain_and_who_lose() -> None:
    spec = Specification(
        name="users", form="ranking", title="u", measures=("response_time_mean",), lanes="group"
    )
    gaining = compared(("local", 1, 0), ("central", 0.5, -1), ("s-i", 0.9, 0), ("ideal-fcfs", 0.1, -1))
    losing = compared(("local", 1, 0), ("central", 2, 1), ("s-i", 2, 1), ("ideal-fcfs", 0.1, -1))
    even = compared(("local", 1, 0), ("central", 1.1, 0), ("s-i", 0.9, 0))
    table = pd.concat(
        [part.assign(group=f"users of {name}") for name, part in (("a", gaining), ("b", losing), ("c", even))]
    ).assign(scenario="one")
    assert of_users(table, spec, ATTRIBUTES) == [
        "The mean response time is significantly lower under one of two schedulers: users of a.",
        "The mean response time is significantly higher under two of two schedulers: users of b.",
        "No significant difference from local for users of c.",
    ]


def test_effects_of_conditions_count_who_suffers_significantly() -> None:
    spec = Specification(
        name="effects", form="ranking", title="e", measures=("response_time_mean",), reference="scenario"
    )
    table = compared(("local", 1.5, 1), ("central", 1.1, 0), ("s-i", 1.2, 1), ("ideal-fcfs", 9.0, 1))
    table = table.assign(scenario="failures", baseline="calm")
    assert effects(table, spec, ATTRIBUTES) == [
        "failures: mean response time 1.1 (central) to 1.5 (local) of that under calm, "
        "significantly higher under two of three schedulers."
    ]
    unknown = table.assign(probability=np.nan, ratio_reason="three replicates are too few")
    assert effects(unknown, spec, ATTRIBUTES) == [
        "failures: the effect on the mean response time is not estimable: three replicates are too few."
    ]
    assert effects(table.iloc[:0], spec, ATTRIBUTES) == ["Nothing is compared."]


def test_nobody_is_surpassed_in_both_messages_and_response() -> None:
    spec = Specification(
        name="messages", form="response", title="m", measures=("response_time_mean",), x="messages_per_job"
    )
    table = compared(("local", 1, 0), ("s-i", 0.6, -1), ("central", 0.7, -1), ("ideal-fcfs", 0.1, -1))
    table = table.assign(scenario="one", messages_per_job=[0.0, 2.0, 6.0, 0.0])
    first, second = gain_against_cost(table, spec, ATTRIBUTES)
    assert "0 (local) to 6 (central)" in first
    assert second.endswith("than local and s-i.")
    figure, _ = presentation.draw(spec, table.assign(low=np.nan, high=np.nan), ATTRIBUTES)
    assert_legible(figure)
