"""A schedule that a real controller makes, at ten times the speed of clocks, and what its log says of it.

Everything that looks at a clock (the controller, one slurmd a node, sbatch, the jobs) runs below one process
under libfaketime, so that all of them see the same time. The log is read for what the model has to be told:
when jobs were submitted, when the controller worked, and when nodes were free again.
"""

from __future__ import annotations

import csv
import os
import random
import re
import signal
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gridsched.systems.slurm.controller import BACKFILL, MAIN
from gridsched.systems.slurm.recording import milliseconds
from gridsched.systems.slurm.replay import Replay
from tests.slurm.session import FOLDER, RefusalError, free_ports

NODES, PROCESSORS = 16, 4
SPEED = 10
"""Seconds of Slurm in a second."""

LONGEST = 180
"""Seconds that a recording may take."""

_SIZES = (1, 1, 1, 2, 2, 3, 4, 4, 6, 8, 12, 16)

_CONFIGURATION = """\
# A controller and one slurmd a node, all on one machine, under an accelerated clock.
ClusterName=fresh
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdParameters=config_overrides
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={munge}
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
ReturnToService=2
KillWait=5
MinJobAge=36000
MessageTimeout=100
SlurmctldTimeout=3600
SlurmdTimeout=3600
PropagateResourceLimits=NONE
SlurmctldDebug=debug2
DebugFlags=Backfill
LogTimeFormat=iso8601_ms
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/spool/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/spool/%n.log
{scheduling}
{nodes}
{partitions}
"""

SCHEDULING = """\
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=4,sched_interval=20,bf_interval=15,bf_resolution=1,bf_window=120
SelectType=select/linear
PriorityType=priority/basic
"""
PARTITIONS = "PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP OverSubscribe=EXCLUSIVE\n"

_SCRIPT = """\
trap 'kill $(jobs -p) 2>/dev/null' EXIT
slurmctld -D -c > controller.out 2>&1 &
until scontrol ping 2>&1 | grep -q 'is UP'; do
    kill -0 $! || {{ tail -n 1 controller.out; exit 1; }}
    sleep 5
done
for node in $(seq -f n%02.0f {nodes}); do slurmd -D -N $node > /dev/null 2>&1 & done
until [ "$(sinfo --noheader --format=%t | sort -u)" = idle ]; do sleep 5; done
while read gap nodes limit run partition; do
    sleep $gap
    options="--partition=$partition --nodes=$nodes --time=$limit --output=/dev/null --chdir=/tmp"
    sbatch $options --wrap "sleep $run" || exit 1
done < plan.txt
while [ -n "$(squeue --noheader)" ]; do sleep 20; done
"""


@dataclass(frozen=True)
class PlannedJob:
    """A job: seconds after the one before, nodes, minutes it may take, seconds it takes, partition."""

    gap: int
    nodes: int
    limit: int
    run: int
    partition: str = "main"


def plan_of(jobs: int, seed: int) -> list[PlannedJob]:
    """Jobs that arrive faster than they can run."""
    rng = random.Random(seed)
    planned = []
    for _ in range(jobs):
        run = rng.randint(20, 120)
        limit = max(-(-run * rng.randint(1, 5) // 60), 1)
        planned.append(PlannedJob(rng.randint(0, 10), rng.choice(_SIZES), limit, run))
    return planned


def record(
    folder: Path,
    plan: Sequence[PlannedJob],
    scheduling: str = SCHEDULING,
    partitions: str = PARTITIONS,
    longest: int = LONGEST,
    ports: Sequence[int] = (),
) -> None:
    """Let a controller schedule the jobs of a plan; its log and configuration are in the folder then.

    Recordings made at once are given ports, one and one a node, since each would find the same free.

    Raises
    ------
    RefusalError
        If this machine is too slow for it, or the controller does not come up.
    """
    libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not libraries:
        raise RefusalError("there is no libfaketimeMT.so.1: package faketime")
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    ports = ports or free_ports(NODES + 1)
    host = socket.gethostname().partition(".")[0]
    alike = f"NodeHostName={host} NodeAddr=127.0.0.1 CPUs={PROCESSORS} RealMemory=1000"
    (folder / "slurm.conf").write_text(
        _CONFIGURATION.format(
            folder=folder,
            host=host,
            munge=FOLDER / "munge.socket",
            port=ports[0],
            scheduling=scheduling,
            partitions=partitions,
            nodes="\n".join(
                f"NodeName=n{number:02} Port={port} {alike}" for number, port in enumerate(ports[1:], 1)
            ),
        ),
        encoding="utf-8",
    )
    lines = [f"{job.gap} {job.nodes} {job.limit} {job.run} {job.partition}\n" for job in plan]
    (folder / "plan.txt").write_text("".join(lines), encoding="utf-8")
    environment = {
        **os.environ,
        "SLURM_CONF": str(folder / "slurm.conf"),
        "TZ": "UTC",
        "LD_PRELOAD": str(libraries[0]),
        "FAKETIME_DONT_RESET": "1",
        "FAKETIME": f"@2026-01-05 08:00:00 x{SPEED}",
    }
    with (folder / "script.log").open("wb") as log:
        script = subprocess.Popen(
            ["env", "bash", "-c", _SCRIPT.format(nodes=NODES)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = script.wait(longest)
        except subprocess.TimeoutExpired:
            raise RefusalError(f"too slow: the schedule was not done after {longest} s") from None
        finally:
            _end_group(script)
    if code:
        said = (folder / "script.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise RefusalError(f"the recording failed: {(said or [f'exit code {code}'])[-1]}")


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    for wish in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, wish)
            process.wait(10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


# --- what the log says ----------------------------------------------------------------------------

_LINE = re.compile(r"\[(\S+)\] (.*)")
_SUBMITTED = re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+) ")
_STARTED = re.compile(
    r"sched: Allocate JobId=(\d+) NodeList=(\S+)|_start_job: Started JobId=(\d+) in \S+ on (\S+)"
)
_DONE = re.compile(r"_job_complete: JobId=(\d+) done")

HEADER = ["jobid", "jobidraw", "partition", "nnodes", "nodelist", "time_limit_min"]
HEADER += ["submit_ms", "start_ms", "done_ms", "by"]


@dataclass
class Observed:
    """A job in the log; instants in milliseconds of Unix time.

    `start` is when the pass began that started it, `done` when its nodes began to be cleaned.
    """

    submit: int = -1
    start: int = -1
    by: int = MAIN
    where: str = ""
    done: int = -1


def observed(log: Path) -> dict[int, Observed]:
    """What a log of the controller says of each job."""
    jobs: dict[int, Observed] = {}
    began = {MAIN: -1, BACKFILL: -1}
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        stamped = _LINE.match(line)
        if not stamped:
            continue
        now, text = milliseconds(stamped[1]), stamped[2]
        if "Running job scheduler for" in text:
            began[MAIN] = now
        elif "_attempt_backfill: beginning" in text:
            began[BACKFILL] = now
        elif found := _SUBMITTED.search(text):
            job = jobs.setdefault(int(found[1]), Observed())
            # the line is written after the job is in the queue: a pass may have started it already
            job.submit = now if job.start < 0 else min(now, job.start - 1)
        elif found := _STARTED.search(text):
            by = MAIN if found[1] else BACKFILL
            job = jobs.setdefault(int(found[1] or found[3]), Observed())
            job.start, job.by, job.where = began[by], by, found[2] or found[4]
        elif found := _DONE.search(text):
            jobs[int(found[1])].done = now
    return jobs


def write_outcome(folder: Path, jobs: dict[int, Observed], plan: Sequence[PlannedJob]) -> None:
    """Write `outcome.csv`."""
    with (folder / "outcome.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for (number, job), planned in zip(sorted(jobs.items()), plan, strict=True):
            by = "main" if job.by == MAIN else "backfill"
            times = [f"{instant / 1000:.3f}" for instant in (job.submit, job.start, job.done)]
            row = [number, number, planned.partition, planned.nodes, job.where, planned.limit, *times, by]
            writer.writerow(row)


def compared(folder: Path, plan: Sequence[PlannedJob]) -> list[str]:
    """Jobs of the recorded schedule that the model starts otherwise at the recorded passes, a line each."""
    write_outcome(folder, observed(folder / "slurmctld.log"), plan)
    replay = Replay.of(folder)
    return replay.differences(replay.closed_loop(), tolerance=0)
