"""The built site needs no other host, and its links lead somewhere: `make docs` ends with this."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).parent.parent.parent / "docs" / "_build" / "html"
PAGES = sorted(SITE.rglob("*.html"))

LOADING = {"src", "srcset", "poster", "data", "background"}
"""Attributes whose address a browser loads by itself."""

NOT_LOADED = {"canonical", "next", "prev", "index", "search", "author", "copyright", "license"}
"""Relations of links in the head that load nothing."""


class Page(HTMLParser):
    """What a page loads, where it leads, and where one can be led to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: set[str] = set()
        self.leads: set[str] = set()
        self.anchors: set[str] = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses of an element."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.loads |= {value for name, value in given.items() if name in LOADING}
        if tag == "link" and not set(given.get("rel", "").split()) & NOT_LOADED:
            self.loads.add(given.get("href", ""))
        elif tag == "a" and "href" in given:
            self.leads.add(given["href"])


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    """All pages by path."""
    assert PAGES, "the site is not there: make docs"
    return {path.resolve(): Page(path) for path in PAGES}


def is_elsewhere(address: str) -> bool:
    """Whether an address is on a host."""
    return bool(urlsplit(address).netloc)


def test_nothing_is_loaded_from_another_host(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        assert not [address for address in page.loads if is_elsewhere(address)], path
    for path in (*SITE.rglob("*.css"), *SITE.rglob("*.svg")):
        text = path.read_text(encoding="utf-8")
        asked = re.findall(r"url\(\s*[\"']?((?:https?:)?//[^)\"']+)|@import\s+[\"']([^\"']+)", text)
        asked += re.findall(r"<image[^>]*href=\"((?:https?:)?//[^\"]+)()", text)
        assert not asked, path


def test_links_lead_to_files_and_anchors(pages: dict[Path, Page]) -> None:
    missing = []
    for path, page in pages.items():
        for address in page.leads | page.loads:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                missing.append(f"{path.relative_to(SITE.resolve())}: {address}")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                missing.append(f"{path.relative_to(SITE.resolve())}: {address}, no such anchor")
    assert not missing


def test_equations_are_drawn_and_notebooks_were_run(pages: dict[Path, Page]) -> None:
    """As markup that needs no script; without errors, and with figures."""
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert "Traceback (most recent call last)" not in text, path
        assert not re.search(r"<merror|\$\$", text), path
    for name in ("tutorial", "gallery"):
        assert (SITE / "docs" / f"{name}.html").read_text(encoding="utf-8").count("<img") >= 4, name
    assert (SITE / "docs" / "multicluster.html").read_text(encoding="utf-8").count('display="block"') >= 5
