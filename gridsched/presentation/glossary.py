"""Words of the page: schedulers, policies and measures with their sentences, from where they are declared."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from functools import cache

from markupsafe import Markup, escape

from gridsched.metrics import jobs
from gridsched.policies import scores
from gridsched.policies.local import POLICIES, PREDICTING, described, named_policy
from gridsched.presentation.pitfalls import CHECKS
from gridsched.systems import registry
from gridsched.systems.base import Scheduler

_ORDINARY = ("local", "central", "calendars", "slowdown", "response", "wait", "saturation", "productivity")
"""Names that are words of the language too: in running text they are left alone."""

_RESERVATIONS = r"easy\(\d{1,9}\)"
"""EASY with several reservations, which has a sentence of its own."""


_STATISTICS = {
    "resampled": "A log made from the histories of the users of a log, each moved by whole weeks, so "
    "that other users meet: one of many workloads with the structure of one log (Zakay and Feitelson 2014).",
    "shaken": "A log whose submissions are moved by a few random seconds, to see which results depend on "
    "them (Tsafrir, Ouaknine and Feitelson 2007).",
}
"""Words of intervals and replicates."""


@cache
def glossary() -> Mapping[str, str]:
    """Sentence of every word, those of measures first."""
    words = {long_name: summary(getattr(jobs, function)) for function, (long_name, _) in jobs.METRICS.items()}
    words["productivity"] = summary(jobs.productivity)
    words["expansion factor"] = summary(scores.largest_expansion_factor)
    words |= {**_STATISTICS, **{name: check.meaning for name, check in CHECKS.items()}}
    for system in registry.SYSTEMS:
        words |= registry.system_of(system).terms
    words |= {name: _meaning(name, make()) for name, make in registry.names().items()}
    return words


def meaning_of(label: str) -> tuple[str, str] | None:
    """Word that a label stands for, and its sentence; "easy(4)" and "s-i, epsilon 60 s" by the first part."""
    words = glossary()
    if re.fullmatch(_RESERVATIONS, label):
        return "easy", described(named_policy(label))
    first = re.split(r"[(,]", label, maxsplit=1)[0].strip()
    return next(((word, words[word]) for word in (label, first, first.lower()) if word in words), None)


def term(label: object) -> Markup:
    """A label as it is, with its sentence at hand if it has one."""
    found = meaning_of(str(label))
    return escape(label) if found is None else _linked(str(label), *found)


def terms(text: object) -> Markup:
    """Running text, in which each word that has a sentence is linked to it once."""
    seen: set[str] = set()
    parts = []
    for part in _pattern().split(str(text)):
        found = meaning_of(part)
        linked = found is not None and found[0] not in seen and found[0] not in _ORDINARY
        parts.append(_linked(part, *found) if linked and found else escape(part))
        seen |= {found[0]} if found else set()
    return Markup("").join(parts)


@cache
def _pattern() -> re.Pattern[str]:
    longest_first = sorted(glossary(), key=len, reverse=True)
    words = "|".join([_RESERVATIONS, *map(re.escape, longest_first)])
    return re.compile(rf"(?<![\w-])({words})(?![\w-])")


def term_anchor(word: str) -> str:
    """Name of a word as a place in the page."""
    return f"term-{re.sub(r'[^a-z0-9]+', '-', word.lower().replace('+', ' plus')).strip('-')}"


def _linked(label: str, word: str, meaning: str) -> Markup:
    return Markup('<a class="term" href="#{}" title="{}">{}</a>').format(term_anchor(word), meaning, label)


def summary(declared: object) -> str:
    """The first paragraph of a docstring, on one line and without markup."""
    first = (inspect.getdoc(declared) or "").partition("\n\n")[0]
    return " ".join(first.replace("`", "").split())


def _meaning(name: str, made: Scheduler) -> str:
    """Sentence of a scheduler: that of its name in the table of its module, or the first of the module."""
    if name in POLICIES or name in PREDICTING:
        return described(named_policy(name))
    table = inspect.getdoc(sys.modules[type(made).__module__]) or ""
    row = re.search(rf"^``{re.escape(name)}``\s\s+(.+)$", table, re.MULTILINE)
    text = row[1].replace("`", "") if row else table.partition("\n\n")[0]
    sentence = text[:1].upper() + text[1:].rstrip(".")
    return f"{sentence}. It has to know: {made.information}." if made.information else f"{sentence}."
