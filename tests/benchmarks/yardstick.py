"""The C++ yardstick: compiled, loaded, and called with arrays."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SOURCE = Path(__file__).with_name("yardstick.cpp")
OPTIONS = ("-O3", "-march=native", "-std=c++17", "-shared", "-fPIC")


def compiler() -> str | None:
    """The C++ compiler: `CXX`, else the first of g++, clang++ and c++ that is there."""
    for name in (os.environ.get("CXX", ""), "g++", "clang++", "c++"):
        path = shutil.which(name) if name else None
        if path:
            return path
    return None


class Yardstick:
    """Functions of `yardstick.cpp`."""

    def __init__(self, compiler: str, folder: Path) -> None:
        library = folder / "yardstick.so"
        subprocess.run([compiler, *OPTIONS, str(SOURCE), "-o", str(library)], check=True)
        self._library = ctypes.CDLL(str(library))

    def schedule(self, variant: str, jobs: NDArray[Any], processors: int) -> NDArray[np.int64]:
        """Start times; the variants are fcfs, easy_plain and easy_blocks."""
        starts = np.empty(len(jobs), np.int64)
        function = self._library[variant]
        function.restype = None
        function(_data(jobs), ctypes.c_size_t(len(jobs)), ctypes.c_int64(processors), _data(starts))
        return starts


def _data(array: NDArray[Any]) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)
