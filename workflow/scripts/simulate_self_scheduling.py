"""Simulate and measure one chunk of runs of self-scheduling."""

from gridsched.study.config import SelfSchedulingStudy
from gridsched.study.logging import logged
from gridsched.study.runs import SelfSchedulingRun
from gridsched.study.self_scheduling_stages import simulate_chunk

with logged(snakemake.log[0]):
    simulate_chunk(
        SelfSchedulingStudy.model_validate(snakemake.params.study),
        [SelfSchedulingRun(**run) for run in snakemake.params.runs],
        snakemake.params.seed,
        snakemake.input.stream,
        snakemake.output.dataset,
        workloads=list(snakemake.input.workloads),
    )
