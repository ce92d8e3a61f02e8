"""Fitting by successive halving: many candidates on little of the first half, few of them on all of it.

Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization" (AISTATS
2016). A rung keeps the best candidates of the one before, beside variations of them; the second half of the
log is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridsched.calibration.layers import LAYERS, STARTED, Calibration, layer_of, simulated_waits
from gridsched.calibration.measures import explained
from gridsched.calibration.site import LoggedSite

PARTS = 2
"""Parts of what is replayed, over which losses are averaged."""

ALIKE = 0.03
"""Calibrations whose loss is larger by so much at most fit about as well as the best."""

MOST_ALIKE = 12
"""So many calibrations that fit about as well are looked at, at most."""

_VARIED = 0.25
"""Standard deviation of the logarithm by which a parameter is varied."""


class Rung(NamedTuple):
    """One step of the fit."""

    part: float  # share of the first half that is replayed, its end
    kept: int  # best candidates of the rung before
    made: int  # candidates that are drawn, or varied from those kept


class Fitted(NamedTuple):
    """A candidate with the loss that it had."""

    loss: float
    calibration: dict[str, float]


RUNGS: tuple[Rung, ...] = (
    Rung(0.3, 0, 96),
    Rung(0.6, 16, 32),
    Rung(1.0, 10, 30),
    Rung(1.0, 8, 30),
)
"""Rungs of a fit of all layers."""

FEW: tuple[Rung, ...] = (Rung(0.5, 0, 16), Rung(1.0, 6, 10), Rung(1.0, 4, 12))
"""Rungs of a fit of one layer."""


def candidates(
    site: LoggedSite, layers: Sequence[str], rung: Rung, before: Sequence[Fitted], number: int, seed: int
) -> list[dict[str, float]]:
    """Candidates of a rung, the same for all who ask with the same numbers.

    Parameters
    ----------
    site : LoggedSite
        The log.
    layers : sequence of str
        Layers that are fitted.
    rung : Rung
        The rung.
    before : sequence of Fitted
        Candidates of the rung before; none for the first.
    number : int
        Number of the rung.
    seed : int
        Of what is drawn.
    """
    rng = np.random.default_rng([seed, number, *map(ord, "".join(layers))])
    best = [each.calibration for each in best_of(before)[: rung.kept]]
    if not best:
        return [{}, *(_drawn(site, layers, rng, len(layers) > 1) for _ in range(rung.made))]
    varied = [
        _varied(best[int(rng.integers(len(best)))], _drawn(site, layers, rng, len(layers) > 1), rng)
        for _ in range(rung.made)
    ]
    return [*best, *varied]


def _drawn(site: LoggedSite, layers: Sequence[str], rng: Any, some: bool) -> dict[str, float]:
    """Parameters of the layers, or of about half of them."""
    found: dict[str, float] = {}
    for layer in layers:
        values = LAYERS[layer].draw(site, rng)
        if not some or rng.random() < 0.5:
            found |= values
    return found


def _varied(base: Calibration, other: Calibration, rng: Any) -> dict[str, float]:
    """A calibration with some parameters changed, and some layers taken from another, or left out."""
    found = dict(base)
    for layer in {layer_of(name) for name in (*base, *other)}:
        if rng.random() < 0.1:
            found = {name: value for name, value in found.items() if layer_of(name) != layer}
            found |= {name: value for name, value in other.items() if layer_of(name) == layer}
    for name, value in found.items():
        if name not in _CHOSEN and rng.random() < 0.5:
            found[name] = float(value * np.exp(_VARIED * rng.normal()))
            if name.startswith("priority"):
                found[name] += float(rng.normal())
    for name, most in _AT_MOST.items():
        if name in found:
            found[name] = min(found[name], most)
    return found


_CHOSEN = ("apart", "long", "daytime", "notice")
"""Parameters that are drawn from a few values."""

_AT_MOST = {"held": 0.95, "long_share": 1.0, "closed": 0.6}


def evaluated(site: LoggedSite, rung: Rung, calibration: Calibration) -> float:
    """Loss of a candidate on the end of the first half: the mean of those of two equal parts of it.

    A calibration that is right on the whole since it waits too long early and too short later does not pass.
    """
    first = np.flatnonzero(~site.second)
    jobs = first[len(first) - int(rung.part * len(first)) :]
    waits = simulated_waits(site, calibration, jobs=jobs)
    known = jobs[site.known[jobs]]
    there = known[waits[known] >= 0]
    if len(there) < STARTED * len(known):
        return np.inf
    return float(
        np.mean([explained(waits[part], site.recorded[part]).loss for part in np.array_split(there, PARTS)])
    )


def best_of(fitted: Sequence[Fitted]) -> list[Fitted]:
    """Candidates by loss, each once; ties go by their parameters, whoever tried them."""
    found: dict[tuple[Any, ...], Fitted] = {}
    for each in sorted(fitted, key=lambda one: (one.loss, *sorted(one.calibration.items()))):
        found.setdefault(tuple(sorted(each.calibration.items())), each)
    return list(found.values())


def band(fitted: Sequence[Fitted]) -> list[Fitted]:
    """The best candidate and those that fit about as well."""
    ordered = best_of(fitted)
    return [each for each in ordered if each.loss <= ordered[0].loss + ALIKE][:MOST_ALIKE]


def fit(
    site: LoggedSite,
    layers: Sequence[str] = tuple(LAYERS),
    rungs: Sequence[Rung] = RUNGS,
    *,
    seed: int = 0,
    report: Callable[[str], Any] = lambda _: None,
) -> list[Fitted]:
    """Candidates of the last rung, best first.

    Parameters
    ----------
    site : LoggedSite
        The log.
    layers : sequence of str
        Keys of `LAYERS`.
    rungs : sequence of Rung
        Steps of the fit.
    seed : int
        Of what is drawn.
    report : callable
        Is told what is being done.
    """
    fitted: list[Fitted] = []
    for number, rung in enumerate(rungs):
        report(f"calibrating, step {number + 1} of {len(rungs)}")
        tried = candidates(site, layers, rung, fitted, number, seed)
        fitted = best_of([Fitted(evaluated(site, rung, each), each) for each in tried])
    return fitted
