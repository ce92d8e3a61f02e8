"""What a shell proposes when the Tab key is pressed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gridsched.cli.options import POLICIES
from gridsched.policies import local


def proposed(line: str, folder: Path) -> list[str]:
    """Words that the program proposes at the end of a command line, as it tells the shell."""
    answer = folder / "proposals"
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    command = [sys.executable, "-m", "gridsched"]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=True)
    assert done.stdout == b""
    return [word.strip() for word in answer.read_text(encoding="utf-8").split("\n")]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("gridsched comp", {"compare", "completion"}),
        ("gridsched cache ", {"show", "clear"}),
        ("gridsched compare log.swf --warm", {"--warm-up"}),
        ("gridsched compare log.swf --policy s", {"sjf", "sjbf"}),
        ("gridsched compare log.swf --policy easy,con", {"easy,conservative"}),
        ("gridsched explain log.swf 12 --policy fc", {"fcfs"}),
        ("gridsched simulate log.swf --estimates a", {"actual"}),
        ("gridsched fetch KTH", {"KTH-SP2-1996"}),
        ("gridsched completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_what_is_proposed(line: str, words: set[str], tmp_path: Path) -> None:
    found = {word for word in proposed(line, tmp_path) if word.startswith("-") is line.endswith("--warm")}
    assert found == words


def test_files_are_proposed_where_a_log_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "october.txt").write_text("")
    assert "october.txt" in proposed("gridsched info oct", tmp_path)


def test_the_policies_are_those_that_there_are() -> None:
    assert set(POLICIES) == set(local.POLICIES)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_code_for_a_shell_is_valid(shell: str, printed: Callable[..., str]) -> None:
    code = printed("completion", shell)
    assert "gridsched" in code
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=code, text=True, check=True)


def test_bash_completes(printed: Callable[..., str], tmp_path: Path) -> None:
    """The shell itself calls the installed program."""
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("no bash on this system")
    line = "gridsched simulate log.swf --policy conserv"
    words = " ".join(line.split())
    script = f"""{printed("completion", "bash")}
COMP_LINE="{line}"; COMP_POINT={len(line)}; COMP_TYPE=9; COMP_WORDS=({words}); COMP_CWORD=4
_python_argcomplete gridsched conserv --policy
echo "${{COMPREPLY[@]}}"
"""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["conservative"]
