"""Schedulers in shared libraries: loaded with a checksum, and called through the C interface of Batsim 5.

There are two published forms of that interface under the same names, batsim_edc.h of Batsim's test/edc-lib.
Each has the handshake of its time, so that their names are those of handshakes:

- ``rc``, of the release candidate of version 5: ``batsim_edc_init(init_data, init_size, *flags, **reply_data,
  *reply_size)`` answers with the format that the library chooses and an EDCHelloEvent;
- ``dev``, of the years before: ``batsim_edc_init(data, size, flags)`` receives the format, and the library
  says who it is when it is first asked to decide.

In both, ``batsim_edc_take_decisions`` writes where its answer is, which stays the library's until it is
called again; it is copied at once. A library does not show which form it has: the caller names it.
"""

from __future__ import annotations

import contextlib
import ctypes
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gridsched.errors import ConfigurationError, ProtocolError
from gridsched.io import checksum
from gridsched.protocols.batsim5 import JSON, Handshake, read_init
from gridsched.protocols.sockets import LARGEST_MESSAGE

_LOADED: dict[Path, str] = {}
"""Checksums of the libraries that this process has loaded: what is loaded stays as it was."""


def open_library(place: str) -> ctypes.CDLL:
    """Load a library.

    Raises
    ------
    ConfigurationError
        If there is no such file, it is no shared library, or it has changed since this process loaded it.
    """
    path = Path(place).resolve()
    if not path.is_file():
        raise ConfigurationError(f"library {place}: there is no such file")
    found = checksum(path)
    if _LOADED.setdefault(path, found) != found:
        raise ConfigurationError(
            f"library {place}: has changed since this process loaded it, and a loaded library stays as it "
            "was; start a new process, or build it under another name"
        )
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        del _LOADED[path]
        raise ConfigurationError(f"library {place}: cannot be loaded ({error})") from None


def checksum_of(place: str) -> str:
    """SHA-256 of a library as this process has loaded it."""
    return _LOADED[Path(place).resolve()]


def function_of(place: str, library: ctypes.CDLL, name: str, returns: Any) -> Any:
    """Function of a library.

    Raises
    ------
    ConfigurationError
        If it has none of this name.
    """
    if not hasattr(library, name):
        raise ConfigurationError(f"library {place}: has no function {name}")
    function = getattr(library, name)
    function.restype = returns
    return function


class LibraryPeer:
    """A decision process in a library with the C interface of Batsim 5, which is called within this process.

    Parameters
    ----------
    place : str
        File of the library.
    abi : {"rc", "dev"}
        Form of the interface.

    Raises
    ------
    ConfigurationError
        If it cannot be loaded or lacks a function.
    """

    def __init__(self, place: str, abi: Handshake) -> None:
        self._place, self._abi = place, abi
        library = open_library(place)
        names = ("init", "take_decisions", "deinit")
        self._functions = {
            name: function_of(place, library, f"batsim_edc_{name}", ctypes.c_uint8) for name in names
        }
        self._reply, self._size = ctypes.c_void_p(), ctypes.c_uint32()
        self._written = ctypes.byref(self._reply), ctypes.byref(self._size)
        self._begun = False

    def exchange(self, message: bytes) -> bytes:
        """Its answer to a message; to the first one as it would come on a socket.

        Raises
        ------
        ProtocolError
            If it returns an error, or an answer that cannot be.
        """
        if not self._begun:
            return self._begin(read_init(message, self._abi))
        return self._answer("take_decisions", message)

    def _begin(self, data: bytes) -> bytes:
        """Initialise it."""
        if self._abi == "dev":
            self._call("init", data, JSON)
            self._begun = True
            return b""
        flags = ctypes.c_uint32(0)
        hello = self._answer("init", data, ctypes.byref(flags))
        self._begun = True
        return struct.pack("=I", flags.value) + hello

    def _answer(self, name: str, message: bytes, *more: Any) -> bytes:
        """What a function writes as its answer."""
        self._reply.value, self._size.value = 0, 0
        self._call(name, message, *more, *self._written)
        address, size = self._reply.value or 0, self._size.value
        if not address or not 0 < size <= LARGEST_MESSAGE:
            raise ProtocolError(
                f"library {self._place}: the answer of batsim_edc_{name} has {size:,} bytes at address "
                f"{address:#x}; at most {LARGEST_MESSAGE:,} can be read"
            )
        return ctypes.string_at(address, size)

    def _call(self, name: str, message: bytes, *arguments: Any) -> None:
        """Call a function with a message, its size and more."""
        code = self._functions[name](message, len(message), *arguments)
        if code:
            raise ProtocolError(f"library {self._place}: batsim_edc_{name} returned {code}")

    def close(self) -> None:
        """Deinitialise it, if it was initialised."""
        if self._begun:
            self._begun = False
            code = self._functions["deinit"]()
            if code:
                raise ProtocolError(f"library {self._place}: batsim_edc_deinit returned {code}")


@contextlib.contextmanager
def loaded(place: str, abi: Handshake) -> Iterator[LibraryPeer]:
    """A decision process in a library for as long as it is needed, see `LibraryPeer`."""
    peer = LibraryPeer(place, abi)
    try:
        yield peer
    except BaseException:
        with contextlib.suppress(ProtocolError):
            peer.close()
        raise
    peer.close()
