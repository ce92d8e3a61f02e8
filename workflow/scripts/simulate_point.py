"""Simulate and measure one point of a multicluster for some replicates."""

from gridsched.study.config import MulticlusterStudy
from gridsched.study.logging import logged
from gridsched.study.multicluster_stages import simulate_point

with logged(snakemake.log[0]):
    simulate_point(
        MulticlusterStudy.model_validate(snakemake.params.study),
        snakemake.wildcards.point,
        snakemake.params.replicates,
        snakemake.input.jobs,
        snakemake.output.dataset,
    )
