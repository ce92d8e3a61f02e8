"""Damaged answers of decision processes: each is carried out, or refused in one line that names the time.

10,000 by default; `MESSAGES=100000 pytest tests/slow -o python_files='slow_messages.py'` tries more.
"""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Sequence
from typing import Any

import pytest

from gridsched.errors import ProtocolError
from gridsched.policies.local import Conventions
from gridsched.protocols.messages import Decision, Event
from gridsched.systems.custom.session import Session, Terms
from gridsched.systems.custom.simulator import Simulator
from gridsched.systems.request import Request
from tests.protocols.test_session import hosts, jobs
from tests.support.mistakes import mutated
from tests.support.peers import CODECS, Queue, Scripted, simulated

NUMBER = int(os.environ.get("MESSAGES", "10000"))
JOBS = jobs(*((5 * k, 12 + k % 7, 1 + k % 3, 20) for k in range(12)))
PIECES = (
    *(b"-1", b"0", b"1e400", b"NaN", b"Infinity", b"9" * 40, b"1.5", b"null", b"true", b"[]", b"{}"),
    *(b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\\u0000", b"\x00", b"\xff\xfe", b"\\ud800"),
    *(b'"now":', b'"w0!1"', b'"0-3"', b'"timestamp":', b'"data":', b'"event":', b"1" * 5000, b"[" * 5000),
)
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 3.5, 1e17, 2**63, 2**70, -(2**63), 1e308, -1e308, 5e-324),
    *("", "x", "w0!1", "w0!99", "w0!1#1", "0", "0-3", "3-0", "0-999999999", "0 0 0", "1,2", "-1", "٣", "\0"),
    *([], {}, [[]], [0] * 100, ["w0!1"] * 3, {"job_id": "w0!2"}, "a" * 10_000),
)


class EnoughError(Exception):
    """The session has gone on after a damaged answer for as long as it is looked at."""


class Damaging:
    """Decides like another peer, but damages one answer, and is silent from then on."""

    def __init__(self, version: str, which: int, draw: random.Random) -> None:
        self.peer = Scripted(CODECS[version], Queue("easy"))
        self.left, self.draw, self.after = which, draw, 4

    def exchange(self, message: bytes) -> bytes:
        if self.left < 0:
            self.after -= 1
            if not self.after:
                raise EnoughError
            now = self.peer.codec.decode_events(message).now
            return self.peer.codec.encode_decisions(now, [])
        answer = self.peer.exchange(message)
        self.left -= 1
        return answer if self.left >= 0 else damaged(answer, self.draw)


def damaged(answer: bytes, draw: random.Random) -> bytes:
    """An answer with one or more mistakes in its bytes, or in its values."""
    if draw.random() < 0.5:
        return _with_values(answer.removesuffix(b"\0"), draw)
    return mutated(answer, draw, PIECES)


def _with_values(answer: bytes, draw: random.Random) -> bytes:
    """An answer in which values are others, or are missing, or twice, or under other names."""
    message = json.loads(answer)
    for _ in range(draw.choice((1, 1, 2))):
        inner = [each for each in _containers(message) if each]
        if not inner:
            break
        container = draw.choice(inner)
        key = draw.choice(list(container) if isinstance(container, dict) else list(range(len(container))))
        kind = draw.randrange(6)
        if kind == 0:
            del container[key]
        elif kind == 1 and isinstance(container, dict):
            container[draw.choice(("x", "now", "job_id", "mapping", "timestamp"))] = container.pop(key)
        elif kind == 2 and isinstance(container, list):
            container.append(copy.deepcopy(container[key]))
        elif isinstance(container[key], int | float) and kind == 3:
            container[key] += draw.choice((-5, -0.5, 0.25, 3, 1e6))
        else:
            like = [each for each in VALUES if type(each) is type(container[key])]
            container[key] = copy.deepcopy(draw.choice(like if like and kind == 4 else VALUES))
    return json.dumps(message).encode()


def _containers(value: Any) -> list[Any]:
    """All lists and dictionaries of a value."""
    if not isinstance(value, list | dict):
        return []
    inside = value.values() if isinstance(value, dict) else value
    return [value, *(found for each in inside for found in _containers(each))]


def outcome(session: Session) -> str:
    """Why a session ended; empty where it went on."""
    try:
        session.run()
    except EnoughError:
        return ""
    except ProtocolError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("version", CODECS)
@pytest.mark.parametrize("part", range(5))
def test_damaged_answers(version: str, part: int) -> None:
    submission = Request.of(
        JOBS,
        hosts(4),
        estimates="requested",
        seed=0,
        align="start",
        times="home",
        kill=True,
        conventions=Conventions(),
    ).submission
    ids = [str(k) for k in JOBS.job_number]
    sim = Simulator.of(submission)
    start, refused = sim.snapshot(), 0
    for seed in range(part * NUMBER // 10, (part + 1) * NUMBER // 10):
        draw = random.Random(seed)
        peer = Damaging(version, draw.randrange(1, 24), draw)
        terms = Terms(job_ids=ids, profiles=ids, sleep_state=draw.choice((-1, 3)))
        sim.restore(start)
        session = Session(sim, CODECS[version], peer, terms)
        line = outcome(session)
        if line:
            assert line.startswith(f"batsim-{version}"), seed
            assert "\n" not in line, seed
        refused += bool(line)
    assert refused > NUMBER // 30


def test_what_is_damaged_is_often_still_a_message() -> None:
    """Mutations reach what is behind the syntax."""
    answers = _answers()
    read = 0
    for seed in range(300):
        draw = random.Random(seed)
        try:
            CODECS["4"].decode_decisions(damaged(draw.choice(answers), draw))
            read += 1
        except ProtocolError:
            pass
    assert 30 < read < 270, read


def _answers() -> list[bytes]:
    """Answers of a session in which nothing is damaged."""
    found: list[bytes] = []
    queue = Queue("easy")

    def decide(now: float, events: Sequence[Event]) -> list[Decision]:
        decisions = queue(now, events)
        found.extend([CODECS["4"].encode_decisions(now, decisions)] if decisions else [])
        return decisions

    simulated(JOBS, hosts(4), decide)
    return found
