"""Files that are written whole or not at all, strict YAML, and the data files that come with gridsched."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import yaml

_PACKAGE = Path(__file__).parent


@contextlib.contextmanager
def atomic_write(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside `target` that replaces it when the block ends without an error.

    The temporary name keeps the suffix of the target, since writers choose the format by it.
    """
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem[:60]}-", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    """Permission bits that the user masks; reading them needs a write."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def resource(*parts: str) -> Path:
    """Path of a file of `resources/` or `reports/`, from a checkout or from the installed wheel."""
    for root in (_PACKAGE / "_data", _PACKAGE.parent):
        path = root.joinpath(*parts)
        if path.exists():
            return path
    raise FileNotFoundError(f"{'/'.join(parts)} is missing from this installation of gridsched")


class UniqueKeyLoader(yaml.SafeLoader):
    """YAML in which a key that is there twice is an error: the first would be lost silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Mapping of a node."""
        seen = []
        for key, _ in node.value:
            if key.value in seen:
                problem = f"the key {key.value!r} is there twice"
                raise yaml.constructor.ConstructorError(problem=problem, problem_mark=key.start_mark)
            seen.append(key.value)
        return super().construct_mapping(node, deep)
