"""Fit a log and compare it with the published models of its machine."""

from gridsched.study.config import ModelStudy
from gridsched.study.files import unchanged
from gridsched.study.logging import logged
from gridsched.study.model_stages import aggregate_model_study

with logged(snakemake.log[0]), unchanged(*snakemake.input):
    aggregate_model_study(
        ModelStudy.model_validate(snakemake.params.study),
        snakemake.input[0],
        snakemake.output.dataset,
        table=snakemake.output.table,
    )
