"""Schedulers that speak the protocol of Batsim, in other processes or through its C interface."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from gridsched.errors import ConfigurationError, ProtocolError
from gridsched.io import checksum
from gridsched.platform import Platform
from gridsched.policies.local import Conventions
from gridsched.protocols import batsim5, libraries, sockets
from gridsched.protocols import messages as m
from gridsched.protocols.batsim4 import Batsim4
from gridsched.protocols.batsim5 import Batsim5, Handshake
from gridsched.protocols.wire import Codec
from gridsched.results import Schedule
from gridsched.submission import Submission
from gridsched.systems.base import Scheduler, check_choices
from gridsched.systems.custom.library import name_of
from gridsched.systems.custom.session import Peer, Session, Terms
from gridsched.systems.custom.simulator import Simulator
from gridsched.workloads.table import Workload

ProtocolName = Literal["batsim-4", "batsim-5"]
FormName = Literal["", "rc", "dev"]

CODECS: Mapping[str, Codec] = {"batsim-4": Batsim4(), "batsim-5": Batsim5()}

_VERSION = "5.0.0"
"""Version of Batsim whose messages are spoken, for decision processes that look at it."""


@dataclass(frozen=True)
class External(Scheduler):
    """A scheduler in another process, or behind Batsim's C interface, that speaks its protocol as JSON.

    Parameters
    ----------
    protocol : {"batsim-4", "batsim-5"}
        What it speaks.
    command : str or sequence of str
        How to start it, as in a shell but without one, or as words; ``{socket}`` becomes the address of the
        socket, ``{port}`` a free port of this machine. Empty for a process that is there already.
    socket : str
        Address to which it binds, such as ``tcp://*:28000``. By default one in a temporary folder, for which
        a command is needed.
    timeout : float
        Seconds within which each of its answers has to come.
    handshake : {"rc", "dev"}
        How sessions of version 5 begin, see `gridsched.protocols.batsim5`.
    options : str
        What it is given to begin with in version 5.
    forward_profiles : bool
        Whether it receives the run times of jobs, which real schedulers do not know. In version 5 it may ask
        for this itself.
    sleep_state : int
        Number of the power state in which hosts take no jobs; -1 refuses to change power states. Changes take
        no time.
    state_as_number : bool
        Whether power states are sent as numbers, as some clients of version 4 want them, not as texts.
    log : str
        File for what the process writes; by default only the end of it is kept, for errors.
    edc_library : str
        Shared library with the C interface of Batsim 5, instead of a process.
    abi : {"rc", "dev"}
        Which form that interface has, see `gridsched.protocols.libraries`.
    job_ids, profiles : sequence of str
        Names of the jobs and of what they run, by their place in the workload; by default their numbers.
    names : mapping of str to sequence of str
        Texts of "user", "group", "executable", "queue" and "partition" by their numbers, as it receives them;
        by default the numbers.

    Notes
    -----
    Hosts are the nodes of the cluster, where these have one core or take one job each; else its processors,
    which are interchangeable then. It receives what the scheduler of a real machine knows: sizes and
    estimates, no run times.

    Examples
    --------
    >>> import gridsched as gs
    >>> easy = gs.External(command="pybatsim -s {socket} easyBackfill", timeout=10)
    >>> easy.label
    'pybatsim'
    """

    protocol: ProtocolName = "batsim-4"
    command: str | tuple[str, ...] = ""
    socket: str = field(default="", repr=False)
    timeout: float = field(default=60.0, repr=False)
    handshake: Handshake = "rc"
    options: str = ""
    forward_profiles: bool = False
    sleep_state: int = -1
    state_as_number: bool = False
    log: str = field(default="", repr=False)
    edc_library: str = ""
    abi: FormName = ""
    job_ids: Sequence[str] = field(default=(), repr=False)
    profiles: Sequence[str] = field(default=(), repr=False)
    names: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False)

    system: ClassVar[str] = "custom"
    knows: ClassVar[str] = "what the protocol has"
    not_in_studies: ClassVar[frozenset[str]] = frozenset({"job_ids", "profiles", "names", "socket", "log"})
    cannot: ClassVar[Mapping[str, str]] = {
        "local policies": "it starts the jobs itself",
        "predictions": "it starts the jobs itself",
        "passes": "it is asked once for all events of an instant",
        "message delay": "it sees the cluster as it is",
        "migration delay": "it has one cluster",
        "reservations": "its protocol has none",
        "deadlines": "its protocol has none",
        "arrays": "its protocol has none",
        "cancellations": "its protocol has no job that leaves the queue",
        "membership": "the cluster of a simulator stays",
        "changes": "the processors of a simulator's cluster stay",
        "own functions": "it is a function of its own",
    }

    def __post_init__(self) -> None:
        check_choices(self)
        if not 0 < self.timeout < 1e7:
            raise ConfigurationError(f"timeout is {self.timeout!r}; give seconds above 0")
        if self.socket:
            sockets.address_of(self.socket)
        if (self.command or self.socket) and self.edc_library:
            raise ConfigurationError("a process and edc_library exclude each other: give one of them")
        if bool(self.edc_library) != bool(self.abi):
            raise ConfigurationError(
                "edc_library and abi go together: say which form of the C interface of Batsim 5 the library "
                "has, rc or dev"
            )
        if self.edc_library and self.protocol != "batsim-5":
            raise ConfigurationError("edc_library: its protocol is batsim-5")
        self._check_use()

    def _check_use(self) -> None:
        """Refuse what would have no effect."""
        of = {
            "batsim-4": {"sleep_state": self.sleep_state >= 0, "state_as_number": self.state_as_number},
            "batsim-5": {"handshake": self.handshake != "rc", "options": bool(self.options)},
        }
        for protocol, given in of.items():
            for name, there in given.items():
                if there and self.protocol != protocol:
                    raise ConfigurationError(f"{name} is of {protocol}, and here {self.protocol} is spoken")
        if self.edc_library and self.handshake not in ("rc", self.abi):
            raise ConfigurationError(f"handshake: abi says how a library begins ({self.abi}); leave it out")
        if self.log and not self.command:
            raise ConfigurationError("log: what a process prints is seen where a command starts it; give one")

    @property
    def label(self) -> str:
        """Name in results."""
        if self.edc_library:
            return name_of(self.edc_library)
        words = self._words()
        return Path(words[0]).name if words else self.protocol

    @property
    def files(self) -> set[str]:
        """Files of the user that it is made of."""
        named = [self.edc_library, *self._words()]
        return {each for each in named if each and Path(each).is_file()}

    @property
    def has_process(self) -> bool:
        """Whether each simulation starts a process that decides."""
        return bool(self.command)

    def logged(self, path: Path) -> External:
        """The same with a file for what the process writes, where it is started here."""
        return replace(self, log=str(path)) if self.command else self

    def incompatibility(
        self,
        platform: Platform,
        conventions: Conventions | None = None,
        workload: Workload | None = None,
    ) -> str:
        """Why it cannot schedule such jobs on such a platform under such conventions; empty if it can."""
        if len(platform) != 1:
            return f"its protocol has one cluster, and here are {len(platform)}"
        return super().incompatibility(platform, conventions, workload)

    def _words(self) -> list[str]:
        """The command as words."""
        if not isinstance(self.command, str):
            return list(self.command)
        try:
            return shlex.split(self.command)
        except ValueError as error:
            raise ConfigurationError(f"command {self.command!r}: {error}") from None

    def schedule(self, submission: Submission) -> Schedule:
        """Simulate the jobs, and let the process decide.

        Raises
        ------
        ProtocolError
            If it breaks the protocol, or does not answer in time.
        ConfigurationError
            If it cannot be started, or platform and protocol do not go together.
        """
        if self.protocol == "batsim-5" and any(each.events for each in submission.clusters):
            raise ConfigurationError("batsim-5 has no message for hosts that fail; use batsim-4")
        sim = Simulator.of(submission)
        if self.command or self.socket:
            sockets.check_command(self.socket, self._words())
            # a process may give up while this one compiles
            sim.prepare()
        with self._peer() as peer:
            return self._simulate(sim, submission, peer)

    @contextmanager
    def _peer(self) -> Iterator[Peer]:
        """The decision process as long as it is needed."""
        if self.edc_library:
            with libraries.loaded(self.edc_library, self.abi or "rc") as library:
                yield library
            return
        log = Path(self.log) if self.log else None
        with sockets.connected(self.socket, self._words(), timeout=self.timeout, log=log) as peer:
            yield peer

    def _simulate(self, sim: Simulator, submission: Submission, peer: Peer) -> Schedule:
        """Simulate the jobs under a decision process, from its hello on."""
        names = self.job_ids or _numbers(submission)
        terms = Terms(
            job_ids=names,
            profiles=self.profiles or names,
            names=self.names,
            source=submission.workload.name,
            forward_profiles=self.forward_profiles,
            sleep_state=self.sleep_state,
            state_as_number=self.state_as_number,
        )
        codec = CODECS[self.protocol]
        session = Session(sim, codec, peer, terms)
        attributes: dict[str, int | str] = {"protocol": self.protocol}
        features: Sequence[str] = ()
        if self.protocol == "batsim-5":
            hello = self._hello(codec, peer)
            features = hello.features
            attributes["decision_process"] = f"{hello.name} {hello.version} {hello.commit}".strip()
        session.run(features)
        attributes |= vars(session.counts)
        attributes |= self._made_by()
        schedule = sim.schedule()
        return replace(
            schedule,
            counters={**schedule.counters, **attributes},
            variables={**schedule.variables, **session.variables()},
        )

    def _made_by(self) -> dict[str, str]:
        """Names and checksums of its files, that of the program among them."""
        words = self._words()
        program = shutil.which(words[0]) if words else None
        files = {Path(each) for each in self.files} | ({Path(program)} if program else set())
        named = sorted((each.name, checksum(each)) for each in files)
        sources = {"scheduler_source": ", ".join(name for name, _ in named)}
        return {**sources, "scheduler_checksum": ", ".join(each for _, each in named)} if named else {}

    def _hello(self, codec: Codec, peer: Peer) -> m.SchedulerHello:
        """What a decision process of version 5 says of itself."""
        handshake = self.abi or self.handshake
        try:
            reply = peer.exchange(batsim5.write_init(self.options.encode(), handshake))
            if handshake == "rc":
                said = batsim5.read_init_reply(reply)
            elif reply.removesuffix(b"\0"):
                raise ProtocolError(
                    f"answer of {len(reply):,} bytes to the first message: an empty one is wanted in the "
                    "handshake 'dev'; try 'rc'"
                )
            else:
                said = peer.exchange(codec.encode_events(0.0, [m.SimulatorHello(0.0, _VERSION)]))
            decisions = codec.decode_decisions(said).decisions
        except ProtocolError as error:
            raise ProtocolError(f"{self.protocol}, handshake {handshake!r}: {error}") from None
        if len(decisions) != 1 or not isinstance(decisions[0], m.SchedulerHello):
            found = ", ".join(codec.place(each, "")[0] for each in decisions)
            raise ProtocolError(
                f"{self.protocol}, handshake {handshake!r}: one EDCHelloEvent is wanted, "
                f"and there is {found or 'none'}"
            )
        return decisions[0]


def _numbers(submission: Submission) -> list[str]:
    """Names of jobs: their numbers in the log, or their places where two have one number."""
    numbers = np.asarray(submission.workload.job_number, np.int64).tolist()
    return [str(k) for k in (numbers if len(set(numbers)) == len(numbers) else range(len(numbers)))]
