"""Lists of nodes as Slurm writes them: cn[001-004,9],gpu1."""

from __future__ import annotations

import itertools
import re

_NONE = (b"", b"none assigned", b"(null)", b"none", b"n/a", b"unknown")
_LIST = re.compile(rb"[\w.-]+(?:\[[\d,-]+\][\w.-]*)*(?:,[\w.-]+(?:\[[\d,-]+\][\w.-]*)*)*", re.ASCII)
_ENTRY = re.compile(r"[^,\[]*(?:\[[^\]]*\][^,\[]*)*")
_BRACKET = re.compile(r"\[([^\]]*)\]")

MAX_NODES = 1_000_000
"""Nodes that a list may name."""


def has_nodes(text: bytes) -> bool:
    """Whether a text names any node."""
    return text.strip().lower() not in _NONE


def is_node_list(text: bytes) -> bool:
    """Whether a text is a list of nodes, or that there are none."""
    if not has_nodes(text):
        return True
    if not _LIST.fullmatch(text):
        return False
    try:
        return node_count(text.decode("latin-1")) <= MAX_NODES
    except ValueError:
        return False


def node_count(text: str) -> int:
    """How many nodes a list names."""
    total = 0
    for entry in filter(None, _ENTRY.findall(text)):
        count = 1
        for inside in _BRACKET.findall(entry):
            count *= sum(1 + last - first for first, last, _ in _ranges(inside))
        total += count
    return total


def node_names(text: str) -> list[str]:
    """Names of the nodes of a list, in its order."""
    names: list[str] = []
    for entry in filter(None, _ENTRY.findall(text)):
        pieces = _BRACKET.split(entry)
        choices = [
            [piece]
            if place % 2 == 0
            else [
                f"{number:0{width}d}"
                for first, last, width in _ranges(piece)
                for number in range(first, last + 1)
            ]
            for place, piece in enumerate(pieces)
        ]
        names += ["".join(parts) for parts in itertools.product(*choices)]
    return names


def _ranges(text: str) -> list[tuple[int, int, int]]:
    """First and last number, and digits, of ranges like 001-004,9."""
    found = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        low, high = int(first), int(last if dash else first)
        if high < low:
            raise ValueError(part)
        found.append((low, high, len(first)))
    return found
