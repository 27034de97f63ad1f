"""Custom operators: declare them, register kernels, fakes and derivatives from Python.

    lib = tenon.library.Library("myops", "DEF")
    lib.define("scale(Tensor x, float by) -> Tensor")
    lib.impl("scale", lambda x, by: x * by, "CPU")
    tenon.ops.myops.scale(tenon.ones(3), 2.0)

Registrations of a Library are removed when it is destroyed, or at the end of its `with` block; older kernels then run again.
The names are PyTorch's (torch.library). docs/custom-operators.md is the guide.
"""

from __future__ import annotations

import inspect
import sys
import weakref

from . import _C, namespaces
from ._C import OpOverload, OpOverloadPacket
from ._names.absent import add_module_getattr
from .arguments import check_module as _check_module, describe
from .infer_schema import infer_schema
from .tags import names_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeVar, overload

    from .tags import Tagged
    from .types import Op

    Fn = TypeVar("Fn", bound=Callable[..., Any])
else:

    def overload(function):  # typing's, which nothing else needs when a program runs
        return function

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "impl",
    "infer_schema",
    "opcheck",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_not_differentiable",
]

#: What custom_op returns: the operator itself, which also registers: op.register_fake and so on.
CustomOpDef = OpOverload


def fallthrough_kernel() -> None:
    """Passed to `impl` in place of a kernel: calls at the key fall through to the next key."""
    raise NotImplementedError("fallthrough_kernel() stands for no kernel and cannot be called")


def _caller() -> tuple[str, int]:
    """File and line of the code outside this module, and outside PyTorch's names for it, that registers."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__") in (__name__, f"{__package__}.arguments", f"{__package__}._names.pytorch_dispatch") and frame.f_back:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _split(full_name: str) -> tuple[str, str]:
    """("ns", "name.overload")"""
    if not isinstance(full_name, str):
        raise TypeError(f"qualname must be a str, 'namespace::name', got {describe(full_name)}")
    ns, scope, name = full_name.partition("::")
    if not scope or not ns or not name:
        raise ValueError(f"'{full_name}' is not an operator's name, expected 'namespace::name'")
    return ns, name


def _full_name(function: str, argument: str, op: Op) -> str:
    """The name of an operator that `function` was given."""
    if isinstance(op, OpOverload):
        return op._name
    if isinstance(op, OpOverloadPacket):
        return op._qualified_op_name
    if isinstance(op, str):
        return op
    raise TypeError(f"{function}: {argument} must be an operator or its name, got {describe(op)}")


def _describe(function: Any) -> str:
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name


def _check_kernel(schema: Any, function: Callable[..., Any], with_keyset: bool = False) -> None:
    """Raises TypeError, which names the schema's argument that the kernel does not take."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # written in C, without a signature
        return
    text, _, arguments, _ = schema

    def refuse(what):
        raise TypeError(f"{_describe(function)} does not fit `{text}`: {what}")

    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if with_keyset and positional:
        positional = positional[1:]
    any_positional = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    any_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)
    names = [name for name, _, keyword_only, _, _ in arguments if not keyword_only]
    for i, name in enumerate(names):
        if i < len(positional):
            if positional[i].name != name and positional[i].name in names:
                refuse(f"its parameter {i} is called `{positional[i].name}`, but argument {i} is `{name}`")
        elif not any_positional:
            refuse(f"it takes no argument `{name}`")
    by_name = {p.name: p for p in positional[len(names) :] if p.kind is p.POSITIONAL_OR_KEYWORD}
    by_name.update((p.name, p) for p in parameters if p.kind is p.KEYWORD_ONLY)
    keywords = [name for name, _, keyword_only, _, _ in arguments if keyword_only]
    for name in keywords:
        if name not in by_name and not any_keyword:
            refuse(f"it takes no keyword argument `{name}`")
    left = [*positional[len(names) :], *(p for p in parameters if p.kind is p.KEYWORD_ONLY)]
    for p in left:
        if p.default is p.empty and p.name not in keywords:
            refuse(f"its parameter `{p.name}` is no argument of the schema and has no default")


# Kernels that came before their operator was declared: checked when it is. By full name.
_early: dict[str, list[Any]] = {}


def _destroy(handle: Any, names: set[str]) -> None:
    handle.destroy()
    for full_name in names:
        early = [e for e in _early.pop(full_name, []) if e[0] is not handle]
        if early:
            _early[full_name] = early
        ns, name = _split(full_name)
        namespaces.forget(ns, name.partition(".")[0])


class Library:
    """Registers under one namespace, until it is destroyed.

    `kind` is "DEF" (declares the operators of a namespace; one for each namespace), "FRAGMENT" (declares further ones) or
    "IMPL" (kernels only; for `dispatch_key` unless `impl` is given another).
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._handle = _C._Library(ns, kind, dispatch_key, *_caller())
        self._names: set[str] = set()
        self._finalizer = weakref.finalize(self, _destroy, self._handle, self._names)
        self._finalizer.atexit = False

    def define(self, schema: str, alias_analysis: str = "", *, tags: Tagged = ()) -> str:
        """Declares an operator: `name.overload(arguments) -> returns`. Returns its name.

        `tags` are members of tenon.Tag or their names. Raises ValueError for one that there is not, or that contradicts the
        schema.
        """
        names = names_of("Library.define", tags)
        parsed = _C._parse_schema(schema)
        full_name = parsed[1] if "::" in parsed[1] else f"{self.ns}::{parsed[1]}"
        for _, function, with_keyset in _early.get(full_name, ()):
            _check_kernel(parsed, function, with_keyset)
        self._handle.define(schema, names, *_caller())
        self._names.add(full_name)
        namespaces.forget(self.ns, _split(full_name)[1].partition(".")[0])
        return _split(full_name)[1]

    def impl(
        self, op_name: Op, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False, allow_override: bool = True
    ) -> None:
        """Registers a kernel for a key: "CPU", "CUDA", "Meta", "Autograd", "CompositeExplicit" (every backend), ...

        Without a key it is a catch-all: it runs anywhere and is differentiated through what it calls. A kernel gets the
        schema's arguments, keyword-only ones by name; with `with_keyset` the call's DispatchKeySet first. The newest
        kernel of a key runs. Raises TypeError naming the argument that `fn` does not take.
        """
        full_name = _full_name("impl", "op_name", op_name)
        if "::" not in full_name:
            full_name = f"{self.ns}::{full_name}"
        key = dispatch_key or self.dispatch_key or "CompositeImplicit"
        if fn is fallthrough_kernel:
            fn = None
        elif not callable(fn):
            raise TypeError(f"impl: the kernel of {full_name} must be callable, got {describe(fn)}")
        else:
            schema = _C._op_schema(full_name)
            if schema is not None:
                _check_kernel(schema, fn, with_keyset)
        ns, name = _split(full_name)
        self._handle.impl(full_name if ns != self.ns else name, key, fn, with_keyset, *_caller())
        self._names.add(full_name)
        if fn is not None and schema is None:
            _early.setdefault(full_name, []).append((self._handle, fn, with_keyset))

    def fallback(self, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Registers what a key runs for operators that have no kernel for it. The library's namespace is "_".

        `fn` gets the operator, as an object of tenon.ops, and then the call's arguments; with `with_keyset` the call's
        DispatchKeySet before all. `fallthrough_kernel` makes calls go on to the next key. An older fallback of the key runs again
        when the library is destroyed. Raises RuntimeError for a library of another namespace, ValueError without a key.
        """
        key = dispatch_key or self.dispatch_key
        if self.ns != "_":
            raise RuntimeError(f"fallback: it serves operators of every namespace, so it belongs in Library('_', 'IMPL'), not in {self!r}")
        if not key:
            raise ValueError("fallback: name the dispatch key that it serves: fallback(fn, 'PrivateUse1')")
        if fn is fallthrough_kernel:
            return self._handle.fallback(key, None, *_caller())
        if not callable(fn):
            raise TypeError(f"fallback: the kernel for {key} must be callable, got {describe(fn)}")

        def call(where, *args, **kwargs):
            keyset, name = where
            op = namespaces.overload(name)
            return fn(keyset, op, *args, **kwargs) if with_keyset else fn(op, *args, **kwargs)

        self._handle.fallback(key, call, *_caller())

    def _autograd(
        self, full_name: str, backward: Callable[..., Any] | None, setup_context: Callable[..., Any] | None
    ) -> None:
        ns, name = _split(full_name)
        self._handle.autograd(full_name if ns != self.ns else name, backward, setup_context, *_caller())
        self._names.add(full_name)

    def _not_differentiable(self, full_name: str) -> None:
        ns, name = _split(full_name)
        self._handle.not_differentiable(full_name if ns != self.ns else name, *_caller())
        self._names.add(full_name)

    def _destroy(self) -> None:
        """Removes the registrations; older kernels run again."""
        self._finalizer()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        self._destroy()

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})"


# Libraries of the functions of this module, which live as long as the process: by namespace, and by custom operator.
_fragments: dict[str, Library] = {}
_custom: dict[str, Library] = {}


def _fragment(ns: str, lib: Library | None = None) -> Library:
    if lib is not None:
        return lib
    if ns not in _fragments:
        _fragments[ns] = Library(ns, "FRAGMENT")
    return _fragments[ns]


def _keys(device_types: str | Sequence[str] | None) -> list[str]:
    if device_types is None or device_types == "default":
        return ["CompositeExplicit"]
    if isinstance(device_types, str):
        device_types = [device_types]
    return [_C.dispatch.key_for_device(d) for d in device_types]


def _decorator(register: Callable[[Any], Any], function: Any) -> Any:
    """The function registered, or a decorator that does so."""

    def decorate(f):
        register(f)
        return f

    return decorate if function is None else decorate(function)


@overload
def define(qualname: Library, schema: str) -> Callable[[Fn], Fn]: ...
@overload
def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Tagged = ()) -> None: ...
def define(qualname: Any, schema: Any = None, *, lib: Library | None = None, tags: Tagged = ()) -> Any:
    """Declares an operator: define("ns::name", "(Tensor x) -> Tensor"); of a Library: @define(lib, "name(...) -> ...")."""
    if isinstance(qualname, Library):
        name = qualname.define(schema)
        return _decorator(lambda f: qualname.impl(name, f), None)
    ns, name = _split(qualname)
    if not isinstance(schema, str):
        raise TypeError(f"define: the schema of {qualname} must be a str, got {describe(schema)}")
    _fragment(ns, lib).define(name + schema, tags=names_of("define", tags))


@overload
def impl(
    qualname: Library, types: str, func: str = "", *, with_keyset: bool = False
) -> Callable[[Fn], Fn]: ...
@overload
def impl(
    qualname: str, types: str | Sequence[str] | None, func: None = None, *, lib: Library | None = None
) -> Callable[[Fn], Fn]: ...
@overload
def impl(qualname: str, types: str | Sequence[str] | None, func: Fn, *, lib: Library | None = None) -> Fn: ...
def impl(
    qualname: Any,
    types: Any,
    func: Any = None,
    *,
    lib: Library | None = None,
    with_keyset: bool = False,
) -> Any:
    """Registers a kernel, as a function or as a decorator.

    impl("ns::name", "cpu") takes a device or several, or "default" for a kernel for every device; impl(lib, "name", "CPU")
    takes a Library, the operator and a dispatch key.
    """
    if isinstance(qualname, Library):
        return _decorator(lambda f: qualname.impl(types, f, func or "", with_keyset=with_keyset), None)
    return register_kernel(_full_name("impl", "qualname", qualname), types, func, lib=lib)


@overload
def register_kernel(
    op: Op, device_types: str | Sequence[str] | None, func: None = None, /, *, lib: Library | None = None
) -> Callable[[Fn], Fn]: ...
@overload
def register_kernel(
    op: Op, device_types: str | Sequence[str] | None, func: Fn, /, *, lib: Library | None = None
) -> Fn: ...
def register_kernel(
    op: Op,
    device_types: str | Sequence[str] | None,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Registers the kernel of an operator for a device ("cpu"), several, or all (None). Decorates without `func`."""
    full_name = _full_name("register_kernel", "op", op)
    keys = _keys(device_types)

    def register(f):
        library = _fragment(_split(full_name)[0], lib)
        for key in keys:
            library.impl(full_name, f, key)

    return _decorator(register, func)


@overload
def register_fake(
    op: Op, func: None = None, /, *, lib: Library | None = None, allow_override: bool = True
) -> Callable[[Fn], Fn]: ...
@overload
def register_fake(op: Op, func: Fn, /, *, lib: Library | None = None, allow_override: bool = True) -> Fn: ...
def register_fake(
    op: Op, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None, allow_override: bool = True
) -> Any:
    """Registers a kernel on meta tensors, which have shapes and no elements: it returns what the operator's results are
    like.

    It serves the meta device, and shape inference while a program is recorded. Decorates without `func`.
    """
    full_name = _full_name("register_fake", "op", op)
    return _decorator(lambda f: _fragment(_split(full_name)[0], lib).impl(full_name, f, "Meta"), func)


def register_autograd(
    op: Op,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Registers the derivative of an operator that writes nothing and returns no views.

    `setup_context(ctx, inputs, output)` runs after the forward and keeps what backward needs: tensors by
    ctx.save_for_backward, anything else as attributes of ctx; keyword-only arguments come as `keyword_only_inputs`.
    `backward(ctx, *grads)` gets a gradient for each result (zeros where none arrived; None after
    ctx.set_materialize_grads(False)), and returns one for each positional argument, None where there is none.
    """
    full_name = _full_name("register_autograd", "op", op)
    schema = _C._op_schema(full_name)
    if schema is None:
        raise NotImplementedError(f"register_autograd: operator '{full_name}' is not declared")
    text, _, arguments, returns = schema
    for name, type_text, keyword_only, _, writes in arguments:
        if writes:
            raise RuntimeError(
                f"register_autograd: `{text}` writes argument `{name}`; only an operator that writes nothing has a "
                "derivative. Declare one that returns a new tensor"
            )
        if keyword_only and type_text.startswith("Tensor"):
            raise NotImplementedError(
                f"register_autograd: argument `{name}` of `{text}` is a keyword-only tensor, which gets no gradient; "
                "make it positional"
            )
    if any(aliased for _, _, aliased in returns):
        raise RuntimeError(f"register_autograd: `{text}` returns a view, whose derivative is that of the views it is made of")
    if not returns:
        raise RuntimeError(f"register_autograd: `{text}` returns nothing that could be differentiated")
    for function, what in ((backward, "backward"), (setup_context, "setup_context")):
        if function is not None and not callable(function):
            raise TypeError(f"register_autograd: {what} must be callable, got {describe(function)}")
    if backward is None:
        raise TypeError("register_autograd: backward must be callable, not None")
    _fragment(_split(full_name)[0], lib)._autograd(full_name, backward, setup_context)


def register_not_differentiable(op: Op, /, *, lib: Library | None = None) -> None:
    """Declares that an operator has no gradient.

    Its results do not require grad, even if its arguments do, and a tensor that it writes in place loses its history. The
    backward pass through an operator that has neither this nor a derivative raises NotImplementedError.
    """
    full_name = _full_name("register_not_differentiable", "op", op)
    if _C._op_schema(full_name) is None:
        raise NotImplementedError(f"register_not_differentiable: operator '{full_name}' is not declared")
    _fragment(_split(full_name)[0], lib)._not_differentiable(full_name)


@overload
def custom_op(
    name: str,
    fn: None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Tagged = None,
) -> Callable[[Callable[..., Any]], OpOverload]: ...
@overload
def custom_op(
    name: str,
    fn: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Tagged = None,
) -> OpOverload: ...
def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Tagged = None,
) -> Any:
    """Makes a function an operator: `@custom_op("ns::name", mutates_args=())`. Returns the operator.

    Its schema is `schema`, or follows from the annotations (infer_schema). `mutates_args` names the arguments that it
    writes. The function is the kernel of `device_types`, or of every device. The operator has register_fake,
    register_kernel, register_autograd and register_not_differentiable. A second operator of the same name replaces the
    first.
    """

    def make(function):
        ns, op_name = _split(name)
        inferred = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        parsed = _C._parse_schema(op_name + inferred)
        written = {argument for argument, _, _, _, writes in parsed[2] if writes}
        if schema is not None and mutates_args != "unknown" and written != set(mutates_args):
            raise ValueError(
                f"custom_op: the schema of {name} writes {sorted(written) or 'nothing'}, mutates_args says "
                f"{sorted(mutates_args) or 'nothing'}"
            )
        _check_kernel(parsed, function)
        if name in _custom:
            _custom.pop(name)._destroy()
        library = Library(ns, "FRAGMENT")
        try:
            library.define(op_name + inferred, tags=names_of("custom_op", tags))
            for key in _keys(device_types):
                library.impl(op_name, function, key)
            # Until a derivative is registered: backward says that there is none.
            library._autograd(name, None, None)
            packet = getattr(namespaces.namespace(ns), op_name.partition(".")[0])
            op = getattr(packet, op_name.partition(".")[2] or "default")
        except BaseException:
            library._destroy()
            raise
        _custom[name] = library
        return op

    return make if fn is None else make(fn)


def opcheck(
    op: Op,
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = (
        "test_schema",
        "test_autograd_registration",
        "test_faketensor",
        "test_aot_dispatch_dynamic",
        "test_tags",
    ),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Calls an operator, or the one of a name ("ns::name"), on copies of these arguments, and checks that it does what it was
    registered to do.

    test_schema: it writes no argument that its schema does not say. test_autograd_registration: backward
    has a derivative, where an argument requires grad. test_faketensor: on meta tensors it has the same shapes, dtypes and strides.
    test_aot_dispatch_dynamic: in a recorded program (tenon.compile) it gives the same values and gradients.
    test_tags, which PyTorch has not: what tags say of it that these arguments can show. With pointwise, equal elements give equal results wherever
    they are; with inplace it returns its first argument; without nondeterministic_seeded and nondeterministic_bitwise two calls give the
    same bits, and with the first of these they do from the same state of the generator.

    Returns "SUCCESS" or a sentence for each test; with `raise_exception` the first that fails is an error (tenon.opcheck.OpCheckError).
    """
    import importlib

    # Which needs recorded programs, and these know custom operators.
    return importlib.import_module(f"{__package__}.opcheck").check(op, args, kwargs, test_utils, raise_exception, rtol, atol)


def _owner(op: OpOverload) -> Library | None:
    """The library that lives as long as the operator."""
    return _custom.get(op._name)


def _op_register_fake(self: OpOverload, fn: Callable[..., Any] | None = None, /) -> Any:
    """register_fake of this operator."""
    return register_fake(self, fn, lib=_owner(self))


def _op_register_kernel(
    self: OpOverload, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /
) -> Any:
    """register_kernel of this operator."""
    return register_kernel(self, device_types, fn, lib=_owner(self))


def _op_register_autograd(
    self: OpOverload, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
) -> None:
    """register_autograd of this operator."""
    return register_autograd(self, backward, setup_context=setup_context, lib=_owner(self))


def _op_register_not_differentiable(self: OpOverload) -> None:
    """register_not_differentiable of this operator."""
    return register_not_differentiable(self, lib=_owner(self))


OpOverload.register_fake = _op_register_fake  # type: ignore[method-assign]
OpOverload.register_kernel = _op_register_kernel  # type: ignore[method-assign]
OpOverload.register_autograd = _op_register_autograd  # type: ignore[method-assign]
OpOverload.register_not_differentiable = _op_register_not_differentiable  # type: ignore[method-assign]


_check_module(globals())
add_module_getattr(__name__)
