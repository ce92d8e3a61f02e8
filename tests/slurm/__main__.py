"""Run a command while there is a Slurm on this machine: `python -m tests.slurm [--if-possible] command ...`.

Exit codes: that of the command; 3 where the session is refused (0 with `--if-possible`).
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from types import FrameType

from tests.slurm.session import RefusalError, session

REFUSED = 3
GRACE = 60
"""Seconds that the command has to end when this process is asked to."""


def main() -> int:
    """Run the command that the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m tests.slurm", description=__doc__)
    parser.add_argument("--if-possible", action="store_true", help="a refusal is no failure")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what runs while there is a Slurm")
    options = parser.parse_args()
    if not options.command:
        parser.error("name a command")
    for wish in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(wish, _stop)
    try:
        with session():
            return _run(options.command)
    except RefusalError as refusal:
        print(f"Slurm: not started, {refusal}", file=sys.stderr)
        print(f"Slurm: NOT run: {' '.join(options.command)}", file=sys.stderr)
        return 0 if options.if_possible else REFUSED


def _stop(wish: int, _: FrameType | None) -> None:
    """End in the ordinary way, so that everything is taken back."""
    sys.exit(128 + wish)


def _run(command: list[str]) -> int:
    """Exit code of a command; it ends with this process."""
    child = subprocess.Popen(command, start_new_session=True)
    try:
        return child.wait()
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGTERM)
            try:
                child.wait(GRACE)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
