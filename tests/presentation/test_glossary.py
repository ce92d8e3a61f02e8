"""Words of the page: every scheduler, policy and measure has a sentence, and labels find theirs."""

from __future__ import annotations

import pytest

from gridsched.metrics.jobs import METRICS
from gridsched.policies.local import LocalPolicy, described
from gridsched.presentation.glossary import glossary, meaning_of, term, term_anchor, terms
from gridsched.systems import registry
from gridsched.systems.jscheduler.scheduler import JScheduler


def test_every_scheduler_and_measure_has_a_sentence() -> None:
    words = glossary()
    measures = {long_name for long_name, _ in METRICS.values()}
    assert {*registry.names(), *measures, "SRPT", "MCP", "PB", "expansion factor"} <= set(words)
    assert all(len(meaning) > 20 and meaning.endswith(".") for meaning in words.values())
    anchors = [term_anchor(word) for word in words]
    assert len(anchors) == len(set(anchors))


@pytest.mark.parametrize(
    ("label", "word"),
    [
        ("easy(4)", "easy"),
        ("JScheduler, k 2", "jscheduler"),
        ("s-i, epsilon 60 s", "s-i"),
        ("sjbf", "sjbf"),
        ("my own", None),
    ],
)
def test_labels_find_their_word(label: str, word: str | None) -> None:
    found = meaning_of(label)
    assert (found[0] if found else None) == word
    assert (f"#{term_anchor(word)}" in term(label)) if word else term(label) == label


def test_running_text_is_escaped_and_links_a_word_once() -> None:
    text = terms("<b>lxf</b> and lxf, but lxf-like and local are left alone")
    assert text.count("<a ") == 1
    assert "&lt;b&gt;" in text
    assert "<b>" not in text


def test_policies_of_parts_are_described() -> None:
    several = described(LocalPolicy(order="shortest", backfilling="easy", reservations=3))
    assert several.startswith(
        "The shortest estimate first; later jobs may start if they do not delay the first 3"
    )


def test_rivals_of_muscle_and_jobs_without_a_choice_know_less() -> None:
    names = registry.names()
    assert "deadlines" in names["muscle"]().information
    assert names["wrand"]().information.startswith("the capacities of all clusters")
    assert "deadlines" not in names["dll"]().information
    assert "predicted starts" in JScheduler(k=2).information
    assert "at random" in JScheduler(k=1).information
    assert "deadlines" not in glossary()["wrand"].partition("It has to know")[2]


def test_reservations_of_easy_have_their_sentence_in_running_text_too() -> None:
    assert "the first 4" in terms("shorter under easy(4) than under easy")
    assert "the first 4" not in terms("shorter under easy")
