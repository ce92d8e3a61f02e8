"""Ctrl-C in a workflow: one line in place of the errors of jobs that it ended."""

from __future__ import annotations

import logging
import signal
import sys
from types import FrameType


class Interruption(logging.Filter):
    """Filter for the logger of Snakemake, which also handles the interrupt itself.

    Snakemake ends by itself and unlocks its folder, but reports each job that was running as one that failed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[int, str] = {}
        self._interrupted = False
        # A process in the background of a shell ignores interrupts
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupt)

    def filter(self, record: logging.LogRecord) -> bool:
        """Follow which jobs are running; let nothing through that an interrupt is the cause of."""
        if getattr(record, "rule_msg", None):
            self._running[vars(record)["jobid"]] = vars(record)["rule_msg"]
        elif hasattr(record, "job_id"):
            self._running.pop(vars(record)["job_id"], None)
        return not (self._interrupted and record.levelno >= logging.ERROR)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if not self._interrupted:
            self._interrupted = True
            during = f" during {'; '.join(self._running.values())}" if self._running else ""
            message = f"gridsched: interrupted{during}. The same command continues from there."
            print(message, file=sys.stderr, flush=True)
        raise KeyboardInterrupt
