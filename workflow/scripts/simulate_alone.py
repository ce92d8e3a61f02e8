"""Simulate every site of a study of dynamic grids on its own."""

from gridsched.study.config import DynamicGridStudy
from gridsched.study.dynamic_stages import simulate_alone
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    study = DynamicGridStudy.model_validate(snakemake.params.study)
    names = [workload.name for workload in study.all_workloads]
    simulate_alone(
        study,
        snakemake.wildcards.policy,
        dict(zip(names, snakemake.input, strict=True)),
        snakemake.output.dataset,
    )
