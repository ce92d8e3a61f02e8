"""Say what one workload looks like."""

from gridsched.study.local_stages import characterise_workload
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    characterise_workload(snakemake.input[0], snakemake.output.dataset)
