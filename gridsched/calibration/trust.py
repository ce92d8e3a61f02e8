"""What another policy would change on a calibrated site, and how far that can be trusted.

Every calibration that fits about as well as the best one gives the change in three readings, which are one
where the simulated present policy waits as recorded: the simulated change in seconds; the simulated relative
change, of the recorded mean; and the simulated mean under the policy less the recorded mean. The interval
holds all of them, widened by a share of the error of the fit on the half that is judged. How often such
intervals hold known truth is measured by `make trust`. Where the present policy does not explain the recorded
waits there is no answer, and no interval.
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
from gridsched.calibration.layers import ORDERS, Replacement, judged, layers_for, simulated_waits
from gridsched.calibration.measures import EXPLAINED, Explained, explained, readings
from gridsched.calibration.null import null_waits
from gridsched.calibration.site import LoggedSite
from gridsched.calibration.words import described
from gridsched.errors import ConfigurationError
from gridsched.metrics.jobs import batch_means

Floats = NDArray[np.float64]

LESS, MORE, NEITHER, CANNOT_TELL = "less", "more", "not significant", "cannot tell"

MARGIN = 0.05
"""Share of the error of the fit by which an interval is widened, see docs/calibration-reference.md."""

BATCHES, BLOCK = 32, 4
"""Batches of consecutive jobs, and those of a moving block, from which this error is estimated."""

FEWEST_JOBS = 2 * BATCHES
"""Jobs that an interval needs."""

FEW, EXACT = "fewer than 64 jobs", "simulated and recorded waits are the same, as of a simulated log"
"""Why there is no interval although waits are explained."""


@dataclass(frozen=True, kw_only=True)
class Trusted:
    """Answers of a calibrated site.

    Parameters
    ----------
    headline : str
        How well the calibrated policy explains recorded waits, see `gridsched.calibration.measures`.
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
        wait), verdict ("less", "more", "not significant", "cannot tell"), reason (of there being no
        interval). Where the headline is not "explained" every verdict is "cannot tell", and `change` is
        that of the simulation. NaN where no job starts under the policy.
    recorded, present : float
        Mean wait [s] on the second half, recorded and simulated under the best calibration.
    groups : mapping of str to DataFrame
        The same of every user and queue under each policy, with the columns policy, number and jobs.
    """

    headline: str
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
    queue: Callable[[int], str] = str,
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
    queue : callable
        Name of a queue by its number.
    """
    alike = band(fit(site, layers_for(site), effort, seed=seed, report=report))
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
    headline = explains["calibrated"].headline(explains["null model"])
    is_told = headline == EXPLAINED
    started = there & (present[0] >= 0)
    rows, groups = [], _Groups(site, user, is_told=is_told)
    for name, order in orders.items():
        report(f"simulating {name} on the calibrated site")
        pairs = [
            (before, simulated_waits(site, each.calibration, order=order))
            for before, each in zip(present, alike, strict=True)
        ]
        mine = there & np.all([(after >= 0) & (before >= 0) for before, after in pairs], axis=0)
        mean = float(pairs[0][1][mine].mean()) if mine.any() else np.nan
        rows.append({"policy": name, "mean_wait": mean, **answer_of(site, pairs, mine, is_told=is_told)})
        groups.add(name, pairs, mine)
    return Trusted(
        headline=headline,
        explains=explains,
        layers=list(described(best, queue)),
        alike=len(alike),
        given_up=len(tried) - len(alike),
        changes=pd.DataFrame(rows),
        recorded=float(site.recorded[there].mean()),
        present=float(present[0][started].mean()) if started.any() else np.nan,
        groups=groups.tables(),
    )


def _starts(waits: NDArray[Any], there: NDArray[np.bool_]) -> bool:
    """Whether a calibration starts the jobs of the second half."""
    return bool((waits[there] >= 0).mean() > 0.99)


def answer_of(
    site: LoggedSite,
    pairs: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    jobs: NDArray[np.bool_],
    *,
    is_told: bool,
) -> dict[str, Any]:
    """Change of the mean wait of some jobs, with its interval and verdict where waits are explained."""
    if not jobs.any():
        return {"change": np.nan, "low": np.nan, "high": np.nan, "verdict": CANNOT_TELL, "reason": ""}
    recorded = float(site.recorded[jobs].mean())
    found = [
        reading
        for before, after in pairs
        for reading in readings(float(before[jobs].mean()), float(after[jobs].mean()), recorded)
    ]
    change, low, high, reason = found[0], np.nan, np.nan, ""
    if is_told and jobs.sum() < FEWEST_JOBS:
        reason = FEW
    elif is_told:
        margin = MARGIN * fit_error(pairs[0][0][jobs] - site.recorded[jobs])
        low, high = min(found) - margin, max(found) + margin
        if np.isclose(low, high, rtol=1e-9):
            low, high, reason = np.nan, np.nan, EXACT
    return {"change": change, "low": low, "high": high, "verdict": _verdict(low, high), "reason": reason}


def fit_error(differences: NDArray[Any]) -> float:
    """Error of the simulated mean wait [s]: of this half, and of another one like it.

    The square is that of the mean difference of simulated from recorded waits, of jobs in order of
    submission, and of its standard error by moving blocks.
    """
    blocks = batch_means(differences, BATCHES)[0]
    return float(np.hypot(differences.mean(), inference.moving_block_error(blocks, BLOCK)))


def _verdict(low: float, high: float) -> str:
    if not low <= high:
        return CANNOT_TELL
    if low > 0:
        return MORE
    return LESS if high < 0 else NEITHER


class _Groups:
    """Tables of users and queues, as far as the log tells them apart."""

    def __init__(self, site: LoggedSite, user: Any, *, is_told: bool) -> None:
        self.site = site
        self.is_told = is_told
        self.keys = {"user": user, "queue": site.queue_numbers[site.queue]}
        self.rows: dict[str, list[dict[str, Any]]] = {}

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
            self.rows.setdefault(kind, []).extend(
                {
                    "policy": policy,
                    "number": number,
                    "jobs": count,
                    **answer_of(self.site, pairs, mine & (key == number), is_told=self.is_told),
                }
                for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
            )

    def tables(self) -> dict[str, pd.DataFrame]:
        """Users and queues, those with most jobs first."""
        return {
            kind: pd.DataFrame(rows).sort_values("jobs", ascending=False, kind="stable", ignore_index=True)
            for kind, rows in self.rows.items()
        }
