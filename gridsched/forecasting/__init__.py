"""When waiting jobs will start: simulated futures, what earlier waits teach, and other ways to tell.

`forecast` gives quantiles of the start of every job that waits in a run, in a log or in a queue that
`read_queue` has read; `continue_log` puts such a queue behind the log of its cluster. `make_forecasts` and
`judge` measure how good forecasts of a `Timeline` are, beside other methods.
"""

from typing import TYPE_CHECKING

from gridsched.lazy import attach

if TYPE_CHECKING:
    from gridsched.forecasting.adjustment import Adjustment, IssuedForecasts, follow
    from gridsched.forecasting.calibrated import CalibratedPolicy, calibrate
    from gridsched.forecasting.history import METHODS, make_forecasts
    from gridsched.forecasting.judging import judge
    from gridsched.forecasting.on_nodes import PolicyOnNodes
    from gridsched.forecasting.present import forecast
    from gridsched.forecasting.queues import continue_log, read_queue
    from gridsched.forecasting.scenarios import Scenarios
    from gridsched.forecasting.snapshot import Snapshot, Timeline, recorded_timeline, timeline_of_run

_HOMES: dict[str, str] = {
    "Adjustment": "gridsched.forecasting.adjustment",
    "CalibratedPolicy": "gridsched.forecasting.calibrated",
    "PolicyOnNodes": "gridsched.forecasting.on_nodes",
    "Scenarios": "gridsched.forecasting.scenarios",
    "METHODS": "gridsched.forecasting.history",
    "Snapshot": "gridsched.forecasting.snapshot",
    "Timeline": "gridsched.forecasting.snapshot",
    "IssuedForecasts": "gridsched.forecasting.adjustment",
    "calibrate": "gridsched.forecasting.calibrated",
    "continue_log": "gridsched.forecasting.queues",
    "follow": "gridsched.forecasting.adjustment",
    "forecast": "gridsched.forecasting.present",
    "judge": "gridsched.forecasting.judging",
    "make_forecasts": "gridsched.forecasting.history",
    "read_queue": "gridsched.forecasting.queues",
    "recorded_timeline": "gridsched.forecasting.snapshot",
    "timeline_of_run": "gridsched.forecasting.snapshot",
}

__all__ = [
    "METHODS",
    "Adjustment",
    "CalibratedPolicy",
    "IssuedForecasts",
    "PolicyOnNodes",
    "Scenarios",
    "Snapshot",
    "Timeline",
    "calibrate",
    "continue_log",
    "follow",
    "forecast",
    "judge",
    "make_forecasts",
    "read_queue",
    "recorded_timeline",
    "timeline_of_run",
]

__getattr__, __dir__ = attach(__name__, _HOMES)
