"""How Sphinx builds the site (`make docs`) from the pages where they are: its sources are the repository."""

from __future__ import annotations

import json
from collections import Counter
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import ziamath
from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

MATH_FONT = Path(ziamath.__file__).parent / "fonts" / "STIXTwoMath-Regular.ttf"
"""A font for equations, which browsers do not have everywhere; it is all that is used of ziamath."""

project = "gridsched"
author = "The gridsched authors"
project_copyright = author
version = release = version_of("gridsched")
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_argparse_cli",
    "sphinx_copybutton",
    "sphinx_external_toc",
]
include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "config/README.md",
    "config/keys/*.md",
    "docs/*.md",
    "resources/*/README.md",
    "tests/*/README.md",
]
exclude_patterns = [".*", "build", "dist", "results", "docs/_build"]
external_toc_path = "docs/_toc.yml"

# Pages: anchors as code hosts make them, equations between dollars
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
myst_dmath_double_inline = False

# Notebooks run when they are built; a page that raises an error fails the build
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
nb_output_stderr = "remove"  # that kernels are compiled, where it is the first time
nb_ipywidgets_js: dict[str, dict[str, str]] = {}

# Reference from docstrings: single backticks are names, linked where they are documented
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"gridsched {release}"
html_static_path = ["_static", str(MATH_FONT)]
html_extra_path = ["_extra"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"
html_search_scorer = str(Path(__file__).parent / "search.js")


def _mathml(node: nodes.math | nodes.math_block, display: str) -> str:
    """The equation as MathML, which browsers draw without scripts and fonts of other hosts."""
    return convert(node.astext(), display=display)


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(f'<span class="math">{_mathml(node, "inline")}</span>')
    raise nodes.SkipNode


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(f"{self.starttag(node, 'div', CLASS='math')}{_mathml(node, 'block')}</div>\n")
    raise nodes.SkipNode


def _count_words(app: Sphinx, exception: Exception | None) -> None:
    """Write how often each page has each word of the search index, by which `search.js` ranks pages."""
    indexer = getattr(app.builder, "indexer", None)
    if exception is not None or indexer is None:
        return
    language = indexer.lang
    pages = {
        page: Counter(
            language.stem(word.lower())
            for word in language.split(app.env.get_doctree(page).astext())
            if language.word_filter(word)
        )
        for page in sorted(app.env.found_docs)
    }
    lengths = {page: words.total() for page, words in pages.items()}
    counts = {"pages": pages, "lengths": lengths, "mean_length": sum(lengths.values()) / len(lengths)}
    text = f"const WORD_COUNTS = {json.dumps(counts, separators=(',', ':'))};\n"
    (Path(app.outdir) / "_static" / "words.js").write_text(text, encoding="utf-8")


def _load_words(app: Sphinx, page: str, *_: object) -> None:
    """Let the page of results load the counts."""
    if page == "search":
        app.add_js_file("words.js")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the equations and the ranking of search results."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("html-page-context", _load_words)
    app.connect("build-finished", _count_words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
