"""Templates of `reports`: one environment, so that all pages escape what they are given."""

from __future__ import annotations

import jinja2

from gridsched.io import resource
from gridsched.presentation import glossary


def template(name: str) -> jinja2.Template:
    """A template of `reports`: its variables are escaped, unknown ones are errors."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resource("reports", name).parent),
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
    return environment.get_template(name)
