"""Workloads: the table of jobs, models that draw synthetic ones, and what a workload looks like."""

from typing import TYPE_CHECKING

from gridsched.lazy import attach

if TYPE_CHECKING:
    from gridsched.workloads.bounded_pareto import BoundedPareto
    from gridsched.workloads.characterisation import characterise
    from gridsched.workloads.estimates import Estimates, FModel, Modal, Multiple, with_estimates
    from gridsched.workloads.feedback import sessions_of, with_feedback
    from gridsched.workloads.fitting import (
        Goodness,
        HyperErlangFit,
        fit_hyper_erlang,
        goodness,
        hyper_erlang_quantile,
        non_central_moments,
    )
    from gridsched.workloads.hyper_erlang import HyperErlang
    from gridsched.workloads.lublin import LublinJobs, LublinModel
    from gridsched.workloads.machine_fit import (
        ClassBounds,
        MachineFit,
        fit_machine,
        size_classes_of,
    )
    from gridsched.workloads.patience import KaplanMeier, Weibull, fit_patience, with_patience
    from gridsched.workloads.resampling import resample
    from gridsched.workloads.shaking import shake
    from gridsched.workloads.size_classes import (
        Machine,
        SizeClass,
        SizeModel,
        calibrate_exponent,
        derive_machine,
        load_machines,
        offered_load,
    )
    from gridsched.workloads.synthesis import synthesise
    from gridsched.workloads.table import SWF_FIELDS, UNKNOWN, Workload

_HOMES: dict[str, str] = {
    "BoundedPareto": "gridsched.workloads.bounded_pareto",
    "ClassBounds": "gridsched.workloads.machine_fit",
    "Estimates": "gridsched.workloads.estimates",
    "FModel": "gridsched.workloads.estimates",
    "Goodness": "gridsched.workloads.fitting",
    "HyperErlang": "gridsched.workloads.hyper_erlang",
    "HyperErlangFit": "gridsched.workloads.fitting",
    "KaplanMeier": "gridsched.workloads.patience",
    "LublinJobs": "gridsched.workloads.lublin",
    "LublinModel": "gridsched.workloads.lublin",
    "Machine": "gridsched.workloads.size_classes",
    "MachineFit": "gridsched.workloads.machine_fit",
    "Modal": "gridsched.workloads.estimates",
    "Multiple": "gridsched.workloads.estimates",
    "SWF_FIELDS": "gridsched.workloads.table",
    "SizeClass": "gridsched.workloads.size_classes",
    "SizeModel": "gridsched.workloads.size_classes",
    "UNKNOWN": "gridsched.workloads.table",
    "Weibull": "gridsched.workloads.patience",
    "Workload": "gridsched.workloads.table",
    "calibrate_exponent": "gridsched.workloads.size_classes",
    "characterise": "gridsched.workloads.characterisation",
    "derive_machine": "gridsched.workloads.size_classes",
    "fit_hyper_erlang": "gridsched.workloads.fitting",
    "fit_machine": "gridsched.workloads.machine_fit",
    "fit_patience": "gridsched.workloads.patience",
    "goodness": "gridsched.workloads.fitting",
    "hyper_erlang_quantile": "gridsched.workloads.fitting",
    "load_machines": "gridsched.workloads.size_classes",
    "non_central_moments": "gridsched.workloads.fitting",
    "offered_load": "gridsched.workloads.size_classes",
    "resample": "gridsched.workloads.resampling",
    "sessions_of": "gridsched.workloads.feedback",
    "shake": "gridsched.workloads.shaking",
    "size_classes_of": "gridsched.workloads.machine_fit",
    "synthesise": "gridsched.workloads.synthesis",
    "with_feedback": "gridsched.workloads.feedback",
    "with_estimates": "gridsched.workloads.estimates",
    "with_patience": "gridsched.workloads.patience",
}

__all__ = [
    "SWF_FIELDS",
    "UNKNOWN",
    "BoundedPareto",
    "ClassBounds",
    "Estimates",
    "FModel",
    "Goodness",
    "HyperErlang",
    "HyperErlangFit",
    "KaplanMeier",
    "LublinJobs",
    "LublinModel",
    "Machine",
    "MachineFit",
    "Modal",
    "Multiple",
    "SizeClass",
    "SizeModel",
    "Weibull",
    "Workload",
    "calibrate_exponent",
    "characterise",
    "derive_machine",
    "fit_hyper_erlang",
    "fit_machine",
    "fit_patience",
    "goodness",
    "hyper_erlang_quantile",
    "load_machines",
    "non_central_moments",
    "offered_load",
    "resample",
    "sessions_of",
    "shake",
    "size_classes_of",
    "synthesise",
    "with_estimates",
    "with_feedback",
    "with_patience",
]

__getattr__, __dir__ = attach(__name__, _HOMES)
