"""Captions of figures and tables, which the report page and the report of Snakemake share.

A caption says how to read a kind of figure. What a figure shows of its data, its *finding*, stands before it;
it is written beside the figure when this is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

from gridsched.io import read_yaml, resource


def caption(kind: str) -> dict[str, str]:
    """Title and text of the caption of a figure or table."""
    return {key: str(_captions()[kind][key]) for key in ("title", "text")}


def finding_file(folder: str | Path, name: str) -> Path:
    """Where the finding of a figure stands, beside its other files."""
    return Path(folder) / f"{name}.txt"


def finding(folder: str | Path, name: str) -> str:
    """What a figure shows of its data; empty for a table, and before the figure was drawn."""
    path = finding_file(folder, name)
    return " ".join(path.read_text(encoding="utf-8").split()) if path.is_file() else ""


@dataclass(frozen=True)
class Captions:
    """Captions of the figures and tables of a study by name, for the report of Snakemake.

    Findings are output of the rule whose parameter this is, so they are read when they are asked for. It is
    neither a value that Snakemake compares, which would draw again once there are findings, nor iterable,
    which would make many parameters of it.

    Parameters
    ----------
    kinds : mapping of str to str
        Kind by name of figure or table.
    specifications : mapping of str to mapping
        Of the figures that have one, by name.
    folder : str
        Folder of the figures.
    """

    kinds: Mapping[str, str]
    folder: str = ""
    specifications: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> dict[str, str]:
        own = self.specifications.get(name)
        words = caption(self.kinds[name]) if not own else {"title": own["title"], "text": own["caption"]}
        return {**words, "finding": _as_markup(finding(self.folder, name))}


def _as_markup(text: str) -> str:
    """Text as reStructuredText that reads the same."""
    return re.sub(r"([\\*`|_<>])", r"\\\1", text)


@cache
def _captions() -> dict[str, dict[str, str]]:
    return cast(dict[str, dict[str, str]], read_yaml(resource("reports", "captions.yaml")))
