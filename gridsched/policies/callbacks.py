"""Users' own functions, called by the kernels: checked, compiled and loaded from files.

A function of a kind takes any of the kind's parameters by name, all whole numbers, and returns a number.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import types

from gridsched.engine.jit import compile_callback
from gridsched.errors import ConfigurationError

Function = Callable[..., float]


@dataclass(frozen=True)
class Kind:
    """What functions of a kind may look at.

    Parameters
    ----------
    what : str
        Name of the kind in messages.
    parameters : tuple of str
        What a function may look at, in the order in which the kernels pass it.
    """

    what: str
    parameters: tuple[str, ...]

    def parameters_of(self, function: Function) -> tuple[str, ...]:
        """Names of a function's parameters.

        Raises
        ------
        ConfigurationError
            If it is not a plain function, or a parameter is not one of the kind's.
        """
        if not inspect.isfunction(function):
            raise ConfigurationError(f"{self.what} {function!r}: give a plain Python function")
        names = _parameters(function)
        unknown = [name for name in names if name not in self.parameters]
        if unknown:
            raise ConfigurationError(
                f"{self.named(function)}: unknown parameter {unknown[0]!r}; "
                f"a {self.what} may take {', '.join(self.parameters)}"
            )
        return names

    def compile(self, function: Function) -> Any:
        """Compiled function of all parameters of the kind, for the kernels; compiled once for each function.

        Raises
        ------
        ConfigurationError
            If the function cannot be compiled.
        """
        return _compile(self, function)

    def load(self, location: str) -> Function:
        """Function named as `path/to/file.py:function`.

        Raises
        ------
        ConfigurationError
            If there is no such file or function, or the file fails to load.
        """
        function = _load(self.what, location)
        self.parameters_of(function)
        return function

    def named(self, function: Function) -> str:
        """Kind and name of a function, for messages."""
        return f"{self.what} {getattr(function, '__name__', repr(function))}"

    def not_a_number(self, function: Function, found: str) -> ConfigurationError:
        """What is said of a function that gives no number."""
        return ConfigurationError(f"{self.named(function)}: not a number for {found}; return a finite float")

    def cannot_compile(self, function: Function, error: Exception) -> ConfigurationError:
        """What is said of a function that Numba refuses."""
        reason = next((line for line in str(error).splitlines() if line.strip()), "")
        return ConfigurationError(
            f"{self.named(function)}: Numba cannot compile it ({reason.strip()}); "
            "use numbers and functions of math only"
        )


@cache
def _parameters(function: Function) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


@cache
def _compile(kind: Kind, function: Function) -> Any:
    names = kind.parameters_of(function)
    # a division by zero gives infinity or NaN, as in NumPy: an error could not leave the kernel
    compiled = function if numba.config.DISABLE_JIT else numba.njit(function, error_model="numpy")
    # Numba knows no *args in callbacks; the source is made of names of the kind alone
    source = f"def adapter({', '.join(kind.parameters)}):\n    return float(function({', '.join(names)}))"
    namespace: dict[str, Any] = {"function": compiled}
    exec(source, namespace)
    try:
        return compile_callback(namespace["adapter"], types.float64(*[types.int64] * len(kind.parameters)))
    except numba.core.errors.NumbaError as error:
        raise kind.cannot_compile(function, error) from None


def _load(what: str, location: str) -> Function:
    path, separator, name = location.rpartition(":")
    if not separator or not name.isidentifier():
        raise ConfigurationError(f"{what} {location!r}: write it as path/to/file.py:function")
    if not Path(path).is_file():
        raise ConfigurationError(f"{what} {location!r}: there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"gridsched_user_{Path(path).stem}", path)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{what} {location!r}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(f"{what} {location!r}: {path} fails to load: {error!r}") from error
    function = getattr(module, name, None)
    if not inspect.isfunction(function):
        raise ConfigurationError(f"{what} {location!r}: {path} has no function {name}; write one with def")
    return function
