"""Helpers that exist twice, for two kinds of a bundle of arrays: a kernel calls the one for what it is given.

What is called is found out by the types of the arguments, when a kernel is compiled: it knows nothing of the
other helper then. With the JIT off it is found out at each call.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from numba import types
from numba.core.imputils import lower_constant
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_getattr_generic, models, register_model, typeof_impl

from gridsched.engine.reference import Reference


class TypeDispatch:
    """Two helpers of one name: `other` where some argument is an `other_kind`, else `plain`."""

    def __init__(self, plain: Any, other: Any, other_kind: type) -> None:
        self.plain, self.other, self.other_kind = plain, other, other_kind

    def __call__(self, *arguments: Any) -> Any:
        """Call the one for these arguments from Python."""
        known = any(isinstance(argument, self.other_kind) for argument in arguments)
        return (self.other if known else self.plain)(*arguments)

    def of(self, arguments: Any) -> Any:
        """The type of the one for arguments of these types."""
        known = any(
            isinstance(each, Reference) and each.bundle.instance_class is self.other_kind
            for each in arguments
        )
        return types.Dispatcher(self.other if known else self.plain)


class ModuleDispatch:
    """Two modules that say the same of two kinds of bundles: its attributes are their functions.

    `both.name(a)` calls `other.name` where some argument is an `other_kind`, else `plain.name`.
    """

    def __init__(self, plain: ModuleType, other: ModuleType, other_kind: type) -> None:
        self.plain, self.other, self.other_kind = plain, other, other_kind

    def __getattr__(self, name: str) -> TypeDispatch:
        return TypeDispatch(getattr(self.plain, name), getattr(self.other, name), self.other_kind)


class DispatchType(types.Callable):
    """Type of two helpers of one name."""

    def __init__(self, both: TypeDispatch) -> None:
        self.both = both
        super().__init__(f"Either({both.plain.__module__}.{both.plain.__name__})")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Signature of the helper for arguments of these types."""
        return self.both.of(args).get_call_type(context, args, kws)

    def get_impl_key(self, sig: Any) -> Any:
        """Compiled code of the helper of a signature."""
        return self.both.of(sig.args).get_impl_key(sig)

    def get_call_signatures(self) -> Any:
        """No signatures before there are arguments."""
        return (), True


class ModulesType(types.Type):
    """Type of two modules."""

    def __init__(self, both: ModuleDispatch) -> None:
        self.both = both
        super().__init__(f"Either({both.plain.__name__})")


register_model(DispatchType)(models.OpaqueModel)
register_model(ModulesType)(models.OpaqueModel)


@typeof_impl.register(TypeDispatch)
def _type_of(both: TypeDispatch, _: Any) -> DispatchType:
    return DispatchType(both)


@typeof_impl.register(ModuleDispatch)
def _type_of_modules(both: ModuleDispatch, _: Any) -> ModulesType:
    return ModulesType(both)


@infer_getattr
class _Functions(AttributeTemplate):
    """Types of the functions of two modules."""

    key = ModulesType

    def generic_resolve(self, modules: ModulesType, name: str) -> DispatchType:
        """Type of the functions of a name."""
        return DispatchType(getattr(modules.both, name))


@lower_constant(DispatchType)
@lower_constant(ModulesType)
def _nothing(context: Any, _: Any, __: Any, ___: Any) -> Any:
    """Nothing is stored of it."""
    return context.get_dummy_value()


@lower_getattr_generic(ModulesType)
def _no_value(context: Any, _: Any, __: Any, ___: Any, ____: Any) -> Any:
    """Nor of a function."""
    return context.get_dummy_value()
