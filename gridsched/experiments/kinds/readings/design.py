"""Which readings are tried: the default one, and Latin hypercubes over the values of all choices."""

from __future__ import annotations

import numpy as np
from scipy.stats import qmc

from gridsched.experiments.kinds.readings.choices import PaperReadings

SLICE = 100
"""Readings of a Latin hypercube; a larger design is several, so that it contains the smaller ones."""


def draw_design(paper: PaperReadings, runs: int, seed: int) -> list[list[int]]:
    """Readings as places among the values of each choice.

    The unit interval of each dimension of a Latin hypercube (McKay, Beckman and Conover, Technometrics 21,
    1979) is divided evenly among the values of a choice: in every hundred readings each is there as often as
    the others, but for one.

    Parameters
    ----------
    paper : PaperReadings
        The choices.
    runs : int
        Readings that are drawn.
    seed : int
        Of what is drawn.

    Returns
    -------
    list of list of int
        The default reading, then those that are drawn; a place for each choice.
    """
    sampler = qmc.LatinHypercube(d=len(paper.choices), rng=np.random.default_rng(seed))
    points = np.concatenate([sampler.random(min(SLICE, runs - done)) for done in range(0, runs, SLICE)])
    drawn = [
        np.array(choice.drawn)[(column * len(choice.drawn)).astype(np.int64)]
        for choice, column in zip(paper.choices, points.T, strict=True)
    ]
    return [[choice.default_place for choice in paper.choices], *np.stack(drawn, axis=1).tolist()]
