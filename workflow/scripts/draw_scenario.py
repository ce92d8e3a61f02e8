"""Draw one figure of one scenario."""

from gridsched.study.drawing import draw_scenario
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    draw_scenario(
        snakemake.wildcards.figure,
        snakemake.input[0],
        snakemake.wildcards.scenario,
        snakemake.output.svg,
    )
