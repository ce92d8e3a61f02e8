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
        ("", "the file: has no keys"),
        ("nodes: 3", "nodes: is no list"),
        ("nodes: []", "nodes: has no entry"),
        ("nodes: [{}]", "nodes[0]: missing 1 required keyword-only argument: 'cores'"),
        ("nodes: [{cores: 4, memory: -1}]", "nodes[0]: node type node: memory is -1"),
        ("nodes: [{cores: 4.5}]", "nodes[0].cores: is 4.5; give a whole number"),
        ("nodes: [{cores: 4, gpus: true}]", "nodes[0].gpus: is True; give a whole number"),
        ("nodes: [{cors: 4}]", "nodes[0]: has an unknown key 'cors'; did you mean cores?"),
        ("nodes: [{cores: 4, weight: heavy}]", "nodes[0].weight: is 'heavy'; give a number"),
        ("nodes: [{cores: 4, names: n1}]", "nodes[0].names: is 'n1'; give a list of names"),
        ("nodes: [{cores: 4, count: 3, names: [a]}]", "nodes[0]: node type node: count is 3, and it has 1"),
        ("nodes: [{cores: 4}, {cores: 8}]", "nodes: two nodes have one name"),
        (
            "nodes: [{cores: 4}]\npartition: []",
            "the file: has an unknown key 'partition'; did you mean partition",
        ),
        ("nodes: [{cores: 4}]\nplacement: best", "placement: is 'best'; use one of first_fit"),
        ("nodes: [{cores: 4}]\npartitions: [{nodes: [node]}]", "partitions[0]: has no name"),
        (
            "nodes: [{cores: 4}]\npartitions: [{name: a, nodes: [nod0]}]",
            "partitions[0].nodes: 'nod0' is no node",
        ),
        (
            "nodes: [{cores: 4}]\npartitions: [{name: gpu}, {name: gpu}]",
            "partitions[1]: has the name or number",
        ),
        (
            "nodes: [{cores: 4}]\npartitions: [{name: gpu, time_limit: 0}]",
            "partitions[0]: partition gpu: time_limit",
        ),
        ("nodes: [{cores: 4}]\nlimits: [{of: eve, jobs: 1}]", "limits[0].of: 'eve' is no user of the log"),
        ("nodes: [{cores: 4}]\nlimits: [{by: users, jobs: 1}]", "limits[0]: limit: by is 'users'"),
        ("nodes: [{cores: 4}]\nlimits: [{by: user}]", "limits[0]: limit: give jobs"),
        ("nodes: [{cores: 4}]\nlimits: [3]", "limits[0]: has no keys"),
    ],
)
def test_mistakes_name_the_file_and_the_key(text: str, problem: str, tmp_path: Path) -> None:
    with refused(f"nodes.yaml: {problem}", error=ConfigurationError, one_line=True):
        read(tmp_path, text, NAMES)


def test_files_that_are_no_yaml(tmp_path: Path) -> None:
    each_refused(
        (ConfigurationError, r"nodes\.yaml:2: not YAML", lambda: read(tmp_path, "nodes:\n - {a: ]\n")),
        (ConfigurationError, "no such file", lambda: read_nodes(tmp_path / "missing.yaml")),
    )
