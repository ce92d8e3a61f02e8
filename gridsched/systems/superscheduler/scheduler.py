"""Superschedulers: which cluster of a grid runs a job.

Shan, Oliker and Biswas, "Job superscheduler architecture and performance in computational grid environments"
(SC 2003), section 2. Schemes by name:

===========  ==========================================================================================
``local``    every job runs where it was submitted
``central``  every job goes to the cluster with the smallest turnaround cost
``s-i``      sender-initiated: a job that would wait long asks all partners and goes where it costs least
``r-i``      receiver-initiated: a job that would wait long waits for a partner that volunteers
``sy-i``     symmetrically-initiated: as ``r-i`` while there are volunteers, else as ``s-i``
===========  ==========================================================================================

The turnaround cost is the predicted wait plus the estimated run time; among clusters that differ by no
more than epsilon the least busy one is chosen, and the first of those. Where the paper is silent: checks
come at multiples of sigma, and at each check every job in a grid queue is decided again, home by home and in
order of submission. What else it leaves open are options of `Superscheduler`:

``message_delay``
    A grid scheduler asks others for one job at a time (section 2.1.1). They answer how they are when they are
    asked; the decision made from that takes effect when the delay is over, at home too. Until then further
    jobs that would have to ask wait in the grid queue, marked. Once the scheduler is free, the first of
    them is decided again: by its wait at home, which needs no message, then by asking; and so on until one
    asks. A request without success takes as long. A check looks at the wait at home of every job in the
    grid queue, even while the scheduler is occupied, and marks those that would have to ask. The job whose
    answers are awaited is marked, too, which matters if it is not sent anywhere. A volunteer has
    accepted a job as soon as it is chosen. Where nobody is to be asked (no partners; in ``r-i`` no
    volunteers) no message is sent, and ``central`` never needs one.
``migration_delay``
    A job that goes to another cluster than its home is in no queue for so long. The turnaround cost does not
    count delays; that of the paper has no such term.
``silent``
    A grid scheduler that answers no request does not volunteer either, and is ignored. Its partners do not
    know: they wait for its answer as for others, and one that falls silent after it volunteered still
    counts as a volunteer. Where nobody that could hold a job answers, the job waits for the next multiple of
    sigma, in ``s-i`` too. ``local`` and ``central`` have no such schedulers.
``transfers``
    A volunteer takes one job, or all that come, until the next check.
``no_gain``
    A job of ``sy-i`` that no volunteer helps, though partners have volunteered, waits for the next check; or
    it asks all partners at once, as in ``s-i``. If messages take time, that is a second request, which
    follows the first without a gap.
``busy``
    A cluster is as busy as the share of its processors that jobs hold at that moment; or as that share on
    average since the last multiple of sigma before that moment. This is so at the checks and between
    clusters of equal cost, in every scheme.
``standing``
    A volunteer is known until the next check; or only to the jobs that are decided at the check itself, which
    have waited and find their grid scheduler free. Jobs submitted at that instant come after it. Where
    messages take no time and nobody is silent, no job of ``sy-i`` ever waits, and it is ``s-i`` then.

What happens in which order at one instant is said in `kernel`.

Predicted waits come in two modes. ``exact``: what the local policy would do if nothing else arrived and
all estimates were right. ``plan``: up to the earliest place that a conservative plan of the cluster leaves,
whatever its policy (`gridsched.engine.conservative_plan`). Neither knows more than the local scheduler does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.clusters import StartPredictions
from gridsched.engine.records import FOREVER, LARGEST
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster
from gridsched.policies.local import OverrunName
from gridsched.results import Schedule
from gridsched.submission import Submission
from gridsched.systems.base import Scheduler, check_choices, check_values, is_whole
from gridsched.systems.cluster_records import overrun_code
from gridsched.systems.node_grids import grid_for
from gridsched.systems.superscheduler import kernel
from gridsched.workloads.columns import LONGEST_TIME

SchemeName = Literal["local", "central", "s-i", "r-i", "sy-i"]
PredictionsName = Literal["exact", "plan"]
TransfersName = Literal["one", "all"]
NoGainName = Literal["wait", "ask"]
BusyName = Literal["now", "interval"]
StandingName = Literal["until-check", "at-check"]

_SCHEMES: dict[str, kernel.Scheme] = {
    "local": kernel.Scheme.LOCAL,
    "central": kernel.Scheme.CENTRAL,
    "s-i": kernel.Scheme.SENDER_INITIATED,
    "r-i": kernel.Scheme.RECEIVER_INITIATED,
    "sy-i": kernel.Scheme.SYMMETRICALLY_INITIATED,
}


@dataclass(frozen=True, kw_only=True)
class Superscheduler(Scheduler):
    """A scheme and its parameters.

    Parameters
    ----------
    scheme : str
        ``local``, ``central``, ``s-i``, ``r-i`` or ``sy-i``.
    phi : int
        A job whose predicted wait at home is shorter stays there, seconds.
    sigma : int
        Time between checks of how busy the clusters are, seconds.
    delta : float
        A cluster that is less busy than this share of its processors volunteers.
    epsilon : float
        Turnaround times that differ by no more count as equal, seconds.
    partners : mapping of cluster name to names, optional
        Clusters that a home may deal with; all others if not given.
    message_delay : int
        How long a grid scheduler waits for the answers to a request, whole seconds.
    migration_delay : int
        How long a job is in transit to another cluster than its home, whole seconds.
    silent : mapping of cluster name to a sequence of (from, until), optional
        When the grid scheduler of a cluster neither answers nor volunteers: whole seconds, `until` not
        included.
    transfers : {"one", "all"}
        How many jobs a volunteer takes until the next check.
    no_gain : {"wait", "ask"}
        Whether a job of ``sy-i`` waits in the grid queue where there are volunteers but none is better than
        home, or asks all partners.
    busy : {"now", "interval"}
        Whether a cluster is as busy as now, or as on average since the last multiple of sigma.
    standing : {"until-check", "at-check"}
        Whether volunteers are known until the next check, or only to jobs that are decided at the check.
    predictions : {"exact", "plan"}
        Where predicted waits come from.

    Raises
    ------
    ConfigurationError
        If a value is out of range, or intervals of silence are empty or overlap.
    """

    scheme: SchemeName = "s-i"
    phi: int = 60
    sigma: int = 300
    delta: float = 0.7
    epsilon: float = 0.0
    partners: Mapping[str, Sequence[str]] | None = None
    message_delay: int = 0
    migration_delay: int = 0
    silent: Mapping[str, Sequence[tuple[int, int]]] | None = None
    transfers: TransfersName = "one"
    no_gain: NoGainName = "wait"
    busy: BusyName = "now"
    standing: StandingName = "until-check"
    predictions: PredictionsName = "exact"

    system: ClassVar[str] = "superscheduler"
    not_in_studies: ClassVar[frozenset[str]] = frozenset({"scheme"})
    knows: ClassVar[str] = "predicted starts at home and at the clusters asked"
    cannot: ClassVar[Mapping[str, str]] = {
        "arrays": "a cluster counts its own tasks, not those that run elsewhere",
        "passes": "predicted starts assume one pass for all events of an instant",
        "deadlines": "the schemes compare turnaround",
        "reservations": "the paper has none: jobs start as soon as they can",
        "membership": "the clusters of a superscheduler are fixed; one that falls silent is an option",
        "changes": "predicted waits assume fixed processors of a cluster",
        "preemption": "a job that has started runs to its end",
    }

    uses: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "message delay": {"message_delay": 60},
        "migration delay": {"migration_delay": 60},
    }

    def __post_init__(self) -> None:
        check_choices(self)
        whole = f"whole seconds from 0 to {LARGEST}"
        check_values(
            self,
            {
                "phi": (self.phi >= 1, "1 or more seconds"),
                "sigma": (self.sigma >= 1, "1 or more seconds"),
                "epsilon": (self.epsilon >= 0, "0 or more seconds"),
                "delta": (0 < self.delta <= 1, "a share above 0, at most 1"),
                "message_delay": (is_whole(self.message_delay, 0), whole),
                "migration_delay": (is_whole(self.migration_delay, 0), whole),
            },
        )
        for name, intervals in (self.silent or {}).items():
            _check_silence(name, intervals)

    @property
    def label(self) -> str:
        """Name in results."""
        return self.scheme

    def schedule(self, submission: Submission) -> Schedule:
        """Run the jobs through the scheme and the local policies of the clusters."""
        submission = submission.with_homes()
        clusters = submission.clusters
        options = _options(self, submission.conventions.overrun)
        predictions = StartPredictions(options.predictions)
        grid = grid_for(submission, predictions, reach=self.reached(clusters))
        grid.check_estimates(submission.records())
        deciders = _deciders(self, clusters, len(submission))
        todo, costs = np.empty(len(submission), np.int64), np.empty(len(clusters), np.int64)
        grid.run(lambda: kernel.schedule(grid.state, deciders, grid.local, options, grid.score, todo, costs))
        return grid.schedule({"silence": self.silence_as_text(), "queries": grid.queries})

    def reached(self, clusters: Sequence[Cluster]) -> NDArray[np.bool_]:
        """Clusters that a job of each home may use: bool[homes, clusters]."""
        own = np.eye(len(clusters), dtype=np.bool_)
        if self.scheme == "central":
            return np.ones_like(own)
        return own if self.scheme == "local" else _partners(self, clusters) | own

    def silence_as_text(self) -> str:
        """Intervals of silence of each cluster in JSON, for the attributes of a run."""
        silent = self.silent or {}
        return json.dumps({name: np.array(silent[name], np.int64).tolist() for name in sorted(silent)})


def _is_pair(interval: Any) -> bool:
    """Whether something is two whole numbers."""
    return (
        isinstance(interval, Sequence)
        and len(interval) == 2
        and all(isinstance(time, Integral) for time in interval)
    )


def _check_silence(name: str, intervals: Sequence[tuple[int, int]]) -> None:
    """Refuse intervals that are no pairs of whole seconds, are empty, out of range, or overlap."""
    for interval in intervals:
        if not _is_pair(interval):
            raise ConfigurationError(
                f"silent: cluster {name!r} has {interval!r}; use pairs (from, until) of whole seconds"
            )
        begin, until = interval
        if begin >= until or max(abs(begin), abs(until)) > LONGEST_TIME:
            raise ConfigurationError(
                f"silent: cluster {name!r} has an interval from {begin} to {until} s; "
                f"use one that is not empty, with times up to {LONGEST_TIME} s"
            )
    for (begin, until), (after, end) in pairwise(sorted(map(tuple, intervals))):
        if after < until:
            raise ConfigurationError(
                f"silent: cluster {name!r} has intervals that overlap, from {begin} to {until} s and "
                f"from {after} to {end} s; join them"
            )


def _options(superscheduler: Superscheduler, overrun: OverrunName) -> kernel.SuperschedulerOptions:
    """Parameters as the kernel wants them."""
    return kernel.SuperschedulerOptions(
        scheme=int(_SCHEMES[superscheduler.scheme]),
        phi=int(superscheduler.phi),
        sigma=int(superscheduler.sigma),
        delta=float(superscheduler.delta),
        epsilon=float(superscheduler.epsilon),
        overrun=overrun_code(overrun),
        message_delay=int(superscheduler.message_delay),
        migration_delay=int(superscheduler.migration_delay),
        takes_all=superscheduler.transfers == "all",
        goes_on=superscheduler.no_gain == "ask",
        average=superscheduler.busy == "interval",
        at_check=superscheduler.standing == "at-check",
        predictions=int(StartPredictions[superscheduler.predictions.upper()]),
    )


def _deciders(
    superscheduler: Superscheduler, clusters: Sequence[Cluster], jobs: int
) -> kernel.Superschedulers:
    """Grid schedulers without jobs."""
    return kernel.allocate(
        jobs,
        len(clusters),
        _partners(superscheduler, clusters),
        _silence(superscheduler, clusters),
        superscheduler.sigma,
    )


def _partners(superscheduler: Superscheduler, clusters: Sequence[Cluster]) -> NDArray[np.bool_]:
    """Whose jobs may go where, without the diagonal."""
    names = [cluster.name for cluster in clusters]
    partners = ~np.eye(len(clusters), dtype=np.bool_)
    if superscheduler.partners is None:
        return partners
    allowed = np.zeros_like(partners)
    for home, others in superscheduler.partners.items():
        _check_names("partners", (home, *others), names)
        allowed[names.index(home), [names.index(name) for name in others]] = True
    return partners & allowed


def _silence(superscheduler: Superscheduler, clusters: Sequence[Cluster]) -> NDArray[np.int64]:
    """When each grid scheduler falls silent, answers again, and so on; FOREVER after the last time."""
    names = [cluster.name for cluster in clusters]
    silent = superscheduler.silent or {}
    _check_names("silent", silent, names)
    most = max((len(intervals) for intervals in silent.values()), default=0)
    silence = np.full((len(clusters), 2 * most + 1), FOREVER, np.int64)
    for name, intervals in silent.items():
        silence[names.index(name), : 2 * len(intervals)] = np.ravel(sorted(map(tuple, intervals)))
    return silence


def _check_names(key: str, given: Iterable[str], names: Sequence[str]) -> None:
    """Refuse clusters that the grid does not have."""
    for name in given:
        if name not in names:
            raise ConfigurationError(f"{key}: unknown cluster {name!r}; there are {', '.join(names)}")


SCHEDULER = Superscheduler

SCHEDULERS: dict[str, Callable[[], Scheduler]] = {
    scheme: partial(Superscheduler, scheme=scheme) for scheme in get_args(SchemeName) if scheme != "local"
}
"""Schemes by name; ``local`` is every cluster on its own."""
