"""A report page as it is parsed."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "img", "br", "hr", "link", "input"}


@dataclass
class Page(HTMLParser):
    """What a page consists of."""

    pieces: list[str] = field(default_factory=list)
    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)

    def attributes(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.tags if name in attributes]

    @property
    def foreign(self) -> list[str]:
        """Tags that no template has, and scripts besides the page's own, which is its last tag."""
        own = self.tags[:-1] if self.tags[-1:] == [("script", {})] else self.tags
        return [tag for tag, _ in own if tag in ("script", "b", "i", "iframe", "object", "embed")]

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def words(self) -> str:
        """Text with one blank between any two words or cells."""
        return " ".join(" ".join(self.pieces).split())
