"""Calibration of a present policy on a log: layers that explain recorded waits, how they are fitted, judged.

`site` has the jobs of a log and what its first half shows, `kernel` replays them under the layers of
`layers`, `fitting` chooses their parameters on the first half by successive halving, `measures` judges them
on the second, and `null` draws waits from the history of like jobs.
"""

from typing import TYPE_CHECKING

from gridsched.lazy import attach

if TYPE_CHECKING:
    from gridsched.calibration.fitting import Effort, fit
    from gridsched.calibration.layers import judged, simulated_waits
    from gridsched.calibration.measures import explained
    from gridsched.calibration.null import null_waits
    from gridsched.calibration.site import site_of

_HOMES: dict[str, str] = {
    "Effort": "gridsched.calibration.fitting",
    "fit": "gridsched.calibration.fitting",
    "judged": "gridsched.calibration.layers",
    "simulated_waits": "gridsched.calibration.layers",
    "explained": "gridsched.calibration.measures",
    "null_waits": "gridsched.calibration.null",
    "site_of": "gridsched.calibration.site",
}

__all__ = [
    "Effort",
    "explained",
    "fit",
    "judged",
    "null_waits",
    "simulated_waits",
    "site_of",
]

__getattr__, __dir__ = attach(__name__, _HOMES)
