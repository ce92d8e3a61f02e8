"""Configurations in several files, and sets of nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsched.errors import ConfigurationError
from gridsched.systems.slurm.conf import read_configuration

MAIN = """
ClusterName=lab
include nodes.conf
Include\t%c/partitions.conf
"""
NODES = """
NodeName=n[1-4] CPUs=16 Feature=fast,ib
NodeName=g[1-2] CPUs=32 Feature=gpu,ib
"""
PARTITIONS = """
PartitionName=fast Nodes=quick
PartitionName=some Nodes=n1,mixed,n2
NodeSet=quick Feature=fast
NodeSet=mixed Feature=gpu Nodes=n[1,4]
NodeSet=every Nodes=ALL
PartitionName=batch Nodes=every Default=YES
"""


def written(folder: Path, **files: str) -> Path:
    for name, text in {"slurm": MAIN, "nodes": NODES, "lab/partitions": PARTITIONS, **files}.items():
        path = folder / f"{name}.conf"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "slurm.conf"


def test_included_files_are_read_in_place(tmp_path: Path) -> None:
    found = read_configuration(written(tmp_path))
    assert [node.name for node in found.nodes] == ["n1", "n2", "n3", "n4", "g1", "g2"]
    assert {each.name: list(each.nodes) for each in found.partitions} == {
        "fast": ["n1", "n2", "n3", "n4"],
        "some": ["n1", "g1", "g2", "n4", "n2"],
        "batch": ["n1", "n2", "n3", "n4", "g1", "g2"],
    }
    assert found.not_modelled == ()


def test_changes_reach_included_partitions(tmp_path: Path) -> None:
    found = read_configuration(written(tmp_path), ["PartitionName=fast MaxTime=60"])
    assert found.partitions[0].time_limit == 3600


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"slurm": "include none.conf"}, "slurm.conf:1: there is no file .*none.conf; put it there"),
        ({"nodes": "NodeName=n1\ninclude nodes.conf"}, "nodes.conf:2: nodes.conf includes itself"),
        ({"nodes": "NodeName=n1 Wieght=2"}, "nodes.conf:1: unknown key wieght of a node"),
        ({"lab/partitions": "PartitionName=a Nodes=m"}, "partitions.conf:1: partition a names node m, which"),
        ({"lab/partitions": "NodeSet=a Featrue=b"}, "partitions.conf:1: unknown key featrue of a node set"),
        (
            {"lab/partitions": "NodeSet=a Feature=b\nPartitionName=p Nodes=a"},
            "partitions.conf:2: partition p: no node is in the NodeSet a; correct its line",
        ),
    ],
)
def test_mistakes_name_the_included_file(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        read_configuration(written(tmp_path, **files))
