"""Errors that a user can mend. The command line prints them as one line, without a traceback."""

from __future__ import annotations


class GridschedError(Exception):
    """A mistake in what the user gave: the message names it, says what was found and what to do."""


class TraceError(GridschedError):
    """A workload log that cannot be read or fetched."""


class WorkloadError(GridschedError):
    """A workload that cannot be simulated, or parameters from which none can be made."""


class ConfigurationError(GridschedError):
    """A configuration, study or policy that does not make sense."""


class ScheduleError(GridschedError):
    """A simulated schedule that breaks a rule which every schedule must keep."""
