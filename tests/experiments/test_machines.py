"""Nodes and failures in studies: what is drawn and what is read, by which clock; who refuses what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from gridsched import results
from gridsched.errors import ConfigurationError
from gridsched.experiments.config import load_study, study_from
from gridsched.experiments.inputs import event_files, prepared_workload, without_machine
from gridsched.experiments.machines import FATES, ended, fates_of, machines, machines_of_stream
from gridsched.experiments.parts import WorkloadConfig
from gridsched.nodes import NodeEvent
from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.workloads import Workload
from gridsched.workloads.dependencies import dependency_table
from tests.support.errors import says
from tests.support.fields import assert_fields
from tests.support.studies import message_about

FAILURES: dict[str, Any] = {"mean_time_between": 5000}


def config(**more: Any) -> WorkloadConfig:
    """A cluster with two jobs that are written out."""
    written = {"name": "A", "processors": 4, "jobs": [(100, 10, 10, 1), (4100, 10, 10, 2)], **more}
    return WorkloadConfig.model_validate(written)


def jobs(first: int, last: int, **more: Any) -> Workload:
    """Two jobs."""
    return Workload(
        name="two",
        submit_time=np.array([first, last]),
        run_time=np.array([10, 10]),
        requested_processors=np.array([1, 2]),
        **more,
    )


def test_nodes_are_the_processors_and_workloads_do_not_depend_on_them() -> None:
    plain = config()
    nodes = [{"count": 2, "cores": 2, "memory": 512}]
    other = config(processors=None, nodes=nodes, placement="best_fit", failures=FAILURES)
    assert other.size == 4
    assert other.cluster(Cluster(processors=9)).processors == 4
    assert without_machine(other) == plain
    assert prepared_workload("s", other, 1).key == prepared_workload("s", plain, 1).key
    pair = jobs(100, 4100), Cluster(processors=4, name="A")
    (made,) = machines([pair], [other], "none", seed=3)
    assert [(kind.count, kind.cores, kind.memory) for kind in made.nodes] == [(2, 2, 512)]
    assert_fields(made, processors=4, placement="best_fit")
    assert {event.node for event in made.events} <= {"node0", "node1"}


def test_failures_follow_seed_replicate_and_name() -> None:
    pairs = [(jobs(0, 90_000), Cluster(processors=4, name=name)) for name in ("A", "B")]
    configs = [config(failures=FAILURES)] * 2

    def drawn(seed: int = 1, replicate: int = 0, more: int = 0) -> list[tuple[NodeEvent, ...]]:
        own = [config(failures={**FAILURES, "seed": more})] * 2 if more else configs
        return [tuple(cluster.events) for cluster in machines(pairs, own, "start", seed, replicate)]

    first = drawn()
    assert first == drawn()
    assert first[0] != first[1]
    assert all(events != first[0] for events in (drawn(2)[0], drawn(replicate=1)[0], drawn(more=7)[0]))
    stream = machines_of_stream(pairs[0][0].submit_time, [pair[1] for pair in pairs], configs, 1)
    assert [cluster.events for cluster in stream] == first


def test_failures_begin_with_the_first_submission_of_all() -> None:
    pairs = [(jobs(50_000, 90_000), Cluster(processors=4, name="A"))]
    late = machines(pairs, [config(failures=FAILURES)], "none", 1)[0].events
    early = machines(pairs, [config(failures=FAILURES)], "start", 1)[0].events
    assert [event.time - 50_000 for event in late] == [event.time for event in early]
    assert max(event.time for event in early if event.kind == "down") < 2 * 40_000


def test_events_of_a_file_move_with_the_jobs_of_their_log(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text(
        "time,node,kind,start,end\n1200,node0,down,,\n1300,node0,up,,\n900,node1,down,,\n"
        "100,*,maintenance,200,300\n950,*,maintenance,990,1600\n"
    )
    own = config(failures={"events": str(file), "requeue": "end", "checkpoint_interval": 60})
    pairs = [
        (jobs(1000, 2000), Cluster(processors=4, name="A")),
        (jobs(0, 10), Cluster(processors=4, name="B")),
    ]
    first, second = machines(pairs, [own, config()], "start", 1)
    assert [(each.time, each.node, each.kind, each.start, each.end) for each in first.events] == [
        (200, "node0", "down", -1, -1),
        (300, "node0", "up", -1, -1),
        (0, "node1", "down", -1, -1),
        (0, "*", "maintenance", 0, 600),
    ]
    assert (first.requeue, first.checkpoint_interval) == ("end", 60)
    assert not second.events
    assert [each.file for each in event_files([own, config()])] == [str(file)]


def test_nodes_have_as_many_processors_as_the_study_says() -> None:
    own = config(processors_per_node=2, failures=FAILURES)
    (made,) = machines_of_stream(jobs(0, 90_000).submit_time, [Cluster(processors=4, name="A")], [own], 1)
    assert made.node_names == ["node0", "node1"]


def test_fates_count_what_became_of_jobs() -> None:
    workload = Workload(
        name="w",
        submit_time=np.array([0, 0, 5]),
        run_time=np.array([100, 50, 10]),
        requested_time=np.array([100, 50, 10]),
        requested_processors=np.array([1, 1, 1]),
        gives_up_time=np.array([-1, -1, 20]),
        dependencies=dependency_table([(1, 0, "afternotok")]),
    )
    events = [NodeEvent(time=40, node="node0", kind="down"), NodeEvent(time=60, node="node0", kind="up")]
    run = simulate(workload, Cluster(processors=1, events=events), "fcfs")
    assert {name: float(value) for name, value in fates_of(run).items()} == {
        "executions_killed": 1,
        "extra_work_share": 0.4,
        "jobs_gave_up": 1,
        "jobs_never_eligible": 1,
        "jobs_lost": 0,
        "jobs_starved": 0,
    }
    assert ended(run).tolist() == [True, False, False]
    assert_fields(fates_of(run, run), jobs_gave_up=2, extra_work_share=0.4)
    plain = simulate(workload.select(slice(None), gives_up_time=None, dependencies=None), 4, "fcfs")
    assert not fates_of(plain)
    assert ended(plain).all()
    assert set(fates_of(run)) == set(FATES)


def test_workloads_of_a_grid_keep_who_gives_up_and_who_waits() -> None:
    impatient = jobs(0, 9, gives_up_time=np.array([-1, 30]))
    chained = jobs(0, 9, dependencies=dependency_table([(1, 0, "afterok", 7)]))
    cluster = Cluster(processors=4, name="two")
    grids = {0: [(jobs(0, 9), cluster), (impatient, cluster)], 1: [(chained, cluster), (impatient, cluster)]}
    back = results.grids_from_dataset(results.grids_dataset(grids))
    for replicate, pairs in grids.items():
        for (workload, _), (same, _) in zip(pairs, back[replicate], strict=True):
            assert same.equals(workload)
            assert (same.dependencies is None) == (workload.dependencies is None)
            assert (same.gives_up_time is None) == (workload.gives_up_time is None)
    table = back[1][0][0].dependencies
    assert table is not None
    assert table.tolist() == [(1, 0, 2, 7)]


# --- studies --------------------------------------------------------------------------------------


def study(**changes: Any) -> dict[str, Any]:
    """A study of local policies on written jobs."""
    one = {"name": "one", "processors": 4, "jobs": [[0, 10, 10, 1]]}
    two = {**one, "name": "two", "failures": FAILURES, "baseline": "one"}
    return {"name": "s", "title": "S", "scenarios": [one, two], "schedulers": ["easy"], **changes}


def test_small_studies_have_means_alone() -> None:
    made: Any = study_from(study())
    assert [each.name for each in made.specifications] == ["means"]  # few jobs have no statistics


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ({"baseline": "three"}, ["baseline", "'three'", "one"]),
        ({"baseline": "two"}, ["baseline", "'two'"]),
        ({"jobs": [[0, 20, 10, 1]]}, ["baseline", "'one'", "jobs"]),
        ({"failures": {}}, ["mean_time_between", "events"]),
        ({"failures": {**FAILURES, "events": "e.csv"}}, ["mean_time_between", "events"]),
        ({"failures": {"events": "e.csv", "rack": 3}}, ["rack", "drawn"]),
        ({"nodes": [{"cores": 4}]}, ["processors", "nodes"]),
        ({"nodes": [{"cores": 0}], "processors": None}, ["cores"]),
        ({"placement": "worst"}, ["placement", "worst_fit"]),
    ],
)
def test_mistakes_name_the_key(tmp_path: Path, scenario: dict[str, Any], words: list[str]) -> None:
    values = study()
    values["scenarios"][1] |= scenario
    message = message_about(tmp_path, values)
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    "changes", [{"leave_out_status": [0]}, {"shaking": {"replicates": 5}}, {"window": {"jobs": [0, 9]}}]
)
def test_scenarios_of_other_jobs_of_a_log_are_no_baselines(tmp_path: Path, changes: dict[str, Any]) -> None:
    (tmp_path / "own.swf").touch()
    one = {"name": "one", "file": str(tmp_path / "own.swf")}
    values = study(scenarios=[one, {**one, "name": "two", "baseline": "one", **changes}])
    assert "scenarios[two].baseline: the jobs of 'one' are others" in message_about(tmp_path, values)


def test_files_of_failures_have_to_be_there(tmp_path: Path) -> None:
    values = study()
    values["scenarios"][1]["failures"] = {"events": str(tmp_path / "none.csv")}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(ConfigurationError, match=r"scenarios\[two\].*failures.events.*none.c"):
        load_study(tmp_path / "study.yaml").check_files()


M4 = {"name": "M4", "synthetic": {"machine": "M4", "jobs": 40}}
M5 = {"name": "M5", "synthetic": {"machine": "M5", "jobs": 40}}


def test_what_a_scenario_says_holds_for_all_of_its_clusters() -> None:
    calm = {**M5, "failures": {"mean_time_between": 9}}
    scenario = {"name": "one", "clusters": [M4, calm], "failures": FAILURES}
    values = {
        "name": "s",
        "kind": "arena",
        "title": "S",
        "scenarios": [scenario],
        "schedulers": ["local", "easy"],
    }
    made: Any = study_from(values)
    means = [each.failures.mean_time_between for each in made.scenarios[0].clusters]
    assert means == [5000, 9]
    again: Any = study_from(made.values())
    assert again == made


def test_a_scheduler_that_cannot_is_a_mistake_but_not_in_an_arena(tmp_path: Path) -> None:
    scenario = {"name": "one", "clusters": [M4, M5], "failures": FAILURES}
    values = {"name": "s", "kind": "grid", "title": "S", "scenarios": [scenario]}
    says(
        message_about(tmp_path, {**values, "schedulers": ["local", "ideal-fcfs"]}),
        "scenarios[one]",
        "failures",
        "ideal-fcfs",
    )
    study_from({**values, "kind": "arena", "schedulers": ["local", "ideal-fcfs"]})
    study_from({**values, "schedulers": ["local"]})
