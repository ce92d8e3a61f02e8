"""`gridsched cache`: what gridsched keeps."""

from __future__ import annotations

import argparse
from typing import Any

from gridsched.cli.options import add_command
from gridsched.cli.printing import megabytes, print_blocks, printable, table
from gridsched.errors import GridschedError


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "cache",
        "Show or clear what gridsched keeps; GRIDSCHED_CACHE names another folder.",
        "gridsched cache show",
        "gridsched cache clear",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    show = add_command(actions, "show", "Show the folders and how large they are.")
    show.set_defaults(command=_show_cache)
    clear = add_command(actions, "clear", "Delete the compiled kernels; logs that were fetched stay.")
    clear.set_defaults(command=_clear_cache)


def _show_cache(_: argparse.Namespace) -> None:
    from gridsched.engine.jit import cache_root
    from gridsched.traces import archive_folder

    folders = {"compiled kernels": cache_root(), "logs": archive_folder()}
    rows = []
    for what, folder in folders.items():
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        rows.append((printable(str(folder)), what, f"{len(sizes):,}", megabytes(sum(sizes))))
    print_blocks(table(["folder", "holds", "files", "size [MB]"], rows))


def _clear_cache(_: argparse.Namespace) -> None:
    from gridsched.engine.jit import clear_cache

    folder = clear_cache()
    if folder.exists():
        raise GridschedError(f"{folder}: could not be deleted; check its permissions")
    print(f"deleted {printable(str(folder))}")
