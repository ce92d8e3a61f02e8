"""The registry, and fetching from folders and from a server of this machine."""

from __future__ import annotations

import gzip
import hashlib
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gridsched.errors import TraceError
from gridsched.traces import ArchiveLog, archive_folder, fetch, find_log, read_swf, registry
from gridsched.traces.archive import MIRRORS_VARIABLE
from tests.support.errors import each_refused
from tests.support.traces import HEADER, JOB, write

FILE = "Abacus-1996-1.swf.gz"
CONTENT = f"{HEADER}{JOB}\n".encode()
PACKED = gzip.compress(CONTENT, mtime=0)
NOWHERE = f"http://127.0.0.1:1/{FILE}"
ABACUS = ArchiveLog(
    name="Abacus-1996",
    file=FILE,
    url=NOWHERE,
    sha256_gz=hashlib.sha256(PACKED).hexdigest(),
    sha256_content=hashlib.sha256(CONTENT).hexdigest(),
)
UNKNOWN = replace(ABACUS, sha256_gz="", sha256_content="")


@dataclass
class Server:
    """A file server whose answers a test decides: status and body, one after the other, the last for ever."""

    address: str
    answers: list[tuple[int, bytes]] = field(default_factory=lambda: [(200, PACKED)])
    requests: list[str] = field(default_factory=list)
    missing: int = 0
    """Bytes that the server promises beyond those that it sends."""

    def answer(self) -> tuple[int, bytes]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    state = Server("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests.append(self.path)
            status, body = state.answer()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) + state.missing))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the test output clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        state.address = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        http.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _no_mirrors_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MIRRORS_VARIABLE, raising=False)


@pytest.fixture(autouse=True)
def _warnings_are_errors(request: pytest.FixtureRequest) -> Iterator[None]:
    """Unless a test says otherwise."""
    with warnings.catch_warnings():
        if not request.node.get_closest_marker("filterwarnings"):
            warnings.simplefilter("error", UserWarning)
        yield


def get(log: ArchiveLog, folder: Path, *mirrors: str | Path) -> Path:
    return fetch(log, folder=folder, mirrors=mirrors, progress=False, retries=3, backoff=0)


def mirror_of(folder: Path, content: bytes) -> Path:
    folder.mkdir()
    write(folder, content, FILE)
    return folder


def test_registry_is_sound() -> None:
    logs = registry()
    assert len(logs) == 31
    for name, log in logs.items():
        assert log.name == name
        assert log.url.startswith("https://www.cs.huji.ac.il/labs/parallel/workload/l_")
        assert log.url.endswith(f"/{log.file}")
        assert log.file.endswith(".swf.gz")
        for checksum in (log.sha256_gz, log.sha256_content):
            assert not checksum or (len(checksum) == 64 and int(checksum, 16))


def test_registry_agrees_with_the_mirror(archive_mirror: Path) -> None:
    present = [log for log in registry().values() if (archive_mirror / log.file).exists()]
    assert len(present) == 15
    for log in present:
        found = read_swf(archive_mirror / log.file)
        assert (len(found), found.processors_available) == (log.jobs, log.processors)
        assert (found.checksum, found.acknowledgement) == (log.sha256_content, log.acknowledgement)
        assert log.bytes in (None, (archive_mirror / log.file).stat().st_size)


@pytest.mark.parametrize(
    "name",
    ["KTH-SP2-1996", "kth-sp2-1996", "KTH-SP2-1996-2.1-cln.swf.gz", "KTH-SP2-1996-2.1-cln"],
)
def test_look_up(name: str) -> None:
    assert find_log(name).file == "KTH-SP2-1996-2.1-cln.swf.gz"


def test_unknown_name_gets_a_hint() -> None:
    each_refused(
        (TraceError, r"'KTH-SP2-1997' .*did you mean KTH-SP2-1996", lambda: fetch("KTH-SP2-1997")),
        (TraceError, r"'zzz' .*fetch --list shows", lambda: find_log("zzz")),
    )


def test_fetch_by_name_from_a_mirror_of_the_archive(archive_mirror: Path, tmp_path: Path) -> None:
    path = fetch("NASA-iPSC-1993", folder=tmp_path, mirrors=[archive_mirror])
    assert path == tmp_path / "NASA-iPSC-1993-3.1-cln.swf.gz"
    assert len(read_swf(path)) == 18239


def test_default_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSCHED_CACHE", str(tmp_path / "cache"))
    mirror = mirror_of(tmp_path / "mirror", PACKED)
    assert fetch(ABACUS, mirrors=[mirror]) == archive_folder() / FILE == tmp_path / "cache" / "archive" / FILE


@pytest.mark.parametrize("content", [PACKED, gzip.compress(CONTENT, 1, mtime=7), CONTENT])
def test_any_compression_of_the_right_log_is_good(tmp_path: Path, content: bytes) -> None:
    path = get(ABACUS, tmp_path / "logs", mirror_of(tmp_path / "mirror", content))
    assert path.read_bytes() == content
    assert [file.name for file in path.parent.iterdir()] == [FILE]


def test_file_addresses_and_one_mirror_alone(tmp_path: Path) -> None:
    mirror = mirror_of(tmp_path / "a mirror", PACKED)
    assert get(ABACUS, tmp_path / "logs", mirror.as_uri()).read_bytes() == PACKED
    assert fetch(ABACUS, folder=tmp_path / "more", mirrors=str(mirror), progress=False).exists()


def test_mirrors_of_the_environment(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRRORS_VARIABLE, f"{tmp_path / 'none'} , {server.address}/logs/,")
    assert get(ABACUS, tmp_path).read_bytes() == PACKED
    assert server.requests == [f"/logs/{FILE}"]


def test_archive_is_asked_last(tmp_path: Path, server: Server) -> None:
    log = replace(ABACUS, url=f"{server.address}/archive/{FILE}")
    assert get(log, tmp_path / "logs", tmp_path / "none").read_bytes() == PACKED
    assert server.requests == [f"/archive/{FILE}"]


def test_good_copy_is_not_fetched_again(tmp_path: Path, server: Server) -> None:
    assert get(ABACUS, tmp_path, server.address) == get(ABACUS, tmp_path, server.address)
    assert len(server.requests) == 1


def test_damaged_copy_is_fetched_again(tmp_path: Path, server: Server) -> None:
    get(ABACUS, tmp_path, server.address)
    write(tmp_path, PACKED[:-5], FILE)
    with pytest.warns(UserWarning, match=rf"{FILE}: .*truncated.*it is fetched again"):
        path = get(ABACUS, tmp_path, server.address)
    assert path.read_bytes() == PACKED


def test_progress_is_shown(tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    fetch(ABACUS, folder=tmp_path, mirrors=[server.address])
    assert "100%" in capsys.readouterr().err


def test_wrong_content_is_refused_and_the_next_mirror_tried(tmp_path: Path, server: Server) -> None:
    wrong = mirror_of(tmp_path / "wrong", gzip.compress(CONTENT + b"; more\n"))
    found = hashlib.sha256(CONTENT + b"; more\n").hexdigest()
    with pytest.warns(UserWarning, match=f"{found}, expected {ABACUS.sha256_content}"):
        path = get(ABACUS, tmp_path / "logs", wrong, server.address)
    assert path.read_bytes() == PACKED


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (PACKED[:-5], "the compressed file is truncated"),
        (PACKED[:-12] + b"\0" * 12, "the compressed file is"),
        (b"<html>not here</html>", "SHA-256 of the log is .*, expected"),
        (b"", "SHA-256 of the log is .*, expected"),
    ],
)
def test_error_names_every_place_and_its_fault(tmp_path: Path, content: bytes, reason: str) -> None:
    bad, none, folder = mirror_of(tmp_path / "bad", content), tmp_path / "none", tmp_path / "logs"
    pattern = (
        rf"^Abacus-1996: .*tried {bad / FILE} \({folder / FILE}: {reason}.*\); "
        rf"{none / FILE} \(no such file\); "
        rf"ftp://x/{FILE} \(ftp:// is not supported.*\); {NOWHERE} \(.*refused.*\); put {FILE} in a folder"
    )
    with pytest.raises(TraceError, match=pattern) as raised:
        get(ABACUS, folder, bad, none, "ftp://x")
    assert "\n" not in str(raised.value)
    assert not list(folder.iterdir())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_decompression_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSCHED_MAX_BYTES", "1000000")
    bomb = mirror_of(tmp_path / "bomb", gzip.compress(b" " * 2_000_000))
    with pytest.raises(TraceError, match="more than 1,000,000 bytes when uncompressed"):
        get(ABACUS, tmp_path / "logs", bomb)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_endless_download_is_cut(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSCHED_MAX_BYTES", "100000")
    server.answers = [(200, bytes(200_000))]
    with pytest.raises(TraceError, match="more than 100,000 bytes; set GRIDSCHED_MAX_BYTES"):
        get(ABACUS, tmp_path, server.address)
    assert not list(tmp_path.iterdir())


def test_server_that_recovers_is_asked_again(tmp_path: Path, server: Server) -> None:
    server.answers = [(503, b""), (429, b""), (200, PACKED)]
    assert get(ABACUS, tmp_path, server.address).read_bytes() == PACKED
    assert len(server.requests) == 3


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("status", "requests"), [(500, 3), (403, 1), (404, 1)])
def test_lasting_refusals_are_not_repeated(
    tmp_path: Path, server: Server, status: int, requests: int
) -> None:
    server.answers = [(status, b"sorry")]
    with pytest.raises(TraceError, match=rf"{FILE} \({status}"):
        get(ABACUS, tmp_path, server.address)
    assert len(server.requests) == requests


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_download_that_breaks_off(tmp_path: Path, server: Server) -> None:
    server.missing = 10
    with pytest.raises(TraceError, match="no good copy"):
        get(ABACUS, tmp_path, server.address)
    assert len(server.requests) == 3
    assert not list(tmp_path.iterdir())


def test_log_of_unknown_checksum_is_recorded_and_held_to_it(tmp_path: Path) -> None:
    mirror = mirror_of(tmp_path / "mirror", PACKED)
    folder = tmp_path / "logs"
    with pytest.warns(UserWarning, match=f"used unverified; SHA-256 of the log is {ABACUS.sha256_content}"):
        path = get(UNKNOWN, folder, mirror)
    record = (folder / f"{FILE}.sha256").read_text()
    assert record == f"{ABACUS.sha256_content}  Abacus-1996-1.swf\n"
    assert get(UNKNOWN, folder) == path
    path.write_bytes(gzip.compress(CONTENT + b"; changed\n"))
    with pytest.warns(UserWarning, match="fetched again"):
        get(UNKNOWN, folder, mirror)
    assert path.read_bytes() == PACKED


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_log_of_unknown_checksum_must_be_a_log(tmp_path: Path) -> None:
    mirror = mirror_of(tmp_path / "mirror", b"<html>moved</html>")
    with pytest.raises(
        TraceError, match=rf"{FILE}:1: field 1 \(job_number\) is '<html>moved</html>', not a number"
    ):
        get(UNKNOWN, tmp_path / "logs", mirror)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_log_with_only_a_checksum_of_the_file(tmp_path: Path) -> None:
    log = replace(ABACUS, sha256_content="")
    assert get(log, tmp_path / "logs", mirror_of(tmp_path / "good", PACKED)).exists()
    with pytest.raises(TraceError, match=f"SHA-256 of the file is .*, expected {log.sha256_gz}"):
        get(log, tmp_path / "more", mirror_of(tmp_path / "bad", CONTENT))


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be made"):
        get(ABACUS, write(tmp_path, "", "file") / "logs")
