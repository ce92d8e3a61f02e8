"""A Slurm of one machine: what it needs is installed, its daemons run, and all of it is taken back.

Everything lives in one folder, except packages and the configuration of Slurm, which its programs look for
in `/etc/slurm`. What is about to be changed is noted in a journal first, so that a session that was killed is
taken back by the next one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

FOLDER = Path("/run/gridsched-slurm")
"""Journal, key, logs and state of the daemons."""

CONFIGURATION = Path("/etc/slurm/slurm.conf")
PACKAGES = ("slurm-wlm", "munge", "faketime")
PROGRAMS = (
    *("slurmctld", "slurmd", "sbatch", "srun", "squeue", "sinfo", "scancel", "scontrol"),
    *("munged", "mungekey", "faketime"),
)
DAEMONS = frozenset({"slurmctld", "slurmd", "slurmdbd", "slurmrestd", "slurmstepd"})
POLICY = Path("/usr/sbin/policy-rc.d")
"""Debian asks it whether services may start when packages are installed."""

PATIENCE = 60
"""Seconds for daemons to come up or to end."""


class RefusalError(Exception):
    """This machine is not one to run the session on; nothing was changed, or all was taken back."""


# --- journal --------------------------------------------------------------------------------------


@dataclass
class Journal:
    """What a session changes, written before it is changed."""

    session: tuple[int, str]
    packages: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    processes: list[tuple[int, str]] = field(default_factory=list)

    def note(self, **changes: Sequence[object]) -> None:
        """Write the journal with further entries."""
        for name, entries in changes.items():
            getattr(self, name).extend(entries)
        FOLDER.mkdir(mode=0o755, exist_ok=True)
        path = FOLDER / "journal.json"
        path.with_suffix(".new").write_text(json.dumps(asdict(self)), encoding="utf-8")
        path.with_suffix(".new").replace(path)

    @classmethod
    def read(cls) -> Journal | None:
        """Journal of a session that runs or was killed."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            return cls(**json.loads((FOLDER / "journal.json").read_text(encoding="utf-8")))
        return None


def identity(process: int) -> tuple[int, str]:
    """Number of a process and when it started; the start is empty if it is not there."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return process, ""
    state, *others = status.rpartition(")")[2].split()
    return process, "" if state == "Z" else others[18]


def is_alive(process: Sequence[int | str]) -> bool:
    """Whether it is still the process that was noted."""
    return bool(process[1]) and identity(int(process[0])) == tuple(process)


# --- refusals -------------------------------------------------------------------------------------


def check_machine() -> None:
    """Refuse machines that are not meant for this.

    Raises
    ------
    RefusalError
        Where this is no Debian or not root, or any Slurm is configured or runs.
    """
    if not Path("/etc/debian_version").is_file() or not shutil.which("apt-get"):
        raise RefusalError("it needs Debian (or a derivative with apt-get)")
    if os.geteuid() != 0:
        raise RefusalError(
            "it needs root, to install packages and to start daemons; in a container for instance"
        )
    earlier = Journal.read()
    if earlier is not None:
        if is_alive(earlier.session):
            raise RefusalError(f"another session is running (process {earlier.session[0]})")
        print(f"taking back a session that was killed (process {earlier.session[0]})", file=sys.stderr)
        with _undisturbed():
            take_back(earlier)
    if "SLURM_CONF" in os.environ:
        raise RefusalError(f"SLURM_CONF is set ({os.environ['SLURM_CONF']}): a Slurm is configured here")
    for folder in (CONFIGURATION.parent, Path("/etc/slurm-llnl")):
        files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
        # The packages bring an empty list of plugins along
        own = [path for path in files if not path.relative_to(folder).parts[0].startswith("plugstack.conf")]
        if own:
            raise RefusalError(f"{own[0]} exists: a Slurm is configured here")
    running = sorted(name for name, _ in daemons())
    if running:
        raise RefusalError(f"{running[0]} is running: there is a Slurm here")


def daemons() -> list[tuple[str, int]]:
    """Names and numbers of the processes of Slurm on this machine that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            name = path.read_text(encoding="utf-8").strip()
            number = int(path.parent.name)
            # one that has ended is there until its parent has taken notice
            if name in DAEMONS and identity(number)[1]:
                found.append((name, number))
    return found


# --- packages -------------------------------------------------------------------------------------


def install(journal: Journal) -> None:
    """Install what is missing, without starting a service.

    Raises
    ------
    RefusalError
        If packages are not to be had, or other packages would have to change.
    """
    if all(shutil.which(program) for program in PROGRAMS):
        return
    plan = _apt("--simulate", "install", *PACKAGES)
    if plan.returncode:
        _apt("update")
        plan = _apt("--simulate", "install", *PACKAGES)
    if plan.returncode:
        raise RefusalError(f"the packages {', '.join(PACKAGES)} are not to be had: {_last_line(plan)}")
    changes = re.findall(r"^(Inst|Remv) (\S+) (\[)?", plan.stdout, re.MULTILINE)
    known = subprocess.run(
        ["dpkg-query", "-W", "-f=${Package}\n"], stdout=subprocess.PIPE, text=True, check=True
    )
    others = [name for kind, name, version in changes if kind == "Remv" or version]
    # A package that was removed but not purged has settings, which must not be lost in the end
    others += sorted({name for _, name, _ in changes} & set(known.stdout.split()))
    if others:
        raise RefusalError(
            f"installing {', '.join(PACKAGES)} would change {others[0]}, which is here already; "
            "install them yourself"
        )
    journal.note(packages=[name for _, name, _ in changes])
    with _no_services(journal):
        done = _apt("install", *PACKAGES)
    if done.returncode:
        raise RefusalError(f"the packages {', '.join(PACKAGES)} cannot be installed: {_last_line(done)}")


def _apt(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Call apt-get without questions, and without waiting long for servers that do not answer."""
    options = ["Acquire::Retries=1", "Acquire::http::Timeout=20", "Acquire::https::Timeout=20"]
    options += ["DPkg::Lock::Timeout=60", "APT::Install-Recommends=false"]
    settings = [part for option in options for part in ("-o", option)]
    return subprocess.run(
        ["apt-get", "--yes", "--quiet", *settings, *arguments],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    """What a program said last."""
    return (done.stdout.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


@contextlib.contextmanager
def _no_services(journal: Journal) -> Iterator[None]:
    """Keep services that packages bring from starting."""
    if POLICY.exists():
        yield
        return
    journal.note(written=[str(POLICY)])
    POLICY.write_text("#!/bin/sh\nexit 101\n", encoding="utf-8")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()


# --- daemons --------------------------------------------------------------------------------------

_CONFIGURATION = """\
# A Slurm of one machine for tests of gridsched; it is gone when they are done.
ClusterName=gridsched
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_interval=2,batch_sched_delay=0
MinJobAge=3600
ReturnToService=2
KillWait=5
MailProg=/bin/true
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
NodeName={host} NodeAddr=127.0.0.1 CPUs={processors} RealMemory={memory}
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def start(journal: Journal) -> None:
    """Start munged, slurmctld and slurmd; they run when this returns.

    Raises
    ------
    RefusalError
        If they do not come up.
    """
    for name in ("state", "spool"):
        (FOLDER / name).mkdir()
    # A key and a socket of its own: a munged that is there for others is left alone
    key, munge = FOLDER / "munge.key", FOLDER / "munge.socket"
    subprocess.run(["mungekey", "--create", f"--keyfile={key}"], check=True)
    files = [f"--{name}-file={FOLDER / f'munge.{name}'}" for name in ("pid", "log", "seed")]
    _start(journal, "munged", "--foreground", f"--key-file={key}", f"--socket={munge}", *files)
    _await("munged", munge.exists)
    folders = [folder for folder in (CONFIGURATION.parent,) if not folder.exists()]
    journal.note(written=[str(CONFIGURATION), *map(str, folders)])
    CONFIGURATION.parent.mkdir(exist_ok=True)
    ports = free_ports(2)
    CONFIGURATION.write_text(
        _CONFIGURATION.format(
            folder=FOLDER,
            host=socket.gethostname().partition(".")[0],
            controller_port=ports[0],
            node_port=ports[1],
            processors=os.cpu_count(),
            memory=_memory(),
        ),
        encoding="utf-8",
    )
    _start(journal, "slurmctld", "-D")
    _start(journal, "slurmd", "-D")
    _await("slurmd", lambda: _said("sinfo", "--noheader", "--format=%T") == "idle")


def _start(journal: Journal, program: str, *arguments: str) -> None:
    """Start a daemon in the foreground and note it."""
    with (FOLDER / f"{program}.log").open("wb") as log:
        daemon = subprocess.Popen(
            [shutil.which(program) or program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    journal.note(processes=[identity(daemon.pid)])


def _await(program: str, is_up: Callable[[], bool]) -> None:
    """Wait for a daemon."""
    deadline = time.monotonic() + PATIENCE
    while not is_up():
        if time.monotonic() > deadline:
            lines = (FOLDER / f"{program}.log").read_text(encoding="utf-8", errors="replace").splitlines()
            raise RefusalError(f"{program} does not come up: {(lines or ['it says nothing'])[-1]}")
        time.sleep(0.2)


def _said(*command: str) -> str:
    """Output of a command; empty if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _memory() -> int:
    """Memory that jobs may take [MB], a little less than there is."""
    return (os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) * 9 // 10 // 2**20


def free_ports(number: int) -> list[int]:
    """Ports that nobody listens at."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


# --- taking back ----------------------------------------------------------------------------------


def take_back(journal: Journal) -> None:
    """Stop what a session started, delete what it wrote, remove what it installed."""
    if CONFIGURATION.exists() and str(CONFIGURATION) in journal.written:
        _said("timeout", "10", "scancel", "--state=PENDING", "--user=root")
        _said("timeout", "10", "scancel", "--user=root")
    for process in reversed(journal.processes):
        _end(process)
    # No Slurm ran here before, so what is left of it is the session's: its jobs, and what tests started
    if journal.processes:
        for _, number in daemons():
            _end(identity(number))
    for path in map(Path, journal.written):
        if path.is_dir():
            with contextlib.suppress(OSError):
                path.rmdir()
        else:
            path.unlink(missing_ok=True)
    if journal.packages:
        # dpkg, unlike apt-get, removes nothing but these, and refuses if something else needs one of them
        there = [name for name in journal.packages if _said("dpkg-query", "-W", name)]
        done = subprocess.run(["dpkg", "--purge", *there], capture_output=True, text=True, check=False)
        if there and done.returncode:
            print(f"packages stay: {', '.join(there)}; {done.stderr.strip()}", file=sys.stderr)
    shutil.rmtree(FOLDER, ignore_errors=True)


def _end(process: Sequence[int | str]) -> None:
    """End a process, gently at first."""
    for wish in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + PATIENCE / 4
        with contextlib.suppress(ProcessLookupError):
            if is_alive(process):
                os.kill(int(process[0]), wish)
        while is_alive(process) and time.monotonic() < deadline:
            time.sleep(0.1)


@contextlib.contextmanager
def session() -> Iterator[None]:
    """A Slurm for the time of a block.

    Raises
    ------
    RefusalError
        If this is no machine for it, or it does not come up; all is then as before.
    """
    check_machine()
    journal = Journal(session=identity(os.getpid()))
    journal.note()
    try:
        install(journal)
        start(journal)
        yield
    finally:
        with _undisturbed():
            take_back(journal)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let signals that would end this process wait for the end of a block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
