"""Which clusters of a dynamic grid are neighbours, and the cliques on which a job can run.

An edge is a fast link between two clusters. All graphs have the names of the clusters as vertices, and are
the same in every process for the same arguments.

networkx is imported where it is used, since every workflow job imports this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError

GraphName = Literal["isolated", "ring", "random", "complete"]

MAX_CLIQUES = 10_000
"""Maximal cliques that are looked for, if nothing else is said."""


def grid_graph(
    names: Sequence[str], kind: GraphName, *, mean_degree: float | None = None, seed: int = 0
) -> Any:
    """Graph of one of the usual kinds over some clusters.

    Parameters
    ----------
    names : sequence of str
        The clusters.
    kind : {"isolated", "ring", "random", "complete"}
        No edges; each cluster with the one before and the one after it; edges drawn at random; all edges.
    mean_degree : float, optional
        Mean number of neighbours of a cluster in a random graph, from 0 to the number of other clusters. Of
        all graphs with the number of edges next to that, each is equally likely.
    seed : int
        Of the random edges. The edges for a mean degree are among those for any larger one.

    Returns
    -------
    networkx.Graph
        The graph.

    Raises
    ------
    ConfigurationError
        If names repeat, or arguments do not go together.
    """
    if len(set(names)) < len(names):
        raise ConfigurationError(f"clusters are called {', '.join(names)}; give each a name of its own")
    if kind not in get_args(GraphName):
        raise ConfigurationError(f"graph is {kind!r}; use one of {', '.join(get_args(GraphName))}")
    if (mean_degree is None) == (kind == "random"):
        raise ConfigurationError(f"mean_degree is {mean_degree}; give it for a random graph, and only then")
    edges: Iterable[Sequence[str]] = ()
    if mean_degree is not None:
        edges = _random_edges(names, mean_degree, seed)
    elif kind == "complete":
        edges = combinations(names, 2)
    elif kind == "ring" and len(names) > 1:
        edges = pairwise([*names, names[0]])
    return graph_of_edges(names, edges)


def _random_edges(names: Sequence[str], mean_degree: float, seed: int) -> list[tuple[str, str]]:
    """The first edges of a random order of all."""
    if not 0 <= mean_degree <= max(len(names) - 1, 0):
        raise ConfigurationError(
            f"mean_degree is {mean_degree}; use 0 to {max(len(names) - 1, 0)} with {len(names)} clusters"
        )
    pairs = list(combinations(names, 2))
    number = round(mean_degree * len(names) / 2)
    order = np.random.default_rng(seed).permutation(len(pairs))
    return [pairs[k] for k in order[:number]]


def graph_of_edges(names: Sequence[str], edges: Iterable[Sequence[str]]) -> Any:
    """Graph over some clusters with the edges that are given.

    Raises
    ------
    ConfigurationError
        If an edge is no pair of different clusters of the grid.
    """
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(names)
    for edge in edges:
        if len(edge) != 2 or edge[0] == edge[1]:
            raise ConfigurationError(f"edge {list(edge)!r}: give two different clusters")
        for name in edge:
            if name not in graph:
                raise ConfigurationError(
                    f"edge {list(edge)!r}: unknown cluster {name!r}; {_there_are(names)}"
                )
        graph.add_edge(*edge)
    return graph


def adjacency(graph: Any, names: Sequence[str]) -> NDArray[np.bool_]:
    """Which clusters are neighbours, as a symmetric matrix without diagonal.

    Raises
    ------
    ConfigurationError
        If the graph is directed, has other vertices than the clusters, or an edge from one to itself.
    """
    import networkx as nx

    if not isinstance(graph, nx.Graph) or graph.is_directed():
        raise ConfigurationError("graph: give an undirected networkx.Graph whose vertices are the clusters")
    for name in graph:
        if name not in names:
            raise ConfigurationError(f"graph: unknown cluster {name!r}; {_there_are(names)}")
    for name in names:
        if name not in graph:
            raise ConfigurationError(f"graph: cluster {name!r} is missing; add it as a vertex")
    for name, _ in nx.selfloop_edges(graph):
        raise ConfigurationError(f"graph: cluster {name!r} has an edge to itself; remove it")
    return np.asarray(nx.to_numpy_array(graph, nodelist=names, weight=None) > 0)


def _there_are(names: Sequence[str]) -> str:
    return f"there are {', '.join(names)}"


@dataclass(frozen=True)
class Cliques:
    """Maximal cliques of a graph.

    Parameters
    ----------
    members : int64[...]
        Indices of the clusters of each clique in increasing order, one clique after the other.
    ends : int64[cliques + 1]
        Where each clique begins; the last one is the number of members.
    cut_off : bool
        Whether the graph has more than were looked for.
    """

    members: NDArray[np.int64]
    ends: NDArray[np.int64]
    cut_off: bool

    def largest(self, processors: NDArray[Any], most: int) -> int:
        """Processors of up to so many clusters of a clique together, of the clique that has most."""
        return max(int(np.sort(processors[clique])[::-1][:most].sum()) for clique in self.each())

    def each(self) -> list[NDArray[np.int64]]:
        """The members of each clique."""
        return np.split(self.members, self.ends[1:-1])


def maximal_cliques(adjacent: NDArray[np.bool_], most: int = MAX_CLIQUES) -> Cliques:
    """Maximal cliques of a graph, in lexicographic order.

    A graph can have exponentially many. If it has more than `most`, the first ones in the order of the search
    are used, and with them every edge and every single cluster, so that no two neighbours are left out.
    """
    import networkx as nx

    graph = nx.from_numpy_array(adjacent)
    found = [tuple(sorted(clique)) for clique in islice(nx.find_cliques(graph), most + 1)]
    cut_off = len(found) > most
    if cut_off:
        pairs = [(int(i), int(j)) for i, j in np.argwhere(np.triu(adjacent))]
        single = [(i,) for i in range(len(adjacent))]
        found = [*found[:most], *pairs, *single]
    cliques = sorted(set(found))
    members = np.array([i for clique in cliques for i in clique], np.int64)
    return Cliques(members, np.cumsum([0, *map(len, cliques)]), cut_off)
