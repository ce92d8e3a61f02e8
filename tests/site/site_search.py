"""The search of the built site ranks relevant pages first; its scripts run in Node.js, where there is one."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

SITE = Path(__file__).parent.parent.parent / "docs" / "_build" / "html"
NODE = shutil.which("node")

BROWSER = """
const window = globalThis;
window.location = {search: "?q=" + encodeURIComponent(process.argv.at(-1))};
const document = {getElementById: () => null};
const _ready = () => {}, _ = (text) => text;
const DOCUMENTATION_OPTIONS = {}, SPHINX_HIGHLIGHT_ENABLED = false;
"""
"""What the scripts of the page need of a browser."""

SEARCH = (
    "console.log(JSON.stringify(Search._performSearch(...Search._parseQuery(process.argv.at(-1))).reverse()))"
)


def results(query: str) -> list[tuple[str, str]]:
    """Page and title of each result, the first one first."""
    static = SITE / "_static"
    scripts = [
        static / name
        for name in (
            "base-stemmer.js",
            "english-stemmer.js",
            "language_data.js",
            "words.js",
            "searchtools.js",
        )
    ]
    present = [path.read_text(encoding="utf-8") for path in scripts if path.is_file()]
    index = (SITE / "searchindex.js").read_text(encoding="utf-8")
    program = "\n".join([BROWSER, *present, index, SEARCH])
    assert NODE is not None
    done = subprocess.run([NODE, "-", query], input=program, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return [(found[0], found[1]) for found in json.loads(done.stdout)]


@pytest.mark.skipif(NODE is None, reason="needs Node.js")
@pytest.mark.parametrize(
    ("query", "pages"),
    [
        ("EASY", {"docs/local-policies"}),
        ("backfilling", {"docs/local-policies", "docs/slurm"}),
        ("reservation", {"docs/calendars"}),
        ("interval", {"docs/statistics"}),
        ("sacct", {"docs/operators", "docs/formats"}),
        ("slurm.conf", {"docs/slurm"}),
        ("node failures", {"docs/nodes"}),
        ("forecast", {"docs/forecast"}),
        ("seed", {"docs/reproducibility"}),
        ("simulate", {"docs/reference"}),
    ],
)
def test_the_page_for_a_question_is_among_the_first_three(query: str, pages: set[str]) -> None:
    found = list(dict.fromkeys(page for page, _ in results(query)))
    assert pages <= set(found[:3]), found[:6]
