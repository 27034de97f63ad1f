"""Operators by name, for tenon.ops: the namespaces, and the packets of overloads in them."""

from __future__ import annotations

import difflib
import importlib

from . import _C
from .arguments import check_module as _check_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._C import OpOverload, OpOverloadPacket
    from .types import Path

_namespaces: dict[str, Namespace] = {}


class Namespace:
    """The operators of one namespace. An operator is looked up at its first use, and is an attribute from then on."""

    _name: str

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        packet, grows = _find(self._name, name)
        if not grows:
            self.__dict__[name] = packet
        return packet

    def __dir__(self) -> list[str]:
        prefix = self._name + "::"
        names = (n[len(prefix) :].partition(".")[0] for n in _C.dispatch.operators() if n.startswith(prefix))
        return sorted(set(names))

    def __repr__(self) -> str:
        return f"<operators of {self._name}>"


def overload(full_name: str) -> Any:
    """The operator "ns::name.overload"."""
    ns, _, name = full_name.partition("::")
    base, _, which = name.partition(".")
    return getattr(getattr(namespace(ns), base), which or "default")


def function_of(name: str) -> Any:
    """What calls the operators aten::NAME; None where there are none, or Python has no function for them."""
    named = any(op.partition(".")[0] == f"aten::{name}" for op in _C.dispatch.operators())
    return vars(_C).get(name) if named else None


def _rank(overload: str) -> tuple[Any, ...]:
    # A number fits a Tensor argument that accepts numbers, but a tensor of no dimensions fits a Scalar too.
    return (overload != "", not overload.startswith("Tensor"), overload)


def _find(ns: str, name: str) -> tuple[OpOverloadPacket, bool]:
    """The packet of ns::name, and whether it may get further overloads: derivatives are made at their first use.

    Raises AttributeError, which suggests similar names, if there is none.
    """
    full = f"{ns}::{name}"
    operators = _C.dispatch.operators()

    def named(all_names):
        return [o.partition(".")[2] for o in all_names if o == full or o.startswith(full + ".")]

    overloads = named(operators)
    everything = overloads if overloads else named(_C.dispatch.all_operators())
    grows, overloads = everything is not overloads, everything
    if not overloads:
        prefix = ns + "::"
        names = {o[len(prefix) :].partition(".")[0] for o in operators if o.startswith(prefix)}
        near = difflib.get_close_matches(name, names, n=3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        if not names:
            hint = f"; no operator is declared in namespace {ns!r}"
        raise AttributeError(f"tenon.ops.{ns} has no operator {name!r}{hint}")
    overloads.sort(key=_rank)
    found = {o or "default": _C._op(f"{full}.{o}" if o else full) for o in overloads}
    packet = _C._op_packet(tuple(found.values()))
    for overload, op in found.items():
        setattr(packet, overload, op)
        op.overloadpacket = packet
    return packet, grows


def namespace(name: str) -> Namespace:
    """The operators of a namespace, whether or not anybody has declared one."""
    return _namespaces.setdefault(name, Namespace(name))


def find_operator(full_name: str) -> OpOverload:
    """The operator "ns::name" or "ns::name.overload"; without an overload the first one. Raises LookupError with the way out."""
    ns, _, name = full_name.partition("::")
    if not ns or not name:
        raise LookupError(f"'{full_name}' is not an operator's name, expected 'namespace::name'")
    if ns == "tenon":
        importlib.import_module(f"{__package__}.ops")  # which registers them
    base, _, overload = name.partition(".")
    try:
        packet = getattr(namespace(ns), base)
    except AttributeError as e:
        raise LookupError(f"{e}; an operator is there once the module that registers it is imported") from None
    overload = overload or packet.overloads()[0]
    if overload not in packet.overloads():
        raise LookupError(f"{ns}::{base} has no overload '{overload}'; it has {', '.join(packet.overloads())}")
    found: OpOverload = getattr(packet, overload)
    return found


def forget(ns: str, name: str) -> None:
    """Has an operator looked up again, because it was declared or removed."""
    if ns in _namespaces:
        _namespaces[ns].__dict__.pop(name, None)


def load_library(path: Path) -> None:
    """Loads a shared library and commits its registrations. If that fails, raises and changes nothing."""
    import os

    file = os.fsdecode(path)
    if not file:
        raise _C.FileError("load_library: path must name a shared library, got ''")
    _C._load_library(file)


_check_module(globals())
