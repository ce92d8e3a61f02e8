"""gridsched: simulate, compare and reproduce schedulers of parallel jobs on clusters and grids.

The usual names are here; they are loaded when they are first used, so that importing gridsched is quick.

>>> import gridsched as gs
>>> workload = gs.clean(gs.read_swf("KTH-SP2-1996-2.1-cln.swf.gz"))  # doctest: +SKIP
>>> run = gs.simulate(workload, scheduler="easy")  # doctest: +SKIP
>>> gs.summarise(run)["bounded_slowdown_mean"]  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gridsched.lazy import attach

if TYPE_CHECKING:
    from gridsched import calibration, forecasting, plot, prediction
    from gridsched.comparison import compare, what_if
    from gridsched.engine.simulator import Action
    from gridsched.errors import GridschedError
    from gridsched.explanation import explain
    from gridsched.forecasting.present import forecast
    from gridsched.nodes import (
        Limit,
        NodeEvent,
        NodeType,
        Partition,
        draw_failures,
        read_events,
        write_events,
    )
    from gridsched.platform import Cluster, Platform, ResourceChange
    from gridsched.policies.local import Conventions, LocalPolicy
    from gridsched.policies.scores import SCORE
    from gridsched.prediction import PredictorOptions
    from gridsched.simulation import simulate
    from gridsched.summary import summarise
    from gridsched.systems.calendars.scheduler import Calendars
    from gridsched.systems.calendars.tree import Level, Manager, SlotPlan
    from gridsched.systems.custom.compiled import compiled
    from gridsched.systems.custom.external import External
    from gridsched.systems.custom.library import LibraryScheduler
    from gridsched.systems.custom.scheduler import CustomScheduler
    from gridsched.systems.custom.simulator import Simulator
    from gridsched.systems.dynamic_grid.membership import Stay
    from gridsched.systems.dynamic_grid.scheduler import DynamicGrid
    from gridsched.systems.ideal.scheduler import Ideal
    from gridsched.systems.jscheduler.costs import COST
    from gridsched.systems.jscheduler.scheduler import JScheduler
    from gridsched.systems.local.scheduler import Local
    from gridsched.systems.multicluster.jobs import MulticlusterModel, synthesise_multicluster
    from gridsched.systems.multicluster.muscle import composition_table, schedule_queue
    from gridsched.systems.multicluster.scheduler import Multicluster
    from gridsched.systems.multicluster.titan import Titan, Weights
    from gridsched.systems.multiple_requests.scheduler import MultipleRequests
    from gridsched.systems.slurm.differences import explain_against
    from gridsched.systems.slurm.replay import Replay
    from gridsched.systems.slurm.scheduler import Slurm
    from gridsched.systems.slurm.site import read_slurm_site
    from gridsched.systems.superscheduler.scheduler import Superscheduler
    from gridsched.tables import grid_schedulers, jobs, local_policies, segments, table
    from gridsched.traces import (
        clean,
        fetch,
        find_log,
        gpu_partitions,
        infer_nodes,
        infer_outages,
        merge_workloads,
        outage_events,
        read_gpu_nodes,
        read_gpu_pod_log,
        read_nodes,
        read_sacct,
        read_slurm_table,
        read_swf,
        select_window,
        write_swf,
    )
    from gridsched.verification import verify
    from gridsched.workloads import (
        FModel,
        HyperErlang,
        KaplanMeier,
        LublinModel,
        Machine,
        Modal,
        Multiple,
        SizeClass,
        SizeModel,
        Weibull,
        Workload,
        characterise,
        fit_patience,
        load_machines,
        resample,
        sessions_of,
        shake,
        synthesise,
        with_estimates,
        with_feedback,
        with_patience,
    )
    from gridsched.workloads.deadlines import ServiceClass
    from gridsched.workloads.dependencies import dependency_table, singleton_dependencies, with_preceding_jobs
    from gridsched.workloads.feedback import continuation_of

_HOMES: dict[str, str] = {
    "Action": "gridsched.engine.simulator",
    "COST": "gridsched.systems.jscheduler.costs",
    "Calendars": "gridsched.systems.calendars.scheduler",
    "Cluster": "gridsched.platform",
    "Conventions": "gridsched.policies.local",
    "CustomScheduler": "gridsched.systems.custom.scheduler",
    "DynamicGrid": "gridsched.systems.dynamic_grid.scheduler",
    "External": "gridsched.systems.custom.external",
    "FModel": "gridsched.workloads",
    "GridschedError": "gridsched.errors",
    "HyperErlang": "gridsched.workloads",
    "Ideal": "gridsched.systems.ideal.scheduler",
    "JScheduler": "gridsched.systems.jscheduler.scheduler",
    "KaplanMeier": "gridsched.workloads",
    "Level": "gridsched.systems.calendars.tree",
    "LibraryScheduler": "gridsched.systems.custom.library",
    "Limit": "gridsched.nodes",
    "Local": "gridsched.systems.local.scheduler",
    "LocalPolicy": "gridsched.policies.local",
    "LublinModel": "gridsched.workloads",
    "Machine": "gridsched.workloads",
    "Manager": "gridsched.systems.calendars.tree",
    "Modal": "gridsched.workloads",
    "Multicluster": "gridsched.systems.multicluster.scheduler",
    "MulticlusterModel": "gridsched.systems.multicluster.jobs",
    "Multiple": "gridsched.workloads",
    "MultipleRequests": "gridsched.systems.multiple_requests.scheduler",
    "NodeEvent": "gridsched.nodes",
    "NodeType": "gridsched.nodes",
    "Partition": "gridsched.nodes",
    "Platform": "gridsched.platform",
    "PredictorOptions": "gridsched.prediction",
    "Replay": "gridsched.systems.slurm.replay",
    "ResourceChange": "gridsched.platform",
    "SCORE": "gridsched.policies.scores",
    "ServiceClass": "gridsched.workloads.deadlines",
    "SizeClass": "gridsched.workloads",
    "SizeModel": "gridsched.workloads",
    "Simulator": "gridsched.systems.custom.simulator",
    "SlotPlan": "gridsched.systems.calendars.tree",
    "Slurm": "gridsched.systems.slurm.scheduler",
    "Stay": "gridsched.systems.dynamic_grid.membership",
    "Superscheduler": "gridsched.systems.superscheduler.scheduler",
    "Titan": "gridsched.systems.multicluster.titan",
    "Weibull": "gridsched.workloads",
    "Weights": "gridsched.systems.multicluster.titan",
    "Workload": "gridsched.workloads",
    "calibration": "gridsched.calibration",
    "characterise": "gridsched.workloads",
    "clean": "gridsched.traces",
    "compare": "gridsched.comparison",
    "compiled": "gridsched.systems.custom.compiled",
    "composition_table": "gridsched.systems.multicluster.muscle",
    "continuation_of": "gridsched.workloads.feedback",
    "dependency_table": "gridsched.workloads.dependencies",
    "draw_failures": "gridsched.nodes",
    "explain": "gridsched.explanation",
    "explain_against": "gridsched.systems.slurm.differences",
    "fetch": "gridsched.traces",
    "find_log": "gridsched.traces",
    "fit_patience": "gridsched.workloads",
    "forecast": "gridsched.forecasting.present",
    "forecasting": "gridsched.forecasting",
    "gpu_partitions": "gridsched.traces",
    "grid_schedulers": "gridsched.tables",
    "infer_nodes": "gridsched.traces",
    "infer_outages": "gridsched.traces",
    "jobs": "gridsched.tables",
    "load_machines": "gridsched.workloads",
    "local_policies": "gridsched.tables",
    "merge_workloads": "gridsched.traces",
    "outage_events": "gridsched.traces",
    "plot": "gridsched.plot",
    "prediction": "gridsched.prediction",
    "read_events": "gridsched.nodes",
    "read_gpu_nodes": "gridsched.traces",
    "read_gpu_pod_log": "gridsched.traces",
    "read_nodes": "gridsched.traces",
    "read_sacct": "gridsched.traces",
    "read_slurm_site": "gridsched.systems.slurm.site",
    "read_slurm_table": "gridsched.traces",
    "read_swf": "gridsched.traces",
    "resample": "gridsched.workloads",
    "schedule_queue": "gridsched.systems.multicluster.muscle",
    "segments": "gridsched.tables",
    "select_window": "gridsched.traces",
    "sessions_of": "gridsched.workloads",
    "shake": "gridsched.workloads",
    "simulate": "gridsched.simulation",
    "singleton_dependencies": "gridsched.workloads.dependencies",
    "summarise": "gridsched.summary",
    "synthesise": "gridsched.workloads",
    "synthesise_multicluster": "gridsched.systems.multicluster.jobs",
    "table": "gridsched.tables",
    "verify": "gridsched.verification",
    "what_if": "gridsched.comparison",
    "with_estimates": "gridsched.workloads",
    "with_feedback": "gridsched.workloads",
    "with_patience": "gridsched.workloads",
    "with_preceding_jobs": "gridsched.workloads.dependencies",
    "write_events": "gridsched.nodes",
    "write_swf": "gridsched.traces",
}

__all__ = [
    "COST",
    "SCORE",
    "Action",
    "Calendars",
    "Cluster",
    "Conventions",
    "CustomScheduler",
    "DynamicGrid",
    "External",
    "FModel",
    "GridschedError",
    "HyperErlang",
    "Ideal",
    "JScheduler",
    "KaplanMeier",
    "Level",
    "LibraryScheduler",
    "Limit",
    "Local",
    "LocalPolicy",
    "LublinModel",
    "Machine",
    "Manager",
    "Modal",
    "Multicluster",
    "MulticlusterModel",
    "Multiple",
    "MultipleRequests",
    "NodeEvent",
    "NodeType",
    "Partition",
    "Platform",
    "PredictorOptions",
    "Replay",
    "ResourceChange",
    "ServiceClass",
    "Simulator",
    "SizeClass",
    "SizeModel",
    "SlotPlan",
    "Slurm",
    "Stay",
    "Superscheduler",
    "Titan",
    "Weibull",
    "Weights",
    "Workload",
    "calibration",
    "characterise",
    "clean",
    "compare",
    "compiled",
    "composition_table",
    "continuation_of",
    "dependency_table",
    "draw_failures",
    "explain",
    "explain_against",
    "fetch",
    "find_log",
    "fit_patience",
    "forecast",
    "forecasting",
    "gpu_partitions",
    "grid_schedulers",
    "infer_nodes",
    "infer_outages",
    "jobs",
    "load_machines",
    "local_policies",
    "merge_workloads",
    "outage_events",
    "plot",
    "prediction",
    "read_events",
    "read_gpu_nodes",
    "read_gpu_pod_log",
    "read_nodes",
    "read_sacct",
    "read_slurm_site",
    "read_slurm_table",
    "read_swf",
    "resample",
    "schedule_queue",
    "segments",
    "select_window",
    "sessions_of",
    "shake",
    "simulate",
    "singleton_dependencies",
    "summarise",
    "synthesise",
    "synthesise_multicluster",
    "table",
    "verify",
    "what_if",
    "with_estimates",
    "with_feedback",
    "with_patience",
    "with_preceding_jobs",
    "write_events",
    "write_swf",
]

__getattr__, __dir__ = attach(__name__, _HOMES)
