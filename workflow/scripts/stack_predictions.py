"""Put the comparisons of predictions of all logs together."""

from gridsched.study.logging import logged
from gridsched.study.self_scheduling_stages import stack_predictions

with logged(snakemake.log[0]):
    stack_predictions(list(snakemake.input), snakemake.output.dataset)
