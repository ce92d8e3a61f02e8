"""Files with mistakes in them: each is read, or refused in one line, whatever is in it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gridsched.errors import GridschedError
from gridsched.experiments.config import load_study
from gridsched.experiments.kinds.readings.choices import load_readings
from gridsched.forecasting.queues import read_queue
from gridsched.nodes import read_events
from gridsched.systems.slurm.accounts import read_accounting, read_usage
from gridsched.systems.slurm.conf import read_configuration
from gridsched.systems.slurm.scheduler import Slurm
from gridsched.traces import read_nodes
from tests.conftest import REPOSITORY
from tests.support.mistakes import mutated
from tests.systems.slurm.test_conf import CONF, DUMP, QUALITIES

PIECES = (
    *(b"-1", b"0", b"1e400", b"nan", b"inf", b"9" * 30, b"1.5", b"-", b"1-0-0", b"1:2:3:4", b"UNLIMITED"),
    *(b"", b"=", b"|", b",,", b"[", b"n[1-", b"n[9-1]", b"{", b": ", b"- ", b"null", b"[]", b'"', b"#"),
    *(b"\x00", b"\xff\xfe", b"\r", b"\\\n", b"DEFAULT", b"ALL", b"&a *a", b"!!python/none"),
)


QUEUE = b"job,state,elapsed,processors,time_limit,user\n1,R,10,4,60,ada\n2,PD,0:00,1,1-0:00:00,bob\n"
SQUEUE = b"JOBID|STATE|TIME|CPUS|TIME_LIMIT|USER\n1|RUNNING|1:10|4|1:00:00|ada\n2|PENDING|0:00|1|60|bob\n"
EVENTS = b"time,node,kind,start,end\n5,n1,down,,\n9,n1,up,,\n3,*,maintenance,50,60\n"
NODES = b"""nodes: [{name: thin, count: 60, cores: 1, memory: 128}, {name: wide, cores: 8, gpus: 2}]
partitions: [{number: 0, time_limit: 100}, {number: 1, nodes: [wide], priority: 2}]
limits: [{by: user, jobs: 3}]
"""
USAGE = b"Account|User|RawUsage\nroot||0\n physics|ann|70\n"


def _configuration(path: Path) -> Any:
    return Slurm.from_configuration(read_configuration(path))


def _usage(path: Path) -> Any:
    dump = path.with_name("whole.cfg")
    dump.write_text(DUMP, encoding="utf-8")
    return read_usage(path, read_accounting(dump))


def _qualities(path: Path) -> Any:
    dump = path.with_name("whole.cfg")
    dump.write_text(DUMP, encoding="utf-8")
    return read_accounting(dump, path)


def _study(name: str) -> bytes:
    return (REPOSITORY / "config" / "studies" / f"{name}.yaml").read_bytes()


FILES: dict[str, tuple[bytes, Callable[[Path], Any], int]] = {
    "slurm.conf": (CONF.encode(), _configuration, 150),
    "dump.cfg": (DUMP.encode(), read_accounting, 100),
    "qos.txt": (QUALITIES.encode(), _qualities, 150),
    "sshare.txt": (USAGE, _usage, 100),
    "queue.csv": (QUEUE, lambda path: read_queue(path, 8), 100),
    "squeue.txt": (SQUEUE, lambda path: read_queue(path, 8), 100),
    "events.csv": (EVENTS, read_events, 100),
    "nodes.yaml": (NODES, read_nodes, 100),
    "readings.yaml": (
        (REPOSITORY / "resources" / "readings" / "imprecise-calendars.yaml").read_bytes(),
        load_readings,
        12,
    ),
    **{
        f"{name}.yaml": (_study(name), load_study, 12)
        for name in ("calibration", "forecast", "queue-orders", "slurm", "calendars-readings")
    },
}
"""Content of a file, what reads it, and how many mutations of it are tried."""


@pytest.mark.random_cases(1)
@pytest.mark.parametrize("name", FILES)
def test_a_file_with_mistakes_is_read_or_refused(
    name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    content, read, count = FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    read(path)
    draw, refused = random.Random(f"{name} {seed}"), []
    for _ in range(count):
        path.write_bytes(mutated(content, draw, PIECES))
        try:
            read(path)
        except GridschedError as error:
            refused.append(str(error))
    assert refused
    assert all(name in message for message in refused)
