"""Functions and classes of the Python package have the parameters of PyTorch's, in their order and with their defaults."""

import inspect

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: see CONTRIBUTING.md for how to run beside it")

import tenon  # noqa: E402
import tenon.utils.data  # noqa: E402

MODULES = (
    "", "nn", "nn.functional", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "utils.data", "autograd", "random",
)  # fmt: skip
#: What differs: parameters that PyTorch has and Tenon has not, and those that Tenon adds; or other defaults. And why.
LACKS = {
    "load": ({"pickle_module", "mmap"}, "files run no code, and are read"),
    "save": ({"pickle_module", "pickle_protocol", "_use_new_zipfile_serialization", "_disable_byteorder_record"}, "one format"),
    "set_grad_enabled.__call__": ({"orig_func"}, "the decorator's own name"),
    "autograd.set_grad_enabled.__call__": ({"orig_func"}, "the decorator's own name"),
    "compile": ({"model", "name", "recompile_limit", "isolate_recompiles", "dynamic_shapes"}, "nothing is compiled again; `fn` is the function"),
    "nn.Hardtanh": ({"min_value", "max_value"}, "deprecated"),
    "nn.functional.softmin": ({"_stacklevel"}, "for a warning"),
    "nn.RMSNorm.forward": ({"x"}, "named input, as in the other norms"),
}
DEFAULTS = {
    "meshgrid": "PyTorch warns, and takes ij",
    "load": "weights_only=None means True",
    "nn.Softmax": "an implicit dim is deprecated",
    "nn.Softmin": "an implicit dim is deprecated",
    "nn.LogSoftmax": "an implicit dim is deprecated",
    "nn.functional.softmin": "an implicit dim is deprecated",
    "utils.data.random_split": "None means the default generator",
}


def parameters(function):
    """By name; of those that may be given by position, the names in order; None where Python does not know."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    # The pooling functions of PyTorch choose between two functions by return_indices.
    if any(p.kind is p.VAR_KEYWORD for p in found):
        return None
    named = [p for p in found if p.kind is not p.VAR_POSITIONAL]
    return {p.name: p for p in named}, [p.name for p in named if p.kind is not p.KEYWORD_ONLY]


def pairs():
    """(name, ours, theirs) of every function, class and method written in Python."""
    for path in MODULES:
        ours, theirs = tenon, torch
        for part in filter(None, path.split(".")):
            ours, theirs = getattr(ours, part), getattr(theirs, part)
        for name in sorted(dir(ours)):
            a, b = getattr(ours, name, None), getattr(theirs, name, None)
            full = f"{path}.{name}".strip(".")
            if name.startswith("_") or a is None or b is None:
                continue
            if inspect.isclass(a) and inspect.isclass(b):
                if inspect.isfunction(a.__init__):
                    yield full, a.__init__, b.__init__
                for method in sorted(vars(a)):
                    x, y = getattr(a, method, None), getattr(b, method, None)
                    if (not method.startswith("_") or method == "__call__") and inspect.isfunction(x) and callable(y):
                        yield f"{full}.{method}", x, y
            elif inspect.isfunction(a) and callable(b):
                yield full, a, b


def same_default(a, b):
    if callable(a) and callable(b):
        return getattr(a, "__name__", 0) == getattr(b, "__name__", 1)
    return a == b or repr(a).replace("tenon", "torch") == repr(b)


def difference(name, ours, theirs):
    mine, hers = parameters(ours), parameters(theirs)
    if mine is None or hers is None:
        return ""
    (a, order), (b, wanted) = mine, hers
    lacks = LACKS.get(name, (set(), ""))[0]
    missing = set(b) - set(a) - lacks
    if missing:
        return f"lacks {sorted(missing)}"
    wanted = [n for n in wanted if n not in lacks]
    if [n for n in order if n in wanted] != wanted:
        return f"takes {order} by position, PyTorch {wanted}"
    ahead = [n for n in order[: len(wanted)] if n not in wanted]
    if ahead and not lacks and set(order) != {"self", "type"}:
        return f"has {ahead} before what PyTorch has"
    other = [n for n in b if n in a and not same_default(a[n].default, b[n].default)]
    return f"has other defaults of {other}" if other and name not in DEFAULTS else ""


def test_signatures_agree():
    found = list(pairs())
    assert len(found) > 350
    wrong = [f"{name} {what}" for name, ours, theirs in found if (what := difference(name, ours, theirs))]
    assert not wrong, "\n".join(wrong)


def test_exceptions_name_what_is_there():
    names = {name for name, _, _ in pairs()}
    assert set(LACKS) | set(DEFAULTS) <= names
