# gridsched: studies of parallel job scheduling, from logs to report.
#
# The configuration names study files; each study expands into runs, which are simulated in chunks.
# Rules are thin: each calls one function of gridsched (study.stages, study.drawing, report) through a script.

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

min_version("9.0")

# a configuration file of the user's own stands alone
if not workflow.configfiles and "studies" not in config:

    configfile: "config/demo.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/archive.smk"
include: "workflow/rules/workloads.smk"
include: "workflow/rules/simulation.smk"
include: "workflow/rules/grids.smk"
include: "workflow/rules/self_scheduling.smk"
include: "workflow/rules/arena.smk"
include: "workflow/rules/calendars.smk"
include: "workflow/rules/dynamic_grid.smk"
include: "workflow/rules/multicluster.smk"
include: "workflow/rules/models.smk"
include: "workflow/rules/aggregation.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/report.smk"


report: "reports/overview.rst"


# Short jobs, and those that need the network, stay on the machine from which a cluster is used
localrules:
    all,
    fetch_log,
    draw_study,
    draw_prediction,
    draw_scenario,
    draw_load,
    draw_workload,
    draw_gantt,
    draw_calendar_case,
    draw_example,
    write_example,
    stack_predictions,
    evaluate_claims,
    build_report,


rule all:
    default_target: True
    input:
        f"{RESULTS}/report.html",
        [plan.study_results(study, RESULTS) for study in STUDIES.values()],
