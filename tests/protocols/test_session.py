"""Sessions of a simulator with a decision process: what is told when, what is done, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsched as gs
from gridsched.conformance.answers import read_schedules
from gridsched.conformance.cases import read_case
from gridsched.conformance.running import answer_case
from gridsched.errors import ConfigurationError, ProtocolError
from gridsched.nodes import NodeEvent, NodeType
from gridsched.protocols import messages as m
from gridsched.protocols.messages import Decision, Event
from gridsched.protocols.outputs import jobs_table, schedule_table
from tests.support.peers import CODECS, Inside, Queue, Scripted, simulated
from tests.support.variables import check_described

VERSIONS = ("4", "5")


def jobs(*rows: tuple[int, int, int, int]) -> gs.Workload:
    """Jobs of submit time, run time, processors and requested time."""
    submit, run, processors, requested = (np.array(column) for column in zip(*rows, strict=True))
    return gs.clean(
        gs.Workload(
            name="small",
            submit_time=submit,
            run_time=run,
            requested_processors=processors,
            requested_time=requested,
            status=np.ones(len(rows)),
        )
    )


def hosts(number: int, **more: Any) -> gs.Cluster:
    """A cluster of nodes of one core."""
    return gs.Cluster(nodes=[NodeType(count=number, cores=1)], **more)


SMALL = jobs((0, 10, 2, 20), (5, 30, 1, 20), (50, 5, 2, 10))


class Told(dict[float, list[Decision]]):
    """Decides at each time what is written down for it."""

    def __call__(self, now: float, events: Sequence[Event]) -> list[Decision]:
        return self.pop(now, [])


def names(told: Sequence[m.Events]) -> list[tuple[float, list[str]]]:
    """Time of each message, and kinds of its events."""
    return [(each.now, [type(event).__name__ for event in each.events]) for each in told]


# --- the same schedules as the engine ---------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.random_cases(4)
def test_as_the_engine(version: str, policy: str, seed: int) -> None:
    made = gs.synthesise("M3", jobs=150, seed=seed)
    made = gs.clean(replace(made, submit_time=made.submit_time // 10))
    wanted = gs.simulate(made, 1152, policy, kill=True)
    for cluster in (gs.Cluster(processors=1152), hosts(1152)):
        run, _ = simulated(made, cluster, Queue(policy), version)
        np.testing.assert_array_equal(run.start_time, wanted.start_time)
        np.testing.assert_array_equal(run.end_time, wanted.end_time)


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize("log", ["KTH-SP2-1996-2.1-cln", "HPC2N-2002-2.2-cln"])
def test_as_the_engine_on_a_log(log: str, policy: str, archive_mirror: Path) -> None:
    whole = gs.read_swf(archive_mirror / f"{log}.swf.gz")
    made = gs.clean(gs.select_window(whole, jobs=(0, 8_000)))
    run, _ = simulated(made, hosts(made.processors_available or 0), Queue(policy))
    wanted = gs.simulate(made, None, policy, kill=True)
    np.testing.assert_array_equal(run.start_time, wanted.start_time)
    assert bool((run.killed_at_limit == wanted.killed_at_limit).all())


def test_whole_nodes_are_hosts() -> None:
    made = gs.clean(jobs((0, 10, 3, 20), (0, 10, 5, 20), (1, 10, 1, 20)))
    counted = gs.Cluster(processors=12, processors_per_node=4, node_exclusive=True)
    wanted = gs.simulate(made, counted, "fcfs")
    for cluster in (counted, gs.Cluster(nodes=[NodeType(count=3, cores=4)], node_exclusive=True)):
        run, told = simulated(made, cluster, Queue("fcfs"))
        np.testing.assert_array_equal(run.start_time, wanted.start_time)
        submitted = [event for each in told for event in each.events if isinstance(event, m.JobSubmitted)]
        assert [event.hosts for event in submitted] == [1, 2, 1]


# --- what is told when ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_the_order_of_messages(version: str) -> None:
    run, told = simulated(SMALL, hosts(2), Queue("fcfs"), version)
    assert names(told) == [
        (0.0, ["SimulationBegins"]),
        (0.0, ["JobSubmitted"]),
        (5.0, ["JobSubmitted"]),
        (10.0, ["JobCompleted"]),
        (30.0, ["JobCompleted"]),
        (50.0, ["JobSubmitted", "AllJobsSubmitted"]),
        (55.0, ["JobCompleted"]),
        (55.0, ["SimulationEnds"]),
    ]
    assert run.attrs["protocol_messages"] == 8
    ended = told[4].events[0]
    assert isinstance(ended, m.JobCompleted)
    assert (ended.state, ended.return_code) == ("COMPLETED_WALLTIME_REACHED", -1)
    assert run.final_state.values.tolist()[1] == "COMPLETED_WALLTIME_REACHED"
    assert run.hosts.values.tolist() == ["0-1", "0", "0-1"]


def test_run_times_are_told_on_request_only() -> None:
    for forward in (False, True):
        _, told = simulated(SMALL, hosts(2), Queue("fcfs"), forward_profiles=forward)
        begins, submitted = told[0].events[0], told[1].events[0]
        assert isinstance(begins, m.SimulationBegins)
        assert isinstance(submitted, m.JobSubmitted)
        assert begins.profiles == ({"w0!1": 10.0, "w0!2": 20.0, "w0!3": 5.0} if forward else {})
        assert submitted.run_time == (10.0 if forward else None)
        assert submitted.walltime == 20.0


def test_a_decision_takes_effect_when_it_is_dated() -> None:
    start = m.ExecuteJob(7.25, "w0!1", "0-1")

    def decide(now: float, events: Sequence[Event]) -> Sequence[Decision] | bytes:
        kinds = {type(event) for event in events}
        if now == 0.0 and m.JobSubmitted in kinds:
            # the peer thinks until 12.5 s; the job ends at 18 s
            return b'{"now": 12.5, "events": [%s]}' % _event(start)
        if now == 18.0:
            return [m.ExecuteJob(18.0, "w0!2", "1")]
        return [m.ExecuteJob(50.0, "w0!3", "0 1")] if now == 50.0 else []

    run, told = simulated(SMALL, hosts(2), decide)
    assert run.start_time.values.tolist() == [8, 18, 50]
    assert [now for now, _ in names(told)] == [0.0, 0.0, 13.0, 18.0, 38.0, 50.0, 55.0, 55.0]
    assert run.attrs["times_rounded_up"] == 2
    assert told[2].events[0].timestamp == 5.0


def _event(start: m.ExecuteJob) -> bytes:
    """A decision as it is written in version 4."""
    return b'{"timestamp": %f, "type": "EXECUTE_JOB", "data": {"job_id": "%s", "alloc": "%s"}}' % (
        start.timestamp,
        start.job_id.encode(),
        start.hosts.encode(),
    )


def test_calls() -> None:
    decisions = Told(
        {
            0.0: [m.CallLater(0.0, 3.5), m.CallLater(0.0, 70.0)],
            4.0: [m.ExecuteJob(4.0, "w0!1", "0-1"), m.CallLater(4.0, 20.0)],
            20.0: [m.ExecuteJob(20.0, "w0!2", "1")],
            50.0: [m.ExecuteJob(50.0, "w0!3", "0-1")],
        }
    )
    run, told = simulated(SMALL, hosts(2), decisions)
    assert run.start_time.values.tolist() == [4, 20, 50]
    called = [now for now, kinds in names(told) if "RequestedCall" in kinds]
    assert called == [4.0, 20.0, 70.0]
    assert names(told)[-1] == (70.0, ["SimulationEnds"])


def test_periodic_calls() -> None:
    queue = Queue("fcfs")

    def decide(now: float, events: Sequence[Event]) -> list[Decision]:
        decisions = queue(now, events)
        if isinstance(events[0], m.SimulationBegins):
            decisions.append(m.CallLater(now, 0.0, "finite", 15.0, 2))
            decisions.append(m.CallLater(now, 0.0, "endless", 20.0, 0))
            decisions.append(m.CallLater(now, 0.0, "stopped", 7.0, 0))
        return [*decisions, m.StopCall(now, "stopped")] if now == 14.0 else decisions

    _, told = simulated(SMALL, hosts(2), decide, "5")
    calls = [
        (event.timestamp, event.call_id, event.last)
        for each in told
        for event in each.events
        if isinstance(event, m.RequestedCall)
    ]
    assert calls == [
        (7.0, "stopped", False),
        (14.0, "stopped", False),
        (15.0, "finite", False),
        (20.0, "endless", False),
        (30.0, "finite", True),
        (40.0, "endless", False),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_killed_and_rejected_jobs(version: str) -> None:
    decisions = Told(
        {
            0.0: [],
            5.0: [m.ExecuteJob(5.0, "w0!1", "0-1"), m.RejectJob(5.0, "w0!2")],
            50.0: [m.ExecuteJob(50.0, "w0!3", "0-1")],
            55.0: [m.KillJobs(55.0, ("w0!3",))],
        }
    )
    decisions[15.0] = [m.KillJobs(15.0, ("w0!1",))]
    run, told = simulated(SMALL, hosts(2), decisions, version)
    assert run.final_state.values.tolist() == ["COMPLETED_SUCCESSFULLY", "REJECTED", "COMPLETED_SUCCESSFULLY"]
    killed = [event for each in told for event in each.events if isinstance(event, m.JobsKilled)]
    # both had ended before
    assert [event.progress for event in killed] == [{}, {}]

    late = Told({0.0: [], 5.0: [m.ExecuteJob(5.0, "w0!2", "1"), m.RejectJob(5.0, "w0!1")]})
    late[50.0] = [m.ExecuteJob(50.0, "w0!3", "0-1"), m.KillJobs(52.0, ("w0!3",))]
    if version == "5":
        del late[50.0][1]
    run, told = simulated(SMALL, hosts(2), _late(late), version)
    if version == "4":
        assert run.final_state.values.tolist()[2] == "COMPLETED_KILLED"
        assert names(told)[-2] == (52.0, ["JobCompleted", "JobsKilled"])
        event = told[-2].events[1]
        assert isinstance(event, m.JobsKilled)
        assert event.progress == {"w0!3": 0.4}


def _late(decisions: Told) -> Callable[[float, Sequence[Event]], Sequence[Decision] | bytes]:
    """Decisions that may be dated later than the answer is."""

    def decide(now: float, events: Sequence[Event]) -> Sequence[Decision] | bytes:
        found = decisions(now, events)
        if not found or found[-1].timestamp == now:
            return found
        start, kill = found
        assert isinstance(start, m.ExecuteJob)
        assert isinstance(kill, m.KillJobs)
        written = b'{"timestamp": %f, "type": "KILL_JOB", "data": {"job_ids": ["%s"]}}'
        later = written % (kill.timestamp, kill.job_ids[0].encode())
        return b'{"now": %f, "events": [%s, %s]}' % (kill.timestamp, _event(start), later)

    return decide


def test_hosts_that_fail() -> None:
    events = [NodeEvent(time=6, node="node0", kind="down"), NodeEvent(time=20, node="node0", kind="up")]
    made = jobs((0, 10, 2, 20), (5, 5, 1, 20))
    run, told = simulated(made, hosts(2, events=events), Queue("fcfs"))
    assert names(told)[3:6] == [
        (6.0, ["JobCompleted", "JobSubmitted", "HostsChanged"]),
        (11.0, ["JobCompleted"]),
        (20.0, ["AllEventsInjected", "HostsChanged"]),
    ]
    ended, again, down = told[3].events
    assert isinstance(ended, m.JobCompleted)
    assert isinstance(again, m.JobSubmitted)
    assert (ended.job_id, ended.state, again.job_id) == ("w0!1", "COMPLETED_FAILED", "w0!1#1")
    assert down == m.HostsChanged(6.0, "0", available=False)
    assert run.attrs["executions_killed"] == 1
    with pytest.raises(ConfigurationError, match="batsim-4"):
        simulated(made, hosts(2, events=events), Queue("fcfs"), "5")


def test_power_states() -> None:
    decisions = Told(
        {
            0.0: [m.SetHostState(0.0, "1", 3)],
            5.0: [m.ExecuteJob(5.0, "w0!2", "0"), m.SetHostState(5.0, "1", 0)],
            25.0: [m.ExecuteJob(25.0, "w0!1", "0-1"), m.SetMetadata(25.0, "w0!2", "short")],
            50.0: [m.ExecuteJob(50.0, "w0!3", "0-1")],
        }
    )
    run, told = simulated(SMALL, hosts(2), decisions, sleep_state=3)
    changed = [event for each in told for event in each.events if isinstance(event, m.HostStateChanged)]
    assert [(event.timestamp, event.hosts, event.state) for event in changed] == [
        (0.0, "1", 3),
        (5.0, "1", 0),
    ]
    assert run.start_time.values.tolist() == [25, 5, 50]
    assert run.metadata.values.tolist() == ["", "short", ""]
    check_described(run)


def test_tables_of_batsim() -> None:
    run, _ = simulated(SMALL, hosts(2), Queue("fcfs"))
    table = jobs_table(run)
    assert table.to_dict("records")[1] | {"consumed_energy": "", "metadata": ""} == {
        "job_id": "2",
        "workload_name": "w0",
        "profile": "2",
        "submission_time": 5,
        "requested_number_of_resources": 1,
        "requested_time": 20,
        "success": 0,
        "final_state": "COMPLETED_WALLTIME_REACHED",
        "starting_time": 10,
        "execution_time": 20,
        "finish_time": 30,
        "waiting_time": 5,
        "turnaround_time": 25,
        "stretch": 1.25,
        "consumed_energy": "",
        "allocated_resources": "0",
        "metadata": "",
    }
    (whole,) = schedule_table(run, 2, "test").to_dict("records")
    assert list(whole) == sorted(map(str, whole))
    wanted = {"makespan": 55, "mean_waiting_time": 5 / 3, "nb_jobs_killed": 1, "time_computing": 50}
    assert {name: whole[name] for name in wanted} == wanted
    assert whole["time_idle"] == 60


def test_tables_count_all_executions_of_a_job() -> None:
    """A host fails under the first job after 15 s and comes back 25 s later."""
    events = [NodeEvent(time=15, node="node0", kind="down"), NodeEvent(time=40, node="node0", kind="up")]
    run, _ = simulated(jobs((0, 30, 2, 60)), hosts(2, events=events), Queue("fcfs"))
    (row,) = jobs_table(run).to_dict("records")
    columns = ("starting_time", "execution_time", "finish_time", "turnaround_time", "stretch")
    assert [row[name] for name in columns] == [0, 15 + 30, 70, 70, 70 / 45]
    (whole,) = schedule_table(run, 2, "test").to_dict("records")
    assert (whole["time_computing"], whole["time_idle"]) == (2 * 45, 2 * 25)


# --- what is refused --------------------------------------------------------------------------------

_UNKNOWN = b'{"now": 5, "events": [{"timestamp": 5, "type": "%s", "data": {}}]}'


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([m.ExecuteJob(5.0, "w0!9", "0")], ["at 5 s", "$.events[0].data.job_id of EXECUTE_JOB", "'w0!9'"]),
        ([m.ExecuteJob(5.0, "w0!3", "0-1")], ["data.job_id", "'w0!3' has not been submitted"]),
        ([m.ExecuteJob(5.0, "w0!1", "0-1")] * 2, ["$.events[1].data.job_id", "'w0!1' runs"]),
        ([m.ExecuteJob(5.0, "w0!1", "0")], ["data.alloc", "1 hosts", "asks for 2"]),
        ([m.ExecuteJob(5.0, "w0!1", "1-2")], ["data.alloc", "no host 2"]),
        ([m.ExecuteJob(5.0, "w0!1", "1-x")], ["data.alloc", "'1-x'"]),
        (
            [m.ExecuteJob(5.0, "w0!1", "0-1"), m.ExecuteJob(5.0, "w0!2", "1")],
            ["$.events[1].data.alloc", "host 1 runs job 'w0!1'"],
        ),
        ([m.ExecuteJob(4.0, "w0!1", "0-1")], ["$.events[0].timestamp", "for 4 s", "past"]),
        ([m.RejectJob(5.0, "w0!3")], ["REJECT_JOB", "has not been submitted"]),
        ([m.KillJobs(5.0, ("w0!1",))], ["KILL_JOB", "data.job_ids", "waits"]),
        ([m.CallLater(5.0, 5.0)], ["CALL_ME_LATER", "data.timestamp", "not in the future"]),
        ([m.CallLater(5.0, 1e300)], ["1e+300"]),
        ([m.SetHostState(5.0, "0", 3)], ["SET_RESOURCE_STATE", "power states", "--sleep-state"]),
        ([m.SetMetadata(5.0, "w0!9", "x")], ["SET_JOB_METADATA", "data.job_id"]),
        (_UNKNOWN % b"QUERY", ["$.events[0]", "QUERY", "not supported"]),
        (_UNKNOWN % b"REGISTER_JOB", ["REGISTER_JOB", "not supported"]),
        (b'{"now": 4.5, "events": []}', ["at 5 s", "$.now is 4.5", "past"]),
        (b'{"now": 5, "events": [', ["at 5 s", "truncated"]),
        (b"", ["at 5 s", "0 bytes"]),
        ([], ["2 jobs wait at 55 s", "'w0!1'"]),
    ],
)
def test_wrong_answers_are_refused_with_event_time_and_field(
    answer: list[Decision] | bytes, words: list[str]
) -> None:
    last = [m.ExecuteJob(50.0, "w0!3", "0-1")]

    def decide(now: float, events: Sequence[Event]) -> Sequence[Decision] | bytes:
        return answer if now == 5.0 else last if now == 50.0 else []

    with pytest.raises(ProtocolError) as raised:
        simulated(SMALL, hosts(2), decide)
    for word in ("batsim-4", *words):
        assert word in str(raised.value)


def test_a_sleeping_host_takes_no_job() -> None:
    decisions = Told({0.0: [m.SetHostState(0.0, "1", 3)], 5.0: [m.ExecuteJob(5.0, "w0!1", "0-1")]})
    with pytest.raises(ProtocolError, match="host 1 sleeps"):
        simulated(SMALL, hosts(2), decisions, sleep_state=3)


@pytest.mark.parametrize(
    ("hello", "words"),
    [
        (b"", "EDCHelloEvent"),
        (b"\1\0\0\0{}", "binary"),
        (b'\2\0\0\0{"now":0,"events":[]}', "none"),
        (b'{"now":0,"events":[]}', "the format of messages in 4 bytes and an EDCHelloEvent are wanted"),
        (
            b'\2\0\0\0{"now":0,"events":[{"timestamp":0,"event_type":"EDCHelloEvent","event":'
            b'{"decision_component_name":"a","decision_component_version":"1",'
            b'"requested_simulation_features":{"profile_reuse":true,"wormholes":true}}}]}',
            "'wormholes' of EDCHelloEvent is not supported",
        ),
        (
            b'\2\0\0\0{"now":0,"events":[{"timestamp":0,"event_type":"EDCHelloEvent","event":'
            b'{"decision_component_name":"a","decision_component_version":"1",'
            b'"requested_simulation_features":{"dynamic_registration":true}}}]}',
            "dynamic_registration",
        ),
    ],
)
def test_what_version_5_says_of_itself(hello: bytes, words: str) -> None:
    class Greeter:
        def exchange(self, message: bytes) -> bytes:
            return hello

    with pytest.raises(ProtocolError, match=re.escape(words)):
        gs.simulate(SMALL, hosts(2), Inside(protocol="batsim-5", peer=Greeter()), kill=True)


@pytest.mark.parametrize("name", ["late_times", "shadow_time", "full_machine"])
@pytest.mark.parametrize("number", [float, np.float32])
def test_times_in_32_bits_fail_one_case(name: str, number: Callable[[float], Any], tmp_path: Path) -> None:
    """The example EASY of Batsim keeps times so."""
    case, column = read_case(name), "easy:instant"
    peer = Scripted(CODECS["4"], Queue("easy", number))
    answer_case(case, Inside(peer=peer), column, tmp_path)
    answer = (tmp_path / f"{name}.csv").read_text().split()[1:]
    schedule = read_schedules(case)[column].parts
    expected = [f"{job},{parts[0].start_time}" for job, parts in schedule.items()]
    assert (answer == expected) == (name != "late_times" or number is float)


@pytest.mark.parametrize(
    "cluster",
    [
        gs.Cluster(nodes=[NodeType(count=2, cores=4)]),
        gs.Cluster(nodes=[NodeType(count=2, cores=1, memory=10)]),
        gs.Cluster(nodes=[NodeType(cores=1), NodeType(cores=2, name="big")], node_exclusive=True),
    ],
)
def test_hosts_that_the_protocol_cannot_name(cluster: gs.Cluster) -> None:
    with pytest.raises(ConfigurationError):
        simulated(SMALL, cluster, Queue("fcfs"))
