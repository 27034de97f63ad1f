"""PyTorch's names for what tenon.dispatch does: `_C._dispatch_*`, DispatchKey and DispatchKeySet, so that its commands run
with `import tenon as torch`. They are found through `_C` and `tenon` when first asked for.

A key is a str here, so that every function takes it and its name alike.
"""

from .. import _C, dispatch, library, namespaces
from ..dispatch import Cell, DispatchKeySet

_d = _C.dispatch
#: Keys as PyTorch spells them, where Tenon prints another name.
_SPELLINGS = {"CompositeImplicitAutograd": "CompositeImplicit", "CompositeExplicitAutograd": "CompositeExplicit"}


class _KeyType(type):
    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return cls(name)
        except ValueError as error:
            raise AttributeError(f"DispatchKey has no {name!r}: {error}") from None

    def __iter__(cls):
        return iter([cls(name) for name in (*dispatch.keys(), *_SPELLINGS.values(), "Autograd")])


class DispatchKey(str, metaclass=_KeyType):
    """A dispatch key: `DispatchKey.CPU`, `DispatchKey("AutogradCPU")`. Raises ValueError for what is no key."""

    __slots__ = ()

    def __new__(cls, name):
        return str.__new__(cls, dispatch.key_parse(str(name)))

    @property
    def name(self):
        """The name, as tables print it."""
        return str(self)

    def __repr__(self):
        return f"<DispatchKey.{str(self)}>"


def _known(name):
    """Whether there is such an operator; `find` in PyTorch is silent about others."""
    full = name if "::" in name else "aten::" + name
    try:
        _d.schema(full)
    except NotImplementedError:
        return full in dispatch.find_dangling_impls()
    return True


def _existing(name):
    if not _known(name):
        raise RuntimeError(f"operator {name} does not exist")
    return name


def _dispatch_key_set(tensor):
    """The keys that a tensor adds to a call, as text."""
    return str(DispatchKeySet(tensor))


def _dispatch_keys(tensor):
    """The keys that a tensor adds to a call."""
    return DispatchKeySet(tensor)


def _dispatch_dump(name):
    """An operator's registrations as text; empty for an unknown name."""
    return _d.dump(name) if _known(name) else ""


def _dispatch_dump_table(name):
    """An operator's computed table as text; empty for an unknown name."""
    return dispatch.dump_table(name) if _known(name) and name not in dispatch.find_dangling_impls() else ""


def _dispatch_check_invariants(name):
    """Raises if what is known of an operator does not agree with itself."""
    if _known(name):
        dispatch.check_invariants(name)


def _dispatch_check_all_invariants():
    """The same for every operator."""
    dispatch.check_invariants()


def _dispatch_find_dangling_impls():
    """The registrations for undeclared operators: a text for each."""
    return [_d.dump(name) for name in dispatch.find_dangling_impls()]


def _dispatch_get_all_op_names():
    """Full names of all operators."""
    return dispatch.operators()


def _dispatch_find_schema_or_throw(name, overload_name):
    """The operator, as an object with `schema()`; raises for an unknown name."""
    return _OperatorHandle(f"{name}.{overload_name}" if overload_name else name)


class _OperatorHandle:
    def __init__(self, name):
        self._text = _d.schema(name)
        self._name = name

    def schema(self):
        """The text of the schema."""
        return self._text


def _dispatch_call_boxed(handle, *args, **kwargs):
    """Calls the operator of _dispatch_find_schema_or_throw."""
    return namespaces.overload(handle._name)(*args, **kwargs)


def _dispatch_has_kernel(name):
    """Whether there is an operator of this name."""
    return _known(name)


def _dispatch_has_kernel_for_dispatch_key(name, dispatch):
    """Whether a kernel is registered for the key; a built-in one counts for each device whose dense tensors it serves."""
    return _d.has_kernel(_existing(name), dispatch) or _serves_dense(name, dispatch)


def _serves_dense(name, key):
    cells = {cell[0]: cell[1] for cell in _d.computed_table(name)}
    key = _d.key_parse(key)
    dense = key in [k for _, k in _d.backends()] and _d.has_kernel(name, "CompositeDense")
    return dense and cells[key] == "default backend kernel"


def _dispatch_has_kernel_for_any_dispatch_key(name, dispatch_set):
    """The same for one of the keys of a set."""
    return any(_dispatch_has_kernel_for_dispatch_key(name, key) for key in dispatch_set.names())


def _dispatch_has_computed_kernel_for_dispatch_key(name, dispatch):
    """Whether a call that arrives at the key finds a kernel."""
    return _d.has_kernel_for_key(_existing(name), dispatch)


def _dispatch_get_computed_kernel_for_dispatch_key(name, dispatch):
    """The cell of the operator's table: key, source, file and line."""
    (cell,) = [c for c in _d.computed_table(_existing(name)) if c[0] == _d.key_parse(dispatch)]
    if cell[1] == "missing":
        raise RuntimeError(f"{name} has no kernel for dispatch key {dispatch}")
    return Cell(*cell)


def _dispatch_kernel_for_dispatch_key_is_fallthrough(name, dispatch):
    """Whether calls at the key fall through to the next."""
    return _d.is_fallthrough(_existing(name), dispatch)


def _dispatch_has_backend_fallback(dispatch):
    """Whether the key has a fallback."""
    return _d.has_fallback(dispatch)


def _dispatch_get_registrations_for_dispatch_key(dispatch_key=""):
    """Operators with a kernel for the key; all of them without one."""
    return _d.operators_with_kernel(dispatch_key) if dispatch_key else _d.operators()


def _dispatch_print_registrations_for_dispatch_key(dispatch_key=""):
    """Prints them."""
    print("\n".join(_dispatch_get_registrations_for_dispatch_key(dispatch_key)))


def _dispatch_key_name(dispatch):
    """A key's name."""
    return _d.key_parse(dispatch)


def _dispatch_key_parse(dispatch):
    """The key of a name."""
    return DispatchKey(dispatch)


def _parse_dispatch_key(key):
    """The key of a name, or None."""
    try:
        return DispatchKey(key)
    except ValueError:
        return None


def _dispatch_key_for_device(device_type):
    """The name of a device's dense key; "privateuseone" means the first device that was loaded."""
    if device_type.startswith("privateuseone"):
        return _d.key_parse("PrivateUse1")
    return _d.key_for_device(device_type)


def _dispatch_is_alias_key(dispatch):
    """Whether the key is an alias of several."""
    return _d.is_alias_key(dispatch)


def _dispatch_is_included_in_alias(a, b):
    """Whether a kernel registered for the alias `b` serves the key `a` too."""
    return _d.is_included_in_alias(a, b)


def _dispatch_num_backends():
    """How many backends there are, meta included."""
    return len(_d.backends())


def _dispatch_keyset_to_string(keyset):
    """A set as text."""
    return str(keyset)


def _dispatch_keyset_full():
    """Every key that a call may arrive at."""
    return DispatchKeySet(*_d.used_keys())


def _dispatch_keyset_full_after(t):
    """Those below a key."""
    return _dispatch_keyset_full().below(t)


def _dispatch_get_backend_keyset_from_autograd(dispatch):
    """The dense key below a backend's Autograd key."""
    return DispatchKeySet(_d.key_parse(dispatch).removeprefix("Autograd"))


def _dispatch_isTensorSubclassLike(tensor):
    """Whether calls of a tensor go to Python: never."""
    return False


def _dispatch_tls_local_include_set():
    """What every call of this thread has."""
    return _d.included_keys()


def _dispatch_tls_local_exclude_set():
    """What no call of this thread has."""
    return _d.excluded_keys()


def _dispatch_tls_is_dispatch_key_included(dispatch):
    """Whether every call of this thread has a key."""
    return dispatch in _d.included_keys()


def _dispatch_tls_is_dispatch_key_excluded(dispatch):
    """Whether no call of this thread has a key's functionality."""
    return not (DispatchKeySet(dispatch) - _d.excluded_keys()).names()


def _dispatch_tls_set_dispatch_key_included(dispatch, desired):
    """Adds a key to every call of this thread, or no longer."""
    before = _d.included_keys()
    others = [name for name in before.names() if name not in DispatchKeySet(dispatch)]
    _d._set_included(before.add(dispatch) if desired else DispatchKeySet(*others))


def _dispatch_tls_set_dispatch_key_excluded(dispatch, desired):
    """Takes a key's functionality from every call of this thread, or no longer."""
    keys = DispatchKeySet(dispatch)
    _d._set_excluded(_d.excluded_keys() | keys if desired else _d.excluded_keys() - keys)


class _DispatchModule:
    """A library whose methods PyTorch calls define, impl and fallback_fallthrough."""

    def __init__(self, kind, name, dispatch):
        self._library, self._key = library.Library(name, kind, dispatch), dispatch

    def define(self, schema, alias=""):
        """Declares an operator; returns its name."""
        return self._library.define(schema, alias)

    def def_(self, schema, alias=""):
        """Declares an operator; returns the library."""
        self._library.define(schema, alias)
        return self

    def impl(self, name, dispatch, func):
        """Registers a kernel."""
        self._library.impl(name, func, dispatch)


def _dispatch_library(kind, name, dispatch, file="/dev/null", linenum=0):
    """A library, whose registrations go with it."""
    return _DispatchModule(kind, name, dispatch)


#: The backends without an Autograd key of their own: none.
_dispatch_autogradother_backends = DispatchKeySet()


def find(name):
    """What `_C` has under a name that only PyTorch uses; None for any other name."""
    if name in ("DispatchKey", "DispatchKeySet") or name == "_parse_dispatch_key" or name.startswith("_dispatch_"):
        return globals().get(name)
    return None


def names():
    """All such names."""
    return sorted(n for n in globals() if find(n) is not None)
