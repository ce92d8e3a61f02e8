"""Bundles of arrays that kernels hand on by reference.

Numba hands a named tuple of arrays on as a list of all their addresses, lengths and strides: some 300 numbers
at each call for the clusters of a grid, and most of what there is to compile is to take tuples apart and put
them together. A kernel puts its bundles into memory once, and its helpers are handed their address.

Only public interfaces of Numba are used.
"""

from __future__ import annotations

from typing import Any, TypeVar

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
    type_callable,
)

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

    @property
    def mangling_args(self) -> tuple[str, tuple[()]]:
        """A short name for functions in machine code, which Numba numbers; the full one has 2,000 letters."""
        return f"Reference.{self.bundle.instance_class.__name__}", ()


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
