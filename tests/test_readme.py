"""The README does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_python_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Each on its own."""
    for example in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        exec(compile(example, "README.md", "exec"), {})
    printed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert printed[:4] == ["fcfs", "easy", "conservative", "own"]
    assert len(printed) == 8


def test_schedulers_of_the_table_are_the_named_ones() -> None:
    import gridsched
    from gridsched.policies.local import POLICIES, PREDICTING
    from gridsched.systems.registry import names

    rows = re.findall(
        r"^\| (.+) \| (.*) \|.*\|$", README.split("| grid scheduler |")[1].split("\n\n")[0], re.MULTILINE
    )
    listed = {name for first, _ in rows for name in re.findall(r"`([\w-]+)`", first)}
    assert listed == set(names()) - {*POLICIES, *PREDICTING, "multicluster"}
    for _, second in rows:
        for described in re.findall(r"`gs\.(\w+)`", second):
            assert hasattr(gridsched, described), described


def test_make_targets_and_files_exist() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^(?:\S+=\S+ )?make ([a-z]+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for path in re.findall(r"\]\(([\w./-]+)\)", README):
        assert (REPOSITORY / path).exists(), path


def test_policies_of_the_table_are_the_named_ones() -> None:
    from gridsched.policies.local import POLICIES, PREDICTING, named_policy

    names = re.findall(r"`([a-z()+]+)`", README.split("| policy |")[1].split("\n\n")[0])
    assert set(names) - {"easy(r)"} == {*POLICIES, *PREDICTING}
    assert named_policy("easy(3)").reservations == 3
