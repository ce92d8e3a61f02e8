"""What the tests of studies share: small logs, changed configurations and what is wrong with them, pages."""

from __future__ import annotations

import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from gridsched.errors import ConfigurationError
from gridsched.study.config import load_study
from tests.test_report import Page


def log_text(seed: int, jobs: int, largest: int, users: int = 5) -> str:
    """A small SWF log of jobs of several users, some of them too large for their centre."""
    rng = random.Random(seed)
    lines = ["; UnixStartTime: 800000000", "; TimeZoneString: Europe/Stockholm", "; Acknowledge: a user"]
    submit = 1000 * seed
    for number in range(1, jobs + 1):
        submit += rng.choice([0, 50, 900, 50_000])
        user = rng.randint(1, users)
        run, size = rng.randint(0, 4000) * user, rng.choice([1, 1, 2, 4, largest])
        requested = run + rng.randint(0, 9000) if rng.random() < 0.9 else -1
        lines.append(f"{number} {submit} 1 {run} {size} -1 -1 {size} {requested} -1 1 {user} 1 1 1 1 -1 -1")
    return "\n".join(lines) + "\n"


def changed(values: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The values with the one at a path such as sweeps.0.k replaced."""
    copy = deepcopy(values)
    *parents, last = path.split(".")
    inside: Any = copy
    for part in parents:
        inside = inside[int(part)] if part.isdigit() else inside.setdefault(part, {})
    inside[int(last) if last.isdigit() else last] = value
    return copy


def message_about(folder: Path, study: dict[str, Any]) -> str:
    """The message about a study file in a folder, each line of which begins with its name."""
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump(study), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_study(file)
    message = str(caught.value)
    assert all(line.startswith(f"{file}: ") for line in message.split("\n")), message
    return message


def read_page(file: Path) -> Page:
    """A report page as it is parsed."""
    page = Page()
    page.feed(file.read_text(encoding="utf-8"))
    page.close()
    return page
