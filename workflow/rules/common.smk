# The validated configuration, and what the rules ask it.

import re

from gridsched.errors import GridschedError
from gridsched.study import plan
from gridsched.study.calendar_runs import calendar_chunks
from gridsched.study.config import (
    ArenaStudy,
    CalendarStudy,
    DynamicGridStudy,
    GridStudy,
    LocalStudy,
    ModelStudy,
    MulticlusterStudy,
    SelfSchedulingStudy,
    load_config,
)
from gridsched.study.dynamic_runs import chunk_values, dynamic_chunks
from gridsched.study.multicluster_runs import point_chunks
from gridsched.study.files import check_folder
from gridsched.study.runs import replicate_chunks, self_scheduling_chunks

try:
    CONFIG, STUDIES = load_config(
        config, where=", ".join(map(str, workflow.configfiles)) or "configuration"
    )
    check_folder(CONFIG.results)
except GridschedError as error:
    raise WorkflowError(str(error)) from None

RESULTS = CONFIG.results


wildcard_constraints:
    study=r"[A-Za-z0-9][A-Za-z0-9._-]*",
    workload=r"[A-Za-z0-9][A-Za-z0-9._-]*",
    scenario=r"[A-Za-z0-9][A-Za-z0-9._-]*",
    centre=r"[A-Za-z0-9][A-Za-z0-9._-]*",
    case=r"[A-Za-z0-9][A-Za-z0-9._-]*",
    factor=r"[a-z]+",
    policy=r"[a-z]+",
    chunk=r"\d+",
    contender=r"\d+",
    run=r"[0-9a-f]{12}",
    figure=r"[a-z_]+",


def names_of(kind):
    """Pattern of the names of all studies of a kind; of nothing if there is none."""
    names = [
        re.escape(name) for name, study in STUDIES.items() if isinstance(study, kind)
    ]
    return "|".join(names) or r"[^\s\S]"


def study_of(wildcards):
    """The study that a file belongs to."""
    return STUDIES[wildcards.study]


def study_values(wildcards):
    """The study as plain values, so that a change of any of them runs its stages again."""
    return study_of(wildcards).model_dump(mode="json")


def simulated_values(wildcards):
    """What the runs of a workload or a scenario depend on, as plain values."""
    part = wildcards.get("scenario") or wildcards.workload
    return study_of(wildcards).simulated(part).model_dump(mode="json")


def measured_values(wildcards):
    """What the metrics of the runs of a workload depend on, as plain values."""
    return study_of(wildcards).measured(wildcards.workload).model_dump(mode="json")


def workload_log(wildcards):
    """SWF file of a workload; none if it is synthetic."""
    return plan.log_file(study_of(wildcards).find_workload(wildcards.workload), RESULTS)


def checksums_of(files):
    """Parameter of a rule: checksums of the files among its inputs that the workflow does not make.

    It asks the wildcards again, since Snakemake does not look at parameters that come from the inputs.
    """
    return lambda wildcards: plan.own_checksums(files(wildcards), RESULTS)


def workload_values(wildcards):
    """What the study says of a workload, as plain values."""
    return study_of(wildcards).find_workload(wildcards.workload).model_dump(mode="json")


def workload_seed(wildcards):
    """Seed of a workload that is drawn; no other depends on it."""
    drawn = study_of(wildcards).find_workload(wildcards.workload).synthetic is not None
    return CONFIG.seed if drawn else 0


def scenario_values(wildcards):
    """What the study says of a scenario, as plain values."""
    return study_of(wildcards).scenario(wildcards.scenario).model_dump(mode="json")


def scenario_seed(wildcards):
    """Seed of a scenario with machines whose workloads are drawn; no other depends on it."""
    machines = study_of(wildcards).scenario(wildcards.scenario).machines
    return CONFIG.seed if any(machine.synthetic for machine in machines) else 0


def scenario_logs(wildcards):
    """SWF files of the machines of a scenario, by name of the machine."""
    return plan.machine_logs(study_of(wildcards), wildcards.scenario, RESULTS)


def chunk_replicates(wildcards):
    """Replicates of a chunk."""
    chunks = replicate_chunks(study_of(wildcards), CONFIG.chunk_size)
    return chunks[int(wildcards.chunk)]


def scenario_chunks(wildcards, stage):
    """Datasets of one stage of a study of grids, scenario by scenario."""
    study = study_of(wildcards)
    return [
        path
        for scenario in study.scenarios
        for path in plan.grid_files(
            study, stage, scenario.name, CONFIG.chunk_size, RESULTS
        )
    ]


def original_values(wildcards):
    """What the original scenario of a centre depends on, as plain values."""
    return study_of(wildcards).original(wildcards.centre).model_dump(mode="json")


def fused_values(wildcards):
    """What the stream of all jobs depends on, as plain values."""
    return study_of(wildcards).fused().model_dump(mode="json")


def self_scheduling_values(wildcards):
    """What runs on a stream depend on besides their own parameters, as plain values."""
    return study_of(wildcards).simulated().model_dump(mode="json")


def self_scheduling_runs(wildcards):
    """Runs of a chunk of a study of self-scheduling."""
    chunks = self_scheduling_chunks(
        study_of(wildcards), wildcards.factor, CONFIG.chunk_size
    )
    return chunks[int(wildcards.chunk)]


def centre_files(wildcards, stage):
    """Datasets of one stage of a study of self-scheduling, centre by centre."""
    return plan.centre_files(study_of(wildcards), stage, RESULTS)


def learning_workloads(wildcards):
    """Workloads of all centres for runs whose predictors learn inside them; none for others."""
    learns = any(run.is_retrained for run in self_scheduling_runs(wildcards))
    return centre_files(wildcards, "workloads") if learns else []


def original_of(wildcards):
    """Original scenario of a centre under the first reading of the CPU factor."""
    study = study_of(wildcards)
    return f"{RESULTS}/{study.name}/originals/{study.factors[0]}/{wildcards.centre}.nc"


def played_values(wildcards):
    """What the runs of a contender depend on, as plain values."""
    played = study_of(wildcards).played(wildcards.scenario, int(wildcards.contender))
    return played.model_dump(mode="json")


def case_values(wildcards):
    """What the study says of the clusters of a case, as plain values."""
    case = study_of(wildcards).case(wildcards.case)
    return case.model_copy(update={"schedulers": None, "paper": None}).model_dump(
        mode="json"
    )


def case_seed(wildcards):
    """Seed of a case with workloads that are drawn; no other depends on it."""
    workloads = study_of(wildcards).case(wildcards.case).workloads
    return CONFIG.seed if any(workload.synthetic for workload in workloads) else 0


def case_logs(wildcards):
    """SWF files of the workloads of a case that are read from a log, by name."""
    return plan.case_logs(study_of(wildcards), wildcards.case, RESULTS)


def calendar_runs(wildcards):
    """Runs of a chunk of a study of imprecise calendars."""
    chunks = calendar_chunks(study_of(wildcards), wildcards.case, CONFIG.chunk_size)
    return chunks[int(wildcards.chunk)]


def calendar_values(wildcards):
    """What the runs of a chunk depend on, as plain values."""
    names = {run.scheduler for run in calendar_runs(wildcards)}
    study = study_of(wildcards).simulated(wildcards.case, sorted(names))
    return study.model_dump(mode="json")


def dynamic_values(wildcards):
    """What runs of a dynamic grid depend on besides their own parameters, as plain values."""
    return study_of(wildcards).simulated().model_dump(mode="json")


def departure_values(wildcards):
    """What the closer look at a site that leaves depends on, as plain values."""
    departure = study_of(wildcards).departure.model_dump(mode="json")
    return {**dynamic_values(wildcards), "departure": departure}


def dynamic_workloads(wildcards):
    """Prepared workloads of a study of dynamic grids, site by site."""
    study = study_of(wildcards)
    return [
        f"{RESULTS}/{study.name}/workloads/{workload.name}.nc"
        for workload in study.all_workloads
    ]


def dynamic_runs(wildcards):
    """Runs of a chunk of a study of dynamic grids, with the parameters of their cases."""
    study = study_of(wildcards)
    chunks = dynamic_chunks(study, CONFIG.chunk_size)
    return chunk_values(study, chunks[int(wildcards.chunk)])


def point_of(wildcards):
    """The point of a study of a multicluster that a file belongs to."""
    return study_of(wildcards).point(wildcards.point)


def simulated_point(wildcards):
    """What the runs of a point depend on, as plain values."""
    return study_of(wildcards).simulated(wildcards.point).model_dump(mode="json")


def multicluster_chunks(wildcards):
    """Groups of replicates of each point of a study of a multicluster."""
    study = study_of(wildcards)
    return {
        point.name: point_chunks(study, point.name, CONFIG.chunk_size)
        for point in study.points
    }
