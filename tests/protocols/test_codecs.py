"""Messages of both versions: there and back, as published examples have them, and what is refused."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched.errors import ProtocolError
from gridsched.protocols import batsim5
from gridsched.protocols import messages as m
from gridsched.protocols.batsim4 import Batsim4
from gridsched.protocols.batsim5 import Batsim5
from gridsched.protocols.hosts import read_hosts, write_hosts
from gridsched.protocols.wire import Codec

CODECS: dict[str, Codec] = {"4": Batsim4(), "5": Batsim5()}
TIME = st.floats(0, 1e9, allow_nan=False)
TEXT = st.text(max_size=8)
PLAIN = st.text("ab0 ", max_size=4)
SETS = st.sets(st.integers(0, 50), min_size=1).map(write_hosts)
STATES = st.sampled_from(get_args(m.FinalState))
BEGINS = st.builds(
    m.SimulationBegins,
    TIME,
    st.lists(st.builds(m.Host, st.integers(0, 99), TEXT, st.integers(1, 4)), max_size=3).map(tuple),
    st.dictionaries(PLAIN, TEXT, max_size=2),
    profiles=st.dictionaries(st.builds("{}!{}".format, PLAIN, PLAIN), TIME, max_size=2),
)
SUBMITTED = st.builds(
    m.JobSubmitted, TIME, TEXT, st.integers(1, 99), st.none() | TIME, TIME, PLAIN, st.none() | TIME
)
SHARED_EVENTS = (
    BEGINS,
    SUBMITTED,
    st.builds(m.SimulationEnds, TIME),
    st.builds(m.AllJobsSubmitted, TIME),
    st.builds(m.AllEventsInjected, TIME),
    st.tuples(TIME, st.lists(TEXT, unique=True), st.floats(0, 1)).map(
        lambda drawn: m.JobsKilled(
            drawn[0],
            tuple(drawn[1]),
            dict.fromkeys(drawn[1][1:], drawn[2]),
            dict.fromkeys(drawn[1][1:], "profile"),
        )
    ),
)
EVENTS = {
    "4": st.one_of(
        *SHARED_EVENTS,
        st.builds(m.RequestedCall, TIME),
        st.builds(m.HostsChanged, TIME, SETS, st.booleans()),
        st.builds(m.HostStateChanged, TIME, SETS, st.integers(0, 20), st.booleans()),
        st.builds(m.JobCompleted, TIME, TEXT, STATES, st.integers(-1, 9), SETS),
    ),
    "5": st.one_of(
        *SHARED_EVENTS,
        st.builds(m.SimulatorHello, TIME, TEXT),
        st.builds(m.RequestedCall, TIME, TEXT, st.booleans()),
        st.builds(m.JobCompleted, TIME, TEXT, STATES, st.integers(-1, 9)),
    ),
}
SHARED_DECISIONS = (
    st.builds(m.ExecuteJob, TIME, TEXT, SETS),
    st.builds(m.RejectJob, TIME, TEXT),
    st.builds(m.KillJobs, TIME, st.lists(TEXT).map(tuple)),
    st.builds(m.FinishRegistration, TIME),
)
NAME = st.text(min_size=1, max_size=8)
DECISIONS = {
    "4": st.one_of(
        *SHARED_DECISIONS,
        st.builds(m.CallLater, TIME, TIME),
        st.builds(m.SetHostState, TIME, SETS, st.integers(0, 20)),
        st.builds(m.SetMetadata, TIME, TEXT, TEXT),
    ),
    "5": st.one_of(
        *SHARED_DECISIONS,
        st.builds(m.CallLater, TIME, TIME, NAME),
        st.builds(m.CallLater, TIME, TIME, NAME, st.floats(1, 1e6), st.integers(0, 9)),
        st.builds(m.StopCall, TIME, NAME),
        st.builds(m.SchedulerHello, TIME, NAME, NAME, TEXT, NAME, st.lists(NAME, unique=True).map(tuple)),
    ),
}


@pytest.mark.parametrize("version", CODECS)
@given(data=st.data())
def test_messages_go_there_and_back(version: str, data: st.DataObject) -> None:
    codec = CODECS[version]
    events = sorted(data.draw(st.lists(EVENTS[version])), key=lambda event: event.timestamp)
    told = codec.decode_events(codec.encode_events(1e9, events)).events
    assert [_without_defaults(event) for event in told] == events
    decisions = sorted(data.draw(st.lists(DECISIONS[version])), key=lambda each: each.timestamp)
    message = codec.encode_decisions(1e9, decisions)
    assert codec.decode_decisions(message) == m.Decisions(1e9, tuple(decisions))


def _without_defaults(event: m.Event) -> m.Event:
    """A beginning without what a codec adds to its configuration."""
    if isinstance(event, m.SimulationBegins):
        return m.SimulationBegins(event.timestamp, event.hosts, event.workloads, profiles=event.profiles)
    return event


def old(kind: str, timestamp: float = 10.0, /, **data: Any) -> bytes:
    """A message of version 4 with one event that is written by hand."""
    event = {"timestamp": timestamp, "type": kind, "data": data}
    return json.dumps({"now": 10.0, "events": [event]}).encode()


def new(kind: str, **data: Any) -> bytes:
    """A message of version 5 with one event that is written by hand."""
    event = {"timestamp": 10.0, "event_type": kind, "event": data}
    return json.dumps({"now": 10.0, "events": [event]}).encode()


_ALLOCATION = {
    "host_allocation": "0-3",
    "executor_placement_type": "CustomExecutorToHostMapping",
    "executor_placement": {"mapping": [3, 2, 1, 0]},
}
_PERIODIC = {
    "period": 500,
    "offset": 0,
    "time_unit": "Millisecond",
    "mode_type": "FinitePeriodNumber",
    "mode": {"nb_periods": 3},
}
_HELLO = {
    "batprotocol_version": None,
    "decision_component_name": "EDC",
    "decision_component_version": "0.1",
    "requested_simulation_features": {"dynamic_registration": True, "profile_reuse": False},
}


@pytest.mark.parametrize(
    ("version", "message", "meant"),
    [
        (
            "4",
            old("EXECUTE_JOB", job_id="w12!45", alloc="2-3", mapping={"0": "0", "1": "0"}),
            m.ExecuteJob(10.0, "w12!45", "2-3"),
        ),
        ("4", old("CALL_ME_LATER", timestamp=25.5), m.CallLater(10.0, 25.5)),
        ("4", old("KILL_JOB", job_ids=["w0!1", "w0!2"]), m.KillJobs(10.0, ("w0!1", "w0!2"))),
        ("4", old("SET_RESOURCE_STATE", resources="1 3-5", state="42"), m.SetHostState(10.0, "1 3-5", 42)),
        ("4", old("NOTIFY", type="registration_finished"), m.FinishRegistration(10.0)),
        ("4", old("QUERY", requests={"consumed_energy": {}}), m.Unsupported(10.0, "QUERY")),
        (
            "4",
            old("EXECUTE_JOB", job_id="a", alloc="2", storage_mapping={"pfs": 2}),
            m.Unsupported(10.0, "EXECUTE_JOB with storage_mapping"),
        ),
        (
            "5",
            new("ExecuteJobEvent", job_id="w0!0", allocation=_ALLOCATION, storage_placement=[]),
            m.ExecuteJob(10.0, "w0!0", "0-3"),
        ),
        (
            "5",
            new("ExecuteJobEvent", job_id="a", allocation=_ALLOCATION, storage_placement=[{}]),
            m.Unsupported(10.0, "ExecuteJobEvent with storage_placement"),
        ),
        (
            "5",
            new("CallMeLaterEvent", call_me_later_id="a", when_type="Periodic", when=_PERIODIC),
            m.CallLater(10.0, 0.0, "a", 0.5, 3),
        ),
        *(
            (
                "5",
                new(name, **_HELLO),
                m.SchedulerHello(10.0, "EDC", "0.1", features=("dynamic_registration",)),
            )
            for name in ("EDCHelloEvent", "ExternalDecisionComponentHelloEvent")
        ),
        *(
            ("5", new(name, probe_id="a", metrics="Power"), m.Unsupported(10.0, name))
            for name in ("CreateProbeEvent", "ForceSimulationStopEvent", "RegisterJobEvent")
        ),
    ],
)
def test_decisions_as_published(version: str, message: bytes, meant: m.Decision) -> None:
    assert CODECS[version].decode_decisions(message).decisions == (meant,)


@pytest.mark.parametrize(
    ("version", "message", "meant"),
    [
        (
            "4",
            old(
                "JOB_SUBMITTED",
                job_id="dyn!my_new_job",
                job={"profile": "delay_10s", "res": 1, "id": "dyn!my_new_job", "walltime": 12.0},
                profile={"type": "delay", "delay": 10},
            ),
            m.JobSubmitted(10.0, "dyn!my_new_job", 1, 12.0, 10.0, "delay_10s", 10.0),
        ),
        (
            "5",
            new(
                "JobSubmittedEvent",
                job_id="w0!1",
                job={"computation_resource_request": {"host_number": 4}, "profile_id": "w0!prof"},
                submission_time=3.5,
            ),
            m.JobSubmitted(10.0, "w0!1", 4, None, 3.5, "prof"),
        ),
    ],
)
def test_events_as_published(version: str, message: bytes, meant: m.Event) -> None:
    assert CODECS[version].decode_events(message).events == (meant,)


def test_what_is_written_in_version_4() -> None:
    told = json.loads(
        Batsim4().encode_events(80.5, [m.JobCompleted(80.0, "w!4", "COMPLETED_SUCCESSFULLY", 0, "0-3")])
    )
    data = {"job_id": "w!4", "job_state": "COMPLETED_SUCCESSFULLY", "return_code": 0, "alloc": "0-3"}
    assert told == {"now": 80.5, "events": [{"timestamp": 80.0, "type": "JOB_COMPLETED", "data": data}]}


def test_what_is_written_in_version_5() -> None:
    written = Batsim5().encode_events(3.0, [m.JobCompleted(2.0, "w!4", "COMPLETED_WALLTIME_REACHED", -1)])
    assert written.endswith(b"}\0")
    data = {"job_id": "w!4", "state": "COMPLETED_WALLTIME_REACHED", "return_code": 2**32 - 1}
    event = {"timestamp": 2.0, "event_type": "JobCompletedEvent", "event": data}
    assert json.loads(written[:-1]) == {"now": 3.0, "events": [event]}


@pytest.mark.parametrize(
    ("version", "damaged", "where"),
    [
        ("4", b"", "truncated"),
        ("4", b'{"now":1,"events":[', "truncated"),
        ("4", b"[" * 100_000, "object"),
        ("4", b'{"now":' + b"9" * 400 + b',"events":[]}', "$.now"),
        ("4", b"\xff\xfe", "malformed"),
        ("4", b'{"now":NaN,"events":[]}', "malformed"),
        ("4", old("EXECUTE_JOB", job_id=3, alloc="1"), "$.events[0].data.job_id"),
        ("4", old("EXECUTE_JOB", job_id="3"), "alloc"),
        ("4", old("EXECUTE"), "$.events[0].type"),
        ("4", old("REJECT_JOB", job_id="3", why=1), "why"),
        ("4", old("REJECT_JOB", 11.0, job_id="3"), "$.events[0].timestamp"),
        ("4", old("SET_RESOURCE_STATE", resources="1", state="on"), "'on'"),
        ("5", new("KillJobsEvent", job_ids="a"), "$.events[0].event.job_ids"),
        ("5", b"", "truncated"),
        ("4", b'{"now":1,"events":[],"\\n\\u001b[2J":1}', "`??[2J`"),
    ],
)
def test_damaged_messages_are_refused_with_the_field(version: str, damaged: bytes, where: str) -> None:
    with pytest.raises(ProtocolError) as raised:
        CODECS[version].decode_decisions(damaged)
    assert where in str(raised.value)


@pytest.mark.parametrize("handshake", ["rc", "dev"])
@given(data=st.binary(max_size=40), cut=st.integers(0, 40))
def test_first_message_of_the_simulator(handshake: batsim5.Handshake, data: bytes, cut: int) -> None:
    written = batsim5.write_init(data, handshake)
    assert batsim5.read_init(written, handshake) == data
    if cut < len(written):
        with pytest.raises(ProtocolError):
            batsim5.read_init(written[:cut], handshake)


def test_binary_messages_are_refused() -> None:
    hello = Batsim5().encode_decisions(0.0, [m.SchedulerHello(0.0, "a", "1")])
    assert batsim5.read_init_reply(batsim5.write_init_reply(hello)) == hello
    for wrong in (b"", b"\1\0\0\0" + hello, b"\4\0\0\0" + hello):
        with pytest.raises(ProtocolError):
            batsim5.read_init_reply(wrong)
    with pytest.raises(ProtocolError):
        batsim5.read_init(b"\1\0\0\0\0\0\0\0", "dev")


@given(hosts=st.sets(st.integers(0, 99)), separator=st.sampled_from([" ", ",", ", "]))
def test_sets_of_hosts(hosts: set[int], separator: str) -> None:
    assert read_hosts(write_hosts(hosts).replace(" ", separator), 100) == sorted(hosts)


@pytest.mark.parametrize("text", ["3-1", "a", "-1", "1-", "8", "0-8", "1--2", "٣", "1-2-3", "0x1", "9" * 30])
def test_what_is_no_set_of_hosts(text: str) -> None:
    with pytest.raises(ProtocolError):
        read_hosts(text, 8)


def test_the_configuration_has_what_clients_look_up() -> None:
    """batsim.py of pybatsim 3.2.1 (lines 445 to 448), protocol.py of batsim-py 1.0.5 (lines 582 to 605)."""
    message = json.loads(CODECS["4"].encode_events(0.0, [m.SimulationBegins(0.0, ())]))
    told = message["events"][0]["data"]["config"]
    redis = {f"redis-{name}" for name in ("enabled", "hostname", "port", "prefix")}
    jobs = {"dynamic-jobs-enabled", "dynamic-jobs-acknowledged", "profile-reuse-enabled"}
    assert redis | jobs | {"profiles-forwarded-on-submission", "forward-unknown-events"} <= set(told)
