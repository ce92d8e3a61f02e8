"""Fetch one log of the archive."""

from pathlib import Path

from gridsched.experiments.logging import logged

with logged(snakemake.log[0]):
    from gridsched.traces import fetch

    target = Path(snakemake.output[0])
    # Not a parameter of the rule: a log is the same wherever it comes from, so nothing is fetched anew
    fetch(target.name, folder=target.parent, mirrors=snakemake.config.get("mirrors", ()))
