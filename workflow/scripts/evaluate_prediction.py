"""Compare predictions of the run times of one log."""

from gridsched.study.config import SelfSchedulingStudy
from gridsched.study.logging import logged
from gridsched.study.self_scheduling_stages import evaluate_prediction

with logged(snakemake.log[0]):
    evaluate_prediction(
        SelfSchedulingStudy.model_validate(snakemake.params.study),
        snakemake.wildcards.centre,
        snakemake.input.workload,
        snakemake.input.original,
        snakemake.output.dataset,
    )
