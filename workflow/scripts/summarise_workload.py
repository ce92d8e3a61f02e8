"""Measure all runs of one workload."""

from gridsched.study.config import LocalStudy
from gridsched.study.local_stages import summarise_workload
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    summarise_workload(
        LocalStudy.model_validate(snakemake.params.study), list(snakemake.input), snakemake.output.dataset
    )
