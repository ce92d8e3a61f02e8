"""The workload model of Lublin and Feitelson: sizes, run times that depend on them, daily cycle of arrivals.

U. Lublin and D. G. Feitelson, The workload on parallel supercomputers: modeling the characteristics of rigid
jobs, J. Parallel and Distributed Computing 63(11), 2003. Parameters, limits and the arrival process are those
of the program that the authors published with it.

One thing differs: the program cuts every arrival time to whole seconds and adds the next gap to that,
while its clock of the daily cycle goes on uncut. Its cycle therefore moves by half a second a job (by 2.8 h
in the 20,000 jobs of the archive's lublin_1024 log). Here times are rounded once, and the cycle stays.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import scipy
from numpy.typing import NDArray

from gridsched.errors import WorkloadError, check_choice, check_number, check_whole
from gridsched.workloads.estimates import EstimateModel, Modal
from gridsched.workloads.synthesis import RandomStream, check_extent, drawn_workload, random_stream
from gridsched.workloads.table import Workload

LONGEST_RUN_TIME = 12.0
"""Natural logarithm of the longest run time in seconds, 1.9 days; longer ones are drawn again."""

LONGEST_GAP = 13.0
"""Natural logarithm of the longest time between arrivals at the mean rate, 5.1 days; drawn again as well."""

_BUCKETS = 48
_BUCKET = 1800.0
_DAY = _BUCKETS * _BUCKET
_FIRST_BUCKET = 11
"""The gamma density of the daily cycle is taken over half hours 11 to 58; number 11 begins at 5:00."""

Kind = Literal["batch", "interactive", "all"]
Dependence = Literal["processors", "log2"]


class LublinJobs(NamedTuple):
    """Drawn jobs, by arrival: submit times and run times in seconds, not rounded; processors."""

    submit_time: NDArray[np.float64]
    run_time: NDArray[np.float64]
    processors: NDArray[np.int64]


class _Published(NamedTuple):
    """Parameters of a kind of jobs; `medium_below` is how far the kink of the sizes is below the largest."""

    serial: float
    power_of_two: float
    size_low: float
    medium_below: float
    size_share: float
    run: tuple[float, float, float, float]
    slope: float
    intercept: float
    gap: tuple[float, float]
    gap_ratio: float
    cycle: tuple[float, float]


_PUBLISHED: dict[str, _Published] = {
    "batch": _Published(
        serial=0.2927,
        power_of_two=0.6686,
        size_low=1.2,
        medium_below=2.0,
        size_share=0.875,
        run=(6.57, 0.823, 639.1, 0.0156),
        slope=-0.003,
        intercept=0.6986,
        gap=(6.0415, 0.8531),
        gap_ratio=1.0519,
        cycle=(6.1271, 5.2740),
    ),
    "interactive": _Published(
        serial=0.1541,
        power_of_two=0.625,
        size_low=1.0,
        medium_below=2.5,
        size_share=0.705,
        run=(3.8351, 0.6605, 7.073, 0.6856),
        slope=-0.0118,
        intercept=0.9156,
        gap=(6.5510, 0.6621),
        gap_ratio=0.9797,
        cycle=(8.9186, 3.6680),
    ),
    "all": _Published(
        serial=0.244,
        power_of_two=0.576,
        size_low=0.8,
        medium_below=2.5,
        size_share=0.86,
        run=(4.2, 0.94, 312.0, 0.03),
        slope=-0.0054,
        intercept=0.78,
        gap=(10.2303, 0.4871),
        gap_ratio=1.0225,
        cycle=(8.1737, 3.9631),
    ),
}


@dataclass(frozen=True)
class LublinModel:
    """Parameters of the model; `LublinModel.published` has those of the authors.

    Parameters
    ----------
    processors : int
        Processors of the machine.
    serial, power_of_two : float
        Shares of jobs with one processor, and with a number forced to a power of two. The others may have one
        by chance.
    size_low, size_medium, size_high, size_share : float
        Binary logarithm of the size of a parallel job: uniform from low to medium with probability
        `size_share`, else uniform from medium to high. 2**x is rounded to a whole number.
    run_shape_1, run_scale_1, run_shape_2, run_scale_2 : float
        Gamma distributions of the natural logarithm of short and of long run times in seconds.
    slope, intercept : float
        Probability of a short run time, slope x size + intercept, kept within [0, 1].
    gap_shape, gap_scale : float
        Gamma distribution of the natural logarithm of the time between arrivals at the mean rate of a day, s.
    cycle_shape, cycle_scale : float
        Gamma density whose values at half hours give the daily cycle of the arrival rate.
    dependence : {"processors", "log2"}
        Size in the probability of a short run time: the number of processors, as in the authors' program
        (default), or its binary logarithm, for which `slope` must be chosen.
    """

    processors: int
    serial: float
    power_of_two: float
    size_low: float
    size_medium: float
    size_high: float
    size_share: float
    run_shape_1: float
    run_scale_1: float
    run_shape_2: float
    run_scale_2: float
    slope: float
    intercept: float
    gap_shape: float
    gap_scale: float
    cycle_shape: float
    cycle_scale: float
    dependence: Dependence = "processors"

    def __post_init__(self) -> None:
        processors = check_whole("Lublin model: processors", self.processors, least=1, error=WorkloadError)
        object.__setattr__(self, "processors", processors)
        for name, value in asdict(self).items():
            if name != "dependence":
                positive = 0 if re.search("_(scale|shape)", name) else None
                check_number(f"Lublin model: {name}", value, above=positive, error=WorkloadError)
        if not (min(self.serial, self.power_of_two) >= 0 and self.serial + self.power_of_two <= 1):
            raise WorkloadError(
                f"Lublin model: shares of serial ({self.serial}) and power-of-two jobs ({self.power_of_two}) "
                "must not be negative, and sum to 1 at most"
            )
        check_number("Lublin model: size_share", self.size_share, least=0, most=1, error=WorkloadError)
        if not 0 <= self.size_low <= self.size_medium <= self.size_high:
            raise WorkloadError(
                f"Lublin model: size limits {self.size_low:g}, {self.size_medium:g}, {self.size_high:g} "
                "must rise; the machine is too small for these parameters"
            )
        if round(2**self.size_high) > self.processors:
            raise WorkloadError(
                f"Lublin model: size_high is {self.size_high:g}, too much for {self.processors} processors"
            )
        check_choice("Lublin model: dependence", self.dependence, get_args(Dependence), WorkloadError)

    @classmethod
    def published(cls, processors: int, kind: Kind = "batch") -> LublinModel:
        """Parameters of the authors' program.

        Parameters
        ----------
        processors : int
            Processors of the machine. The largest size is the machine's; the kink lies 2 (batch) or 2.5 below
            it in binary logarithms, as in the program for 128 processors and as its comments advise.
        kind : {"batch", "interactive", "all"}
            Jobs of one kind, or of a log that does not tell them apart. With "all" the two synthetic logs
            of the Parallel Workloads Archive were made.

        Raises
        ------
        WorkloadError
            Where the kind is unknown, or the machine has below 10 processors (12 for interactive jobs).
        """
        check_choice("Lublin model: kind", kind, _PUBLISHED, WorkloadError)
        check_number("Lublin model: processors", processors, least=1, error=WorkloadError)
        chosen = _PUBLISHED[kind]
        high = math.log2(processors)
        return cls(
            processors,
            chosen.serial,
            chosen.power_of_two,
            chosen.size_low,
            high - chosen.medium_below,
            high,
            chosen.size_share,
            *chosen.run,
            chosen.slope,
            chosen.intercept,
            chosen.gap[0] * chosen.gap_ratio,
            chosen.gap[1],
            *chosen.cycle,
        )

    @property
    def daily_cycle(self) -> NDArray[np.float64]:
        """Arrival rate in each half hour of the day, from midnight, relative to the mean; shape (48,)."""
        number = np.arange(_FIRST_BUCKET, _FIRST_BUCKET + _BUCKETS)
        edges = scipy.special.gammainc(
            self.cycle_shape, np.append(number - 0.5, number[-1] + 0.5) / self.cycle_scale
        )
        # Half hour number 1 begins at midnight.
        weights = np.roll(np.diff(edges), _FIRST_BUCKET - 1)
        return np.asarray(weights / weights.mean(), np.float64)

    def short_probability(self, processors: NDArray[np.int64]) -> NDArray[np.float64]:
        """Probability that jobs of these sizes have a short run time."""
        size = np.log2(processors) if self.dependence == "log2" else processors.astype(np.float64)
        return np.clip(self.slope * size + self.intercept, 0, 1)

    def sample(self, jobs: int, *, seed: int, load_scale: float = 1.0) -> LublinJobs:
        """Draw the first `jobs` jobs; the parameters are those of `synthesise`."""
        check_extent("Lublin model", jobs, None, load_scale)
        jobs, seed = int(jobs), check_whole("Lublin model: seed", seed, error=WorkloadError)
        processors = self._sizes(random_stream("lublin", seed, RandomStream.SIZE).random((jobs, 3)))
        run_time = self._run_times(
            processors, random_stream("lublin", seed, RandomStream.SERVICE).random((jobs, 2))
        )
        submit_time = self._arrivals(
            random_stream("lublin", seed, RandomStream.ARRIVAL).random(jobs), load_scale
        )
        return LublinJobs(submit_time, run_time, processors)

    def _sizes(self, uniform: NDArray[np.float64]) -> NDArray[np.int64]:
        """Processors: kind of size, stage and place within it from three uniform numbers a job."""
        kind, stage, place = uniform.T
        lower = stage < self.size_share
        start = np.where(lower, self.size_low, self.size_medium)
        end = np.where(lower, self.size_medium, self.size_high)
        logarithm = start + place * (end - start)
        # Rounding up must not pass a machine whose size is no power of two.
        power = np.minimum(np.floor(logarithm + 0.5), math.floor(self.size_high))
        logarithm = np.where(kind < self.serial + self.power_of_two, power, logarithm)
        size = np.floor(2**logarithm + 0.5).astype(np.int64)
        return np.where(kind < self.serial, 1, size)

    def _run_times(self, processors: NDArray[np.int64], uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        """Run times by inversion, from two uniform numbers a job.

        A value beyond the limit is drawn again with its path: the paths are weighted by what they have below.
        """
        path, place = uniform.T
        below_1 = scipy.special.gammainc(self.run_shape_1, LONGEST_RUN_TIME / self.run_scale_1)
        below_2 = scipy.special.gammainc(self.run_shape_2, LONGEST_RUN_TIME / self.run_scale_2)
        p = self.short_probability(processors)
        short = path * (p * below_1 + (1 - p) * below_2) < p * below_1
        logarithm = np.empty(len(place))
        for chosen, shape, scale, below in (
            (short, self.run_shape_1, self.run_scale_1, below_1),
            (~short, self.run_shape_2, self.run_scale_2, below_2),
        ):
            logarithm[chosen] = scale * scipy.special.gammaincinv(shape, place[chosen] * below)
        return np.exp(logarithm)

    def _arrivals(self, uniform: NDArray[np.float64], load_scale: float) -> NDArray[np.float64]:
        """Submit times: a renewal process on a clock that runs with the daily cycle, from midnight on."""
        below = scipy.special.gammainc(self.gap_shape, LONGEST_GAP / self.gap_scale)
        gaps = np.exp(self.gap_scale * scipy.special.gammaincinv(self.gap_shape, uniform * below))
        days, rest = np.divmod(np.cumsum(gaps / load_scale), _DAY)
        clock = np.append(0.0, np.cumsum(self.daily_cycle)) * _BUCKET
        return np.asarray(days * _DAY + np.interp(rest, clock, np.arange(_BUCKETS + 1) * _BUCKET), np.float64)

    def synthesise(
        self,
        *,
        seed: int,
        jobs: int | None = None,
        duration: float | None = None,
        estimates: EstimateModel | None = None,
        load_scale: float = 1.0,
    ) -> Workload:
        """Draw a workload.

        Parameters
        ----------
        seed : int
            The same seed and parameters give the same workload, bit for bit. Sizes, run times, arrivals and
            estimates have streams of their own, and a longer workload begins with the shorter one
            (estimates excepted).
        jobs, duration : int or float
            The first `jobs` jobs, or all that arrive in the first `duration` seconds; exactly one of the two.
        estimates : EstimateModel, optional
            Requested times; without it the modal model, whose longest estimate holds the longest run time.
        load_scale : float
            Arrivals come this many times as often, with the same daily cycle.

        Returns
        -------
        Workload
            In whole seconds, submit and run times rounded down as by the authors' program, run times at
            least 1. Submit time 0 is midnight; no start time and time zone.

        Raises
        ------
        WorkloadError
            Where options are out of range, or no job arrives.
        """
        jobs = check_extent("Lublin model", jobs, duration, load_scale)
        seed = check_whole("Lublin model: seed", seed, error=WorkloadError)
        drawn = (
            self.sample(jobs, seed=seed, load_scale=load_scale)
            if jobs is not None
            else self._until(duration or 0.0, seed, load_scale)
        )
        run_time = np.maximum(np.floor(drawn.run_time), 1).astype(np.int64)
        estimate_model = estimates or Modal()
        requested = estimate_model.draw(run_time, random_stream("lublin", seed, RandomStream.ESTIMATE))
        options = {
            "seed": seed,
            "jobs": jobs,
            "duration": duration,
            "estimates": repr(estimate_model),
            "load_scale": load_scale,
        }
        described = json.dumps({"model": asdict(self), **options}, sort_keys=True)
        return drawn_workload(
            f"lublin-{self.processors}",
            self.processors,
            (
                "synthetic, by the model of U. Lublin and D. G. Feitelson (JPDC 63(11), 2003)",
                f"parameters {described}",
            ),
            described,
            np.floor(drawn.submit_time).astype(np.int64),
            drawn.processors,
            requested,
        )

    def _until(self, duration: float, seed: int, load_scale: float) -> LublinJobs:
        """Jobs that arrive before `duration`, s."""
        count = 1024
        while (drawn := self.sample(count, seed=seed, load_scale=load_scale)).submit_time[-1] < duration:
            count *= 2
        arrived = int(np.searchsorted(drawn.submit_time, duration))
        if not arrived:
            raise WorkloadError(f"Lublin model: no job arrives in {duration:g} s, use a longer duration")
        return LublinJobs(drawn.submit_time[:arrived], drawn.run_time[:arrived], drawn.processors[:arrived])
