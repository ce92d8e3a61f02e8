"""Schedulers in shared libraries: functions of C that kernels call by address, see `gridsched.h`."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.protocols.libraries import checksum_of, function_of, open_library
from gridsched.systems.custom.compiled import SIGNATURE, CompiledDecision
from gridsched.systems.custom.scheduler import CustomScheduler

ABI = 1
"""`GRIDSCHED_ABI` of the header that this release has."""

HEADER = Path(__file__).parents[2] / "protocols" / "gridsched.h"
"""The header."""


class LibraryDecision(CompiledDecision, types.WrapperAddressProtocol):  # type: ignore[misc] # numba has no types
    """The function `gridsched_decide` of a library."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._address = ctypes.cast(function, ctypes.c_void_p).value or 0

    def __wrapper_address__(self) -> int:
        """Address of the function, for kernels."""
        return self._address

    def signature(self) -> Any:
        """What the function takes, for kernels."""
        return SIGNATURE

    @property
    def callback(self) -> Any:
        """The decision, which kernels take as it is."""
        return self

    def _call(self, now: int, *arrays: NDArray[Any]) -> int:
        """Call the function without a kernel."""
        given = [each for array in arrays for each in (ctypes.c_void_p(array.ctypes.data), len(array))]
        return int(self.function(ctypes.c_int64(now), *given))


@dataclass(frozen=True)
class LibraryScheduler(CustomScheduler):
    """A scheduler in a shared library, in C, C++, Rust or what else C can call.

    The header `gridsched.h` says what the library has; ``gridsched serve --header`` prints where it is. The
    library is code, which runs within this process.

    Parameters
    ----------
    library : str
        File of the shared library.
    parameters : sequence of float
        Parameters that it is given.

    Raises
    ------
    ConfigurationError
        If there is no such file, it is no shared library, lacks a function, was compiled with another version
        of the header or refuses its parameters.

    Examples
    --------
    >>> import gridsched as gs
    >>> try:
    ...     gs.simulate(gs.synthesise("M3", jobs=20, seed=1), 1152, gs.LibraryScheduler("libmissing.so"))
    ... except gs.GridschedError as error:
    ...     print(error)
    library libmissing.so: there is no such file
    """

    library: str
    parameters: tuple[float, ...] = ()

    @property
    def label(self) -> str:
        """Name of the library."""
        return name_of(self.library)

    @property
    def files(self) -> set[str]:
        """Files of the user that it is made of."""
        return {self.library} if Path(self.library).is_file() else set()

    def made_by(self) -> dict[str, str]:
        """Name and checksum of the library."""
        return {
            "scheduler_source": Path(self.library).name,
            "scheduler_checksum": checksum_of(self.library),
        }

    @property
    def decision(self) -> LibraryDecision:
        """Function of the library, which begins a simulation."""
        library = _load(self.library)
        decide = _function(self.library, library, "gridsched_decide")
        if hasattr(library, "gridsched_begin"):
            begin = _function(self.library, library, "gridsched_begin")
            numbers = self.numbers()
            refused = begin(ctypes.c_void_p(numbers.ctypes.data), ctypes.c_int64(len(numbers)))
            if refused:
                raise ConfigurationError(
                    f"library {self.library}: gridsched_begin refuses the parameters "
                    f"{numbers.tolist()} with {refused}"
                )
        return LibraryDecision(decide)

    def numbers(self) -> NDArray[np.float64]:
        """Parameters, as the library gets them."""
        return np.array(self.parameters, np.float64)


def name_of(place: str) -> str:
    """What a library is called: its file, without what every library has."""
    return Path(place).name.partition(".")[0].removeprefix("lib")


def _load(place: str) -> ctypes.CDLL:
    """Library of a file, after a look at its version."""
    library = open_library(place)
    version = int(_function(place, library, "gridsched_abi")())
    if version != ABI:
        raise ConfigurationError(
            f"library {place}: was compiled with version {version} of gridsched.h, this is {ABI}; "
            f"compile it with {HEADER}"
        )
    return library


def _function(place: str, library: ctypes.CDLL, name: str) -> Any:
    """Function of a library that returns a number of 64 bits."""
    return function_of(place, library, name, ctypes.c_int64)
