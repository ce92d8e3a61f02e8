"""Simulate and measure one chunk of runs of a dynamic grid."""

from gridsched.study.config import DynamicGridStudy
from gridsched.study.dynamic_stages import simulate_dynamic_chunk
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    study = DynamicGridStudy.model_validate(snakemake.params.study)
    names = [workload.name for workload in study.all_workloads]
    simulate_dynamic_chunk(
        study,
        snakemake.params.runs,
        snakemake.params.seed,
        dict(zip(names, snakemake.input.workloads, strict=True)),
        dict(zip(snakemake.params.policies, snakemake.input.alone, strict=True)),
        snakemake.output.dataset,
    )
