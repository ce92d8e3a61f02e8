"""Write the JSON schemas, pages of keys and the picture of the parts, or check that they are up to date.

``python -m docs.keys`` checks, with ``--write`` it writes. The models of
`config` and `parts` are the only place where keys, defaults and meanings are stated.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import or_
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from docs.architecture import picture
from gridsched.cli.site_files import SiteConfig
from gridsched.engine.records import LARGEST
from gridsched.errors import GridschedError
from gridsched.experiments.config import VARYING, Config
from gridsched.experiments.registry import KINDS, study_kind
from gridsched.io import atomic_write
from gridsched.systems.capabilities import capabilities_page
from gridsched.validation import ConfigModel

ROOT = Path(__file__).parents[1]
"""The checkout."""

SCHEMAS: dict[str, tuple[type[ConfigModel], ...]] = {
    "workflow/schemas/config.schema.json": (Config,),
    "workflow/schemas/study.schema.json": tuple(map(study_kind, KINDS)),
    "workflow/schemas/site.schema.json": (SiteConfig,),
}
"""Schema files and the models that they describe; a file follows one of them."""

PAGES: dict[str, type[ConfigModel]] = {
    "configuration": Config,
    **{kind: study_kind(kind) for kind in KINDS},
    "site": SiteConfig,
}
"""Pages of keys, by file, and the model that each describes."""

_SHARED = "shared"
"""Page of what several pages refer to."""

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
    users = Counter(chain.from_iterable(inside.values()))
    sections = {page: [name for name in names if users[name] == 1] for page, names in inside.items()}
    sections[_SHARED] = [name for name in users if users[name] > 1]
    writer = _Writer(definitions, {name: page for page, names in sections.items() for name in names})
    headings = {
        "configuration": "Configuration",
        "site": "Files of a Slurm site",
        _SHARED: "Keys that several kinds of files share",
    }
    pages = {
        page: [
            f"# {headings.get(page, f'Study of kind {page}')}",
            *([writer.body(top[page], page)] if page in top else []),
            *(f"## {writer.title(name)}\n\n{writer.body(name, page)}" for name in names),
        ]
        for page, names in sections.items()
    }
    files = [[f"[{page}]({page}.md)", _cell(definitions[name]["description"])] for page, name in top.items()]
    shared = ", ".join(writer.link(name, "README") for name in sections[_SHARED])
    table = _table(["file", "what it describes"], files)
    pages["README"] = ["# All keys", table, f"What several of them share: {shared}."]
    return {f"{page}.md": "\n\n".join([first, _WRITTEN, *rest]) for page, (first, *rest) in pages.items()}


def _reached(name: str, definitions: dict[str, Schema]) -> list[str]:
    """Names of the definitions that one refers to, directly or not, each after the first that does."""
    found: list[str] = []
    waiting = _named(definitions[name]["properties"])
    while waiting:
        first, *waiting = waiting
        if first not in found:
            found.append(first)
            waiting = _named(definitions[first]["properties"]) + waiting
    return found


def _named(value: Any) -> list[str]:
    """Names of the definitions that a part of a schema refers to."""
    return re.findall(r'"\$ref": "#/\$defs/([^"]+)"', json.dumps(value))


@dataclass(frozen=True)
class _Writer:
    """Writes sections of definitions, of which each has its place on a page."""

    definitions: dict[str, Schema]
    places: dict[str, str]

    def title(self, name: str) -> str:
        """Heading of a definition."""
        return str(self.definitions[name]["title"]).removesuffix("Config").removesuffix("Keys")

    def link(self, name: str, page: str) -> str:
        """Link from a page to a definition."""
        place = "" if self.places[name] == page else f"{self.places[name]}.md"
        return f"[{self.title(name)}]({place}#{self.title(name).lower()})"

    def body(self, name: str, page: str) -> str:
        """Meaning and table of one definition."""
        section = self.definitions[name]
        text = _cell(section["description"])
        if "oneOf" in section:
            alternatives = [entry["required"][0] for entry in section["oneOf"]]
            text += f"\nExactly one of {_quoted(alternatives)} is given."
        rows = [
            [
                f"`{key}`",
                self._kind(value, page),
                "required" if key in section.get("required", []) else _default(value),
                # Where it says the same as its section, the schema has it there only
                _cell(value.get("description") or self.definitions[_named(value)[0]]["description"]),
            ]
            for key, value in section["properties"].items()
        ]
        return f"{text}\n\n{_table(['key', 'type', 'default', 'meaning'], rows)}"

    def _kind(self, value: Schema, page: str) -> str:
        """What a key holds, in words."""
        if "$ref" in value:
            return self.link(_named(value)[0], page)
        options = value.get("anyOf", value.get("oneOf", []))
        if options:
            return " or ".join(self._kind(option, page) for option in options if option.get("type") != "null")
        if "enum" in value:
            return f"one of {_quoted(value['enum'])}"
        if "const" in value:
            return f"`{value['const']}`"
        if "prefixItems" in value:
            return f"[{'; '.join(self._kind(item, page) for item in value['prefixItems'])}]"
        if "properties" in value:
            return f"{{ {', '.join(value['properties'])} }}"
        if value["type"] == "array":
            fewest = f", at least {value['minItems']}" if value.get("minItems") else ""
            return f"list of {self._kind(value['items'], page)}{fewest}"
        if value["type"] == "object":
            inside = value["additionalProperties"]
            return "values by key" if inside is True else f"{self._kind(inside, page)} by name"
        bounds = [
            f"{words} {value[key]:,.12g}"
            for key, words in _BOUNDS.items()
            if key in value and value[key] < LARGEST
        ]
        return ", ".join([_NAMES[value["type"]], *bounds])


def _default(value: Schema) -> str:
    """Default of a key; a section and a key that may be absent have none to show."""
    default = value.get("default")
    return "" if default is None or isinstance(default, dict) else f"`{json.dumps(default)}`"


def _quoted(names: Sequence[object]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    """Text on one line of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Table as Markdown."""
    first, *others = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    return "\n".join([first, "|" + "---|" * len(head), *others])


def abilities_page() -> str:
    """Markdown of docs/capabilities.md: what schedulers can do, then what kinds of studies can."""
    refused = {kind: study_kind(kind).refuses for kind in KINDS}
    reasons = dict.fromkeys(chain.from_iterable(each.values() for each in refused.values()))
    number = {reason: i for i, reason in enumerate(reasons, start=1)}
    rows = [
        [f"`{kind}`", *(f"no ({number[why[key]]})" if key in why else "yes" for key in VARYING)]
        for kind, why in refused.items()
    ]
    return "\n\n".join(
        [
            capabilities_page().rstrip("\n"),
            "## Studies: replicates of logs, users who react",
            "Keys of the scenarios of a study, see [resampling.md](resampling.md). In a study of kind "
            "`arena` all schedulers run on resampled and shaken logs, and with feedback those that know jobs "
            "that wait for other jobs. What a kind refuses is a mistake, which is reported before anything "
            "runs.",
            _table(["kind of study", *(f"`{key}`" for key in VARYING)], rows),
            "\n".join(f"{i}. {reason[0].upper()}{reason[1:]}." for reason, i in number.items()),
        ]
    )


def documents(root: Path = ROOT) -> dict[Path, str]:
    """Generated files and what they should contain."""
    written = {
        **{path: json.dumps(schema(*of), indent=2, ensure_ascii=False) for path, of in SCHEMAS.items()},
        **{f"config/keys/{file}": text for file, text in key_pages().items()},
        "docs/capabilities.md": abilities_page(),
        "docs/architecture.svg": picture(),
    }
    return {root / path: f"{text}\n" for path, text in written.items()}


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Check or write; 0 if all is up to date."""
    parser = argparse.ArgumentParser(
        prog="python -m docs.keys",
        description="Check that the JSON schemas and the pages of keys are what the models say.",
    )
    parser.add_argument("--write", action="store_true", help="write the files instead of checking them")
    write, failed = parser.parse_args(arguments).write, False
    try:
        for path, content in documents(root).items():
            if write:
                with atomic_write(path) as temporary:
                    temporary.write_text(content, encoding="utf-8")
            elif not path.is_file() or path.read_text(encoding="utf-8") != content:
                print(f"{path.relative_to(root)}: out of date; run `make schemas`", file=sys.stderr)
                failed = True
    except GridschedError as error:
        print(f"error: {error}", file=sys.stderr)
        failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
