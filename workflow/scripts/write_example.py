"""Write the worked example of MUSCLE."""

from gridsched.study.logging import logged
from gridsched.study.multicluster_example import write_example

with logged(snakemake.log[0]):
    write_example(snakemake.output.dataset)
