"""The report page as people use it: on a phone and on a desk, with sorting, filters, folds and words."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from gridsched.experiments.kinds.local_policies import LocalStudy
from gridsched.presentation.page import build_report
from tests.browser.chromium import Browser
from tests.presentation.test_page import CLAIMS_HEADER
from tests.support.studies import run_study

WIDTHS = (420, 768, 1400)

CLAIMS = (
    "one,a,Table 1,Jobs,132069,131000.5,130000,132000,-1068.5,reproduced,of the same log,tiny,,,",
    "one,b,Table 1,More jobs,2.5,0.123456,,,-2.376544,not,of the same log,tiny,,,",
    "one,c,section 2,A long claim,,,,,,not run,,,,,",
    "two,d,section 3,A chain,3,3,2,4,,partly,,tiny,w,tiny/study.nc,tiny/figures/gantt-listed-1.svg",
)


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Page of a small study with claims."""
    study = LocalStudy.model_validate(
        {
            "name": "tiny",
            "title": "A small study with a title that is longer than a phone is wide",
            "description": "Nine policies on eight jobs.",
            "scenarios": [
                {
                    "name": "listed",
                    "processors": 4,
                    "jobs": [[30 * i, 100 - 10 * i, 200, 1 + i % 4] for i in range(8)],
                }
            ],
            "schedulers": ["fcfs", "ff", "sjf", "easy", "easy(4)", "sjbf", "lxf", "lxwf", "conservative"],
            "metrics": {"bins": 8},
        }
    )
    folder = tmp_path_factory.mktemp("results")
    run_study(study, folder, 1, shown=True)
    claims = folder / "claims.csv"
    claims.write_text("\n".join([CLAIMS_HEADER, *CLAIMS, ""]), encoding="utf-8")
    build_report([study], folder / "report.html", claims=claims)
    return folder / "report.html"


def column(browser: Browser, name: str) -> list[str]:
    """Cells of a column of the table of policies that are shown."""
    cells: list[str] = browser.value(
        f"""(() => {{
            const table = document.querySelector("#tiny table");
            const text = (cell) => cell.textContent.trim();
            const heads = [...table.tHead.rows[0].cells].map(text);
            const at = heads.findIndex((each) => each.startsWith({name!r}));
            return [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => text(row.cells[at]));
        }})()"""
    )
    return cells


def problems(browser: Browser) -> list[Any]:
    """What the page complained of or asked for besides itself."""
    found: list[Any] = []
    for event in browser.events:
        method, details = event["method"], event.get("params", {})
        if method in ("Runtime.exceptionThrown", "Log.entryAdded"):
            found.append(details)
        elif method == "Network.requestWillBeSent":
            address = details["request"]["url"]
            found += [] if address.startswith("data:") or address.endswith("/report.html") else [address]
    return found


_LETTER_BY_LETTER = """
[...document.querySelectorAll("main td, main th, main p, main li, main dd")].filter((each) =>
    each.checkVisibility({ contentVisibilityAuto: true }) && !each.closest("thead")
    && each.textContent.trim().length > 8 && each.clientWidth < 30
).map((each) => each.outerHTML)
"""
"""Texts in boxes so narrow that words are broken."""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_overflow_no_error_and_no_request(
    browser: Browser, report: Path, width: int, *, dark: bool
) -> None:
    browser.open(report, width, dark=dark)
    for folded in (True, False):
        if not folded:
            browser.value("for (const fold of document.querySelectorAll('details')) fold.open = true")
        assert browser.value("document.documentElement.scrollWidth") <= width
        assert browser.value(_LETTER_BY_LETTER) == []
    assert problems(browser) == []
    assert browser.value(
        "[...document.images].every((image) => image.naturalWidth > 0 && image.alt.length > 20)"
    )


def test_what_was_found_stands_on_the_first_screen(browser: Browser, report: Path) -> None:
    browser.open(report, 1400)
    assert browser.value("document.querySelector('.findings').getBoundingClientRect().bottom") < 900
    assert browser.value("document.querySelector('.plot img').getBoundingClientRect().top") < 900
    finding = (report.parent / "tiny" / "figures" / "gantt-listed-1.txt").read_text(encoding="utf-8")
    assert finding.strip() in browser.value("document.querySelector('#tiny .findings').textContent")


def test_claims_are_cards_on_a_phone_and_a_table_on_a_desk(browser: Browser, report: Path) -> None:
    shape = "getComputedStyle(document.querySelector('#claims table.claims tbody tr')).display"
    browser.open(report, 420)
    assert browser.value(shape) == "block"
    browser.open(report, 1400)
    assert browser.value(shape) == "table-row"


def test_a_click_sorts_by_value_and_a_second_one_the_other_way(browser: Browser, report: Path) -> None:
    browser.open(report, 1400)
    listed = column(browser, "mean wait time")
    press = "document.querySelectorAll('#tiny table thead button')[1].click()"
    browser.value(press)
    upwards = column(browser, "mean wait time")
    browser.value(press)
    downwards = column(browser, "mean wait time")
    assert sorted(listed) == sorted(upwards) == sorted(downwards)
    assert [seconds(text) for text in upwards] == sorted(seconds(text) for text in listed)
    assert [seconds(text) for text in downwards] == sorted((seconds(text) for text in listed), reverse=True)
    sorting = "document.querySelectorAll('#tiny table thead th')[1].getAttribute('aria-sort')"
    assert browser.value(sorting) == "descending"


def seconds(text: str) -> float:
    """A duration as the page writes it."""
    value, _, unit = text.partition(" ")
    return float(value) * {"": 1, "s": 1, "min": 60, "h": 3600, "d": 86400}[unit]


def test_a_filter_leaves_the_rows_that_have_all_words(browser: Browser, report: Path) -> None:
    browser.open(report, 1400)
    write = """((text) => {{ const field = document.querySelector("#tiny .tools input");
        field.value = text; field.dispatchEvent(new Event("input", {{ bubbles: true }})); }})({!r})"""
    browser.value(write.format("easy"))
    assert column(browser, "scheduler") == ["easy", "easy(4)"]
    browser.value(write.format("nothing like it"))
    assert column(browser, "scheduler") == []
    browser.value(write.format(""))
    assert len(column(browser, "scheduler")) == 9


def test_claims_are_folded_and_the_filter_opens_them(browser: Browser, report: Path) -> None:
    browser.open(report, 1400)
    shown = (
        "[...document.querySelectorAll('#claims table.claims tbody tr')]"
        ".filter((row) => row.checkVisibility({ contentVisibilityAuto: true }))"
        ".map((row) => row.dataset.verdict)"
    )
    assert browser.value(shown) == []
    browser.value(
        """(() => { const form = document.querySelector("form.filter");
        form.elements.verdict.value = "not run"; form.dispatchEvent(new Event("input")); })()"""
    )
    assert browser.value(shown) == ["not run"]
    assert browser.value("document.querySelector('form.filter output').textContent") == "1 of 4 claims"


def test_a_link_to_a_folded_figure_opens_it(browser: Browser, report: Path) -> None:
    browser.open(report, 1400)
    name = browser.value("document.querySelector('details.more').id")
    place = f"document.getElementById({name!r})"
    assert browser.value(f"{place}.open") is False
    browser.value(f"location.hash = '#{name}'; new Promise((done) => setTimeout(done, 100))")
    assert browser.value(f"{place}.open") is True


def test_a_word_has_its_sentence_at_hand_by_mouse_and_keyboard(browser: Browser, report: Path) -> None:
    browser.open(report, 768)
    browser.value("document.querySelector('#tiny a.term').click()")
    assert browser.value("document.querySelector('.term-card').matches(':popover-open')")
    assert len(browser.value("document.querySelector('.term-card').textContent")) > 20
    assert browser.value(
        "[...document.querySelectorAll('a.term')].every((word) => word.tabIndex === 0 && word.title"
        " && document.getElementById(word.hash.slice(1)))"
    )


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(browser: Browser, report: Path, *, dark: bool) -> None:
    browser.open(report, 1400, dark=dark)
    ratios = browser.value(
        """(() => {
        const channels = (text) => text.match(/[\\d.]+/g).slice(0, 3).map((value) => {
            const part = value / 255;
            return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        });
        const weights = [0.2126, 0.7152, 0.0722];
        const light = (text) => channels(text).reduce((sum, part, i) => sum + weights[i] * part, 0);
        const behind = (each) => { for (; each; each = each.parentElement) {
            const color = getComputedStyle(each).backgroundColor;
            if (!color.startsWith("rgba(0, 0, 0, 0")) return color;
        } return "rgb(255, 255, 255)"; };
        const texts = "main p, main td, main th, main a, main summary, .verdict, nav a";
        return [...document.querySelectorAll(texts)].map((each) => {
            const [one, other] = [light(getComputedStyle(each).color), light(behind(each))];
            return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        });
        })()"""
    )
    assert min(ratios) >= 4.5


def point_at(browser: Browser, kind: str, x: float, y: float, **more: Any) -> None:
    """Move the mouse, or let it do something, at a place of the window."""
    browser.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)


NOTE = (
    "(() => { const note = document.querySelector('.value-card');"
    " return note.hidden ? '' : note.textContent; })()"
)
"""What the page says of the mark at which someone points."""


def test_a_mark_says_its_values_to_the_mouse(browser: Browser, report: Path) -> None:
    browser.open(report, 1400)
    browser.value("document.querySelector('.plot').scrollIntoView()")
    top, left = browser.value(
        "(({ top, left }) => [top, left])(document.querySelector('.plot').getBoundingClientRect())"
    )
    point_at(browser, "mouseMoved", left + 3, top + 3)
    centre = browser.value(
        """(() => { const mark = document.querySelector('.plot svg').marks[0].getBoundingClientRect();
        return [(mark.left + mark.right) / 2, (mark.top + mark.bottom) / 2]; })()"""
    )
    point_at(browser, "mouseMoved", *centre)
    figure = browser.value("document.querySelector('.plot').closest('figure').id").removeprefix("tiny-")
    drawn = (report.parent / "tiny" / "figures" / f"{figure}.svg").read_text(encoding="utf-8")
    assert browser.value(NOTE) in {unescape(text) for text in re.findall("<title>([^<]*)</title>", drawn)}
    point_at(browser, "mouseMoved", 2, 2)
    assert browser.value(NOTE) == ""


def test_arrows_go_from_mark_to_mark(browser: Browser, report: Path) -> None:
    browser.open(report, 768)
    press = (
        "document.querySelector('.plot')"
        ".dispatchEvent(new KeyboardEvent('keydown', {{ key: '{}', bubbles: true }}))"
    )
    said = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        browser.value(press.format(key))
        said.append(browser.value(NOTE))
    assert all(said)
    assert said[0] == said[2] != said[1]


def test_a_figure_is_seen_closer_and_zoomed(browser: Browser, report: Path) -> None:
    browser.open(report, 420)
    browser.value("document.querySelector('.look').click()")
    shown = "document.querySelector('dialog.closer svg')"
    box = f"{shown}.getAttribute('viewBox').split(/[ ,]+/).map(Number)"
    whole = browser.value(box)
    point_at(browser, "mouseWheel", 200, 450, deltaX=0, deltaY=-100)
    near = browser.value(box)
    assert near[2] < whole[2]
    assert whole[0] <= near[0] < near[0] + near[2] <= whole[0] + whole[2]
    for kind, x in (("mousePressed", 200), ("mouseMoved", 150), ("mouseReleased", 150)):
        point_at(browser, kind, x, 450, button="left", buttons=1, clickCount=1)
    moved = browser.value(box)
    assert moved[0] > near[0]
    assert moved[2] == near[2]
    browser.value(f"{shown}.dispatchEvent(new Event('dblclick'))")
    assert browser.value(box) == whole
    browser.value("document.querySelector('dialog.closer button').click()")
    assert browser.value("document.querySelector('dialog.closer').open") is False
    assert problems(browser) == []
