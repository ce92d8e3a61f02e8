"""Draw one figure of a study."""

from gridsched.study.drawing import draw_study
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    draw_study(snakemake.wildcards.figure, snakemake.input[0], snakemake.output.svg)
