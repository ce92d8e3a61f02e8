"""Carry out the tasks of a batch that are not done, or collect a dataset."""

from gridsched.experiments.logging import logged

with logged(snakemake.log[0]):
    from gridsched.experiments.running import carry_out

    carry_out(snakemake.params.tasks, snakemake.output.get("stamp"))
