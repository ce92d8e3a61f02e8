"""Prepare one workload."""

from gridsched.study.files import unchanged
from gridsched.study.local_stages import prepare_workload
from gridsched.study.logging import logged
from gridsched.study.parts import WorkloadConfig

with logged(snakemake.log[0]), unchanged(*snakemake.input):
    prepare_workload(
        WorkloadConfig.model_validate(snakemake.params.workload),
        snakemake.params.seed,
        snakemake.input[0] if snakemake.input else None,
        snakemake.output.dataset,
    )
