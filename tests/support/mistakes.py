"""Content with mistakes in it."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence


def mutated(content: bytes, draw: random.Random, pieces: Sequence[bytes]) -> bytes:
    """Content with one to three mistakes: bytes, a word, a piece too much, a line, or a missing end."""
    for _ in range(draw.choice([1, 1, 2, 3])):
        place, piece = draw.randrange(len(content) + 1), draw.choice(pieces)
        words = [match.span() for match in re.finditer(rb"[^\s=,:|\[\]{}]+", content)]
        first, end = draw.choice(words or [(0, 0)])
        lines = content.split(b"\n")
        line = draw.randrange(len(lines))
        times = draw.choice([0, 2, 50])
        content = draw.choice(
            [
                content[:first] + piece + content[end:],  # another word
                content[:place] + piece + content[place:],
                content[:place] + bytes([draw.randrange(256)]) + content[place + 1 :],
                content[:place] + content[place + draw.randrange(30) :],
                content[:place],
                b"\n".join([*lines[:line], *[lines[line]] * times, *lines[line + 1 :]]),
            ]
        )
    return content
