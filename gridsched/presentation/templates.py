"""Templates of `reports`: one environment, so that all pages escape what they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

from gridsched import results
from gridsched.io import atomic_write, resource
from gridsched.presentation import glossary


def write_page(target: str | Path, name: str, **variables: Any) -> None:
    """Write a page from a template of `reports`: variables are escaped, unknown ones are errors."""
    style = resource("reports", "page.css")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(style.parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "term": glossary.term,
        "terms": glossary.terms,
        "term_anchor": glossary.term_anchor,
    }
    variables |= {"style": style.read_text(encoding="utf-8"), "source": results.provenance()["source"]}
    page = environment.get_template(name).render(variables)
    with atomic_write(target) as temporary:
        temporary.write_text(page, encoding="utf-8")
