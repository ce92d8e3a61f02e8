"""Write the JSON schemas and the pages of keys from the models, or check that they are up to date.

``python -m gridsched.experiments.document`` checks, with ``--write`` it writes. The models of
`config` and `parts` are the only place where keys, defaults and meanings are stated.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from gridsched.engine.records import LARGEST
from gridsched.errors import GridschedError
from gridsched.experiments.config import VARYING, Config
from gridsched.experiments.registry import KINDS, study_kind
from gridsched.experiments.validation import ConfigModel
from gridsched.io import atomic_write
from gridsched.systems.capabilities import capabilities_page

ROOT = Path(__file__).parents[2]
"""The checkout; an installed package has nothing to document."""

SCHEMAS: dict[str, tuple[type[ConfigModel], ...]] = {
    "workflow/schemas/config.schema.json": (Config,),
    "workflow/schemas/study.schema.json": tuple(map(study_kind, KINDS)),
}
"""Schema files and the models that they describe; a file follows one of them."""

PAGES: dict[str, type[ConfigModel]] = {
    "configuration": Config,
    **{kind: study_kind(kind) for kind in KINDS},
}
"""Pages of keys, by file, and the model that each describes."""

KEYS = "config/keys"
"""Folder of the pages of keys."""

_SHARED = "shared"
"""Page of what several pages refer to."""

CAPABILITIES = "docs/capabilities.md"
_WRITTEN = "<!-- Written by `make schemas` from gridsched/experiments; do not edit. -->"

_NAMES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "nothing",
}
# Bounds that only say what the engine can hold are left out of the tables
_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
}

Schema = dict[str, Any]


def schema(*models: type[ConfigModel]) -> Schema:
    """JSON schema (draft 2020-12) of a file that follows one of the models."""
    union: Any = reduce(or_, models)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **TypeAdapter(union).json_schema()}


def key_pages() -> dict[str, str]:
    """Pages of all keys as Markdown, by file: one a kind of study, one of what these share, an index."""
    whole = schema(*PAGES.values())
    definitions: dict[str, Schema] = whole["$defs"]
    top = dict(zip(PAGES, _named(whole["anyOf"]), strict=True))
    inside = {page: _reached(name, definitions) for page, name in top.items()}
    users = Counter(name for names in inside.values() for name in names)
    shared = [name for name in users if users[name] > 1]
    places = {name: page for page, names in inside.items() for name in names} | dict.fromkeys(shared, _SHARED)
    writer = _Writer(definitions, places)
    pages = {
        f"{page}.md": writer.page(page, [name, *(each for each in inside[page] if users[each] == 1)])
        for page, name in top.items()
    }
    pages[f"{_SHARED}.md"] = "\n\n".join(
        [
            f"# Keys that several kinds of files share\n\n{_WRITTEN}",
            *(writer.section(name, _SHARED) for name in shared),
        ]
    )
    return {"README.md": _index(top, shared, definitions), **pages}


def _index(top: dict[str, str], shared: Sequence[str], definitions: dict[str, Schema]) -> str:
    """Page that leads to the others."""
    files = [
        f"| [{page}]({page}.md) | {_cell(definitions[name]['description'])} |" for page, name in top.items()
    ]
    parts = ", ".join(
        f"[{_title(name, definitions)}]({_SHARED}.md#{_title(name, definitions).lower()})" for name in shared
    )
    return "\n".join(
        [
            "# All keys",
            "",
            _WRITTEN,
            "",
            "| file | what it describes |",
            "|---|---|",
            *files,
            "",
            f"What several of them share: {parts}.",
        ]
    )


def _reached(name: str, definitions: dict[str, Schema]) -> list[str]:
    """Names of the definitions that one refers to, directly or not, each after the first that does."""
    found: dict[str, None] = {}
    waiting = _named(definitions[name]["properties"])
    while waiting:
        first = waiting.pop(0)
        if first not in found:
            found[first] = None
            waiting = _named(definitions[first]["properties"]) + waiting
    return list(found)


def _named(value: Any) -> list[str]:
    """Names of the definitions that a part of a schema refers to."""
    if isinstance(value, dict):
        own = [value["$ref"].rpartition("/")[2]] if "$ref" in value else []
        return own + [name for part in value.values() for name in _named(part)]
    return [name for part in value for name in _named(part)] if isinstance(value, list) else []


def _title(name: str, definitions: dict[str, Schema]) -> str:
    return str(definitions[name]["title"]).removesuffix("Config").removesuffix("Keys")


@dataclass(frozen=True)
class _Writer:
    """Writes sections of definitions, of which each has its place on a page."""

    definitions: dict[str, Schema]
    places: dict[str, str]

    def page(self, page: str, names: Sequence[str]) -> str:
        """Page of a file: its own keys, then those of what only it has."""
        heading = "# Configuration" if PAGES[page] is Config else f"# Study of kind {page}"
        first, *others = names
        return "\n\n".join(
            [
                f"{heading}\n\n{_WRITTEN}",
                self.body(first, page),
                *(self.section(name, page) for name in others),
            ]
        )

    def section(self, name: str, page: str) -> str:
        """Heading, meaning and table of one definition."""
        return f"## {_title(name, self.definitions)}\n\n{self.body(name, page)}"

    def body(self, name: str, page: str) -> str:
        """Meaning and table of one definition."""
        section = self.definitions[name]
        required = section.get("required", [])
        rows = [
            f"| `{key}` | {self._kind(value, page)} | {_default(key, value, required)} | "
            f"{self._meaning(value)} |"
            for key, value in section["properties"].items()
        ]
        alternatives = [entry["required"][0] for entry in section.get("oneOf", [])]
        return "\n".join(
            [
                _cell(section["description"]),
                *([f"Exactly one of {_quoted(alternatives)} is given."] if alternatives else []),
                "",
                "| key | type | default | meaning |",
                "|---|---|---|---|",
                *rows,
            ]
        )

    def _meaning(self, value: Schema) -> str:
        """Meaning of a key; where it says the same as its section, the schema has it there only."""
        return _cell(value.get("description") or self.definitions[_named(value)[0]]["description"])

    def _kind(self, value: Schema, page: str) -> str:
        """What a key holds, in words."""
        if "$ref" in value:
            name = value["$ref"].rpartition("/")[2]
            title = _title(name, self.definitions)
            place = "" if self.places[name] == page else f"{self.places[name]}.md"
            return f"[{title}]({place}#{title.lower()})"
        for key in ("anyOf", "oneOf"):
            if key in value:
                options = [self._kind(option, page) for option in value[key] if option.get("type") != "null"]
                return " or ".join(options)
        if "enum" in value:
            return f"one of {_quoted(value['enum'])}"
        if "const" in value:
            return f"`{value['const']}`"
        if value["type"] == "array":
            return self._list_kind(value, page)
        if value["type"] == "object" and "properties" in value:
            return f"{{ {', '.join(value['properties'])} }}"
        if value["type"] == "object":
            inside = value["additionalProperties"]
            return "values by key" if inside is True else f"{self._kind(inside, page)} by name"
        bounds = [
            f"{words} {value[key]:,.12g}"
            for key, words in _BOUNDS.items()
            if key in value and value[key] < LARGEST
        ]
        return ", ".join([_NAMES[value["type"]], *bounds])

    def _list_kind(self, value: Schema, page: str) -> str:
        if "prefixItems" in value:
            return f"[{'; '.join(self._kind(item, page) for item in value['prefixItems'])}]"
        fewest = f", at least {value['minItems']}" if value.get("minItems") else ""
        return f"list of {self._kind(value['items'], page)}{fewest}"


def _default(key: str, value: Schema, required: Sequence[str]) -> str:
    """Default of a key; a section and a key that may be absent have none to show."""
    if key in required:
        return "required"
    default = value.get("default")
    return "" if default is None or isinstance(default, dict) else f"`{json.dumps(default)}`"


def _quoted(names: Sequence[object]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    """Text on one line of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def abilities_page() -> str:
    """Markdown of docs/capabilities.md: what schedulers can do, then what kinds of studies can."""
    return capabilities_page() + "\n".join(_varying_lines()) + "\n"


def _varying_lines() -> Iterator[str]:
    """Which kinds of studies know replicates of logs and users who react, and why others do not."""
    yield ""
    yield "## Studies: replicates of logs, users who react"
    yield ""
    yield (
        "Keys of the scenarios of a study, see [resampling.md](resampling.md). In a study of kind `arena` "
        "all schedulers run on resampled and shaken logs, and with feedback those that know jobs that wait "
        "for other jobs. What a kind refuses is a mistake, which is reported before anything runs."
    )
    yield ""
    yield "| kind of study | " + " | ".join(f"`{key}`" for key in VARYING) + " |"
    yield "|" + "---|" * (len(VARYING) + 1)
    reasons: list[str] = []
    for kind in KINDS:
        refused = study_kind(kind).refuses
        reasons.extend(dict.fromkeys(reason for reason in refused.values() if reason not in reasons))
        cells = [f"no ({reasons.index(refused[key]) + 1})" if key in refused else "yes" for key in VARYING]
        yield f"| `{kind}` | " + " | ".join(cells) + " |"
    yield ""
    for number, reason in enumerate(reasons, start=1):
        yield f"{number}. {reason[0].upper()}{reason[1:]}."


def documents(root: Path = ROOT) -> dict[Path, str]:
    """Generated files and what they should contain."""
    schemas = {
        path: json.dumps(schema(*models), indent=2, ensure_ascii=False) for path, models in SCHEMAS.items()
    }
    pages = {f"{KEYS}/{file}": text for file, text in key_pages().items()}
    written = {**schemas, **pages, CAPABILITIES: abilities_page().rstrip("\n")}
    return {root / path: f"{text}\n" for path, text in written.items()}


def outdated(root: Path = ROOT) -> list[Path]:
    """Generated files that are not what the models say."""
    return [
        path
        for path, content in documents(root).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != content
    ]


def write(root: Path = ROOT) -> None:
    """Write all generated files."""
    for path, content in documents(root).items():
        with atomic_write(path) as temporary:
            temporary.write_text(content, encoding="utf-8")


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Check or write; 0 if all is up to date."""
    parser = argparse.ArgumentParser(
        prog="python -m gridsched.experiments.document",
        description="Check that the JSON schemas and the pages of keys are what the models say.",
    )
    parser.add_argument("--write", action="store_true", help="write the files instead of checking them")
    try:
        if parser.parse_args(arguments).write:
            write(root)
        old = outdated(root)
    except GridschedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for path in old:
        print(f"{path.relative_to(root)}: out of date; run `make schemas`", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
