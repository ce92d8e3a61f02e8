"""Workloads: the table of jobs, models that draw synthetic ones, and what a workload looks like."""

from gridsched.workloads.characterise import characterise
from gridsched.workloads.estimates import Estimates, FModel, Modal, Multiple, with_estimates
from gridsched.workloads.hyper_erlang import HyperErlang
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
    "Estimates",
    "FModel",
    "HyperErlang",
    "Machine",
    "Modal",
    "Multiple",
    "SizeClass",
    "SizeModel",
    "Workload",
    "calibrate_exponent",
    "characterise",
    "derive_machine",
    "load_machines",
    "offered_load",
    "synthesise",
    "with_estimates",
]
