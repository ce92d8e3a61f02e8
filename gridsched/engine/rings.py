"""Lists of which each is a ring of links: its first link is the head, from which it begins and ends.

Links are records with the fields of `LINK`. The heads come first in their table, behind them the items.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gridsched.engine.jit import inline

LINK = np.dtype([("before", np.int64), ("after", np.int64), ("item", np.int64)])
"""An item on a list; -1 in a head. A link that is on no list is a ring of its own."""


def allocate(heads: int, items: Any, dtype: np.dtype[Any] = LINK) -> Any:
    """So many empty lists, and links of items that are on none."""
    links = np.zeros(heads + len(items), dtype)
    links["before"] = links["after"] = np.arange(len(links))
    links["item"] = np.concatenate([np.full(heads, -1), items])
    return links


@inline
def insert(links: Any, link: int, after: int) -> None:
    """Put a link into a list, behind which comes `after`: last, if that is the head."""
    before = links[after]["before"]
    links[link]["before"] = before
    links[link]["after"] = after
    links[before]["after"] = link
    links[after]["before"] = link


@inline
def remove(links: Any, link: int) -> None:
    """Take a link off its list."""
    links[links[link]["before"]]["after"] = links[link]["after"]
    links[links[link]["after"]]["before"] = links[link]["before"]


@inline
def items(links: Any, head: int) -> Iterator[int]:
    """The items on a list; each may be taken off meanwhile."""
    link = links[head]["after"]
    while link != head:
        following = links[link]["after"]
        yield links[link]["item"]
        link = following
