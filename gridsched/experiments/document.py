"""Write the JSON schemas and the tables of keys from the models, or check that they are up to date.

``python -m gridsched.experiments.document`` checks, with ``--write`` it writes. The models of
`config` and `parts` are the only place where keys, defaults and meanings are stated.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from gridsched.engine.records import LARGEST
from gridsched.errors import ConfigurationError, GridschedError
from gridsched.experiments.config import Config
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

TITLES: dict[type[ConfigModel], str] = {
    Config: "Configuration",
    **{study_kind(kind): f"Study of kind {kind}" for kind in KINDS},
}
"""Headings of the models that are files."""

GUIDE = "config/README.md"
CAPABILITIES = "docs/capabilities.md"
BEGIN = "<!-- keys: begin. Written by `make schemas` from gridsched/experiments; do not edit. -->"
END = "<!-- keys: end -->"

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


def key_tables() -> str:
    """Tables of all keys as Markdown: a section a model, nested ones after the first that holds them."""
    seen: set[str] = set()
    sections = [
        section
        for model, title in TITLES.items()
        for section in _sections(title, model.model_json_schema(), seen)
    ]
    return "\n\n".join(sections)


def _sections(title: str, document: Schema, seen: set[str]) -> Iterator[str]:
    """Section of a model and then those of the models in it that have not been seen."""
    definitions: dict[str, Schema] = document.get("$defs", {})
    yield _section(f"### {title}", document, definitions)
    waiting = _named(document["properties"])
    while waiting:
        name = waiting.pop(0)
        if name not in seen:
            seen.add(name)
            yield _section(f"#### {_title(name, definitions)}", definitions[name], definitions)
            waiting = _named(definitions[name]["properties"]) + waiting


def _named(value: Any) -> list[str]:
    """Names of the definitions that a part of a schema refers to."""
    if isinstance(value, dict):
        own = [value["$ref"].rpartition("/")[2]] if "$ref" in value else []
        return own + [name for part in value.values() for name in _named(part)]
    return [name for part in value for name in _named(part)] if isinstance(value, list) else []


def _title(name: str, definitions: dict[str, Schema]) -> str:
    return str(definitions[name]["title"]).removesuffix("Config").removesuffix("Keys")


def _section(heading: str, section: Schema, definitions: dict[str, Schema]) -> str:
    """Heading, meaning and table of one model."""
    required = section.get("required", [])
    rows = [
        f"| `{key}` | {_kind(value, definitions)} | {_default(key, value, required)} | "
        f"{_meaning(value, definitions)} |"
        for key, value in section["properties"].items()
    ]
    alternatives = [entry["required"][0] for entry in section.get("oneOf", [])]
    return "\n".join(
        [
            heading,
            "",
            _cell(section["description"]),
            *([f"Exactly one of {_quoted(alternatives)} is given."] if alternatives else []),
            "",
            "| key | type | default | meaning |",
            "|---|---|---|---|",
            *rows,
        ]
    )


def _meaning(value: Schema, definitions: dict[str, Schema]) -> str:
    """Meaning of a key; where it says the same as its section, the schema has it there only."""
    return _cell(value.get("description") or definitions[_named(value)[0]]["description"])


def _default(key: str, value: Schema, required: Sequence[str]) -> str:
    """Default of a key; a section and a key that may be absent have none to show."""
    if key in required:
        return "required"
    default = value.get("default")
    return "" if default is None or isinstance(default, dict) else f"`{json.dumps(default)}`"


def _kind(value: Schema, definitions: dict[str, Schema]) -> str:
    """What a key holds, in words."""
    if "$ref" in value:
        title = _title(value["$ref"].rpartition("/")[2], definitions)
        return f"[{title}](#{title.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in value:
            options = [_kind(option, definitions) for option in value[key] if option.get("type") != "null"]
            return " or ".join(options)
    if "enum" in value:
        return f"one of {_quoted(value['enum'])}"
    if "const" in value:
        return f"`{value['const']}`"
    if value["type"] == "array":
        return _list_kind(value, definitions)
    if value["type"] == "object" and "properties" in value:
        return f"{{ {', '.join(value['properties'])} }}"
    if value["type"] == "object":
        inside = value["additionalProperties"]
        return "values by key" if inside is True else f"{_kind(inside, definitions)} by name"
    bounds = [
        f"{words} {value[key]:,.12g}"
        for key, words in _BOUNDS.items()
        if key in value and value[key] < LARGEST
    ]
    return ", ".join([_NAMES[value["type"]], *bounds])


def _list_kind(value: Schema, definitions: dict[str, Schema]) -> str:
    if "prefixItems" in value:
        return f"[{'; '.join(_kind(item, definitions) for item in value['prefixItems'])}]"
    fewest = f", at least {value['minItems']}" if value.get("minItems") else ""
    return f"list of {_kind(value['items'], definitions)}{fewest}"


def _quoted(names: Sequence[object]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    """Text on one line of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def documents(root: Path = ROOT) -> dict[Path, str]:
    """Generated files and what they should contain.

    Raises
    ------
    ConfigurationError
        If the guide of the configuration lacks the markers between which the tables stand.
    """
    contents = {
        root / path: json.dumps(schema(*models), indent=2, ensure_ascii=False) + "\n"
        for path, models in SCHEMAS.items()
    }
    guide = root / GUIDE
    text = guide.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ConfigurationError(f"{guide}: the tables stand between {BEGIN!r} and {END!r}; put them back")
    contents[guide] = f"{before}{BEGIN}\n\n{key_tables()}\n\n{END}{after}"
    contents[root / CAPABILITIES] = capabilities_page()
    return contents


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
        description="Check that the JSON schemas and the tables of keys are what the models say.",
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
