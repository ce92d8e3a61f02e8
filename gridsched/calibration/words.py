"""A calibration in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gridsched.calibration.layers import Calibration, layer_of, layers_in
from gridsched.units import duration

_HOUR = 3600
_DAY = 86400

_OF_ANOTHER = ("long_share", "daytime", "half_life")
"""Parameters that say how much, or when, of another one."""


def described(calibration: Calibration, queue: Callable[[int], str] = str) -> Iterable[tuple[str, str]]:
    """Layers of a calibration, each with its parameters in words; `queue` names a queue by its number."""
    for layer in layers_in(calibration):
        own = {name: value for name, value in calibration.items() if layer_of(name) == layer}
        told = [_in_words(name, own, queue) for name in own if name not in _OF_ANOTHER]
        yield layer, "; ".join(told)


def _in_words(name: str, given: Calibration, queue: Callable[[int], str]) -> str:
    """What a parameter says; `given` has the others of its layer."""
    value = given[name]
    if name == "long":
        when = "on weekdays from 8 to 18 h" if given["daytime"] else "at all hours"
        return (
            f"jobs that request more than {duration(value)} use together at most "
            f"{100 * given['long_share']:.0f} % of the processors {when}"
        )
    if name == "fair":
        return (
            f"jobs of a user with all of the past usage come {duration(_HOUR * value)} later, with half "
            f"of it half as much later; usage counts half after {duration(_DAY * given['half_life'])}"
        )
    kind, _, number = name.partition(" ")
    return _WORDS[kind](value, queue(int(number)) if number else "")


def _moved(hours: float) -> str:
    """By how much a job comes earlier or later in the queue, as if it had waited so much more or less."""
    return f"{duration(abs(_HOUR * hours))} {'earlier' if hours > 0 else 'later'}"


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


_WORDS: dict[str, Callable[[float, str], str]] = {
    "apart": lambda _, __: "jobs of queues in which nearly all started at once go first",
    "priority": lambda value, queue: f"jobs of queue {queue} come {_moved(value)}",
    "queue_share": lambda value, _: (
        f"a queue has at most {_share(value)} of its largest past use of processors"
    ),
    "notice": lambda value, _: f"outages that the log shows are known {duration(value)} in advance",
    "held": lambda value, _: (
        f"jobs wait at least the {_share(value)} quantile of the short waits of similar jobs"
    ),
    "idle_wait": lambda value, _: (
        f"jobs wait the {_share(value)} quantile of similar jobs while enough processors were free"
    ),
    "processors": lambda value, _: f"the cluster has {_share(value)} of the processors of the log",
    "size": lambda value, _: f"a job with twice the processors comes {_moved(value)}",
    "length": lambda value, _: f"a job with twice the requested time comes {_moved(-value)}",
    "expansion": lambda value, _: (
        f"a wait as long as the requested time counts as {duration(_HOUR * value)} more"
    ),
}
"""What a parameter says in words, given its value and, for priorities, the queue."""
