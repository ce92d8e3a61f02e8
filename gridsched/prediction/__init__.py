"""Prediction of run times from the jobs that have finished.

`predict_prequential` predicts every job of a workload with a classification tree over intervals of run time
that is retrained again and again; `Predictor` does the same inside a simulation; `PredictorOptions` says
how. `evaluate` compares the tree with simpler and other learned methods, whose predictions
`predict_by_method` gives, and `stack_workloads` puts several evaluations together.
"""

from typing import TYPE_CHECKING

from gridsched.lazy import attach

if TYPE_CHECKING:
    from gridsched.prediction.comparison import predict_by_method
    from gridsched.prediction.evaluation import evaluate, stack_workloads
    from gridsched.prediction.intervals import Intervals, discretise
    from gridsched.prediction.methods import METHODS
    from gridsched.prediction.model import Model
    from gridsched.prediction.options import FEATURES, PredictorOptions
    from gridsched.prediction.predictor import Predictor
    from gridsched.prediction.prequential import Predictions, predict_prequential, recorded_end_time

_HOMES: dict[str, str] = {
    "FEATURES": "gridsched.prediction.options",
    "Intervals": "gridsched.prediction.intervals",
    "METHODS": "gridsched.prediction.methods",
    "Model": "gridsched.prediction.model",
    "Predictions": "gridsched.prediction.prequential",
    "Predictor": "gridsched.prediction.predictor",
    "PredictorOptions": "gridsched.prediction.options",
    "discretise": "gridsched.prediction.intervals",
    "evaluate": "gridsched.prediction.evaluation",
    "predict_by_method": "gridsched.prediction.comparison",
    "predict_prequential": "gridsched.prediction.prequential",
    "recorded_end_time": "gridsched.prediction.prequential",
    "stack_workloads": "gridsched.prediction.evaluation",
}

__all__ = [
    "FEATURES",
    "METHODS",
    "Intervals",
    "Model",
    "Predictions",
    "Predictor",
    "PredictorOptions",
    "discretise",
    "evaluate",
    "predict_by_method",
    "predict_prequential",
    "recorded_end_time",
    "stack_workloads",
]

__getattr__, __dir__ = attach(__name__, _HOMES)
