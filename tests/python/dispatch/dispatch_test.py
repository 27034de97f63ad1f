"""tenon.dispatch: what the dispatcher knows, as data and as text."""

import pytest

import tenon
from tenon import dispatch
from tenon.dispatch import DispatchKeySet
from tenon.library import Library, fallthrough_kernel


@pytest.fixture
def lib():
    with Library("libdispatch", "FRAGMENT") as library:
        yield library


def test_key_sets_are_in_rising_priority():
    x = tenon.ones(1, requires_grad=True)
    keys = dispatch.key_set(x)
    assert repr(keys) == "DispatchKeySet(CPU, AutogradCPU)" and keys.names() == ["CPU", "AutogradCPU"]
    assert dispatch.key_set(x.detach()).names() == ["CPU"]
    assert keys == DispatchKeySet("CPU", "AutogradCPU") == DispatchKeySet(x.detach(), "AutogradCPU")
    assert hash(keys) == hash(DispatchKeySet(x)) and keys != DispatchKeySet()
    assert "AutogradCPU" in keys and "Profiler" not in keys and "AutogradMeta" not in keys
    assert keys.below("Autograd").names() == ["CPU"]
    assert (keys - DispatchKeySet("Autograd")).names() == ["CPU"]
    assert (keys | DispatchKeySet("Profiler")).names() == ["CPU", "AutogradCPU", "Profiler"]
    assert (keys & DispatchKeySet("CPU")).names() == ["CPU"]
    with pytest.raises(ValueError, match="stands for several"):
        DispatchKeySet("CompositeExplicit")
    with pytest.raises(TypeError, match="Tensors or names"):
        DispatchKeySet(3)


def test_names_of_keys():
    assert dispatch.key_parse("CompositeImplicitAutograd") == dispatch.key_name("CatchAll") == "CompositeImplicit"
    assert dispatch.key_for_device("cpu") == "CPU" and dispatch.key_for_device(tenon.device("meta")) == "Meta"
    assert dispatch.is_alias_key("Autograd") and dispatch.is_alias_key("CompositeExplicit")
    assert not dispatch.is_alias_key("AutogradCPU")
    assert dispatch.is_included_in_alias("AutogradCPU", "Autograd")
    assert dispatch.is_included_in_alias("SparseCPU", "CompositeExplicit")
    assert not dispatch.is_included_in_alias("AutogradCPU", "CompositeExplicit")
    assert not dispatch.is_included_in_alias("CPU", "Autograd")
    assert dispatch.backends()[0] == ("cpu", "CPU") and dispatch.backends()[-1] == ("meta", "Meta")
    with pytest.raises(ValueError, match="dispatch key"):
        dispatch.key_parse("no such key")


def test_registrations_and_tables(lib):
    lib.define("f(Tensor x) -> Tensor")
    op = tenon.ops.libdispatch.f
    assert not dispatch.has_kernel(op)
    lib.impl("f", lambda x: x + 1)
    lib.impl("f", lambda x: x + 2, "CPU")
    lib.impl("f", lambda x: x + 3, "CPU")
    lib.impl("f", fallthrough_kernel, "AutogradCPU")
    assert dispatch.has_kernel(op) and dispatch.has_kernel(op, "CPU") and dispatch.has_kernel(op, "CatchAll")
    assert not dispatch.has_kernel(op, "Meta") and dispatch.has_kernel_for_key(op, "Meta")
    assert dispatch.has_kernel_for_any_key(op, DispatchKeySet("CPU", "Profiler"))
    assert not dispatch.has_kernel_for_any_key(op, DispatchKeySet("Meta"))
    assert dispatch.is_fallthrough(op, "AutogradCPU") and not dispatch.is_fallthrough(op, "CPU")
    rows = [(r.key, r.kind, r.active, r.file == __file__) for r in dispatch.registrations(op)]
    assert rows == [
        ("CPU", "boxed", True, True),
        ("CPU", "boxed", False, True),
        ("AutogradCPU", "fallthrough", True, True),
        ("CompositeImplicit", "boxed", True, True),
    ]
    table = {c.key: c for c in dispatch.computed_table(op)}
    assert table["CPU"].source == "kernel" and table["Meta"].source == "composite kernel"
    assert table["AutogradCPU"].source == "fallthrough" and table["AutogradMeta"].source == "composite kernel"
    assert table["CPU"].file == __file__ and table["CPU"].line == table["Meta"].line + 2
    assert "CPU: [kernel] " + __file__ in dispatch.dump_table(op)
    assert "(overrides " in dispatch.dump_registrations(op) and "(inactive)" in dispatch.dump_registrations(op)
    assert dispatch.schema(op) == "libdispatch::f(Tensor x) -> Tensor"
    assert dispatch.operators("libdispatch") == ["libdispatch::f"]


def test_default_backend_kernels_and_missing_ones(lib):
    lib.define("g(Tensor x) -> Tensor")
    assert {c.source for c in dispatch.computed_table("libdispatch::g") if c.key == "CPU"} == {"missing"}
    lib.impl("g", lambda x: x + 1, "CompositeExplicit")
    table = {c.key: c.source for c in dispatch.computed_table("libdispatch::g")}
    assert table["CPU"] == table["SparseCPU"] == "default backend kernel" and table["AutogradCPU"] == "fallthrough"


def test_builtin_registrations_name_their_yaml():
    # Libraries that other tests loaded may have registered kernels too.
    kernel = next(k for k in dispatch.registrations("add.Tensor") if k.key == "Autograd")
    assert kernel.file.startswith("tenon/ops/yaml/") and kernel.line > 0
    file, line = dispatch.defined_at("aten::add.Tensor")
    assert file == kernel.file and line == kernel.line


def test_a_packet_with_several_overloads_is_no_operator():
    with pytest.raises(ValueError, match="several overloads"):
        dispatch.schema(tenon.ops.aten.add)
    assert dispatch.schema(tenon.ops.aten.add.Tensor).startswith("aten::add.Tensor(")


def test_traces():
    with dispatch.trace() as lines:
        tenon.ones(2) + 1
    assert any("[call] op=[aten::add" in line for line in lines)
    before = len(lines)
    tenon.ones(2) + 1
    assert len(lines) == before


def test_thread_keys():
    x = tenon.ones(1, requires_grad=True)
    with dispatch.exclude("AutogradCPU"):
        assert not (x * 2).requires_grad
        with dispatch.exclude("Profiler"):
            assert not (x * 2).requires_grad
    assert (x * 2).requires_grad
    with pytest.raises(NotImplementedError), dispatch.include("SparseCPU"):
        with Library("libdispatch2", "DEF") as lib:
            lib.define("f(Tensor x) -> Tensor")
            lib.impl("f", lambda x: x + 1, "CPU")
            tenon.ops.libdispatch2.f(tenon.ones(1))


def test_stubs():
    stubs = dispatch.stubs()
    assert stubs and all(s.name for s in stubs)
    # An expression with reducers has more to it than the schema language can say.
    assert [s.name for s in stubs if "(" not in s.signature] == ["rows"]
    assert all("cpu" in s.devices for s in stubs)
    assert [s.name for s in stubs] == sorted(s.name for s in stubs)


@pytest.mark.parametrize(
    "call",
    [
        lambda: dispatch.DispatchKeySet("CPUX"), lambda: dispatch.key_parse("Autogard"),
        lambda: dispatch.has_kernel("aten::add.Tensor", "Cudaa"), lambda: dispatch.is_alias_key("AutogradX"),
    ],
)  # fmt: skip
def test_unknown_keys_are_refused_and_take_no_place(call):
    before = dispatch.backends()
    with pytest.raises(ValueError, match="is no dispatch key"):
        call()
    assert dispatch.backends() == before
