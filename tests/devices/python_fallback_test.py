"""`Library("_", "IMPL").fallback(fn, key)`: what a key runs for operators that have no kernel for it (PyTorch's torch.library)."""

import gc
import weakref

import pytest

import tenon
from tenon.library import Library, fallthrough_kernel


@pytest.fixture
def ops(openreg):
    with Library("lacking", "DEF") as lib:
        lib.define("scaled(Tensor x, float by=2.0, *, int n=1) -> Tensor")
        lib.define("pair.both(Tensor x) -> (Tensor, Tensor)")
        lib.define("twice_(Tensor(a!) x) -> Tensor(a!)")
        yield tenon.ops.lacking


def test_it_gets_the_operator_and_its_arguments(ops):
    seen = []

    def fallback(op, *args, **kwargs):
        seen.append((op, args, kwargs))
        return args[0] + 1

    x = tenon.ones(2, device="openreg")
    with Library("_", "IMPL") as lib:
        lib.fallback(fallback, "OpenReg")
        assert ops.scaled(x, 3.0, n=4).tolist() == [2, 2]
        op, args, kwargs = seen.pop()
        assert op is ops.scaled.default and args[0] is x and args[1:] == (3.0,) and kwargs == {"n": 4}
    with pytest.raises(NotImplementedError, match="'lacking::scaled'"):
        ops.scaled(x)


def test_with_the_key_set(ops):
    def fallback(keys, op, *args, **kwargs):
        assert keys.names() == ["OpenReg"] and op._overloadname == "both"
        return args[0] + 0, args[0] * 2

    with Library("_", "IMPL", "OpenReg") as lib:
        lib.fallback(fallback, with_keyset=True)
        first, second = ops.pair.both(tenon.ones(2, device="openreg"))
        assert second.tolist() == [2, 2]


def test_what_is_written_is_returned(ops):
    with Library("_", "IMPL", "OpenReg") as lib:
        lib.fallback(lambda op, x: x.mul_(2) if op is ops.twice_.default else None)
        x = tenon.ones(2, device="openreg")
        assert ops.twice_(x) is x and x.tolist() == [2, 2]
        lib.fallback(lambda op, x: x * 2)
        with pytest.raises((TypeError, RuntimeError), match="twice_"):
            ops.twice_(x)


def test_errors_pass(ops):
    def fallback(op, *args, **kwargs):
        raise NotImplementedError(f"no device has {op._name}")

    with Library("_", "IMPL", "OpenReg") as lib:
        lib.fallback(fallback)
        with pytest.raises(NotImplementedError, match="no device has lacking::scaled"):
            ops.scaled(tenon.ones(2, device="openreg"))


def test_a_fallthrough_goes_on_to_the_next_key(ops):
    calls = []
    with Library("_", "IMPL") as lib, Library("lacking", "IMPL", "OpenReg") as kernels:
        kernels.impl("scaled", lambda x, by=2.0, *, n=1: x * by)
        lib.fallback(lambda op, *args, **kwargs: calls.append(op), "Autocast")
        lib.fallback(fallthrough_kernel, "Autocast")
        with tenon.dispatch.include("Autocast"):
            assert ops.scaled(tenon.ones(2, device="openreg")).tolist() == [2, 2]
    assert not calls


def test_the_older_one_runs_again_and_nothing_is_kept(ops):
    def first(op, *args, **kwargs):
        return args[0] + 1

    gone = weakref.ref(first)
    x = tenon.ones(2, device="openreg")
    with Library("_", "IMPL", "OpenReg") as outer:
        outer.fallback(first)
        with Library("_", "IMPL", "OpenReg") as inner:
            inner.fallback(lambda op, *args, **kwargs: args[0] + 5)
            assert ops.scaled(x).tolist() == [6, 6]
        assert ops.scaled(x).tolist() == [2, 2]
    del first
    gc.collect()
    assert gone() is None


def test_what_is_refused(ops):
    lib = Library("_", "IMPL")
    with pytest.raises(RuntimeError, match=r"it belongs in Library\('_', 'IMPL'\), not in Library\(kind=FRAGMENT, ns=lacking"):
        Library("lacking", "FRAGMENT").fallback(lambda op: None, "OpenReg")
    with pytest.raises(ValueError, match="fallback: name the dispatch key that it serves"):
        lib.fallback(lambda op: None)
    with pytest.raises(TypeError, match="fallback: the kernel for OpenReg must be callable, got "):
        lib.fallback(3, "OpenReg")
    with pytest.raises(ValueError, match="CompositeImplicit cannot have one"):
        lib.fallback(lambda op: None, "CompositeImplicitAutograd")
    with pytest.raises(ValueError, match="OpenRag"):
        lib.fallback(lambda op: None, "OpenRag")
