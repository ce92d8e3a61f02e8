"""Constraints of jobs: expressions about the features of nodes, as Slurm writes them (`--constraint`)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import WorkloadError

_TOKEN = re.compile(r"\s*([&|,()]|[^&|,()\s]+)")


def nodes_with(expression: str, features: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
    """Nodes that a constraint allows.

    Parameters
    ----------
    expression : str
        Names of features with `&` or `,` (and), `|` (or) and parentheses, from left to right; all nodes if it
        is empty.
    features : sequence of sequences of str
        The features of each node.

    Returns
    -------
    bool[m]
        Which nodes it allows.

    Raises
    ------
    WorkloadError
        If it is no such expression, or asks for a number of nodes (`a*2`) or for one feature on all nodes
        (`[a|b]`), which are not modelled.

    Examples
    --------
    >>> from gridsched.workloads.constraints import nodes_with
    >>> nodes_with("ib&(big|huge)", [["ib"], ["ib", "big"], ["huge"]]).tolist()
    [False, True, False]
    """
    if not expression.strip():
        return np.ones(len(features), np.bool_)
    if re.search(r"[\[\]*]", expression):
        raise WorkloadError(
            f"constraint {expression!r} asks for numbers of nodes, or for one feature on all of them, which "
            "is not modelled; use features with &, | and parentheses"
        )
    tokens = _TOKEN.findall(expression)
    allowed, rest = _either(tokens, [set(each) for each in features], expression)
    if rest:
        raise _wrong(expression)
    return allowed


def _either(
    tokens: list[str], features: list[set[str]], expression: str
) -> tuple[NDArray[np.bool_], list[str]]:
    """Nodes of the expression at the beginning of some tokens, and the tokens after it."""
    allowed, rest = _one(tokens, features, expression)
    while rest and rest[0] in "&,|":
        other, after = _one(rest[1:], features, expression)
        allowed = allowed | other if rest[0] == "|" else allowed & other
        rest = after
    return allowed, rest


def _one(tokens: list[str], features: list[set[str]], expression: str) -> tuple[NDArray[np.bool_], list[str]]:
    """Nodes of a feature, or of what stands in parentheses."""
    if not tokens or tokens[0] in "&|,)":
        raise _wrong(expression)
    if tokens[0] != "(":
        return np.array([tokens[0] in each for each in features], np.bool_), tokens[1:]
    allowed, rest = _either(tokens[1:], features, expression)
    if not rest or rest[0] != ")":
        raise _wrong(expression)
    return allowed, rest[1:]


def _wrong(expression: str) -> WorkloadError:
    return WorkloadError(
        f"constraint {expression!r} cannot be read; use names of features with &, | and parentheses"
    )
