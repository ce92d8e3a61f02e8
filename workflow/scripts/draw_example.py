"""Draw the schedules of the worked example of MUSCLE."""

from gridsched.study.drawing import draw_example
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    draw_example(snakemake.wildcards.figure, snakemake.input[0], snakemake.output.svg)
