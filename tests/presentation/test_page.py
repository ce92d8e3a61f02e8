"""The report page: one file that holds everything, opens without a network, and takes text literally."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from gridsched.experiments import files
from gridsched.experiments.kinds.local_policies import LocalStudy
from gridsched.presentation.page import build_report
from gridsched.results import read
from tests.support.errors import says
from tests.support.pages import Page
from tests.support.studies import read_page, run_study

NASTY = """</p><script>alert("1")</script> & 'co' ${x} $x_1$ {{ 7 * 7 }} <b>Ünïcode</b> 🚀 %s \\x"""
POLICY = """<i>"own"</i> & {{ 7 }} $y$"""

LOG = """\
; MaxProcs: 8
; UnixStartTime: 0
; TimeZoneString: Europe/Stockholm
; Acknowledge: <img src=x onerror=alert(2)> of "Växjö" & co
1 0 5 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1
2 10 0 50 8 -1 -1 8 60 -1 1 1 1 -1 1 -1 -1 -1
3 20 0 30 1 -1 -1 1 -1 -1 1 1 1 -1 1 -1 -1 -1
4 30 7 100 2 -1 -1 2 300 -1 1 1 1 -1 2 -1 -1 -1
5 40 7 100 2 -1 -1 2 300 -1 5 1 1 -1 1 -1 -1 -1
6 50 7 100 99 -1 -1 99 300 -1 1 1 1 -1 1 -1 -1 -1
7 15 7 100 2 -1 -1 2 300 -1 1 1 1 -1 1 -1 -1 -1
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> LocalStudy:
    log = tmp_path_factory.mktemp("logs") / "own.swf"
    log.write_text(LOG, encoding="utf-8")
    return LocalStudy.model_validate(
        {
            "name": "tiny",
            "title": NASTY,
            "question": "Who waits least?",
            "description": f"{NASTY}\nsecond line",
            "scenarios": [
                {
                    "name": "listed",
                    "processors": 4,
                    "jobs": [[0, 100, 200, 2], [10, 50, 60, 4], [20, 30, 30, 1], [30, 9, 9, 5]],
                },
                {"name": "log", "file": str(log), "leave_out_status": [5], "leave_out_queue": [2]},
            ],
            "schedulers": ["fcfs", {"name": POLICY, "scheduler": "easy", "order": "shortest"}],
            "estimates": ["requested", "actual"],
            "metrics": {"bins": 8, "warm_up": 0.1, "classes": {"long": 60, "wide": 3}},
        }
    )


@pytest.fixture(scope="module")
def results(study: LocalStudy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    run_study(study, folder, 1, shown=True)
    build_report([study], folder / "report.html")
    return folder


@pytest.fixture(scope="module")
def page(results: Path) -> Page:
    return read_page(results / "report.html")


def test_markup_is_balanced(page: Page) -> None:
    assert page.open == []
    assert Counter(tag for tag, _ in page.tags)["html"] == 1
    identifiers = page.attributes("id")
    assert len(identifiers) == len(set(identifiers))


def test_nothing_is_loaded_from_elsewhere(page: Page, results: Path) -> None:
    assert {tag for tag, _ in page.tags}.isdisjoint({"link", "iframe", "object", "embed", "base"})
    assert [attributes for tag, attributes in page.tags if tag == "script"] == [{}]
    assert page.attributes("src")
    assert all(source.startswith("data:image/svg+xml;charset=utf-8,") for source in page.attributes("src"))
    targets = page.attributes("href")
    assert all(
        target.startswith(("data:text/csv;charset=utf-8,", "#")) or (results / target).is_file()
        for target in targets
    )
    anchors = {target[1:] for target in targets if target.startswith("#")}
    assert anchors <= set(page.attributes("id"))
    assert "tiny" in anchors
    style = (results / "report.html").read_text(encoding="utf-8").partition("<style>")[2]
    assert "url(" not in style.partition("</style>")[0]
    assert "@import" not in style.partition("</style>")[0]


def test_figures_load_nothing_and_are_well_formed(page: Page) -> None:
    for source in page.attributes("src"):
        svg = unquote(source.partition(",")[2], errors="strict")
        for element in ElementTree.fromstring(svg).iter():
            assert not element.tag.endswith("script")
            for name, value in element.attrib.items():
                assert not name.lower().startswith("on")
                if name.endswith("href"):
                    assert value.startswith(("#", "data:"))


def test_text_of_the_user_stays_text(page: Page) -> None:
    assert page.foreign == []
    assert all(not name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert page.text.count(NASTY) >= 3  # title of the page, heading, description
    says(page.text, POLICY, '<img src=x onerror=alert(2)> of "Växjö" & co')


def test_a_study_begins_with_question_answers_table_figure_and_limits(page: Page, results: Path) -> None:
    text = (results / "report.html").read_text(encoding="utf-8")
    section = text[text.index('<section id="tiny">') :]
    places = [
        section.index(mark) for mark in ("<h2>", 'class="asked"', 'class="findings"', "<table", "<figure")
    ]
    assert places == sorted(places)
    assert section.index("<figure") < section.index("<details")
    assert "Limits." in section[: section.index("<details")]
    says(page.text, *read(results / "tiny" / "study.nc")["scheduler"].values.tolist())


def test_every_figure_is_there_with_its_findings_and_numbers(page: Page, results: Path) -> None:
    for finding in (results / "tiny" / "figures").glob("*.txt"):
        for sentence in finding.read_text(encoding="utf-8").splitlines():
            assert sentence in page.words or sentence.split(":")[0] in page.words
    drawn = sorted((results / "tiny" / "figures").glob("*.svg"))
    shown = {unquote(source.partition(",")[2]) for source in page.attributes("src")}
    assert shown == {figure.read_text(encoding="utf-8") for figure in drawn}
    tables = [
        unquote(target.partition(",")[2]) for target in page.attributes("href") if target.startswith("data:")
    ]
    beside = [target for target in page.attributes("href") if target.startswith("tiny/figures")]
    assert len(tables) + len(beside) == len(drawn)
    assert all(len(list(csv.reader(io.StringIO(table)))) > 1 for table in tables)
    assert all(alternative for alternative in page.attributes("alt"))


def test_counts_of_what_was_left_out(page: Page) -> None:
    says(page.words, "1 queue 2", "1 larger than the machine", "1 status 5", "1 out of order")


def test_conventions_and_sources(page: Page, study: LocalStudy) -> None:
    says(
        page.text,
        "Jobs that outrun their estimate keep running",
        "60 blocks of the log",
        "The first 10%",
        "tiny/runs.csv",
    )
    assert "Seed 1" in page.words
    assert study.checksum()[:12] in page.text
    assert "Made with gridsched" in page.text


def test_same_results_give_the_same_page(results: Path, study: LocalStudy) -> None:
    before = (results / "report.html").read_bytes()
    build_report([study], results / "report.html")
    assert (results / "report.html").read_bytes() == before


def test_two_studies_on_one_page(results: Path, study: LocalStudy) -> None:
    other = study.model_copy(
        update={
            "name": "other",
            "estimates": ("requested",),
            "workloads": tuple(each for each in study.all_workloads if each.name == "listed"),
            "reference": None,
        }
    )
    run_study(other, results, 1, shown=True)
    build_report([study, other], results / "two.html")
    parsed = read_page(results / "two.html")
    assert {"#tiny", "#other"} <= set(parsed.attributes("href"))
    assert {"tiny", "other"} <= set(parsed.attributes("id"))
    assert parsed.open == []


def test_sidecars_say_how_it_was_made(results: Path) -> None:
    for dataset in (results / "tiny").rglob("*.nc"):
        made = json.loads(files.sidecar(dataset).read_text(encoding="utf-8"))
        assert {"time", "host", "command", "python"} <= set(made)


CLAIMS_HEADER = (
    "paper,id,where,claim,paper_value,our_value,low,high,difference,verdict,why,study,variable,dataset,figure,"
    "robustness,share,readings,condition"
)


def page_of_claims(folder: Path, *rows: str) -> tuple[Page, str]:
    """A report page with these claims and no study, parsed and as text."""
    table, target = folder / "claims.csv", folder / "report.html"
    table.write_text("\n".join([CLAIMS_HEADER, *(f"{row},,,," for row in rows), ""]), encoding="utf-8")
    build_report([], target, claims=table)
    return read_page(target), target.read_text(encoding="utf-8")


def test_claims_are_shown_with_their_verdicts(tmp_path: Path) -> None:
    page, whole = page_of_claims(
        tmp_path,
        "one,a,Table 1,<b>Jobs</b>,132069,131000.5,130000,132000,-1068.5,reproduced,of the same log,x,,,",
        "one,b,Table 1,More jobs,2.5,0.123456,,,-2.376544,not,of the same log,x,,,",
        "one,c,section 2,Too many words,,,,,,not run,,,,,",
        "two,d,section 3,A chain,a < b,-3,-4,-2,,partly,,x,w,x/study.nc,x/figures/f-a.svg",
    )
    says(
        page.words,
        "The studies of this page evaluate 3 of 4 claims.",
        "1 reproduced, 1 not, 1 not run.",
        "<b>Jobs</b>",
        "132,069",
        "131,000 130,000 to 132,000 \N{MINUS SIGN}1,068 of the same log",
        "0.123",
        "0.123 \N{MINUS SIGN}2.38 of the same log",
        "a < b",
    )
    assert {"#x-f-a", "x/study.nc", "#claims-two", "claims.csv"} <= set(page.attributes("href"))
    (script,) = re.findall("<script>(.*?)</script>", whole, re.DOTALL)
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert any(f"script-src 'sha256-{allowed}'" in content for content in page.attributes("content"))
    folded = page.words.index("Too many words")
    assert page.words.index("More jobs") < folded < page.words.index("A chain")


def test_own_studies_do_not_begin_with_claims_of_papers(tmp_path: Path) -> None:
    page, _ = page_of_claims(tmp_path, "one,c,section 2,Too many words,,,,,,not run,,,,,")
    assert "Too many words" not in page.words
    assert "claims" not in page.attributes("id")
    assert "None of these studies tests what a paper states." in page.words
    assert "claims.csv" in page.attributes("href")


def test_values_of_paper_and_ours_have_the_same_unit_and_long_reasons_are_folded(tmp_path: Path) -> None:
    long = "Shown: one of many. " + "Does not hold: " + "; ".join(f"case {i}" for i in range(60)) + "."
    page, text = page_of_claims(
        tmp_path,
        f"one,a,Table 1,A wait,8612 s,11746.4,11000,12000,3134.4,not,{long},x,,,",
        "one,b,Table 1,A bound,at most 122 s,3.24,,,-119,reproduced,Short. And clear.,x,,,",
    )
    says(page.words, "8,612 s 11,746 s 11,000 to 12,000", "at most 122 s 3.24", "Short. And clear.")
    assert "<details><summary>Shown: one of many.</summary>Does not hold: case 0;" in text
    assert "<summary>Short" not in text
