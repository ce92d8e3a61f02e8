"""Prepare the clusters of one case with their workloads."""

from gridsched.study.calendar_config import CaseConfig
from gridsched.study.calendar_stages import prepare_case
from gridsched.study.files import unchanged
from gridsched.study.logging import logged

with logged(snakemake.log[0]), unchanged(*snakemake.input):
    prepare_case(
        CaseConfig.model_validate(snakemake.params.case),
        snakemake.params.seed,
        snakemake.params.workloads,
        snakemake.output.dataset,
    )
