"""What another policy would change on a calibrated site, and how far that can be trusted.

Every calibration that fits about as well as the best one gives an answer. The interval holds them all, each
with its own interval over weeks, in two readings: the change in seconds, and the relative change of the
recorded mean. Where the simulated present policy waits longer or shorter than the log, these differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridsched import inference
from gridsched.calibration.fitting import USUAL, Effort, band, fit
from gridsched.calibration.layers import LAYERS, ORDERS, Replacement, judged, simulated_waits
from gridsched.calibration.measures import Explained, explained
from gridsched.calibration.null import null_waits
from gridsched.calibration.site import LoggedSite
from gridsched.calibration.words import described
from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.metrics.jobs import batch_means

Floats = NDArray[np.float64]


LESS, MORE, NEITHER, UNKNOWN = "less", "more", "not significant", "not estimable"


@dataclass(frozen=True, kw_only=True)
class Trusted:
    """Answers of a calibrated site.

    Parameters
    ----------
    explains : mapping of str to Explained
        How well recorded waits of the second half are explained: "EASY", "calibrated", "null model".
    layers : list of (str, str)
        Layers of the best calibration, and what each says in words.
    alike : int
        Calibrations that fit about as well, with it, which the intervals hold.
    given_up : int
        Others that fit about as well, but leave jobs of the second half waiting forever.
    changes : DataFrame
        One row a policy: policy, mean_wait (of the best calibration), change, low, high (seconds of mean
        wait), verdict ("less", "more", "not significant", "not estimable").
    recorded, present : float
        Mean wait [s] on the second half, recorded and simulated under the best calibration.
    groups : mapping of str to DataFrame
        The same of every user and queue under each policy, with the columns policy, number and jobs.
    """

    explains: Mapping[str, Explained]
    layers: list[tuple[str, str]]
    alike: int
    given_up: int
    changes: pd.DataFrame
    recorded: float
    present: float
    groups: Mapping[str, pd.DataFrame] = field(default_factory=dict)


def calibrated_orders(names: Sequence[str]) -> dict[str, Replacement]:
    """Policies that a calibrated site can have instead, by name.

    Raises
    ------
    ConfigurationError
        If it cannot have one of them.
    """
    for name in names:
        if name not in ORDERS:
            raise ConfigurationError(
                f"policy {name!r}: a calibrated site can have {', '.join(ORDERS)}; leave it out, or compare "
                "without --calibrate"
            )
    return {name: ORDERS[name] for name in names}


def trusted_changes(
    site: LoggedSite,
    orders: Mapping[str, Replacement],
    *,
    user: Any = None,
    effort: Effort = USUAL,
    seed: int = 0,
    report: Callable[[str], Any] = lambda _: None,
) -> Trusted:
    """Calibrate a site on the first half of its log, and say what policies would change on the second.

    Parameters
    ----------
    site : LoggedSite
        The log.
    orders : mapping of str to Replacement
        Policies by name.
    user : int64[n], optional
        Number of the user of each job, for the table of users.
    effort : Effort
        How long to look.
    seed : int
        Of what is drawn.
    report : callable
        Called with a description of the current step.

    Raises
    ------
    WorkloadError
        If no calibration starts the jobs of the second half.
    """
    alike = band(fit(site, tuple(LAYERS), effort, seed=seed, report=report))
    best = alike[0].calibration
    there = site.second & site.known
    tried = [simulated_waits(site, each.calibration) for each in alike]
    kept = [place for place, waits in enumerate(tried) if place == 0 or _starts(waits, there)]
    alike, present = [alike[place] for place in kept], [tried[place] for place in kept]
    explains = {
        "EASY": judged(site, simulated_waits(site, {}), "second"),
        "calibrated": judged(site, present[0], "second"),
        "null model": explained(null_waits(site, seed=seed)[there], site.recorded[there]),
    }
    if not np.isfinite(explains["calibrated"].ratio):
        raise WorkloadError(
            f"{site.name}: the policy that fits the first half leaves jobs of the second waiting for ever; "
            "compare without --calibrate, or give a window (--jobs, --month) in which it stayed the same"
        )
    started = there & (present[0] >= 0)
    rows, groups = [], _Groups(site, user)
    for name, order in orders.items():
        report(f"simulating {name} on the calibrated site")
        pairs = [
            (before, simulated_waits(site, each.calibration, order=order))
            for before, each in zip(present, alike, strict=True)
        ]
        mine = there & np.all([(after >= 0) & (before >= 0) for before, after in pairs], axis=0)
        one = np.zeros(len(site), np.int64)
        answer = _answers(site, pairs, mine, one)
        rows.append({"policy": name, "mean_wait": float(pairs[0][1][mine].mean()), **_first(answer)})
        groups.add(name, pairs, mine)
    return Trusted(
        explains=explains,
        layers=list(described(best)),
        alike=len(alike),
        given_up=len(tried) - len(alike),
        changes=pd.DataFrame(rows),
        recorded=float(site.recorded[started].mean()),
        present=float(present[0][started].mean()),
        groups=groups.tables(),
    )


def _starts(waits: NDArray[Any], there: NDArray[np.bool_]) -> bool:
    """Whether a calibration starts the jobs of the second half."""
    return bool((waits[there] >= 0).mean() > 0.99)


def _first(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {key: values[0] for key, values in answer.items()}


def _answers(
    site: LoggedSite,
    pairs: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    mine: NDArray[np.bool_],
    group: NDArray[np.int64],
) -> dict[str, Any]:
    """Change of the mean wait of each group of jobs with its interval, and verdict."""
    codes, member = np.unique(group[mine], return_inverse=True)
    found: dict[str, list[Any]] = {"change": [], "low": [], "high": [], "verdict": []}
    recorded = site.recorded[mine].astype(np.float64)
    for code in range(len(codes)):
        own = member == code
        lows, highs, changes = [], [], []
        for before, after in pairs:
            (then, numbers), (now, _) = (batch_means(waits[mine][own]) for waits in (before, after))
            mean = before[mine][own].mean()
            scale = recorded[own].mean() / mean if mean > 0 else 1.0
            found_here = inference.difference(now, then, numbers, serial=True)
            low, high, centre = (float(each) for each in (found_here.low, found_here.high, found_here.value))
            lows += [low, low * scale]
            highs += [high, high * scale]
            changes.append(centre)
        found["change"].append(changes[0])
        # a bound that is not known leaves the whole answer open
        low, high = float(np.min(lows)), float(np.max(highs))
        found["low"].append(low)
        found["high"].append(high)
        found["verdict"].append(_verdict(low, high))
    return found


def _verdict(low: float, high: float) -> str:
    if not low <= high:  # no interval: jobs in too few weeks
        return UNKNOWN
    if low > 0:
        return MORE
    return LESS if high < 0 else NEITHER


class _Groups:
    """Tables of users and queues, as far as the log tells them apart."""

    def __init__(self, site: LoggedSite, user: Any) -> None:
        self.site = site
        self.keys = {"user": user, "queue": site.queue_numbers[site.queue]}
        self.rows: dict[str, list[pd.DataFrame]] = {}

    def add(
        self, policy: str, pairs: Sequence[tuple[NDArray[Any], NDArray[Any]]], mine: NDArray[np.bool_]
    ) -> None:
        """Add what a policy changes."""
        for kind, key in self.keys.items():
            if key is None:
                continue
            numbers, counts = np.unique(key[mine], return_counts=True)
            if len(numbers) < 2:
                continue
            answer = _answers(self.site, pairs, mine, key)
            part = pd.DataFrame({"policy": policy, "number": numbers, "jobs": counts, **answer})
            self.rows.setdefault(kind, []).append(part)

    def tables(self) -> dict[str, pd.DataFrame]:
        """Users and queues, those with most jobs first."""
        return {
            kind: pd.concat(parts).sort_values("jobs", ascending=False, kind="stable", ignore_index=True)
            for kind, parts in self.rows.items()
        }
