"""`gridsched fetch`: logs of the archive."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from gridsched.cli.options import add_command, completed, path
from gridsched.cli.printing import UNKNOWN_TEXT, megabytes, print_blocks, table
from gridsched.errors import ConfigurationError


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "fetch",
        "Fetch logs of the Parallel Workloads Archive, verify them and print their paths.",
        "gridsched fetch --list",
        "gridsched fetch KTH-SP2-1996 CTC-SP2-1996 --mirror /data/logs",
    )
    logs = parser.add_argument("logs", nargs="*", metavar="LOG", help="name of a log, such as KTH-SP2-1996")
    completed(logs, _log_names)
    parser.add_argument("--folder", type=path, metavar="DIR", help="where to keep them (default: the cache)")
    parser.add_argument(
        "--mirror",
        dest="mirrors",
        action="append",
        default=[],
        metavar="PLACE",
        help="folder or address that holds logs, tried before the archive; may be repeated",
    )
    parser.add_argument("--list", action="store_true", help="list the known logs, or those named, and stop")
    parser.set_defaults(command=_fetch)


def _fetch(options: argparse.Namespace) -> None:
    from gridsched.traces import fetch

    if options.list:
        _list_logs(options)
        return
    if not options.logs:
        raise ConfigurationError("fetch: name at least one log; gridsched fetch --list shows the known ones")
    for log in options.logs:
        place = fetch(log, folder=options.folder, mirrors=options.mirrors, progress=sys.stderr.isatty())
        print(place, flush=True)


def _list_logs(options: argparse.Namespace) -> None:
    from gridsched.traces import archive_folder, find_log, registry

    folder = options.folder or archive_folder()
    logs = [find_log(name) for name in options.logs] or list(registry().values())
    rows = [
        (
            log.name,
            UNKNOWN_TEXT if log.jobs is None else f"{log.jobs:,}",
            UNKNOWN_TEXT if log.processors is None else f"{log.processors:,}",
            UNKNOWN_TEXT if log.bytes is None else megabytes(log.bytes),
            "known" if log.sha256_gz or log.sha256_content else UNKNOWN_TEXT,
            "yes" if (folder / log.file).is_file() else "no",
        )
        for log in logs
    ]
    print_blocks(table(["log", "jobs", "processors", "size [MB]", "checksum", "present"], rows))


def _log_names(_: str) -> list[str]:
    """Names of the archive's logs, without loading what reads them."""
    import yaml

    from gridsched.io import resource

    return list(yaml.safe_load(resource("resources", "archive.yaml").read_text(encoding="utf-8")))
