"""Draw one figure of how good predictions are."""

from gridsched.study.drawing import draw_prediction
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    draw_prediction(snakemake.wildcards.figure, snakemake.input[0], snakemake.output.svg)
