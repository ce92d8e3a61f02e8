"""Let one contender of the arena play a scenario."""

from gridsched.study.arena_stages import play_contender
from gridsched.study.config import ArenaStudy
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    study = ArenaStudy.model_validate(snakemake.params.study)
    play_contender(
        study,
        snakemake.wildcards.scenario,
        study.labels[0],
        snakemake.input.grids,
        snakemake.params.seed,
        snakemake.output.dataset,
    )
