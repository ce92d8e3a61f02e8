"""Bundles of arrays that kernels hand on by reference.

Numba hands a named tuple of arrays on as a list of all their addresses, lengths and strides: some 300 numbers
at each call for the clusters of a grid, and most of what there is to compile is to take tuples apart and put
them together. A kernel puts its bundles into memory once, and its helpers are handed their address.

A bundle for many short calls from Python is `pinned`: it is taken apart once, not at each call.

Only public interfaces of Numba are used.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
    type_callable,
    typeof_impl,
    unbox,
)

from gridsched.engine.jit import jit

Bundle = TypeVar("Bundle", bound=tuple[Any, ...])


def by_reference(bundle: Bundle) -> Bundle:
    """The same named tuple, such that compiled helpers are handed its address.

    The address is good until the function that asked for it returns, and until it asks again at the same
    place: a helper must not return it, nor a loop keep it. Without compilation this is the tuple itself.
    """
    return bundle


class Reference(types.Type):
    """Type of a named tuple that is known by its address."""

    def __init__(self, bundle: Any) -> None:
        self.bundle = bundle
        super().__init__(f"Reference({bundle})")
        self._short = (
            f"{bundle.instance_class.__name__}.{hashlib.sha256(self.name.encode()).hexdigest()[:16]}"
        )

    @property
    def mangling_args(self) -> tuple[str, tuple[()]]:
        """A short name for functions in machine code; the full one has 2,000 letters.

        It has to tell types apart: of functions with the same name and number, one compiled here and one from
        the cache, the process has only the first.
        """
        return self._short, ()


@register_model(Reference)
class _Model(models.PrimitiveModel):
    """An address."""

    def __init__(self, manager: Any, reference: Reference) -> None:
        super().__init__(manager, reference, ir.PointerType(manager[reference.bundle].get_value_type()))


@type_callable(by_reference)
def _type_by_reference(_: Any) -> Any:
    def type_of(bundle: Any) -> Any:
        return bundle if isinstance(bundle, Reference) else Reference(bundle)

    return type_of


@lower_builtin(by_reference, types.BaseTuple)
def _store(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
    """Put the tuple into the memory of the function."""
    return cgutils.alloca_once_value(builder, arguments[0])


@lower_builtin(by_reference, Reference)
def _keep(_: Any, __: Any, ___: Any, arguments: Any) -> Any:
    """A reference already."""
    return arguments[0]


def _is_nested(member: Any) -> bool:
    """Whether a field is a bundle itself, to be referred to."""
    return isinstance(member, types.BaseNamedTuple)


@infer_getattr
class _Fields(AttributeTemplate):
    """Types of the fields."""

    key = Reference

    def generic_resolve(self, reference: Reference, name: str) -> Any:
        """Type of a field, None if there is no such field."""
        if name not in reference.bundle.fields:
            return None
        member = reference.bundle[reference.bundle.fields.index(name)]
        return Reference(member) if _is_nested(member) else member


@lower_getattr_generic(Reference)
def _read(context: Any, builder: Any, reference: Reference, address: Any, name: str) -> Any:
    """Read a field."""
    index = reference.bundle.fields.index(name)
    field = cgutils.gep_inbounds(builder, address, 0, index)
    member = reference.bundle[index]
    if _is_nested(member):
        return field
    return impl_ret_borrowed(context, builder, member, builder.load(field))


# --- bundles that stay in one place ---------------------------------------------------------------

_WORDS = 16
"""Machine words that are enough for each field: an array of five dimensions has 15."""


class Pinned:
    """A bundle that kernels are handed by address from Python: a call costs what it costs for one number.

    Its arrays live as long as it does. Kernels must not keep arrays of it.
    """

    def __init__(self, bundle: Any, like: Pinned | None = None) -> None:
        self.bundle = bundle
        # Numba takes long to find out the type of a bundle
        self._numba_type_: Reference = Reference(numba.typeof(bundle)) if like is None else like._numba_type_
        self._memory = np.zeros(_WORDS * _count_fields(bundle), np.int64)
        self.address = int(self._memory.ctypes.data)
        _pin(bundle, self.address)


def pinned(bundle: Any, like: Any = None) -> Any:
    """The bundle, such that kernels are handed its address; without compilation the bundle itself.

    `like` is a pinned bundle of the same types, such as this one before it grew.
    """
    return bundle if numba.config.DISABLE_JIT else Pinned(bundle, like)


def _count_fields(bundle: Any) -> int:
    """Fields of a bundle, and of bundles in it."""
    return sum(_count_fields(each) if isinstance(each, tuple) else 1 for each in bundle)


def _without_owners(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The same value with arrays that count no references: Python keeps them."""
    if isinstance(kind, types.Array):
        array = cgutils.create_struct_proxy(kind)(context, builder, value=value)
        for name in ("meminfo", "parent"):
            setattr(array, name, cgutils.get_null_value(getattr(array, name).type))
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for index, member in enumerate(kind):
            part = _without_owners(context, builder, member, builder.extract_value(value, index))
            value = builder.insert_value(value, part, index)
    return value


@intrinsic
def _write(typing_context: Any, bundle: Any, address: Any) -> Any:
    """Write a bundle to an address."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        value = _without_owners(context, builder, bundle, arguments[0])
        builder.store(value, builder.inttoptr(arguments[1], ir.PointerType(value.type)))
        return context.get_dummy_value()

    return types.void(bundle, types.int64), generate


@jit
def _pin(bundle: Any, address: int) -> None:
    """Write a bundle to an address."""
    _write(bundle, address)


@typeof_impl.register(Pinned)
def _type_of_pinned(pinned_bundle: Pinned, _: Any) -> Reference:
    return pinned_bundle._numba_type_


@unbox(Reference)
def _address_of(reference: Reference, pinned_bundle: Any, c: Any) -> NativeValue:
    """The address that is handed over."""
    number = c.pyapi.object_getattr_string(pinned_bundle, "address")
    address = c.pyapi.long_as_longlong(number)
    c.pyapi.decref(number)
    return NativeValue(c.builder.inttoptr(address, c.context.get_value_type(reference)))
