"""The runs of a study of a multicluster, and how they are divided among workflow jobs."""

from __future__ import annotations

import hashlib

import pandas as pd

from gridsched.study.config import MulticlusterStudy

Chunk = list[int]
"""Replicates of a point."""


def point_chunks(study: MulticlusterStudy, point: str, size: int) -> list[Chunk]:
    """Replicates in groups of at most `size` simulations of one point, but at least one replicate."""
    each = max(1, size // len(study.schemes_at(point)))
    return [
        list(range(first, min(first + each, study.replicates))) for first in range(0, study.replicates, each)
    ]


def _identifier(*words: str) -> str:
    """Short name that is the same whenever the study says the same of a run."""
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]


def multicluster_run_table(study: MulticlusterStudy, chunk_size: int) -> pd.DataFrame:
    """One row a run of a study of a multicluster: identifier, what it is made of, and its chunk."""
    return pd.DataFrame(
        [
            {
                "run": _identifier(study.name, point.name, scheme, str(replicate)),
                "study": study.name,
                "point": point.name,
                "scheme": scheme,
                "replicate": replicate,
                "chunk": number,
            }
            for point in study.points
            for number, replicates in enumerate(point_chunks(study, point.name, chunk_size))
            for replicate in replicates
            for scheme in study.schemes_at(point.name)
        ]
    )
