"""Decision processes in libraries with the C interface of Batsim 5, in both of its forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gridsched as gs
from gridsched.cli import main
from gridsched.errors import ConfigurationError, ProtocolError
from gridsched.simulation import simulate
from gridsched.systems.custom.external import External
from tests.support.fields import assert_fields
from tests.support.libraries import SOURCES, library
from tests.support.nodes import jobs_of

FORMS: dict[str, tuple[str, ...]] = {"rc": (), "dev": ("-DDEV",)}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Places of the example in both forms."""
    folder = tmp_path_factory.mktemp("edc")
    source = (SOURCES / "edc.c").read_text(encoding="utf-8")
    return {name: str(library(source, folder / f"lib{name}.so", *more)) for name, more in FORMS.items()}


@pytest.mark.parametrize("abi", FORMS)
def test_it_starts_jobs_when_the_engine_does(archive_mirror: Path, abi: Any, built: dict[str, str]) -> None:
    log = gs.clean(gs.read_swf(archive_mirror / "KTH-SP2-1996-2.1-cln.swf.gz"))
    scheduler = External(protocol="batsim-5", edc_library=built[abi], abi=abi)
    for _ in range(2):  # what it remembers is gone after the first simulation
        run = simulate(log, None, scheduler)
        gs.verify(run)
    assert run.start_time.equals(simulate(log, None, "fcfs").start_time)
    assert_fields(run, scheme=abi, decision_process="by hand 1.0", scheduler_source=f"lib{abi}.so")
    assert len(run.attrs["scheduler_checksum"]) == 64


def test_the_command_line_serves_it(
    archive_mirror: Path, built: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(archive_mirror / "KTH-SP2-1996-2.1-cln.swf.gz"), "--jobs", "0:200"]
    assert main(["serve", *arguments, "--edc-library", built["rc"], "--abi", "rc"]) == 0
    assert "by hand 1.0" in capsys.readouterr().out
    assert main(["serve", *arguments, "--edc-library", built["rc"]]) == 2
    assert "say which form" in capsys.readouterr().err


def test_the_command_line_says_where_the_header_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--header"])
    assert "gridsched_decide" in Path(capsys.readouterr().out.strip()).read_text(encoding="utf-8")


BODY = """
#include <stdint.h>
static const char hello[] = "{\\"now\\":0,\\"events\\":[{\\"timestamp\\":0,"
    "\\"event_type\\":\\"EDCHelloEvent\\",\\"event\\":{\\"decision_component_name\\":\\"x\\",\\"decision_component_version\\":\\"1\\","
    "\\"batprotocol_version\\":\\"1\\",\\"decision_component_commit\\":\\"\\"}}]}";
uint8_t batsim_edc_init(const uint8_t *d, uint32_t n, uint32_t *flags, uint8_t **reply, uint32_t *size)
{ *flags = 2; *reply = (uint8_t *)hello; *size = sizeof hello; return 0; }
uint8_t batsim_edc_deinit(void) { return DEINIT; }
uint8_t batsim_edc_take_decisions(const uint8_t *w, uint32_t n, uint8_t **answer, uint32_t *size)
{ *answer = ANSWER; *size = SIZE; return CODE; }
"""

FAULTS = {
    "no answer": (("0", "0", "0", "0"), "answer of batsim_edc_take_decisions has 0 bytes at address 0x0"),
    "nothing written": (("0", "*size", "*answer", "0"), "take_decisions has 0 bytes at address 0x0"),
    "no address": (("0", "9", "0", "0"), "has 9 bytes at address 0x0"),
    "too long": (("0", "4000000000u", "(uint8_t *)hello", "0"), "has 4,000,000,000 bytes at address"),
    "an error": (("7", "0", "0", "0"), "batsim_edc_take_decisions returned 7"),
    "no JSON": (("0", "2", '(uint8_t *)"{x"', "0"), "at 0 s: message of 2 bytes is not of batsim-5"),
}


def edc(parts: tuple[str, ...], folder: Path) -> External:
    """A library that answers this."""
    source = BODY
    for name, value in zip(("CODE", "SIZE", "ANSWER", "DEINIT"), parts, strict=True):
        source = source.replace(name, value)
    place = library(source, folder / "libfaulty.so")
    return External(protocol="batsim-5", edc_library=str(place), abi="rc")


JOBS = jobs_of(submit_time=[0], run_time=[9], requested_time=[9], requested_processors=[2])


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault: str, tmp_path: Path) -> None:
    parts, words = FAULTS[fault]
    with pytest.raises(ProtocolError, match=words):
        simulate(JOBS, 4, edc(parts, tmp_path))


def test_a_library_that_cannot_be_ended(tmp_path: Path, built: dict[str, str]) -> None:
    """Its error stands behind the one that ended the simulation."""
    with pytest.raises(ProtocolError, match="take_decisions returned 7"):
        simulate(JOBS, 4, edc(("7", "0", "0", "1"), tmp_path))


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ("binary", ProtocolError, "format 1: binary messages are not supported"),
        ("fail", ProtocolError, "batsim_edc_init returned 1"),
    ],
)
def test_what_it_is_given_to_begin_with(
    options: str, kind: type[Exception], words: str, built: dict[str, str]
) -> None:
    scheduler = External(protocol="batsim-5", edc_library=built["rc"], abi="rc", options=options)
    with pytest.raises(kind, match=words):
        simulate(JOBS, 4, scheduler)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"edc_library": "a.so", "protocol": "batsim-5"}, "edc_library and abi go together"),
        ({"sleep_state": 3, "protocol": "batsim-5"}, "sleep_state is of batsim-4"),
        ({"state_as_number": True, "protocol": "batsim-5"}, "state_as_number is of batsim-4"),
        ({"handshake": "dev"}, "handshake is of batsim-5"),
        ({"options": "x"}, "options is of batsim-5"),
        ({"log": "x.txt", "socket": "tcp://*:28000"}, "log: what a process prints"),
        (
            {"edc_library": "a.so", "protocol": "batsim-5", "abi": "rc", "handshake": "dev"},
            "abi says how a library begins",
        ),
        ({"abi": "rc"}, "edc_library and abi go together"),
        ({"edc_library": "a.so", "abi": "rc"}, "edc_library: its protocol is batsim-5"),
        ({"edc_library": "a.so", "abi": "rcs", "protocol": "batsim-5"}, "abi is 'rcs'"),
    ],
)
def test_what_does_not_go_together(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        External(**given)


def test_a_library_without_the_interface(tmp_path: Path) -> None:
    place = library("int x;\n", tmp_path / "libempty.so")
    with pytest.raises(ConfigurationError, match="has no function batsim_edc_init"):
        simulate(JOBS, 4, External(protocol="batsim-5", edc_library=str(place), abi="dev"))
