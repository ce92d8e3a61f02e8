"""Local schedulers of one cluster, composed of queue order, backfilling, backfill order and estimates.

======================  ==========================  ==================  ==============
name                    queue order                 backfilling         backfill order
======================  ==========================  ==================  ==============
``fcfs``                first come, first served    none
``ff``                  first come, first served    first fit           queue
``sjf``                 shortest estimate first     none
``easy``                first come, first served    EASY                queue
``easy(r)``             first come, first served    EASY, r             queue
                                                    reservations
``sjbf``                first come, first served    EASY                shortest first
``lxf``                 largest expansion factor    EASY                queue
``lxwf``                largest expansion and wait  EASY                queue
``conservative``        first come, first served    every waiting job
``creasy``              users who would go away     EASY                queue
``easy++``              first come, first served    EASY                shortest first
======================  ==========================  ==================  ==============

``creasy`` is after the scheduler of that name (`gridsched.policies.scores.critical`).

``easy++`` works with run times that it predicts while it runs (Tsafrir, Etsion and Feitelson, "Backfilling
using system-generated predictions rather than user runtime estimates", IEEE TPDS 18(6), 2007).

The space is that of the Alvio simulator (Guim et al., "The XtreemOS JScheduler: using self-scheduling
techniques in large computing architectures", LASCO 2008); EASY is that of Lifka, "The ANL/IBM SP scheduling
system", JSSPP 1995. `tests/conformance/README.md` states every convention with an example.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import counted, local_scheduler, runtime_prediction, snapshot, static_order
from gridsched.engine.records import LARGEST, Backfilling, Correction, Overrun, unlabelled
from gridsched.errors import ConfigurationError, check_choice, check_number, meant
from gridsched.policies import scores
from gridsched.policies.scores import Score
from gridsched.workloads.table import UNKNOWN

OrderName = Literal[
    "fcfs",
    "shortest",
    "smallest",
    "smallest_area",
    "lxf",
    "lxwf",
    "critical",
    "wfp3",
    "unicep",
    "f1",
    "f2",
    "f3",
    "f4",
]
BackfillingName = Literal["none", "first_fit", "easy", "conservative"]
OverrunName = Literal["doubling", "increments"]
PassName = Literal["instant", "event", "arrivals-first"]
PredictionName = Literal["estimate", "double", "actual", "recent"]
CorrectionName = Literal["doubling", "requested", "increments"]


def _first_come(submit_time: Any) -> Any:
    return -submit_time


def _shortest(estimate: Any) -> Any:
    return -estimate


def _smallest(processors: Any) -> Any:
    return -processors


def _smallest_area(estimate: Any, processors: Any) -> Any:
    return -estimate * processors


ORDERS: dict[str, Score] = {
    "fcfs": _first_come,
    "shortest": _shortest,
    "smallest": _smallest,
    "smallest_area": _smallest_area,
    "lxf": scores.largest_expansion_factor,
    "lxwf": scores.largest_expansion_factor_and_wait,
    "critical": scores.critical,
    "wfp3": scores.wfp3,
    "unicep": scores.unicep,
    "f1": scores.f1,
    "f2": scores.f2,
    "f3": scores.f3,
    "f4": scores.f4,
}
"""Orders of waiting jobs by name, as scores; ties go by order of submission."""

BY_SIZE: tuple[Score, ...] = (_smallest, _smallest_area)
"""Orders for which the size of a job is what it takes of the cluster, not what it asks for: whole nodes."""

_ORDER_WORDS = {
    "fcfs": "first come, first served",
    "shortest": "the shortest estimate first",
    "smallest": "the fewest processors first",
    "smallest_area": "the smallest product of estimate and processors first",
    "lxf": "the largest expansion factor first, (wait + estimate) / estimate",
    "lxwf": "the largest expansion factor first, plus 0.02 an hour of waiting",
    "critical": "jobs whose users are about to leave first, and those that have waited for days",
    "wfp3": "the largest (wait / estimate)^3 x processors first",
    "unicep": "the largest wait / (log2(processors) x estimate) first",
    "f1": "the smallest log10(estimate) x processors + 870 log10(submit time) first",
    "f2": "the smallest sqrt(estimate) x processors + 25,600 log10(submit time) first",
    "f3": "the smallest estimate x processors + 6,860,000 log10(submit time) first",
    "f4": "the smallest estimate x sqrt(processors) + 530,000 log10(submit time) first",
}
_BACKFILLING_WORDS = {
    "none": "a job that does not fit blocks those behind it",
    "first_fit": "any job that fits may start before those ahead of it",
    "easy": "later jobs may start if they do not delay the first",
    "conservative": "every waiting job has a reservation, and later jobs may start if they delay none",
}

_PREDICTION_WORDS = {
    "double": "twice the estimate counts as one",
    "actual": "the run time counts as the estimate",
    "recent": "the mean of the last two run times of the user counts as the estimate",
}

AS_QUEUE = "queue"
"""Name of the backfill order that is the queue order."""


@dataclass(frozen=True, kw_only=True)
class LocalPolicy:
    """A point in the space of local scheduling policies.

    Parameters
    ----------
    name : str, optional
        Label in results; by default the name of `POLICIES` with these parts, else the parts.
    order : str or score
        Queue order: a key of `ORDERS` or a user's score (see `scores`).
    backfilling : {"none", "first_fit", "easy", "conservative"}
        What happens once the first waiting job does not fit.
    reservations : int
        Number of waiting jobs that EASY protects from delay.
    backfill_order : str or score
        Order in which later jobs are tried: "queue", a key of `ORDERS` or a user's score that does not
        change with time. Conservative backfilling has none.
    prediction : {"estimate", "double", "actual", "recent"}
        What the policy takes for run times: the runtime estimates of the run, twice these, the run times
        themselves, or the mean of the last two run times of the job's user that are known on the cluster when
        it is submitted there, at most its estimate (for EASY with one reservation, first come, first served).
        Other parts that say "estimate" or "shortest" mean the prediction.
    correction : {"doubling", "requested", "increments"}
        What a prediction of "recent" becomes that a job exceeds: it is doubled again and again, becomes the
        estimate, or grows by the increments of Tsafrir et al. up to it
        (`gridsched.engine.runtime_prediction`).

    Raises
    ------
    ConfigurationError
        If a part is unknown or the parts do not go together.
    """

    name: str = ""
    order: OrderName | Score = "fcfs"
    backfilling: BackfillingName = "none"
    reservations: int = 1
    backfill_order: Literal["queue"] | OrderName | Score = "queue"
    prediction: PredictionName = "estimate"
    correction: CorrectionName = "increments"

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self._label())
        said = f"policy {self.name!r}"
        check_choice(f"{said}: backfilling", self.backfilling, get_args(BackfillingName))
        check_number(f"{said}: reservations", self.reservations, least=1)
        if self.reservations > 1 and self.backfilling != "easy":
            raise self._error("reservations", self.reservations, "only backfilling 'easy' takes a number")
        order_score(self.order, f"{said}: order")
        self._check_prediction()
        if self.backfill_order == AS_QUEUE:
            return
        if self.backfilling not in ("first_fit", "easy"):
            raise self._error("backfill_order", self.backfill_order, f"{self.backfilling} has none")
        if scores.changes_with_time(order_score(self.backfill_order, f"{said}: backfill_order")):
            raise self._error("backfill_order", self.backfill_order, "it must not change with time")

    def __repr__(self) -> str:
        """As a dataclass has it; what policies without predictions do not use is left out."""
        used = [key for key in ("name", *_PARTS) if self.predicts or key not in _OF_PREDICTIONS]
        return f"LocalPolicy({', '.join(f'{key}={getattr(self, key)!r}' for key in used)})"

    @property
    def predicts(self) -> bool:
        """Whether it works with other run times than the runtime estimates of the run."""
        return self.prediction != "estimate"

    def _check_prediction(self) -> None:
        """Refuse predictions and corrections that do not exist, or that other parts cannot work with."""
        check_choice(f"policy {self.name!r}: prediction", self.prediction, get_args(PredictionName))
        check_choice(f"policy {self.name!r}: correction", self.correction, get_args(CorrectionName))
        if self.prediction != "recent":
            if self.correction != type(self).correction:
                raise self._error("correction", self.correction, "only prediction 'recent' is corrected")
        elif (self.order, self.backfilling, self.reservations) != ("fcfs", "easy", 1) or (
            self.backfill_order not in (AS_QUEUE, "fcfs", "shortest")
        ):
            remedy = (
                "use it with order 'fcfs', backfilling 'easy', one reservation, backfill_order 'shortest'"
            )
            raise self._error("prediction", self.prediction, f"{remedy} or 'queue'")

    def _label(self) -> str:
        """Name of a policy whose user gave none."""
        for policy in (*POLICIES.values(), *PREDICTING.values()):
            if all(getattr(policy, key) == getattr(self, key) for key in _PARTS):
                return policy.name
        order, backfill_order = (
            each if isinstance(each, str) else getattr(each, "__name__", "score")
            for each in (self.order, self.backfill_order)
        )
        count = f"({self.reservations})" if self.reservations > 1 else ""
        tried = "" if backfill_order == AS_QUEUE else f", {backfill_order}"
        corrected = f" ({self.correction})" if self.prediction == "recent" else ""
        predicted = f" + {self.prediction}{corrected}" if self.predicts else ""
        return f"{order} + {self.backfilling}{count}{tried}{predicted}"

    def _error(self, key: str, value: object, remedy: str) -> ConfigurationError:
        return ConfigurationError(f"policy {self.name!r}: {key} is {value!r}; {remedy}")


_OF_PREDICTIONS = ("prediction", "correction")
_PARTS = ("order", "backfilling", "reservations", "backfill_order", *_OF_PREDICTIONS)


def order_score(order: str | Score, where: str) -> Score:
    """Score of an order given by name or as a function."""
    if not isinstance(order, str):
        scores.changes_with_time(order)  # checks its parameters
        return order
    if order not in ORDERS:
        raise ConfigurationError(f"{where} is {order!r}; use one of {', '.join(ORDERS)} or a score function")
    return ORDERS[order]


def looks_at(policy: LocalPolicy, *parameters: str) -> bool:
    """Whether an order of a policy other than first come, first served looks at any of some parameters."""
    orders = {policy.order, policy.backfill_order} - {AS_QUEUE, "fcfs"}
    return any(
        set(parameters).intersection(scores.SCORE.parameters_of(order_score(order, "order")))
        for order in orders
    )


POLICIES: dict[str, LocalPolicy] = {
    policy.name: policy
    for policy in (
        LocalPolicy(name="fcfs"),
        LocalPolicy(name="ff", backfilling="first_fit"),
        LocalPolicy(name="sjf", order="shortest"),
        LocalPolicy(name="easy", backfilling="easy"),
        LocalPolicy(name="sjbf", backfilling="easy", backfill_order="shortest"),
        LocalPolicy(name="lxf", order="lxf", backfilling="easy"),
        LocalPolicy(name="lxwf", order="lxwf", backfilling="easy"),
        LocalPolicy(name="creasy", order="critical", backfilling="easy"),
        LocalPolicy(name="conservative", backfilling="conservative"),
    )
}
"""The named policies."""

PREDICTING: dict[str, LocalPolicy] = {
    policy.name: policy
    for policy in (
        LocalPolicy(name="easy++", backfilling="easy", backfill_order="shortest", prediction="recent"),
    )
}
"""The named policies that predict run times; clusters of nodes and of grids may have them, too."""


def named_policy(policy: str | LocalPolicy) -> LocalPolicy:
    """Policy of a name such as ``easy`` or ``easy(4)``; a policy is returned as it is.

    Raises
    ------
    ConfigurationError
        If the name is unknown, or it is something else.
    """
    if isinstance(policy, LocalPolicy):
        return policy
    if not isinstance(policy, str):
        raise ConfigurationError(f"policy is {policy!r}; give a name or a LocalPolicy")
    if policy in POLICIES or policy in PREDICTING:
        return POLICIES.get(policy) or PREDICTING[policy]
    reservations = re.fullmatch(r"easy\((\d{1,9})\)", policy)
    if reservations:
        return replace(POLICIES["easy"], name=policy, reservations=int(reservations[1]))
    known = [*POLICIES, *PREDICTING]
    instead = meant(policy, known) or f"; use one of {', '.join(known)}, easy(r)"
    raise ConfigurationError(f"unknown policy {policy!r}{instead}")


@dataclass(frozen=True)
class Conventions:
    """What published simulators do differently, and every result must say.

    Parameters
    ----------
    overrun : {"doubling", "increments"}
        Expected end of a job that has exceeded its estimate (see `gridsched.engine.overrun`).
    passes : {"instant", "event", "arrivals-first"}
        Whether one scheduling pass follows all events of an instant, or one follows each event; with
        "arrivals-first" submissions come before ends at one instant, and a job that ends then as
        expected has left its processors already, as in the simulator pyss.
    """

    overrun: OverrunName = "doubling"
    passes: PassName = "instant"

    def __post_init__(self) -> None:
        check_choice("overrun", self.overrun, get_args(OverrunName))
        check_choice("passes", self.passes, get_args(PassName))


def schedule(
    jobs: NDArray[Any],
    processors: int,
    policy: LocalPolicy,
    conventions: Conventions | None = None,
    labels: NDArray[Any] | None = None,
) -> tuple[NDArray[np.int64], int]:
    """Start times of jobs on one cluster under a local policy.

    Parameters
    ----------
    jobs : JOB[n]
        Jobs in order of submission (`gridsched.engine.records.JOB`); none needs more than `processors`.
    processors : int
        Processors of the cluster.
    policy : LocalPolicy
        The policy.
    conventions : Conventions, optional
        The defaults if not given.
    labels : LABELS[n], optional
        User, group and queue of each job, for scores that look at them.

    Returns
    -------
    starts : int64[n]
        Start times, seconds.
    corrections : int
        How often a running job exceeded its expected end.

    Raises
    ------
    ConfigurationError
        If a user's score cannot be compiled, or is not a number for some job.
    """
    conventions = conventions or Conventions()
    if labels is None:
        labels = unlabelled(jobs)
    if policy.predicts:
        return schedule_with_predictions(jobs, processors, policy, conventions, labels)[:2]
    cluster, options, score = _made(jobs, processors, policy, conventions, labels)
    if score is None:
        static_order.schedule(cluster, options)
    else:
        kept = policy.backfilling == "conservative"
        kernel = local_scheduler.schedule_with_plans if kept else local_scheduler.schedule
        kernel(cluster, options, score)
        scores.check_order(order_score(policy.order, "order"), cluster.state)
    return cluster.starts, int(cluster.state["corrections"][0])


def schedule_from(
    jobs: NDArray[Any],
    starts: NDArray[np.int64],
    processors: int,
    policy: LocalPolicy,
    begin: snapshot.Beginning,
    conventions: Conventions | None = None,
    labels: NDArray[Any] | None = None,
) -> tuple[NDArray[np.int64], bool]:
    """Start times of jobs on one cluster from a time on at which some run and some wait.

    Parameters
    ----------
    jobs : JOB[n]
        The jobs that run, in order of their starts; those that wait, in order of submission; those that are
        submitted later.
    starts : int64[r]
        When the running jobs started, seconds.
    processors, policy, conventions, labels
        See `schedule`; passes can only be "instant". Conservative backfilling makes its plan again at the
        beginning.
    begin : Beginning
        How many jobs run and wait, when, and how far to simulate.

    Returns
    -------
    starts : int64[n]
        Start times, seconds; -1 of jobs that have not started when the simulation ends.
    complete : bool
        Whether all jobs have started that wait at the beginning; else none of these starts up to the horizon.

    Raises
    ------
    ConfigurationError
        See `schedule`.
    """
    if policy.predicts:
        raise ConfigurationError(
            f"policy {policy.name!r} predicts run times while it runs; simulations from a queue on use "
            "given estimates: use a policy that goes by them"
        )
    if labels is None:
        labels = unlabelled(jobs)
    cluster, options, score = _made(jobs, processors, policy, conventions or Conventions(), labels)
    cluster.starts[: begin.running] = starts
    if score is None:
        complete = snapshot.resume_static_order(cluster, options, begin)
    else:
        kept = policy.backfilling == "conservative"
        kernel = snapshot.resume_conservative if kept else snapshot.resume_reserving
        complete = kernel(cluster, options, score, begin)
        scores.check_order(order_score(policy.order, "order"), cluster.state)
    return cluster.starts, bool(complete)


def is_first_come(policy: LocalPolicy) -> bool:
    """Whether jobs wait and are tried in order of submission alone, with one reservation at most."""
    return (
        policy.order == "fcfs"
        and policy.backfill_order in (AS_QUEUE, "fcfs")
        and policy.backfilling != "conservative"
        and policy.reservations == 1
        and not policy.predicts
    )


def first_come_options(policy: LocalPolicy, conventions: Conventions) -> static_order.StaticOrderOptions:
    """Options of the fast kernel for a policy that `is_first_come`, with one pass an instant."""
    return static_order.StaticOrderOptions(
        backfilling=int(Backfilling[policy.backfilling.upper()]),
        overrun=int(Overrun[conventions.overrun.upper()]),
        pass_per_event=False,
        arrivals_first=False,
        first_come=True,
        two_orders=False,
    )


def schedule_with_predictions(
    jobs: NDArray[Any], processors: int, policy: LocalPolicy, conventions: Conventions, labels: NDArray[Any]
) -> tuple[NDArray[np.int64], int, NDArray[np.int64]]:
    """Like `schedule`, for policies that predict run times.

    Returns
    -------
    starts : int64[n]
        Start times, seconds.
    corrections : int
        How often a running job exceeded its expected end.
    predictions : int64[n]
        Predicted run time of each job when it was submitted, seconds.

    Raises
    ------
    ConfigurationError
        If a prediction is longer than the engine can hold.
    """
    if policy.prediction == "recent":
        _, users = np.unique(labels["user"], return_inverse=True)
        cluster = runtime_prediction.allocate(jobs, processors, np.where(labels["user"] < 0, UNKNOWN, users))
        options = runtime_prediction.PredictionOptions(
            correction=int(Correction[policy.correction.upper()]),
            overrun=int(Overrun[conventions.overrun.upper()]),
            pass_per_event=conventions.passes != "instant",
            arrivals_first=conventions.passes == "arrivals-first",
            shortest_first=policy.backfill_order == "shortest",
        )
        runtime_prediction.schedule(cluster, options)
        predictions = cluster.jobs["estimate"].astype(np.int64)
        return cluster.starts, int(cluster.state["corrections"][0]), predictions
    run_time, estimate = jobs["run"], jobs["estimate"].astype(np.int64)
    predictions = np.maximum(run_time, 1) if policy.prediction == "actual" else 2 * estimate
    if predictions.max(initial=0) > LARGEST:
        longest = int(predictions.max())
        raise ConfigurationError(
            f"policy {policy.name!r}: a prediction of {longest} s; at most {LARGEST} s can be simulated"
        )
    known = jobs.copy()
    known["estimate"] = predictions
    plain = replace(policy, prediction="estimate")
    return (*schedule(known, processors, plain, conventions, labels), predictions)


def _made(
    jobs: NDArray[Any],
    processors: int,
    policy: LocalPolicy,
    conventions: Conventions,
    labels: NDArray[Any],
) -> tuple[Any, Any, Any]:
    """An empty cluster, options of its kernel, and the compiled score.

    The score is None where the order is known at submission, which has the fast kernel.
    """
    order = order_score(policy.order, "order")
    kept = policy.backfilling == "conservative" or policy.reservations > 1
    if scores.changes_with_time(order) or kept:
        return _made_for_any_order(jobs, processors, policy, conventions, labels)
    return *_made_for_static_order(jobs, processors, policy, conventions, labels), None


def _made_for_static_order(
    jobs: NDArray[Any], processors: int, policy: LocalPolicy, conventions: Conventions, labels: NDArray[Any]
) -> tuple[static_order.StaticOrderArrays, static_order.StaticOrderOptions]:
    """Cluster and options of the fast kernel, for orders that are known at submission."""
    order = order_score(policy.order, "order")
    as_queue = policy.backfill_order == AS_QUEUE
    if order is _first_come and policy.backfilling == "none":
        queue_rank = np.empty((2, 0), np.int32)  # nobody asks for a position
    else:
        queue_rank = _ranks(order, jobs, labels)
    if as_queue:
        order_rank = queue_rank
    else:
        order_rank = _ranks(order_score(policy.backfill_order, "backfill_order"), jobs, labels)
    options = static_order.StaticOrderOptions(
        backfilling=int(Backfilling[policy.backfilling.upper()]),
        overrun=int(Overrun[conventions.overrun.upper()]),
        pass_per_event=conventions.passes != "instant",
        arrivals_first=conventions.passes == "arrivals-first",
        first_come=_in_order(queue_rank),
        two_orders=not as_queue,
    )
    return static_order.allocate(jobs, processors, queue_rank, order_rank, options.backfilling), options


def _made_for_any_order(
    jobs: NDArray[Any], processors: int, policy: LocalPolicy, conventions: Conventions, labels: NDArray[Any]
) -> tuple[counted.CountedArrays, counted.CountedOptions, Any]:
    """The same of the kernels for any order, several reservations, and conservative backfilling."""
    order = order_score(policy.order, "order")
    changing = scores.changes_with_time(order)
    as_queue = policy.backfill_order == AS_QUEUE
    unused = np.zeros(len(jobs))
    cluster = counted.allocate(
        jobs,
        np.ascontiguousarray(labels),
        processors,
        unused if changing else sort_keys(order, jobs, labels),
        unused if as_queue else sort_keys(order_score(policy.backfill_order, "backfill_order"), jobs, labels),
    )
    options = counted.CountedOptions(
        backfilling=int(Backfilling[policy.backfilling.upper()]),
        reservations=policy.reservations,
        overrun=int(Overrun[conventions.overrun.upper()]),
        pass_per_event=conventions.passes != "instant",
        arrivals_first=conventions.passes == "arrivals-first",
        changing=changing,
        queue_as_order=as_queue,
    )
    return cluster, options, scores.SCORE.compile(order if changing else scores.largest_expansion_factor)


def sort_keys(score: Score, jobs: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Sort key of each job, smallest first, of a score that does not change with time."""
    values = {
        "submit_time": jobs["submit"],
        "estimate": jobs["estimate"].astype(np.int64),
        "processors": jobs["processors"].astype(np.int64) if score in BY_SIZE else labels["processors"],
        "user": labels["user"],
        "group": labels["group"],
        "queue": labels["queue"],
    }
    if score in ORDERS.values():
        return -np.asarray(
            score(**{name: values[name] for name in scores.SCORE.parameters_of(score)}), np.float64
        )
    return -scores.evaluate_once(score, values, labels["number"])


def _ranks(order: Score, jobs: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.int32]:
    """Position of each job in an order, and the job at each position."""
    ranks = np.empty((2, len(jobs)), np.int32)
    ranks[:] = np.arange(len(jobs), dtype=np.int32)
    if order is not _first_come:
        ranks[1] = np.argsort(sort_keys(order, jobs, labels), kind="stable")
        ranks[0, ranks[1]] = np.arange(len(jobs), dtype=np.int32)
    return ranks


def _in_order(ranks: NDArray[np.int32]) -> bool:
    """Whether an order is the order of submission."""
    return bool((ranks[0, 1:] > ranks[0, :-1]).all())


def described(policy: LocalPolicy) -> str:
    """What a policy of named parts does, in one sentence."""
    order = _ORDER_WORDS.get(str(policy.order), "in an order of its own")
    backfilling = _BACKFILLING_WORDS[policy.backfilling]
    if policy.reservations > 1:
        backfilling = backfilling.replace("the first", f"the first {policy.reservations}")
    tried = _ORDER_WORDS.get(str(policy.backfill_order), "")
    predicted = f"; {_PREDICTION_WORDS[policy.prediction]}" if policy.predicts else ""
    return f"{order[:1].upper()}{order[1:]}; {backfilling}{', tried ' + tried if tried else ''}{predicted}."
