# The validated configuration, and all that it asks for.

import re

from gridsched.errors import GridschedError
from gridsched.experiments.batches import Work
from gridsched.experiments.captions import Captions
from gridsched.experiments.config import load_config
from gridsched.experiments.files import check_folder
from gridsched.experiments.interruption import Interruption
from snakemake.logging import logger

try:
    CONFIG, STUDIES = load_config(
        config, where=", ".join(map(str, workflow.configfiles)) or "configuration"
    )
    check_folder(CONFIG.results)
    WORK = Work(CONFIG, STUDIES)
except GridschedError as error:
    raise WorkflowError(str(error)) from None

RESULTS = CONFIG.results

# Not in the process of a single job, which may not see yet what others have written
if workflow.is_main_process:
    WORK.forget_lost()
    logger.addFilter(Interruption())


wildcard_constraints:
    study="|".join(map(re.escape, WORK.folders)),
    batch=r"[0-9a-f]{12}",
    dataset=r"[a-z_]+",


def needed(stage):
    """Input of a rule: what must be there before a batch of a stage."""
    return lambda wildcards: WORK.needed(*WORK.batch(stage, wildcards).tasks)


def calls(stage):
    """Parameter of a rule: tasks of a batch of a stage, as plain values."""
    return lambda wildcards: [
        task.call(RESULTS) for task in WORK.batch(stage, wildcards).tasks
    ]


def title(stage):
    """Parameter of a rule: what a batch of a stage does, for people."""
    return lambda wildcards: WORK.batch(stage, wildcards).title


def memory(stage):
    """Resource of a rule: memory of a batch of a stage [MB]."""
    return lambda wildcards: WORK.batch(stage, wildcards).memory


def minutes(stage):
    """Resource of a rule: time that a batch of a stage may take."""
    return lambda wildcards: WORK.batch(stage, wildcards).minutes


def drawn(wildcards):
    """Figures of a study as plain values."""
    return [
        figure.call(RESULTS) for figure in WORK.experiments[wildcards.study].figures
    ]


def tables(wildcards):
    """Tables of a study: place of the function of each."""
    return {
        table.name: table.function for table in WORK.experiments[wildcards.study].tables
    }


def captions(wildcards):
    """Captions of the figures and tables of a study, by name."""
    experiment = WORK.experiments[wildcards.study]
    kinds = {each.name: each.kind for each in (*experiment.figures, *experiment.tables)}
    own = {each.name: each.specification for each in experiment.figures}
    return Captions(kinds, f"{RESULTS}/{wildcards.study}/figures", own)


def part_shown(wildcards):
    """Part of a study that a figure shows."""
    figures = WORK.experiments[wildcards.study].figures
    return next(each.part for each in figures if each.name == wildcards.name)


def labels_shown(wildcards):
    """Labels of a figure in the report of Snakemake."""
    figures = WORK.experiments[wildcards.study].figures
    figure = next(each for each in figures if each.name == wildcards.name)
    return {"figure": figure.kind, "of": figure.title or "all"}
