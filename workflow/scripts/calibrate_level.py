"""Look for the rate of arrivals at a workload level."""

from gridsched.study.logging import logged
from gridsched.study.multicluster_stages import calibrate_level

with logged(snakemake.log[0]):
    calibrate_level(snakemake.params.calibration, snakemake.params.seed, snakemake.output.dataset)
