"""Simulate and measure one scenario for some replicates."""

from gridsched.study.config import GridStudy
from gridsched.study.files import unchanged
from gridsched.study.grid_stages import simulate_grids
from gridsched.study.logging import logged

with logged(snakemake.log[0]), unchanged(*snakemake.input):
    simulate_grids(
        GridStudy.model_validate(snakemake.params.study),
        snakemake.wildcards.scenario,
        snakemake.input.grids,
        snakemake.output.dataset,
        schedules=snakemake.output.schedules,
    )
