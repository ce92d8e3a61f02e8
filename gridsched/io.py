"""Files that are written whole or not at all, strict YAML, and the data files that come with gridsched."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import yaml

from gridsched.errors import ConfigurationError

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


def checksum(path: str | Path) -> str:
    """SHA-256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def resource(*parts: str) -> Path:
    """Path of a file of `resources/`, `reports/` or the first study, from a checkout or the wheel."""
    for root in (_PACKAGE / "_data", _PACKAGE.parent):
        path = root.joinpath(*parts)
        if path.exists():
            return path
    raise FileNotFoundError(f"{'/'.join(parts)} is missing from this installation of gridsched")


def read_text(path: str | Path) -> str:
    """Text of a file that a user gave.

    Raises
    ------
    ConfigurationError
        If it cannot be read or is no text; names the file.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such file, seen from {Path.cwd()}") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: not UTF-8 text ({error.reason}, byte {error.start})") from None


# --- YAML -----------------------------------------------------------------------------------------

_LONGEST_NUMBER = 1000
"""Characters of a whole number."""


class UniqueKeyLoader(yaml.SafeLoader):
    """YAML in which a key that is there twice is an error: the first would be lost silently.

    Small files stay small: keys that are merged again and again with `<<` count once, and numbers end.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Mapping of a node."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    problem = f"the key {key.value!r} is there twice"
                    raise yaml.constructor.ConstructorError(problem=problem, problem_mark=key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Put the keys that are merged beside the node's own, which come last and count."""
        super().flatten_mapping(node)
        last = {
            (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else id(key): (key, value)
            for key, value in node.value
        }
        node.value = list(last.values())

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """Whole number; parts to the base of 60, such as 1:1:1, take the square of their number."""
        if len(node.value) > _LONGEST_NUMBER:
            raise ValueError(f"a number of {len(node.value):,} characters")
        return super().construct_yaml_int(node)


UniqueKeyLoader.add_constructor("tag:yaml.org,2002:int", UniqueKeyLoader.construct_yaml_int)


MAX_BYTES = 2**20
"""Size of a YAML file; what is larger is a log or an error."""


def read_yaml(path: str | Path) -> Any:
    """Content of a YAML file.

    Raises
    ------
    ConfigurationError
        If it cannot be read or is not YAML; names file and line.
    """
    with contextlib.suppress(OSError):  # to open it says what is wrong
        size = Path(path).stat().st_size
        # Others, such as pipes, may never end; to open a folder says what it is
        if not (Path(path).is_file() or Path(path).is_dir()):
            raise ConfigurationError(f"{path}: not an ordinary file")
        if size > MAX_BYTES:
            raise ConfigurationError(
                f"{path}: {size:,} bytes; at most {MAX_BYTES:,} are read, longer workloads are logs"
            )
    text = read_text(path)
    try:
        return yaml.load(text, UniqueKeyLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigurationError(f"{path}{line}: not YAML ({error.problem or error.context})") from None
    except yaml.reader.ReaderError as error:
        line = f":{text.count(chr(10), 0, error.position) + 1}"
        raise ConfigurationError(f"{path}{line}: not YAML ({error.reason})") from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: a value that YAML cannot hold ({error})") from None


def shown(value: Any) -> str:
    """Value on one line of a message."""
    text = ""
    try:
        for piece in _pieces(value):
            text += piece
            if len(text) > 80:
                return f"{text[:80]}..."
    except ValueError:
        return "a number of thousands of digits"
    return text


def _pieces(value: Any, *, inside: bool = False) -> Iterator[str]:
    """Text of a value, piece by piece: with references, a small file may stand for more than memory holds."""
    if isinstance(value, dict):
        yield "{"
        for number, (key, content) in enumerate(value.items()):
            yield f"{', ' * (number > 0)}{key!r}: "
            yield from _pieces(content, inside=True)
        yield "}"
    elif isinstance(value, list | tuple):
        opening, closing = "[]" if isinstance(value, list) else "()"
        yield opening
        for number, content in enumerate(value):
            yield ", " * (number > 0)
            yield from _pieces(content, inside=True)
        yield closing
    else:
        yield repr(value) if inside or isinstance(value, str | bool | int | float) else str(value)
