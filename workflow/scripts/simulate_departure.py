"""Let a site of a dynamic grid leave, and keep what happens."""

from gridsched.study.config import DynamicGridStudy
from gridsched.study.dynamic_stages import simulate_departure
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    study = DynamicGridStudy.model_validate(snakemake.params.study)
    names = [workload.name for workload in study.all_workloads]
    simulate_departure(
        study,
        snakemake.params.seed,
        dict(zip(names, snakemake.input, strict=True)),
        snakemake.output.dataset,
    )
