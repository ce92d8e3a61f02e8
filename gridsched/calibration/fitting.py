"""Fitting by forward selection: layer after layer, each only as long as it helps where it was not fitted.

A fit sees one half of a log. What layers take from history (limits that users had, hours at which jobs
started) is learnt from one quarter of the log and judged on the other, both ways, in blocks of time. A layer
is taken if it improves blocks that did not choose its parameters by at least `PRIOR` and one standard error:
cross-validation by blocks. Its candidates are found by successive halving (Jamieson and Talwalkar,
"Non-stochastic best arm identification and hyperparameter optimization", AISTATS 2016): many on little of the
half, few on all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridsched.calibration.layers import LAYERS, STARTED, Calibration, drawn, layer_of, simulated_waits
from gridsched.calibration.measures import explained, loss_of
from gridsched.calibration.site import Fold, LoggedSite

BLOCKS = 3
"""Blocks of time in each quarter of the log; the ratio of means is that of the whole quarter."""

PRIOR = 0.01
"""Loss that a layer has to save in blocks that did not choose its parameters."""

ALIKE = 0.03
"""Calibrations whose loss is larger by so much at most fit about as well as the best."""

GIVEN_UP = 10.0
"""The most that a block counts in `gain`, as one does in which jobs do not start."""

MAX_ALIKE = 12
"""Largest number of calibrations that fit about equally well and are used."""

_VARIED = 0.25
"""Standard deviation of the logarithm by which a parameter is varied."""


class Effort(NamedTuple):
    """How long a fit looks."""

    drawn: int  # parameters of a layer that are tried on one quarter of the log
    kept: int  # best of these that are tried on both
    varied: int  # variations of these parameters, and then as many of all parameters
    rounds: int  # layers that a calibration has at most
    layers: int  # layers that are tried again in the next round, those that helped most


USUAL = Effort(drawn=12, kept=4, varied=4, rounds=5, layers=5)
"""Effort of studies and of `gridsched compare`."""


class Fitted(NamedTuple):
    """A candidate with the losses that it had in each block."""

    losses: tuple[float, ...]
    calibration: dict[str, float]

    @property
    def loss(self) -> float:
        """Mean of the losses."""
        return float(np.mean(self.losses))


class Trial(NamedTuple):
    """What trying one more layer on a calibration found."""

    layer: str
    gain: float  # loss that it saves in blocks that did not choose its parameters
    fitted: list[Fitted]  # candidates, best first


def fit(
    site: LoggedSite,
    layers: Sequence[str] = tuple(LAYERS),
    effort: Effort = USUAL,
    *,
    half: str = "first",
    seed: int = 0,
    report: Callable[[str], Any] = lambda _: None,
) -> list[Fitted]:
    """Candidates that were tried on the whole half, the chosen one first.

    Parameters
    ----------
    site : LoggedSite
        The log.
    layers : sequence of str
        Keys of `LAYERS`.
    effort : Effort
        How long to look.
    half : {"first", "second"}
        Half of the log that is fitted; the other is not looked at.
    seed : int
        Of what is drawn.
    report : callable
        Called with a description of the current step.
    """
    rounds: list[list[Trial]] = []
    for number in range(effort.rounds):
        names = tried_next(layers, rounds, effort)
        steps = []
        for place, layer in enumerate(names):
            report(f"calibrating, layer {number + 1}: {place + 1} of {len(names)} tried")
            steps.append(tried(site, layer, chosen(site, rounds, half), effort, half=half, seed=seed))
        if not steps:
            break
        rounds.append(steps)
    return all_fitted(site, rounds, half)


def tried_next(layers: Sequence[str], rounds: Sequence[Sequence[Trial]], effort: Effort) -> list[str]:
    """Layers that are tried after some rounds: those that helped most in the last one.

    The layer that stands for what has no name comes when no other helps, or in the last round; after that
    there is none.
    """
    if not rounds:
        return list(layers)
    if [step.layer for step in rounds[-1]] == [LAST]:
        return []
    if best_step(rounds[-1]) is None or len(rounds) == effort.rounds - 1:
        return [LAST] if LAST in layers and len(layers) > 1 else []
    taken = {step.layer for step in map(best_step, rounds) if step is not None} | {LAST}
    ordered = sorted(rounds[-1], key=lambda step: -step.gain)
    return [step.layer for step in ordered if step.layer not in taken][: effort.layers]


LAST = "idle waits"
"""Layer of what no other layer explains."""


def best_step(steps: Sequence[Trial]) -> Trial | None:
    """The step that saves most, if it saves enough; of the last layer only where no other was tried."""
    named = [step for step in steps if step.layer != LAST or len(steps) == 1]
    best = max(named, key=lambda step: step.gain, default=None)
    return best if best is not None and best.gain > PRIOR else None


def chosen(site: LoggedSite, rounds: Sequence[Sequence[Trial]], half: str) -> Fitted:
    """The calibration that some rounds lead to; EASY before the first."""
    for steps in reversed(rounds):
        step = best_step(steps)
        if step is not None:
            return step.fitted[0]
    return evaluated(site, {}, half)


def all_fitted(site: LoggedSite, rounds: Sequence[Sequence[Trial]], half: str) -> list[Fitted]:
    """The chosen calibration, and after it all others that were tried on the whole half, by loss."""
    first = chosen(site, rounds, half)
    others = best_of([each for steps in rounds for step in steps for each in step.fitted])
    return [first, *(each for each in others if each.calibration != first.calibration)]


def tried(
    site: LoggedSite, layer: str, base: Fitted, effort: Effort, *, half: str = "first", seed: int = 0
) -> Trial:
    """Candidates that are a calibration with one more layer, and what the layer saves.

    Parameters
    ----------
    site : LoggedSite
        The log.
    layer : str
        Key of `LAYERS`.
    base : Fitted
        A calibration without it.
    effort : Effort
        How long to look.
    half : {"first", "second"}
        Half of the log that is fitted.
    seed : int
        Of what is drawn.
    """
    rng = np.random.default_rng([seed, len(base.calibration), *map(ord, layer)])
    parameters = [drawn(site, layer, site.learnt(half), rng) for _ in range(effort.drawn)]
    made = [{**base.calibration, **each} for each in parameters if each]
    if not made:
        return Trial(layer, -np.inf, [])
    folds = site.folds(half)
    little = best_of([_on(site, each, folds[:1]) for each in made])[: effort.kept]
    fitted = [evaluated(site, each.calibration, half) for each in little]
    own = {name for each in made for name in each if layer_of(name) == layer}
    for names in (own, {name for each in made for name in each}):
        best = [each.calibration for each in best_of(fitted)[: max(1, effort.kept // 2)]]
        varied = [_varied(best[int(rng.integers(len(best)))], names, rng) for _ in range(effort.varied)]
        fitted = best_of([*fitted, *(evaluated(site, each, half) for each in varied)])
    return Trial(layer, gain(base, fitted), fitted)


def gain(base: Fitted, fitted: Sequence[Fitted]) -> float:
    """Loss that candidates save in each block if the other blocks choose among them.

    It is the mean over blocks less its standard error: of two fits that differ by no more, the one with fewer
    layers is taken (the rule of one standard error of Breiman et al., "Classification and regression trees",
    1984, section 3.4.3). A loss counts as `GIVEN_UP` at most, so that a block in which jobs do not start can
    be compared.
    """
    before, losses = (np.minimum(each, GIVEN_UP) for each in (base.losses, [each.losses for each in fitted]))
    blocks = losses.shape[1]
    saved = []
    for block in range(blocks):
        others = np.arange(blocks) != block
        best = losses[:, others].mean(axis=1).argmin()
        saved.append(before[block] - losses[best, block])
    return float(np.mean(saved) - np.std(saved, ddof=1) / np.sqrt(blocks))


def evaluated(site: LoggedSite, calibration: Calibration, half: str = "first") -> Fitted:
    """A candidate with its losses in the blocks of a half."""
    return _on(site, calibration, site.folds(half))


def _on(site: LoggedSite, calibration: Calibration, folds: Sequence[Fold]) -> Fitted:
    """A candidate with its losses in the blocks of some folds, infinite where jobs do not start."""
    losses: list[float] = []
    for fold in folds:
        waits = simulated_waits(site, calibration, jobs=fold.replayed, history=fold.history)
        known = fold.judged[site.known[fold.judged]]
        there = known[waits[known] >= 0]
        if len(there) < STARTED * len(known):
            losses += [np.inf] * BLOCKS
            continue
        ratio = float(waits[there].mean() / max(float(site.recorded[there].mean()), 1e-9))
        parts = [explained(waits[part], site.recorded[part]) for part in np.array_split(there, BLOCKS)]
        losses += [loss_of(each.correlation, each.near, ratio) for each in parts]
    return Fitted(tuple(losses), dict(calibration))


def _varied(base: Calibration, parameters: set[str], rng: Any) -> dict[str, float]:
    """A calibration with some of the parameters changed."""
    found = dict(base)
    for name, value in base.items():
        if name in parameters and name not in _CHOSEN and rng.random() < 0.7:
            found[name] = float(value * np.exp(_VARIED * rng.normal()))
            if name.startswith("priority"):
                found[name] += float(rng.normal())
    for name, most in _AT_MOST.items():
        if name in found:
            found[name] = min(found[name], most)
    return found


_CHOSEN = ("apart", "long", "daytime", "notice")
"""Parameters that are drawn from a few values."""

_AT_MOST = {"held": 0.95, "idle_wait": 0.95, "long_share": 1.0}


def best_of(fitted: Sequence[Fitted]) -> list[Fitted]:
    """Candidates by loss, each once; ties go by their parameters, whoever tried them."""
    found: dict[tuple[Any, ...], Fitted] = {}
    for each in sorted(fitted, key=lambda one: (one.loss, *sorted(one.calibration.items()))):
        found.setdefault(tuple(sorted(each.calibration.items())), each)
    return list(found.values())


def band(fitted: Sequence[Fitted]) -> list[Fitted]:
    """The chosen candidate, given first, and those that fit about as well, by loss."""
    first = fitted[0]
    alike = (each for each in fitted[1:] if np.isfinite(each.loss) and each.loss <= first.loss + ALIKE)
    return [first, *alike][:MAX_ALIKE]
