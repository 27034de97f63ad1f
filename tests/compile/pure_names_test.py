"""compile(pure=True): what imports, patterns, formats and operators lead to is compared; constants do not keep a program from replays."""

import collections
import contextlib
import decimal
import functools
import io
import sys
import types
import warnings

import pytest
from pure_cases import Cases, alike, changed, warm, x

import tenon
from tenon.library import Library

case = Cases()


# Imports inside the program


def module(name, scale):
    made = types.ModuleType(name)
    made.SCALE = scale
    return made


def put(monkeypatch, scale):
    whole, part = module("imported", scale), module("imported.part", scale * 10)
    whole.part, whole.__path__ = part, []
    monkeypatch.setitem(sys.modules, "imported", whole)
    monkeypatch.setitem(sys.modules, "imported.part", part)


def of_a_module(x):
    import imported

    return x * imported.SCALE


def of_a_part(x):
    from imported.part import SCALE

    return x * SCALE


def of_a_part_by_a_name(x):
    import imported.part as part

    return x * part.SCALE


def of_a_sibling(x):
    from .part import SCALE

    return x * SCALE


@pytest.mark.parametrize("f", [of_a_module, of_a_part, of_a_part_by_a_name, of_a_sibling])
def test_a_module_replaced_that_the_program_imports(f, monkeypatch):
    monkeypatch.setitem(globals(), "__package__", "imported")
    monkeypatch.setitem(globals(), "__spec__", None)

    def program(c):
        put(monkeypatch, 1.0)
        return changed(c, f, lambda: put(monkeypatch, 2.0))

    alike(program)


def test_the_import_of_a_program_replaced(monkeypatch):
    def program(c):
        with monkeypatch.context() as patched:
            put(patched, 1.0)
            other = module("imported", 2.0)
            f = c(of_a_module)
            before = warm(f)
            patched.setattr("builtins.__import__", lambda *_: other)
            return before, f(x())

    alike(program)


# Attributes that the interpreter reads by texts


class Point:
    __match_args__ = ("scale",)

    def __init__(self, scale):
        self.scale = scale
        self.other = scale


@case
def a_pattern_by_place(c):
    p = Point(1.0)

    def f(x):
        match p:
            case Point(k):
                return x * k

    return changed(c, f, lambda: setattr(p, "scale", 2.0))


@case
def a_pattern_by_name(c):
    p = Point(1.0)

    def f(x):
        match p:
            case Point(other=k):
                return x * k

    return changed(c, f, lambda: setattr(p, "other", 2.0))


@case
def an_attribute_in_a_format(c):
    p = Point(1.0)
    return changed(c, lambda x: x * float("{0.scale}".format(p)), lambda: setattr(p, "scale", 2.0))


@case
def an_attribute_in_a_format_with_a_map(c):
    p = Point(1.0)
    return changed(c, lambda x: x * float("{p.scale}".format_map({"p": p})), lambda: setattr(p, "scale", 2.0))


@case
def subclasses(c):
    class Base(tenon.nn.Module):
        pass

    kept = []
    return changed(c, lambda x: x * len(Base.__subclasses__()), lambda: kept.append(type("Derived", (Base,), {})))


@case
def attributes_that_a_function_in_c_reads(c):
    p = Point(1.0)
    bound = functools.partial(getattr, p, "other")

    def change():
        p.scale, p.other = 2.0, 3.0

    return changed(c, lambda x: x * sum(map(getattr, [p], ["scale"])), change), changed(c, lambda x: x * bound(), change)


@case
def attributes_that_a_function_in_c_reads_by_another_name(c):
    p, listed, held = Point(1.0), [getattr], getattr

    def change():
        p.scale += 1.0

    by_list = changed(c, lambda x: x * sum(map(listed[0], [p], ["scale"])), change)
    by_closure = changed(c, lambda x: x * sum(map(held, [p], ["scale"])), change)
    return by_list, by_closure, changed(c, lambda x, g=getattr: x * sum(map(g, [p], ["scale"])), change)


@case
def attributes_that_a_function_in_c_writes(c):
    p, seen = Point(1.0), []
    f = c(lambda x: [*map(setattr, [p], ["scale"], [x * 2])] and None)
    for k in range(5):
        f(x() * k)
        seen.append(p.scale)
    return seen


# Effects that nobody observes


say = functools.partial(print, "said")

CALLED_IN_C = {
    "map": lambda x: [*map(print, [1])] and x * 2,
    "sorted": lambda x: sorted([1], key=print) and x * 2,
    "iter": lambda x: (next(iter(print, 1)), x * 2)[1],
    "partial": lambda x: (say(), x * 2)[1],
}


@pytest.mark.parametrize("what", CALLED_IN_C)
def test_effects_of_functions_that_functions_in_c_call(what):
    def program(c):
        out, f = io.StringIO(), c(CALLED_IN_C[what])
        with contextlib.redirect_stdout(out):
            results = warm(f)
        return results, out.getvalue()

    alike(program)


def test_effects_that_do_not_happen_do_not_refuse():
    loud = False

    def f(x):
        if loud:
            print(x)
        return x * max([1.0, 2.0], key=abs)

    f = tenon.compile(f, pure=True)
    assert warm(f)[-1].tolist() == [2.0, 2.0] and f.explain().of("replays")[0]["runs"] == 3


# Contexts


@case
def the_precision_of_decimals(c):
    with decimal.localcontext() as context:
        context.prec = 28
        f = lambda x: x * float(decimal.Decimal(1) / decimal.Decimal(3))  # noqa: E731
        return changed(c, f, lambda: setattr(context, "prec", 3))


# Kernels


REGISTERED = {
    "one operator": lambda x: x.exp(),
    "a fused one": lambda x: x.exp() + 1,
    "by its name": lambda x: tenon.ops.aten.exp(x) + 1,
    "by an overload": lambda x: tenon.ops.aten.exp.default(x) + 1,
}


@pytest.mark.parametrize("what", REGISTERED)
def test_a_kernel_registered_and_removed(what):
    def program(c):
        f = c(REGISTERED[what])
        before = warm(f)
        mine = Library("aten", "IMPL", "CPU")
        mine.impl("exp", lambda x: x * 100)
        during = warm(f)
        mine._destroy()
        return before, during, warm(f)

    alike(program)


def test_a_kernel_of_a_composite_operator():
    w = tenon.ones(2, 2)

    def program(c):
        f = c(lambda x: tenon.nn.functional.linear(x, w) + 1)
        before = warm(f)
        mine = Library("aten", "IMPL", "CPU")
        mine.impl("linear", lambda x, w, b=None: x * 100)
        during = warm(f)
        mine._destroy()
        return before, during, warm(f)

    alike(program)


@case
def an_overload_replaced(c):
    packet = tenon.ops.aten.cos
    old = packet.default
    try:
        return changed(c, lambda x: tenon.ops.aten.cos.default(x), lambda: setattr(packet, "default", tenon.ops.aten.sin.default))
    finally:
        packet.default = old


# What does not change is no reason to refuse


Pair = collections.namedtuple("Pair", "scale offset")
PAIR = Pair(2.0, 1.0)
DEVICE = tenon.device("cpu")

CONSTANTS = {
    "dtype": lambda x: x.to(tenon.float64) * 2,
    "dtype of a new tensor": lambda x: x + tenon.ones(2, dtype=tenon.int64),
    "dtype compared": lambda x: x * 2 if x.dtype is tenon.float32 else x,
    "limits of a dtype": lambda x: x + tenon.finfo(x.dtype).eps,
    "device": lambda x: x + tenon.ones(2, device=DEVICE),
    "layout": lambda x: x + tenon.ones(2, layout=tenon.strided),
    "memory format": lambda x: x.clone(memory_format=tenon.preserve_format) + 1,
    "overload": lambda x: tenon.ops.aten.add.Tensor(x, x),
    "packet": lambda x: tenon.ops.aten.relu(x),
    "field": lambda x: x * PAIR.scale + PAIR.offset,
    "field of a new tuple": lambda x: x * Pair(3.0, 1.0).scale,
}


@pytest.mark.parametrize("what", CONSTANTS)
def test_constants_do_not_refuse(what):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = tenon.compile(CONSTANTS[what], pure=True)
        results = warm(f)
    assert all(r.dtype == results[0].dtype and r.tolist() == CONSTANTS[what](x()).tolist() for r in results)
    assert next(e["runs"] for e in f.explain().of("replays")) == 3


@case
def a_dtype_replaced(c):
    held = types.SimpleNamespace(dtype=tenon.float32)
    return changed(c, lambda x: x.to(tenon.float64).to(held.dtype) * 2, lambda: setattr(held, "dtype", tenon.float16))


@case
def a_field_replaced(c):
    Own = collections.namedtuple("Own", "scale offset")
    pair = Own(2.0, 3.0)
    return changed(c, lambda x: x * pair.scale, lambda: setattr(Own, "scale", Own.offset))


@pytest.mark.parametrize("name", case)
def test_as_eager(name):
    alike(case[name])
