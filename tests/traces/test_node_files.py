"""Files of nodes, partitions and limits: what is read, and that every mistake names file and key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import gridsched as gs
from gridsched.errors import ConfigurationError
from gridsched.nodes import Limit, NodeType, Partition
from gridsched.traces.node_files import SiteNodes, read_nodes
from tests.support.errors import each_refused, refused

GOOD = """
nodes:
  - { name: cpu, count: 4, cores: 64, memory: 256000, weight: 1.5 }
  - { names: [g1, g2], cores: 32, gpus: 4 }
partitions:
  - { name: batch, nodes: [cpu], time_limit: 86400, priority: 2 }
  - { name: gpu, nodes: [g1, g2], most_processors: 64 }
  - { name: spare }
limits:
  - { by: user, of: ada, processors: 128 }
  - { jobs: 10 }
placement: best_fit
"""
NAMES = {"partition": ("gpu", "batch"), "user": ("bob", "ada")}


def read(folder: Path, text: str, names: Mapping[str, Sequence[str]] | None = None) -> SiteNodes:
    path = folder / "nodes.yaml"
    path.write_text(text)
    return read_nodes(path, names)


def test_all_that_a_file_may_say(tmp_path: Path) -> None:
    site = read(tmp_path, GOOD, NAMES)
    cpu, gpu = site.nodes
    assert cpu == NodeType(name="cpu", count=4, cores=64, memory=256000, weight=1.5)
    assert gpu.nodes == ["g1", "g2"]
    batch, gpus, spare = site.partitions
    assert batch == Partition(number=1, name="batch", nodes=["cpu"], time_limit=86400, priority=2)
    assert (gpus.number, gpus.most_processors) == (0, 64)
    assert spare.number not in (0, 1)
    assert site.limits == (Limit(by="user", of=1, processors=128), Limit(jobs=10))
    cluster = gs.Cluster(
        nodes=site.nodes, partitions=site.partitions, limits=site.limits, placement=site.placement
    )
    assert cluster.processors == 4 * 64 + 2 * 32


def test_numbers_where_the_log_has_no_names(tmp_path: Path) -> None:
    text = (
        "nodes: [{cores: 4}]\npartition_of: queue\npartitions: [{number: 3}, {name: 5}]\n"
        "limits: [{by: queue, of: 3, jobs: 1}]"
    )
    site = read(tmp_path, text)
    assert [each.number for each in site.partitions] == [3, 5]
    assert site.partition_of == "queue"
    assert site.limits[0].of == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "nothing in it; write key: value lines"),
        ("nodes: 3", "nodes: found 3; write a list"),
        ("nodes: []", "nodes: found []; write at least 1"),
        ("nodes: [{}]", "nodes[item 1].cores: missing"),
        ("nodes: [{cores: 4, memory: -1}]", "nodes[item 1]: node type node: memory is -1"),
        ("nodes: [{cores: 4.5}]", "nodes[item 1].cores: found 4.5; write a whole number"),
        ("nodes: [{cores: 4, gpus: true}]", "nodes[item 1].gpus: found True; write a whole number"),
        ("nodes: [{cors: 4}]", "nodes[item 1].cors: unknown key; did you mean cores?"),
        ("nodes: [{cores: 4, weight: heavy}]", "nodes[item 1].weight: found 'heavy'; write a number"),
        ("nodes: [{cores: 4, names: n1}]", "nodes[item 1].names: found 'n1'; write a list"),
        ("nodes: [{cores: 4, count: 3, names: [a]}]", "nodes[item 1]: node type node: count is 3, and it"),
        ("nodes: [{cores: 4}, {cores: 8}]", "nodes: 'node0' is there twice"),
        ("nodes: [{cores: 4}]\npartition: []", "partition: unknown key; did you mean partition"),
        ("nodes: [{cores: 4}]\nplacement: best", "placement: found 'best'"),
        ("nodes: [{cores: 4}]\npartitions: [{nodes: [node]}]", "partitions[0]: has no name"),
        (
            "nodes: [{cores: 4}]\npartitions: [{name: a, nodes: [nod0]}]",
            "partitions[a].nodes: found 'nod0'; did you mean node",
        ),
        (
            "nodes: [{cores: 4}]\npartitions: [{name: gpu}, {name: gpu}]",
            "partitions: 'gpu' is there twice",
        ),
        ("nodes: [{cores: 4}]\npartitions: [{name: gpu, time_limit: 0}]", "partition gpu: time_limit"),
        ("nodes: [{cores: 4}]\nlimits: [{of: eve, jobs: 1}]", "limits: of: 'eve' is no user of the log"),
        ("nodes: [{cores: 4}]\nlimits: [{by: users, jobs: 1}]", "limits[item 1].by: found 'users'"),
        ("nodes: [{cores: 4}]\nlimits: [{by: user}]", "limit: give jobs"),
        ("nodes: [{cores: 4}]\nlimits: [3]", "limits[item 1]: found 3; write key: value lines"),
    ],
)
def test_mistakes_name_the_file_and_the_key(text: str, problem: str, tmp_path: Path) -> None:
    with refused(f"nodes.yaml: {problem}", error=ConfigurationError):
        read(tmp_path, text, NAMES)


def test_files_that_are_no_yaml(tmp_path: Path) -> None:
    each_refused(
        (ConfigurationError, r"nodes\.yaml:2: not YAML", lambda: read(tmp_path, "nodes:\n - {a: ]\n")),
        (ConfigurationError, "no such file", lambda: read_nodes(tmp_path / "missing.yaml")),
    )
