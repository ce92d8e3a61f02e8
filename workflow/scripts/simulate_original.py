"""Simulate one log on its own centre, and predict its run times."""

from gridsched.study.config import SelfSchedulingStudy
from gridsched.study.logging import logged
from gridsched.study.self_scheduling_stages import simulate_original

with logged(snakemake.log[0]):
    simulate_original(
        SelfSchedulingStudy.model_validate(snakemake.params.study),
        snakemake.wildcards.factor,
        snakemake.wildcards.centre,
        snakemake.input[0],
        snakemake.output.dataset,
    )
