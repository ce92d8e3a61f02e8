"""Simulate one chunk of runs."""

from gridsched.study.config import LocalStudy
from gridsched.study.files import unchanged
from gridsched.study.local_stages import simulate_chunk
from gridsched.study.logging import logged
from gridsched.study.runs import chunks

with logged(snakemake.log[0]), unchanged(*snakemake.input):
    study = LocalStudy.model_validate(snakemake.params.study)
    runs = chunks(study, snakemake.wildcards.workload, snakemake.params.chunk_size)
    simulate_chunk(
        study, runs[int(snakemake.wildcards.chunk)], snakemake.input.workload, snakemake.output.dataset
    )
