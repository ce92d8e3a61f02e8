"""When the controller makes passes [ticks].

slurmctld does nothing at the instant of a submission or an end but note that there is something to do. Its
main loop wakes each second, and starts jobs if something happened (`batch_sched_delay`) or if it has not for
`sched_interval`; the backfill scheduler wakes each `bf_interval`, and again each second while nothing has
changed since. What a pass notes of waiting jobs is a change (last_job_update of schedule() and of
_attempt_backfill() in Slurm 22.05).
"""

from __future__ import annotations

from collections.abc import Sequence

from gridsched.engine.records import FOREVER
from gridsched.systems.slurm.parameters import SlurmParameters

END = -1
"""Instead of a number of jobs to try: a backfill pass ends that was interrupted."""


class Cadence:
    """When the next pass of either kind is due, by what the last ones did.

    Passes that would do what the last one did are left out until something happens.

    Parameters
    ----------
    parameters : SlurmParameters
        Parameters of the scheduler.
    unit : int
        Ticks a second.
    begin : int
        The first submission [ticks].
    phase, drift
        As of `Controller.work`.
    """

    def __init__(
        self, parameters: SlurmParameters, unit: int, begin: int, phase: Sequence[float], drift: float
    ) -> None:
        # schedule() of job_scheduler.c does nothing before this time has passed, then what was asked for
        self.least = round(parameters.sched_min_interval * unit / 1e6)
        self.interval = max(parameters.sched_interval * unit, self.least)
        self.delay = parameters.batch_sched_delay * unit
        self.backfills, self.unit = parameters.scheduler_type == "backfill", unit
        self.turn = max(round(unit * (1 + drift)), 1)
        self.origin = begin - int(phase[0] * unit)
        self.stride = parameters.bf_interval * unit + self.turn - unit
        # when a pass over the whole queue was made last, and when backfilling looks whether to make one
        self.full = begin - int(phase[2] * self.interval)
        self.check = begin + self.stride - int(phase[1] * self.stride)
        self.last_main = self.last_backfill = self.changed = -1
        # whether there is something to do, passes of the main loop are left out, the last of them noted
        # something, and backfill passes are left out
        self.happened = self.settled = self.behind = self.rolling = False
        self.fruitless = 0
        self.duration = Duration(parameters, unit, begin)

    def next_main(self) -> int:
        """When the main loop makes a pass."""
        busy = self.duration.busy
        wanted = FOREVER if self.settled else max(self.full + self.interval, busy)
        if self.happened:
            soonest = max(self.last_main + max(self.delay, self.least), self.changed, busy)
            wanted = min(wanted, soonest)
        return first_from(self.origin, self.turn, wanted) if wanted < FOREVER else FOREVER

    def next_backfill(self) -> int:
        """When the backfill scheduler makes a pass, or continues one."""
        worth = self.backfills and not self.rolling
        if (
            self.duration.paused == FOREVER
            and worth
            and self.changed // self.unit >= (self.last_backfill // self.unit)
        ):
            return first_from(self.check, self.turn, self.changed)
        return self.duration.paused

    def is_full(self, now: int) -> bool:
        """Whether a pass of the main loop is one over the whole queue."""
        return now >= self.full + self.interval

    def resume(self, now: int) -> None:
        """Leave out no more passes, since something happens; be where those would have led."""
        if self.settled:
            self.full += (now - self.full) // self.interval * self.interval
            self.settled = False
            if self.behind and not self.rolling and self.full > self.changed:
                # the last of the passes over the whole queue that were left out was followed by one of
                # backfilling
                followed = first_from(self.check, self.turn, self.full)
                if followed < now:
                    self.last_backfill, self.check = followed, followed + self.stride
        self._backfill_again(now)

    def _backfill_again(self, now: int) -> None:
        """Leave out no more backfill passes."""
        if self.rolling:
            self.check = first_from(self.check, self.stride, now)
            self.rolling = False

    def change(self, now: int, happened: bool) -> None:
        """Something has changed; whether it is something to do for the main loop."""
        self.changed, self.happened = now, self.happened or happened
        self.fruitless = 0 if happened else self.fruitless

    def main_made(self, now: int, started: int, noted: bool, repeats: bool) -> None:
        """The main loop made a pass.

        What one over the whole queue does not start no other one does until something happens, if passes
        repeat what they did.
        """
        is_full = self.is_full(now)
        self.settled = is_full and not started and repeats
        self.full = now if is_full else self.full
        self.behind = noted
        if started:
            self._backfill_again(now)
        self.changed = now if started or noted else self.changed
        self.last_main, self.happened = now, False

    def backfill_made(self, now: int, started: int, noted: bool, repeats: bool) -> None:
        """The backfill scheduler made a pass, or a part of one, whose duration was counted."""
        # the next one comes after the interval then; as long as nothing happens it does the same
        self.rolling = noted and not started and repeats
        self.fruitless = 0 if started else self.fruitless + 1
        self.changed = now if started or noted else self.changed
        self.last_backfill, self.check = self.duration.busy, self.duration.busy + self.stride
        self.duration.seen = self.changed


class Duration:
    """How long backfill passes take, and when they let others work; no time by default.

    Parts of a pass that others do not interrupt are made second by second.

    Parameters
    ----------
    parameters, unit, begin
        As of `Cadence`.
    """

    def __init__(self, parameters: SlurmParameters, unit: int, begin: int) -> None:
        self.each = parameters.bf_time_per_job * unit / 1e6
        self.most = max(int(1e6 // parameters.bf_time_per_job), 1) if self.each else 0
        self.turn = parameters.bf_yield_interval * unit / 1e6
        self.sleep = round(parameters.bf_yield_sleep * unit / 1e6)
        self.longest = (parameters.bf_max_time or parameters.bf_interval) * unit
        self.continues = parameters.bf_continue
        # until when no other pass is made, when one that is interrupted goes on, when it began, what had
        # changed last then, and the ticks since others worked
        self.busy, self.paused, self.since, self.seen, self.held = begin, FOREVER, begin, begin, 0.0

    def jobs_to_try(self, now: int, changed: int) -> int:
        """How many jobs a pass tries until it is interrupted, 0 for all; `END` if it does not continue."""
        if self.paused == FOREVER:
            self.since, self.held = now, 0.0
        elif now - self.since >= self.longest or (
            # others worked if it holds nothing
            not self.held and changed != self.seen and not self.continues
        ):
            return END
        return self.most

    def spend(self, now: int, tried: int, is_interrupted: bool) -> None:
        """Count the time that a pass took for the jobs that it tried."""
        took = tried * self.each
        self.busy, self.held, self.paused = now + round(took), self.held + took, FOREVER
        if self.each and is_interrupted:
            self.paused = self.busy = max(self.busy, now + 1)
            if self.held >= self.turn:
                self.paused, self.held = self.busy + self.sleep, 0.0
            else:
                self.busy += 1  # no other pass before it goes on


def first_from(begin: int, step: int, now: int) -> int:
    """The first of the instants `begin`, `begin` + `step`, ... that is not before `now`."""
    return begin + max(-(-(now - begin) // step), 0) * step
