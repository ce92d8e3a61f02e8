"""Prepare the machines of one scenario for some replicates."""

from gridsched.study.files import unchanged
from gridsched.study.grid_stages import prepare_grids
from gridsched.study.logging import logged
from gridsched.study.parts import ScenarioConfig

with logged(snakemake.log[0]), unchanged(*snakemake.input):
    prepare_grids(
        ScenarioConfig.model_validate(snakemake.params.scenario),
        snakemake.params.replicates,
        snakemake.params.seed,
        dict(zip(snakemake.params.machines, snakemake.input, strict=True)),
        snakemake.output.dataset,
    )
