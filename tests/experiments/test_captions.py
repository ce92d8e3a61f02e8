"""Captions: what a figure shows of its data stands before how to read it, once it was drawn."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import jinja2
from docutils.core import publish_parts

from gridsched.experiments.captions import Captions, caption, finding, finding_file
from gridsched.io import resource

FINDING = "The best is <b>*s-i*</b> | `x`_ \\ 3."


def as_html(captions: Captions, name: str) -> str:
    """Caption as Snakemake's report has it."""

    snakemake = SimpleNamespace(params=SimpleNamespace(captions=captions), wildcards={"name": name})
    text = resource("reports", "caption.rst").read_text(encoding="utf-8")
    rendered = jinja2.Environment(autoescape=False).from_string(text).render(snakemake=snakemake)
    return str(publish_parts(rendered, writer="html")["body"])


def test_findings_stand_in_captions_as_they_are_written(tmp_path: Path) -> None:
    kinds = {"gantt-1": "figure", "readings": "readings"}
    captions = Captions(
        kinds, str(tmp_path), {"gantt-1": {"title": "Jobs", "caption": "Every job as a box."}}
    )
    assert captions["gantt-1"]["finding"] == ""
    finding_file(tmp_path, "gantt-1").write_text(FINDING, encoding="utf-8")
    shown = as_html(captions, "gantt-1")
    assert "The best is &lt;b&gt;*s-i*&lt;/b&gt; | `x`_ \\ 3." in shown
    assert shown.index("The best") < shown.index("Every job as a box")
    assert "system-message" not in shown
    assert caption("readings")["title"] in as_html(captions, "readings")


def test_sentences_of_a_finding_are_joined(tmp_path: Path) -> None:
    finding_file(tmp_path, "waits").write_text("The best is easy.\n\nOthers differ.\n", encoding="utf-8")
    assert finding(tmp_path, "waits") == "The best is easy. Others differ."
    assert finding(tmp_path, "unknown") == ""
