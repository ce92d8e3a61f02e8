"""Fetch one log of the archive."""

from pathlib import Path

from gridsched.study.logging import logged
from gridsched.traces import fetch

with logged(snakemake.log[0]):
    target = Path(snakemake.output[0])
    fetch(target.name, folder=target.parent, mirrors=snakemake.params.mirrors)
