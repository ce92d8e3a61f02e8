# The validated configuration, and what the rules ask it.

from gridsched.errors import GridschedError
from gridsched.study import plan
from gridsched.study.config import load_config

try:
    CONFIG, STUDIES = load_config(
        config, where=", ".join(map(str, workflow.configfiles)) or "configuration"
    )
except GridschedError as error:
    raise WorkflowError(str(error)) from None

RESULTS = CONFIG.results


wildcard_constraints:
    study=r"[A-Za-z0-9][A-Za-z0-9._-]*",
    workload=r"[A-Za-z0-9][A-Za-z0-9._-]*",
    chunk=r"\d+",
    run=r"[0-9a-f]{12}",
    figure=r"[a-z_]+",


def study_of(wildcards):
    """The study that a file belongs to."""
    return STUDIES[wildcards.study]


def study_values(wildcards):
    """The study as plain values, so that a change of any of them runs its stages again."""
    return study_of(wildcards).model_dump(mode="json")


def simulated_values(wildcards):
    """What the runs of a workload depend on, as plain values."""
    return study_of(wildcards).simulated(wildcards.workload).model_dump(mode="json")


def measured_values(wildcards):
    """What the metrics of the runs of a workload depend on, as plain values."""
    return study_of(wildcards).measured(wildcards.workload).model_dump(mode="json")


def workload_values(wildcards):
    """What the study says of a workload, as plain values."""
    return study_of(wildcards).workload(wildcards.workload).model_dump(mode="json")


def workload_seed(wildcards):
    """Seed of a workload that is drawn; no other depends on it."""
    drawn = study_of(wildcards).workload(wildcards.workload).synthetic is not None
    return CONFIG.seed if drawn else 0


def study_results(study):
    """Files that a study ends with."""
    folder = f"{RESULTS}/{study.name}"
    return [
        f"{folder}/study.nc",
        [f"{folder}/figures/{figure}.svg" for figure in plan.study_figures(study)],
        [
            f"{folder}/figures/{kind}-{workload}.svg"
            for kind in plan.WORKLOAD_FIGURES
            for workload in plan.large_workloads(study)
        ],
        [
            f"{folder}/figures/gantt-{run.identifier}.svg"
            for run in plan.gantt_runs(study)
        ],
    ]
