"""Put all contenders of an arena together and compare them."""

from gridsched.study.arena_stages import aggregate_arena_study
from gridsched.study.config import ArenaStudy
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    aggregate_arena_study(
        ArenaStudy.model_validate(snakemake.params.study),
        snakemake.params.seed,
        snakemake.params.plays,
        snakemake.params.grids,
        snakemake.output.dataset,
        means=snakemake.output.means,
        comparisons=snakemake.output.comparisons,
        runs=snakemake.output.runs,
    )
