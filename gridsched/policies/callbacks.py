"""Users' own functions, called by the kernels: checked, compiled and loaded from files.

A function of a kind takes any of the kind's parameters by name, all whole numbers, and returns a number.
"""

from __future__ import annotations

import dis
import hashlib
import importlib.util
import inspect
import math
import re
import sys
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
        function: Function = load_from_file(self.what, location, "function", inspect.isfunction)
        self.parameters_of(function)
        return function

    def named(self, function: Function) -> str:
        """Kind and name of a function, for messages."""
        return f"{self.what} {getattr(function, '__name__', repr(function))}"

    def not_a_number(self, function: Function, found: str) -> ConfigurationError:
        """What is said of a function that gives no number."""
        return ConfigurationError(f"{self.named(function)}: not a number for {found}; return a finite float")

    def not_finite(self, function: Function, found: str) -> ConfigurationError:
        """What is said of a function that gives no number, or an infinite one."""
        return ConfigurationError(
            f"{self.named(function)}: not a finite number for {found}; return a finite number for every job"
        )

    def cannot_compile(self, function: Function, error: Exception) -> ConfigurationError:
        """What is said of a function that Numba refuses: where, and why."""
        cause = _without_context(str(error))
        line = function.__code__.co_firstlineno
        if not numba.config.DISABLE_JIT:
            line, cause = _diagnosis(function, cause)
        place = f"{function.__code__.co_filename}:{line}"
        return ConfigurationError(
            f"{self.named(function)}: Numba cannot compile it: {place}: {cause}; "
            "use numbers and functions of math only"
        )


def _without_context(message: str) -> str:
    """The cause in what Numba says, which begins with how far it came."""
    lines = [line.strip() for line in message.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("Failed in", "During:"))]
    # paths of libraries are of no use
    return re.sub(r" from '[^']*'", "", kept[0]).rstrip(".") if kept else "unknown reason"


def _diagnosis(function: Function, cause: str) -> tuple[int, str]:
    """Line and cause of what keeps a function from being compiled, from compiling it alone."""
    line = function.__code__.co_firstlineno
    compiled = numba.njit(function, error_model="numpy")
    try:
        compiled.compile((types.int64,) * len(_parameters(function)))
    except Exception as error:
        cause = _without_context(str(error))
        places = re.findall(r'File "[^"]*", line (\d+)', str(error))
        steps = [step for step in dis.get_instructions(function) if f"'{step.argval}'" in cause]
        places += [step.positions.lineno for step in steps if step.positions is not None]
        return next((int(each) for each in places if each is not None), line), cause
    (result,) = compiled.nopython_signatures
    if not isinstance(result.return_type, types.Number | types.Boolean):
        cause = f"it returns {result.return_type}, not a number"
    return line, cause


@cache
def _parameters(function: Function) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


@cache
def _compile(kind: Kind, function: Function) -> Any:
    names = kind.parameters_of(function)
    # a division by zero gives infinity or NaN, as in NumPy: an error could not leave the kernel
    compiled = function if numba.config.DISABLE_JIT else numba.njit(function, error_model="numpy")
    # Numba knows no *args in callbacks; the source is made of names of the kind alone. No error can leave a
    # callback, the kernel would go on with 0: as NaN it is refused
    source = (
        f"def adapter({', '.join(kind.parameters)}):\n"
        f"    try:\n        return float(function({', '.join(names)}))\n"
        "    except Exception:\n        return nan"
    )
    namespace: dict[str, Any] = {"function": compiled, "nan": math.nan}
    exec(source, namespace)
    try:
        return compile_callback(namespace["adapter"], types.float64(*[types.int64] * len(kind.parameters)))
    except Exception as error:
        raise kind.cannot_compile(function, error) from None


def load_from_file(what: str, location: str, wanted: str, is_wanted: Callable[[Any], bool]) -> Any:
    """What a file of the user calls by a name, written as `path/to/file.py:name`.

    Parameters
    ----------
    what : str
        What it is for, in messages.
    location : str
        Its file and name.
    wanted : str
        What it has to be: "function" or "class", in messages.
    is_wanted : callable
        Whether something is that.

    Raises
    ------
    ConfigurationError
        If there is no such file or name, or the file fails to load.
    """
    path, separator, name = location.rpartition(":")
    if not separator or not name.isidentifier():
        raise ConfigurationError(f"{what} {location!r}: write it as path/to/file.py:{wanted}")
    if not Path(path).is_file():
        raise ConfigurationError(f"{what} {location!r}: there is no file {path}")
    module = _module_of(Path(path).resolve(), f"{what} {location!r}: {path}")
    found = getattr(module, name, None)
    if not is_wanted(found):
        remedy = "write one with def" if wanted == "function" else "derive one from gridsched.CustomScheduler"
        raise ConfigurationError(f"{what} {location!r}: {path} has no {wanted} {name}; {remedy}")
    return found


def _module_of(path: Path, said: str) -> Any:
    """Module of a file, as it is now; dataclasses want to find it by name."""
    named = f"gridsched_user_{path.stem}_{hashlib.sha256(bytes(path)).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(named, path)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{said} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[named] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(f"{said} fails to load: {error!r}") from error
    return module
