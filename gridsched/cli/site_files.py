"""Files of a site, named once in YAML."""

from __future__ import annotations

from pathlib import Path

from gridsched.errors import ConfigurationError
from gridsched.io import read_yaml, shown
from gridsched.validation import ConfigModel, Label, PathText, validated


class SiteConfig(ConfigModel):
    """What a Slurm site has exported, for `--site` of compare, explain and forecast.

    Paths are relative to the folder of this file. Only `accounting` is needed; `gridsched site check` says
    what the others add.
    """

    accounting: PathText
    """Export of `sacct --parsable2`, see docs/operators.md for its columns."""
    time_zone: Label | None = None
    """Time zone of the times in the export, such as Europe/Rome; UTC if not given."""
    slurm_conf: PathText | None = None
    """slurm.conf, with the files that it includes beside it; or the output of `scontrol show config`, which
    has no nodes."""
    slurm_version: Label | None = None
    """Release of Slurm whose rules hold, from 22.05, the default, to 26.05. Write it in quotes."""
    sacctmgr: PathText | None = None
    """Shares and limits of accounts and users, as `sacctmgr dump` wrote them."""
    qos: PathText | None = None
    """Qualities of service, as `sacctmgr show qos --parsable2` printed them; needs `sacctmgr`."""
    sshare: PathText | None = None
    """Usage before the first job, as `sshare --all --parsable2` printed it; needs `sacctmgr`."""
    squeue: PathText | None = None
    """The present queue, as `squeue -o "%i|%T|%M|%C|%l|%u|%P|%q|%V"` printed it."""
    sdiag: PathText | None = None
    """What `sdiag` printed: how long passes of the backfill scheduler take."""
    groups: PathText | None = None
    """What `getent group` printed, and `getent passwd` below it: who is in the groups of AllowGroups."""


FILES = tuple(name for name in SiteConfig.model_fields if name not in ("time_zone", "slurm_version"))
"""Keys of files."""


def read_site_file(path: Path) -> dict[str, str]:
    """Keys that a file of a site gives; paths as they are seen from here.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, has another key, or names a file that is not there; names file and key.
    """
    given = validated(SiteConfig, read_yaml(path), str(path)).model_dump(exclude_none=True)
    for name in FILES:
        if name in given:
            file = path.parent / given[name]
            if not file.is_file():
                raise ConfigurationError(
                    f"{path}: {name}: found {shown(given[name])}; there is no such file, seen from "
                    f"{path.parent.absolute()}"
                )
            given[name] = str(file)
    return given
