"""Measure all runs of one workload."""

from gridsched.study.config import StudyConfig
from gridsched.study.logging import logged
from gridsched.study.stages import summarise_workload

with logged(snakemake.log[0]):
    summarise_workload(
        StudyConfig.model_validate(snakemake.params.study), list(snakemake.input), snakemake.output.dataset
    )
