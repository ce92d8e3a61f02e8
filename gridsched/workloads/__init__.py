"""Workloads: the table of jobs, models that draw synthetic ones, and what a workload looks like."""

from gridsched.workloads.bounded_pareto import BoundedPareto
from gridsched.workloads.characterise import characterise
from gridsched.workloads.estimates import Estimates, FModel, Modal, Multiple, with_estimates
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
    compare_machines,
    fit_machine,
    size_classes_of,
)
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
    "LublinJobs",
    "LublinModel",
    "Machine",
    "MachineFit",
    "Modal",
    "Multiple",
    "SizeClass",
    "SizeModel",
    "Workload",
    "calibrate_exponent",
    "characterise",
    "compare_machines",
    "derive_machine",
    "fit_hyper_erlang",
    "fit_machine",
    "goodness",
    "hyper_erlang_quantile",
    "load_machines",
    "non_central_moments",
    "offered_load",
    "size_classes_of",
    "synthesise",
    "with_estimates",
]
