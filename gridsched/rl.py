"""An environment of Gymnasium in which queue orders are learned: `gridsched/QueueOrder-v0`.

The scheduler of a cluster chooses one of the first waiting jobs and commits itself to it until it starts;
with backfilling, others start in its shadow meanwhile. So do the environment and the baselines of Zhang et
al., "RLScheduler: an automated HPC batch job scheduler using reinforcement learning", SC 2020.

Importing this module registers the environment; it needs the extra `gridsched[rl]`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import check_whole

try:
    import gymnasium
except ImportError as error:
    raise ImportError("gridsched.rl needs gymnasium: pip install 'gridsched[rl]'") from error

from gymnasium import spaces
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from gridsched.engine import committed
from gridsched.engine.committed import FEATURES, KEPT
from gridsched.errors import ConfigurationError, meant
from gridsched.measures import measure
from gridsched.platform import Cluster
from gridsched.policies.local import OrderName, order_score
from gridsched.policies.scores import SCORE, Score
from gridsched.sequences import (
    SequenceBackfilling,
    WaitName,
    check_sequence,
    given_jobs,
    idle_clusters,
    measures_of,
    published_jobs,
)
from gridsched.traces import fetch, read_swf
from gridsched.workloads import Workload

ID = "gridsched/QueueOrder-v0"

REWARDS: tuple[str, ...] = (
    "bounded_slowdown_mean",
    "slowdown_mean",
    "wait_time_mean",
    "response_time_mean",
    "utilisation_to_last_start",
    "utilisation_makespan",
)
"""Measures of a sequence that may be the reward; those of which less is better count negative."""

Observations = NDArray[np.float32]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Masks = NDArray[np.int8]


# --- action spaces --------------------------------------------------------------------------------


class QueuePlace(spaces.Discrete):
    """Places in the queue, of which `sample` draws one where a job waits now unless it is given a mask."""

    def __init__(self, visible: int) -> None:
        super().__init__(visible)
        self.mask: Masks = np.ones(visible, np.int8)

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """Draw a place."""
        return super().sample(self.mask if mask is None and probability is None else mask, probability)


class QueuePlaces(spaces.MultiDiscrete):
    """A `QueuePlace` for each of several clusters."""

    def __init__(self, clusters: int, visible: int) -> None:
        super().__init__(np.full(clusters, visible))
        self.mask: Masks = np.ones((clusters, visible), np.int8)

    def sample(self, mask: Any = None, probability: Any = None) -> Integers:
        """Draw a place for each cluster."""
        return super().sample(tuple(self.mask) if mask is None and probability is None else mask, probability)


# --- clusters -------------------------------------------------------------------------------------


class _Clusters:
    """Clusters that run sequences of one workload step by step; see `QueueOrderEnv` for the parameters."""

    def __init__(
        self,
        clusters: int,
        workload: Workload | str | Path,
        processors: int | None = None,
        length: int = 256,
        visible: int = 128,
        backfilling: SequenceBackfilling = "none",
        reward: str = "bounded_slowdown_mean",
        starts: Sequence[int] | Integers | None = None,
    ) -> None:
        starts = None if starts is None else list(map(int, starts))
        _check_name("backfilling", backfilling, get_args(SequenceBackfilling))
        _check_name("reward", reward, REWARDS)
        clusters, length, visible = (
            check_whole(key, value, least=1)
            for key, value in (("num_envs", clusters), ("length", length), ("visible", visible))
        )
        self.jobs, self.cluster = _read(workload, processors)
        self.length, self.visible, self.starts = length, visible, starts
        self.backfills = backfilling == "shadow"
        self.reward, self.sign = reward, 1.0 if measure(reward).better == "higher" else -1.0
        if starts is None:
            check_sequence(self.jobs, self.cluster, 0, max(length, len(self.jobs)))
        elif not starts:
            raise ConfigurationError("starts is empty; give places of jobs in the log, from 0")
        for start in starts or ():
            check_sequence(self.jobs, self.cluster, start, length)
        first = starts[0] if starts else 0
        self.state = idle_clusters(self.jobs, self.cluster, [first] * clusters, length)
        self.longest = max(1, int(self.state.jobs["estimate"].max()))
        self.ended: Flags = np.ones(clusters, np.bool_)
        self.kept: Integers = np.full(clusters, KEPT)

    @property
    def now(self) -> Integers:
        """Present time in each cluster [s]."""
        return np.array(self.state.state["now"])

    def drawn(self, generator: np.random.Generator) -> int:
        """First job of a sequence that is drawn at random."""
        if self.starts is None:
            return int(generator.integers(len(self.jobs) - self.length + 1))
        return self.starts[int(generator.integers(len(self.starts)))]

    def chosen(self, start: Any) -> int:
        """First job of a sequence that the user chose."""
        first: int = operator.index(start)
        check_sequence(self.jobs, self.cluster, first, self.length)
        return first

    def check(self, actions: Integers) -> None:
        """Refuse actions that are no places of waiting jobs, before anything is done."""
        waiting = self.state.state["waiting"]
        wrong = ~self.ended & ((actions < 0) | (actions >= np.minimum(waiting, self.visible)))
        if wrong.any():
            c = int(np.argmax(wrong))
            raise self.invalid(int(actions[c]), c)

    def invalid(self, action: Any, c: int) -> InvalidAction:
        """Error of an action that cannot be done."""
        where = f" in environment {c}" if len(self.ended) > 1 else ""
        waiting, now = (int(self.state.state[c][name]) for name in ("waiting", "now"))
        if not isinstance(action, int) or not 0 <= action < self.visible:
            reason = f"the action space is 0 to {self.visible - 1}"
        elif waiting == 1:
            reason = "one job waits, so that only 0 is valid"
        else:
            reason = f"{waiting} jobs wait, so that only 0 to {waiting - 1} are valid"
        return InvalidAction(f"action {action!r} at {now} s{where}: {reason}; see action_masks()")

    def go_on(self, firsts: Integers, actions: Integers) -> tuple[Observations, Masks]:
        """Begin sequences, commit to jobs, and go on to the next choice in each cluster."""
        observations = np.empty((len(self.ended), self.visible, len(FEATURES)), np.float32)
        masks = np.empty((len(self.ended), self.visible), np.int8)
        committed.step(self.state, firsts, actions, self.backfills, self.longest, observations, masks)
        self.ended = self.state.state["waiting"] == 0
        return observations, masks

    def outcome(self, c: int) -> tuple[float, dict[str, float]]:
        """Reward and measures of the sequence that has ended in a cluster."""
        (values,) = measures_of(self.state, [c])
        return self.sign * values[self.reward], values

    def ordered(self, score: Score, waits: WaitName) -> Integers:
        """Action in each cluster that a score stands for."""
        actions = np.empty(len(self.ended), np.int64)
        committed.choose(self.state, self.visible, waits == "true", SCORE.compile(score), actions)
        return actions


def _check_name(key: str, value: str, known: Sequence[str]) -> None:
    """Refuse an unknown word."""
    if value not in known:
        raise ConfigurationError(f"{key} is {value!r}; use one of {', '.join(known)}{meant(value, known)}")


def _read(workload: Workload | str | Path, processors: int | None) -> tuple[Workload, Cluster]:
    """Jobs, and the cluster that they are submitted to."""
    log = not isinstance(workload, Workload)
    if isinstance(workload, Workload):
        jobs = workload
    else:
        jobs = read_swf(workload if Path(workload).is_file() else fetch(str(workload)))
    size = jobs.processors_available if processors is None else processors
    if size is None:
        raise ConfigurationError(
            f"{jobs.name}: does not say how many processors its cluster has; give processors"
        )
    cluster = Cluster(processors=size, name=jobs.name)
    return published_jobs(jobs) if log else given_jobs(jobs), cluster


def _options(options: dict[str, Any] | None, known: Sequence[str]) -> dict[str, Any]:
    """Options of a reset, each of them known."""
    for key in options or {}:
        if key not in known:
            raise ConfigurationError(f"option {key!r}; use {' or '.join(known)}{meant(key, known)}")
    return options or {}


# --- environments ---------------------------------------------------------------------------------


class QueueOrderEnv(gymnasium.Env[Observations, np.int64]):
    """One cluster: an action is the place in the queue of the job that starts next.

    An observation has a row for each of the first `visible` waiting jobs, in order of submission, with the
    columns of `gridsched.engine.committed.FEATURES`; other rows are 0. `action_masks()` and
    `info["action_mask"]` say which actions are valid, others raise `gymnasium.error.InvalidAction`.
    A sequence is terminated once all its jobs have started, and is never truncated. Its reward is 0 until
    then; the last `info` has its measures by name.

    Parameters
    ----------
    workload : Workload, str or path
        A clean workload, or the path of a log or the name of one of the archive. Logs are read as the
        simulator of the paper reads them (`gridsched.sequences.published_jobs`).
    processors : int, optional
        Of the cluster; by default as many as the log says.
    length : int
        Jobs of a sequence.
    visible : int
        Waiting jobs among which is chosen, the first ones of the queue.
    backfilling : {"none", "shadow"}
        Whether other jobs start in the shadow of the chosen one.
    reward : str
        One of `REWARDS`.
    starts : sequence of int, optional
        Places of jobs in the log, from 0, at which sequences begin; by default any place is drawn.

    Raises
    ------
    GridschedError
        If a parameter makes no sense, or a job is larger than the cluster.

    Examples
    --------
    >>> import gridsched as gs
    >>> import gridsched.rl, gymnasium
    >>> jobs = gs.LublinModel.published(64).synthesise(jobs=400, seed=1)
    >>> env = gymnasium.make("gridsched/QueueOrder-v0", workload=jobs, processors=64, length=32)
    >>> observation, info = env.reset(seed=1)
    >>> observation.shape, int(info["action_mask"].sum())
    ((128, 5), 1)
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc] # an instance variable there

    def __init__(
        self,
        workload: Workload | str | Path,
        *,
        processors: int | None = None,
        length: int = 256,
        visible: int = 128,
        backfilling: SequenceBackfilling = "none",
        reward: str = "bounded_slowdown_mean",
        starts: Sequence[int] | Integers | None = None,
    ) -> None:
        self._cluster = _Clusters(1, workload, processors, length, visible, backfilling, reward, starts)
        visible = self._cluster.visible
        self._places = QueuePlace(visible)
        self.action_space = self._places
        self.observation_space = spaces.Box(0.0, 1.0, (visible, len(FEATURES)), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin a sequence that is drawn at random, or the one from the place `options["start"]` on."""
        super().reset(seed=seed)
        options = _options(options, ["start"])
        own = self._cluster
        start = own.chosen(options["start"]) if "start" in options else own.drawn(self.np_random)
        observation, info = self._go_on(np.array([start]), own.kept)
        return observation, {**info, "start": start}

    def step(self, action: Any) -> tuple[Observations, float, bool, bool, dict[str, Any]]:
        """Commit to the job at a place of the queue, and go on to the next choice."""
        own = self._cluster
        if own.ended[0]:
            raise ResetNeeded("no sequence is under way; call reset()")
        try:
            actions = np.array([operator.index(action)])
        except TypeError:
            raise own.invalid(action, 0) from None
        own.check(actions)
        observation, info = self._go_on(own.kept, actions)
        if not own.ended[0]:
            return observation, 0.0, False, False, info
        reward, values = own.outcome(0)
        return observation, reward, True, False, {**info, **values}

    def action_masks(self) -> Flags:
        """Whether each action is valid; the first one at the end, too, so that some action always is."""
        return self._places.mask.astype(np.bool_)

    def ordered(self, score: Score, waits: WaitName) -> int:
        """Action that a score stands for, see `QueueOrder`."""
        return int(self._cluster.ordered(score, waits)[0])

    def _go_on(self, firsts: Integers, actions: Integers) -> tuple[Observations, dict[str, Any]]:
        """Observation and info of the next choice."""
        observations, masks = self._cluster.go_on(firsts, actions)
        self._places.mask = masks[0].copy()
        return observations[0], {"action_mask": masks[0], "time": int(self._cluster.now[0])}


class QueueOrderVectorEnv(VectorEnv[Observations, Integers, NDArray[Any]]):
    """Several clusters that step in one kernel, each as in `QueueOrderEnv`.

    With `reset(seed=s)` the copy c is as a `QueueOrderEnv` with `reset(seed=s + c)`. By default a copy whose
    sequence has ended begins the next one at the next step, which ignores its action and has the reward 0.

    Parameters
    ----------
    num_envs : int
        Number of clusters.
    autoreset_mode : gymnasium.vector.AutoresetMode or str
        When sequences that have ended are followed by others: `NextStep`, `SameStep` or `Disabled`.
    **parameters
        See `QueueOrderEnv`.

    Examples
    --------
    >>> import gridsched as gs
    >>> import gridsched.rl, gymnasium
    >>> jobs = gs.LublinModel.published(64).synthesise(jobs=400, seed=1)
    >>> envs = gymnasium.make_vec("gridsched/QueueOrder-v0", num_envs=8, workload=jobs, processors=64)
    >>> observations, infos = envs.reset(seed=1)
    >>> observations.shape
    (8, 128, 5)
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **parameters: Any,
    ) -> None:
        self._clusters = _Clusters(num_envs, **parameters)
        self.num_envs = num_envs = len(self._clusters.ended)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset_mode}
        visible = self._clusters.visible
        self._places = QueuePlaces(num_envs, visible)
        self.single_action_space, self.action_space = spaces.Discrete(visible), self._places
        self.single_observation_space = spaces.Box(0.0, 1.0, (visible, len(FEATURES)), np.float32)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._generators = [np_random()[0] for _ in range(num_envs)]
        self._begun: Flags = np.zeros(num_envs, np.bool_)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin sequences, in all copies or in those of `options["reset_mask"]`.

        They are drawn at random, or begin at the places `options["start"]`: one for all, or one for each.
        """
        options = _options(options, ["start", "reset_mask"])
        chosen = np.broadcast_to(np.asarray(options.get("reset_mask", True)), self.num_envs)
        seeds = [int(seed) + c for c in range(self.num_envs)] if isinstance(seed, int | np.integer) else seed
        if seeds is not None and len(seeds) != self.num_envs:
            raise ConfigurationError(
                f"{len(seeds)} seeds for {self.num_envs} environments; give one for each"
            )
        for c, own in enumerate(seeds or ()):
            if chosen[c] and own is not None:
                self._generators[c] = np_random(own)[0]
        starts = np.broadcast_to(np.asarray(options["start"]), self.num_envs) if "start" in options else None
        self._begun = self._begun | chosen
        return self._go_on(self._firsts(chosen, starts), self._clusters.kept)

    def step(self, actions: Any) -> tuple[Observations, NDArray[np.float64], Flags, Flags, dict[str, Any]]:
        """Commit to a job in each cluster whose sequence is under way, and go on to the next choices."""
        own, ended = self._clusters, self._clusters.ended
        stopped = ~self._begun
        if self.autoreset_mode is not AutoresetMode.NEXT_STEP:
            stopped |= ended
        if stopped.any():
            raise ResetNeeded(f"no sequence is under way in environment {np.argmax(stopped)}; call reset()")
        actions = self._checked(actions)
        observations, infos = self._go_on(self._firsts(ended), actions)
        terminated, truncated = own.ended.copy(), np.zeros(self.num_envs, np.bool_)
        rewards = np.zeros(self.num_envs)
        finals: dict[int, dict[str, float]] = {}
        for c in np.flatnonzero(terminated).tolist():
            rewards[c], finals[c] = own.outcome(c)
        if finals and self.autoreset_mode is AutoresetMode.SAME_STEP:
            observations, infos = self._begin_again(observations, infos, finals)
            return observations, rewards, terminated, truncated, infos
        for c, values in finals.items():
            infos = self._add_info(infos, values, c)
        return observations, rewards, terminated, truncated, infos

    def action_masks(self) -> Flags:
        """Whether each action of each copy is valid; the first one always is, see `QueueOrderEnv`."""
        return self._places.mask.astype(np.bool_)

    def ordered(self, score: Score, waits: WaitName) -> Integers:
        """Actions that a score stands for, see `QueueOrder`."""
        return self._clusters.ordered(score, waits)

    def _firsts(self, begins: Flags, starts: Integers | None = None) -> Integers:
        """First jobs of the sequences that begin in some copies: those given, else drawn at random."""
        firsts = self._clusters.kept.copy()
        for c in np.flatnonzero(begins).tolist():
            own = self._clusters
            firsts[c] = own.drawn(self._generators[c]) if starts is None else own.chosen(starts[c])
        return firsts

    def _checked(self, actions: Any) -> Integers:
        """Actions as the kernel wants them, each of them valid."""
        given = np.asarray(actions)
        if given.dtype.kind not in "iu" or given.shape != (self.num_envs,):
            raise InvalidAction(
                f"actions {actions!r}: give an array of {self.num_envs} whole numbers, one an environment"
            )
        checked = np.ascontiguousarray(given, np.int64)
        self._clusters.check(checked)
        return checked

    def _go_on(self, firsts: Integers, actions: Integers) -> tuple[Observations, dict[str, Any]]:
        """Observations and infos of the next choices."""
        observations, masks = self._clusters.go_on(firsts, actions)
        self._places.mask = masks.copy()
        everywhere = np.ones(self.num_envs, np.bool_)
        infos: dict[str, Any] = {"action_mask": masks, "_action_mask": everywhere}
        infos |= {"time": self._clusters.now, "_time": everywhere.copy()}
        begun = firsts != KEPT
        if begun.any():
            infos |= {"start": np.where(begun, firsts, 0), "_start": begun}
        return observations, infos

    def _begin_again(
        self, observations: Observations, infos: dict[str, Any], finals: dict[int, dict[str, float]]
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin sequences where others have ended in this step; what was seen last is in the infos."""
        begun = self._go_on(self._firsts(self._clusters.ended), self._clusters.kept)
        for c, values in finals.items():
            seen = {"action_mask": infos["action_mask"][c], "time": int(infos["time"][c])}
            self._add_info(begun[1], {"final_obs": observations[c], "final_info": seen | values}, c)
        return begun


# --- baselines ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QueueOrder:
    """A queue order as a policy: called with an environment, it gives the action, or those of all copies.

    The baselines of the paper are fcfs, wfp3, unicep, shortest and f1. They choose among the jobs that the
    environment shows: with `visible` as large as `length`, they are the schedulers of a study of sequences.

    Parameters
    ----------
    order : str or score
        Key of `gridsched.policies.local.ORDERS`, or a function as for `gridsched.LocalPolicy`.
    waits : {"true", "unset"}
        Waits that the score has; unset ones are those of the published baselines.

    Examples
    --------
    >>> import gridsched as gs
    >>> import gridsched.rl, gymnasium
    >>> jobs = gs.LublinModel.published(64).synthesise(jobs=400, seed=1)
    >>> env = gymnasium.make("gridsched/QueueOrder-v0", workload=jobs, processors=64, length=32)
    >>> _, info = env.reset(options={"start": 100})
    >>> policy, ended = gridsched.rl.QueueOrder("shortest"), False
    >>> while not ended:
    ...     _, reward, ended, _, info = env.step(policy(env))
    >>> reward == -info["bounded_slowdown_mean"]
    True
    """

    order: OrderName | Score = "fcfs"
    waits: WaitName = "true"

    def __post_init__(self) -> None:
        order_score(self.order, "order")
        _check_name("waits", self.waits, get_args(WaitName))

    def __call__(self, environment: Any) -> Any:
        """Place in the queue of the job that comes first in this order."""
        return environment.unwrapped.ordered(order_score(self.order, "order"), self.waits)


if ID not in gymnasium.registry:
    gymnasium.register(
        ID,
        entry_point="gridsched.rl:QueueOrderEnv",
        vector_entry_point="gridsched.rl:QueueOrderVectorEnv",
    )
