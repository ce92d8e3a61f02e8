"""Jobs that ask for features of nodes: under each scheduler on nodes they run on those that have them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridsched as gs
from gridsched.errors import ConfigurationError, ScheduleError
from gridsched.nodes import nodes_with
from gridsched.systems.slurm.site import read_slurm_site
from tests.support.errors import refused
from tests.support.nodes import jobs_of, some_jobs
from tests.traces.test_sacct import COLUMNS, export, line

FEATURES = ("ib", "big", "gpu")

WORDS = st.sampled_from(FEATURES)
EXPRESSIONS = st.recursive(
    WORDS, lambda inner: st.tuples(inner, st.sampled_from("&|"), inner).map(lambda each: f"({''.join(each)})")
)


@given(EXPRESSIONS, st.lists(st.lists(WORDS), min_size=1))
def test_a_constraint_means_what_python_says(expression: str, nodes: list[list[str]]) -> None:
    wanted = expression.replace("&", " and ").replace("|", " or ")
    expected = [bool(eval(wanted, {name: name in node for name in FEATURES})) for node in nodes]
    assert nodes_with(expression, nodes).tolist() == expected


@pytest.mark.parametrize(
    ("expression", "allowed"), [("", [0, 1, 2]), ("ib|big&gpu", [2]), ("ib,big", [1, 2]), (" gpu ", [2])]
)
def test_constraints_are_read_from_left_to_right(expression: str, allowed: list[int]) -> None:
    nodes = [["ib"], ["ib", "big"], ["ib", "big", "gpu"]]
    assert np.flatnonzero(nodes_with(expression, nodes)).tolist() == allowed


def test_what_is_no_constraint_is_refused() -> None:
    for text in ("ib&", "(ib", "ib)", "a b", "[ib", "ib]", "[]", "[a|]", "[a|b]&[c|d]", "[a]b"):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            nodes_with(text, [["ib"]])
    for text in ("ib&big*2", "ib*2&big*1", "[ib*2|big*1]", "ib*0", "ib*", "[ib*1&big]", "2*ib"):
        with pytest.raises(ConfigurationError, match="numbers of nodes otherwise"):
            nodes_with(text, [["ib"]])
    with pytest.raises(ConfigurationError, match="at most 5"):
        nodes_with("[" + "&".join(f"f{k}*1" for k in range(6)) + "]", [["ib"]])


@pytest.mark.parametrize(
    ("expression", "bits"),
    [
        ("[ib|big]", [1, 3, 3, 0]),
        ("[(ib&big)|gpu]", [0, 1, 3, 0]),
        ("ib&[gpu|big]", [0, 2, 3, 0]),
        ("[moon|ib]&big", [0, 2, 2, 0]),
        ("[ib]", [1, 1, 1, 0]),
        ("big*2", [2, 3, 3, 2]),
        ("[ib*2&(big|gpu)*1]", [5, 7, 7, 0]),
    ],
)
def test_nodes_have_a_bit_for_each_choice(expression: str, bits: list[int]) -> None:
    nodes = [["ib"], ["ib", "big"], ["ib", "big", "gpu"], []]
    assert nodes_with(expression, nodes).tolist() == bits


def test_a_job_has_one_of_several_features_on_all_nodes() -> None:
    """Of two nodes each of either kind the third job waits for two of one kind, though two are free."""
    kinds = [gs.NodeType(name=name, count=2, cores=1, features=[name]) for name in "ab"]
    jobs = jobs_of(
        submit_time=[0, 1, 2],
        run_time=[50, 30, 10],
        requested_processors=[1, 1, 2],
        constraint=[0, 1, 2],
    )
    cluster = gs.Cluster(nodes=kinds, constraints={0: "a", 1: "b", 2: "[a|b]"})
    run = gs.simulate(jobs, cluster, "easy")
    gs.verify(run)
    assert run["start_time"].values.tolist() == [0, 1, 31]
    assert set(run["piece_node"].values[run["piece_segment"].values == 2]) == {2, 3}
    moved = run.copy(deep=True)
    moved["piece_node"].values[-1] = 1
    with refused("features in common", error=ScheduleError):
        gs.verify(moved)


def test_so_many_nodes_of_a_job_have_a_feature() -> None:
    """The third job waits for a second node with b, though four nodes are free from 31 s on."""
    kinds = [gs.NodeType(name=name, count=3, cores=1, features=[name]) for name in "ab"]
    jobs = jobs_of(
        submit_time=[0, 1, 2, 3],
        run_time=[50, 30, 10, 10],
        requested_processors=[2, 2, 4, 7],
        constraint=[0, 1, 2, 2],
    )
    cluster = gs.Cluster(nodes=kinds, constraints={0: "b", 1: "[a*1&b*1]", 2: "b*2"})
    run = gs.simulate(jobs, cluster, "easy")
    gs.verify(run)
    assert run["start_time"].values.tolist() == [0, 1, 50, -1]
    assert set(run["piece_node"].values[run["piece_segment"].values == 1]) == {0, 5}
    moved = run.copy(deep=True)
    moved["piece_node"].values[run["piece_segment"].values == 1] = [1, 2]
    with refused("too few parts on nodes", error=ScheduleError):
        gs.verify(moved)


def test_the_best_nodes_are_chosen_that_leave_each_part_its_own() -> None:
    """The first node has both features: the part of the second one needs it, so the first takes another."""
    features = [["a", "b"], ["a"], ["a"]]
    nodes = [gs.NodeType(name=f"n{k}", count=1, cores=1, features=each) for k, each in enumerate(features)]
    jobs = jobs_of(submit_time=[0], run_time=[5], requested_processors=[2], constraint=[0])
    cluster = gs.Cluster(nodes=nodes, constraints={0: "[a*1&b*1]"})
    run = gs.simulate(jobs, cluster, "fcfs")
    gs.verify(run)
    assert sorted(run["piece_node"].values.tolist()) == [0, 1]
    sim = gs.Simulator(jobs, cluster)
    sim.advance()
    with refused("not on the nodes for it"):
        sim.start(0, nodes=[1, 2])
    sim.start(0, nodes=[0, 2])


def test_clusters_of_equal_nodes_may_have_other_constraints() -> None:
    nodes = [gs.NodeType(name=name, count=1, cores=2, features=[name]) for name in "ab"]
    jobs = jobs_of(
        submit_time=[0] * 4,
        run_time=[10] * 4,
        requested_processors=[2] * 4,
        constraint=[0, 1, 0, 1],
        home=[0, 0, 1, 1],
    )
    texts = {"x": {0: "a", 1: "b"}, "y": {1: "a", 0: "b"}}
    platform = gs.Platform(
        [gs.Cluster(name=name, nodes=nodes, constraints=each) for name, each in texts.items()]
    )
    run = gs.simulate(jobs, platform, "s-i")
    gs.verify(run)
    job = run["segment_job"].values[run["piece_segment"].values]
    assert dict(zip(job.tolist(), run["piece_node"].values.tolist(), strict=True)) == {0: 0, 1: 1, 2: 3, 3: 2}


CONSTRAINTS = {0: "ib", 1: "ib&big", 2: "std|gpu", 4: "[std|ib]", 5: "moon", 6: "[ib*1&std*1]"}


def constrained(seed: int) -> tuple[gs.Workload, gs.Cluster]:
    """Jobs of which some ask for features, and a cluster where no node has one of them."""
    rng = np.random.default_rng(seed)
    kinds = [("std",), ("ib",), ("ib", "big"), ("gpu",)]
    nodes = [
        gs.NodeType(name=f"t{k}-", count=2, cores=6, gpus=2, features=each) for k, each in enumerate(kinds)
    ]
    jobs = some_jobs(rng, 40, constraint=rng.choice([-1, -1, 0, 1, 2, 3, 4, 5, 6], 40))
    return replace(jobs, home=np.zeros(40, np.int64)), gs.Cluster(nodes=nodes, constraints=CONSTRAINTS)


@pytest.mark.parametrize(
    "scheduler",
    [
        "easy",
        "conservative",
        "sjf",
        gs.Slurm(),
        gs.Slurm(select_type="linear"),
        "s-i",
        "jscheduler",
        "multiple-requests",
    ],
)
def test_jobs_run_on_nodes_with_what_they_ask_for(scheduler: Any) -> None:
    jobs, cluster = constrained(4)
    run = gs.simulate(jobs, gs.Platform([replace(cluster, name=name) for name in ("a", "b")]), scheduler)
    gs.verify(run)
    features = [kind.features for kind in cluster.nodes for _ in range(kind.count)] * 2
    assert jobs.constraint is not None
    asked = jobs.constraint
    number = asked[run["segment_job"].values[run["piece_segment"].values]]
    for which, text in CONSTRAINTS.items():
        used = run["piece_node"].values[number == which]
        assert nodes_with(text, features)[used].all()
        # under Slurm the jobs have one node each, which is too few for two features
        none = which == 5 or (which == 6 and isinstance(scheduler, gs.Slurm))
        assert none == (len(used) == 0)
    # a number that the cluster does not know asks for nothing
    assert len(set(run["piece_node"].values[number == 3].tolist())) > 1
    start = run["start_time"].values
    assert (start[asked == 5] < 0).all()


CONF = """\
ClusterName=lab
NodeName=n[1-2] CPUs=8 Feature=std
NodeName=n[3-4] CPUs=8 Feature=std,ib Weight=5
PartitionName=all Nodes=ALL Default=YES
"""


def test_constraints_of_an_export_meet_features_of_a_configuration(tmp_path: Path) -> None:
    header = f"{COLUMNS}|Constraints"
    rows = [
        line(k) + f"|{text}"
        for k, text in enumerate(["", "ib", "std&ib", "std&ib*1", "[ib|std]", "std*1"], 1)
    ]
    log = gs.traces.read_accounting(export(tmp_path, *rows, header=header), time_zone="Europe/Rome")
    workload = gs.clean(log.workload)
    (tmp_path / "slurm.conf").write_text(CONF, encoding="utf-8")
    site = read_slurm_site(tmp_path / "slurm.conf", names=log.names)
    assert [each for each in site.not_modelled if "constraint" in each] == ["constraint std&ib*1"]
    run = gs.simulate(workload, site.cluster, site.scheduler)
    gs.verify(run)
    where = {
        int(job): str(run["node_name"].values[node])
        for job, node in zip(
            run["segment_job"].values[run["piece_segment"].values], run["piece_node"].values, strict=True
        )
    }
    number = {int(n): k for k, n in enumerate(workload.job_number)}
    assert {where[number[2]], where[number[3]]} <= {"n3", "n4"}
