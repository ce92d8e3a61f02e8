"""A search for cases in which a random test fails: `make hunt MINUTES=30`.

Rounds of all random tests of the suite, each round from a fresh seed, until time is over. What makes a test
fail is added to `tests/examples.json`, and `make test` tries it again from then on.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test

from tests.conftest import DATABASE, REPOSITORY
from tests.support.examples import EXAMPLES, store

UNENDING = 1800
"""Seconds after which a test is taken for one that does not end."""


def _seed(item: pytest.Item) -> int | None:
    """Seed of a test that draws its cases itself."""
    if not isinstance(item, pytest.Function) or item.get_closest_marker("random_cases") is None:
        return None
    return int(str(item.callspec.params["seed"]))


def _is_random(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and (
        _seed(item) is not None or is_hypothesis_test(item.function)
    )


class Round:
    """A plugin of pytest: random tests alone, in random order; counts cases and stores those that fail."""

    def __init__(self, first: int, until: float, log: Path) -> None:
        self.first, self.until, self.log = first, until, log
        self.cases = 0
        self.failures: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if _is_random(item)]
        random.Random(self.first).shuffle(items)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if time.time() > self.until:
            item.session.shouldstop = "time is over"
        self._write(item.nodeid, _seed(item))
        result = yield
        self._write()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed:
            self.failures.append(item.nodeid)
            keep(item.nodeid, _seed(item))
        if report.when == "teardown":
            counts = re.findall(r"(\d+) (?:passing|failing)", getattr(item, "hypothesis_statistics", ""))
            self.cases += sum(map(int, counts)) if counts else 1
        return report

    def _write(self, running: str = "", seed: int | None = None) -> None:
        """Note what runs, so that it is known if this process does not come to its end."""
        done = {"cases": self.cases, "failures": self.failures, "running": running, "seed": seed}
        self.log.write_text(json.dumps(done), encoding="utf-8")


def keep(test: str, seed: int | None) -> None:
    """Store what made a test fail."""
    if seed is None:
        store(test, DATABASE.smallest(test))
    else:
        store(test.split("[")[0], [seed])


def hunt_round(first: int, until: float, log: Path) -> int:
    """Run every random test once, from a seed on."""
    options = ["-n", "0", "--tb", "short", f"--first-seed={first}", f"--hypothesis-seed={first}"]
    limit = ["-o", f"faulthandler_timeout={UNENDING}", "-o", "faulthandler_exit_on_timeout=true"]
    return pytest.main([*options, *limit, str(REPOSITORY / "tests")], plugins=[Round(first, until, log)])


def hunt(minutes: float) -> int:
    """Make rounds, a process each, so that the next one goes on where a kernel crashes or does not end."""
    until = time.time() + 60 * minutes
    rounds, cases, failures = 0, 0, set[str]()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "round.json"
        while time.time() < until:
            first = secrets.randbelow(2**31)
            print(f"Round {rounds + 1}: seeds from {first}", flush=True)
            command = [sys.executable, "-m", "tests.hunting", "--round", str(first), str(until), str(log)]
            code = subprocess.run(command, cwd=REPOSITORY, check=False).returncode
            if not log.exists():
                return code or 1  # the tests cannot be collected
            done = json.loads(log.read_text(encoding="utf-8"))
            log.unlink()
            rounds, cases = rounds + 1, cases + done["cases"]
            failures.update(done["failures"])
            if done["running"]:
                print(f"{done['running']} did not come to its end (exit code {code}).")
                failures.add(done["running"])
                if done["seed"] is not None:
                    keep(done["running"], done["seed"])
    print(f"{rounds} rounds, {cases} cases, {len(failures)} failures", *sorted(failures), sep="\n  ")
    if failures:
        print(f"Examples are in {EXAMPLES.relative_to(REPOSITORY)}; `make test` tries them again.")
    return int(bool(failures))


def main() -> int:
    """Hunt, or make one round of a hunt."""
    parser = argparse.ArgumentParser(prog="python -m tests.hunting", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--round", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.round is None:
        return hunt(given.minutes)
    first, until, log = given.round
    return hunt_round(int(first), float(until), Path(log))


if __name__ == "__main__":
    sys.exit(main())
