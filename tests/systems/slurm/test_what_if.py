"""Changes that a controller is given are those that a prediction reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gridsched.systems.slurm.conf import read_configuration
from tests.slurm.recording import NODES
from tests.slurm.what_if import CHANGES, PARTITIONS, SCHEDULING, changed, plan_in_partitions


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_the_same_for_controller_and_prediction(change: str, tmp_path: Path) -> None:
    nodes = "".join(f"NodeName=n{number:02} CPUs=4\n" for number in range(1, NODES + 1))
    texts = {"base": SCHEDULING + nodes + PARTITIONS}
    texts["changed"] = changed(texts["base"], change)
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    read = read_configuration(tmp_path / "changed")
    assert read == read_configuration(tmp_path / "base", [change])
    assert replace(read, not_modelled=()) != replace(read_configuration(tmp_path / "base"), not_modelled=())


def test_plans_use_both_partitions() -> None:
    plan = plan_in_partitions(70, 5)
    assert {job.partition for job in plan} == {"main", "short"}
    assert max(job.nodes for job in plan if job.partition == "short") <= NODES // 2
