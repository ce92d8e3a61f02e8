"""Draw one figure of a study."""

from gridsched.study.logging import logged
from gridsched.study.stages import draw_study

with logged(snakemake.log[0]):
    draw_study(snakemake.wildcards.figure, snakemake.input[0], snakemake.output.svg)
