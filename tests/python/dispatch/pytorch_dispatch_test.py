"""PyTorch's commands for its dispatcher, as people type them, with `import tenon as torch`."""

import threading

import pytest

import tenon as torch
from tenon import dispatch

# Every `_dispatch_*` name of PyTorch 2.15's torch._C, and those that have no meaning here.
NAMES = """
    autogradother_backends call_boxed check_all_invariants check_invariants clear_leaked_python_filenames dump dump_table
    find_dangling_impls find_schema_or_throw get_all_op_names get_backend_keyset_from_autograd
    get_computed_kernel_for_dispatch_key get_registrations_for_dispatch_key has_backend_fallback
    has_computed_kernel_for_dispatch_key has_kernel has_kernel_for_any_dispatch_key has_kernel_for_dispatch_key
    isTensorSubclassLike is_alias_key is_included_in_alias kernel_for_dispatch_key_is_fallthrough key_for_device key_name
    key_parse key_set keys keyset_full keyset_full_after keyset_to_string library make_pyobj_dispatch_fns num_backends
    print_registrations_for_dispatch_key pystub set_report_error_callback tls_is_dispatch_key_excluded
    tls_is_dispatch_key_included tls_local_exclude_set tls_local_include_set tls_set_dispatch_key_excluded
    tls_set_dispatch_key_included
""".split()
WITHOUT = {"clear_leaked_python_filenames", "make_pyobj_dispatch_fns", "pystub", "set_report_error_callback"}


def test_every_name_is_there():
    assert {n for n in NAMES if not hasattr(torch._C, f"_dispatch_{n}")} == WITHOUT
    with pytest.raises(AttributeError, match="module 'tenon._C' has no attribute '_dispatch_nothing'"):
        torch._C._dispatch_nothing


def test_the_names_are_listed():
    """As people look for them: [n for n in dir(torch._C) if "dispatch" in n]"""
    listed = dir(torch._C)
    assert {f"_dispatch_{n}" for n in NAMES} - set(listed) == {f"_dispatch_{n}" for n in WITHOUT}
    assert {"DispatchKey", "DispatchKeySet", "_parse_dispatch_key", "Tensor", "add"} <= set(listed) and listed == sorted(set(listed))


def test_keys():
    x = torch.ones(2, requires_grad=True)
    assert torch._C._dispatch_key_set(x) == "DispatchKeySet(CPU, AutogradCPU)"
    keys = torch._C._dispatch_keys(x)
    assert keys.has(torch.DispatchKey.CPU) and not keys.has("Meta") and "CPU" in keys
    assert keys.highestPriorityTypeId() == torch._C.DispatchKey.AutogradCPU == "AutogradCPU"
    assert keys.remove(torch.DispatchKey.AutogradCPU).highestPriorityTypeId() == "CPU"
    assert torch.DispatchKeySet().add("CPU") == torch.DispatchKeySet(torch.DispatchKey.CPU)
    assert torch.DispatchKeySet.from_raw_repr(keys.raw_repr()) == keys
    assert torch.DispatchKeySet().highestPriorityTypeId() == "Undefined"
    assert torch._C._dispatch_keyset_to_string(keys) == repr(keys)
    assert torch._C._dispatch_key_name("CPU") == torch.DispatchKey.CPU.name == "CPU"
    assert torch._C._dispatch_key_parse("CatchAll") == torch.DispatchKey.CompositeImplicitAutograd == "CompositeImplicit"
    assert torch._C._parse_dispatch_key("Nope") is None
    with pytest.raises(ValueError, match="no dispatch key"):
        torch._C._dispatch_key_parse("Nope")
    with pytest.raises(AttributeError, match="DispatchKey has no 'Nope'"):
        torch.DispatchKey.Nope
    assert torch._C._dispatch_key_for_device("cpu") == "CPU"
    assert torch._C._dispatch_is_alias_key("Autograd") and not torch._C._dispatch_is_alias_key("AutogradCPU")
    assert torch._C._dispatch_is_included_in_alias("CPU", "CompositeImplicitAutograd")
    assert torch._C._dispatch_num_backends() == len(dispatch.backends()) == dispatch.num_backends()
    assert torch._C._dispatch_keyset_full().has("BackendSelect")
    assert not torch._C._dispatch_keyset_full_after(torch.DispatchKey.AutogradCPU).has("AutogradCPU")
    assert torch._C._dispatch_get_backend_keyset_from_autograd(torch.DispatchKey.AutogradCPU).names() == ["CPU"]


def test_operators():
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    assert torch._C._dispatch_has_kernel("aten::add.Tensor") and not torch._C._dispatch_has_kernel("aten::nope")
    assert has("aten::add.Tensor", "CPU") and has("aten::add.Tensor", torch.DispatchKey.Meta)
    assert has("aten::add.Tensor", "Autograd") and not has("aten::add.Tensor", "AutogradCPU")
    assert not has("aten::add.Tensor", "QuantizedCPU") and not has("aten::reshape", "CPU")
    with pytest.raises(RuntimeError, match="operator aten::nope does not exist"):
        has("aten::nope", "CPU")
    computed = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    assert computed("aten::reshape", "CPU") and not computed("aten::add.Tensor", "QuantizedCPU")
    assert torch._C._dispatch_has_kernel_for_any_dispatch_key("aten::add.Tensor", torch.DispatchKeySet("CPU"))
    assert torch._C._dispatch_kernel_for_dispatch_key_is_fallthrough("aten::add.Tensor", "BackendSelect")
    assert torch._C._dispatch_get_computed_kernel_for_dispatch_key("aten::mm", "CPU").line > 0
    assert "AutogradCPU: [kernel] tenon/ops/yaml/arithmetic.yaml" in torch._C._dispatch_dump_table("aten::add.Tensor")
    assert "schema: aten::add.Tensor(" in torch._C._dispatch_dump("aten::add.Tensor")
    assert torch._C._dispatch_dump("aten::nope") == torch._C._dispatch_dump_table("aten::nope") == ""
    assert "aten::mm" in torch._C._dispatch_get_registrations_for_dispatch_key("CPU")
    assert "aten::mm" in torch._C._dispatch_get_all_op_names() == torch._C._dispatch_get_registrations_for_dispatch_key()
    with pytest.raises(ValueError, match="no dispatch key"):
        torch._C._dispatch_get_registrations_for_dispatch_key("Nope")
    handle = torch._C._dispatch_find_schema_or_throw("aten::add", "Tensor")
    assert handle.schema() == dispatch.schema("aten::add.Tensor")
    assert torch._C._dispatch_call_boxed(handle, torch.ones(1), torch.ones(1), alpha=2).item() == 3
    with pytest.raises(NotImplementedError, match="does not exist"):
        torch._C._dispatch_find_schema_or_throw("aten::add", "Tensors")


def test_printed_registrations(capsys):
    torch._C._dispatch_print_registrations_for_dispatch_key("BackendSelect")
    assert capsys.readouterr().out.split() == dispatch.operators_with_kernel("BackendSelect")


def test_a_library_and_what_dangles():
    library = torch._C._dispatch_library("IMPL", "pytorchs", "CPU")
    library.impl("f", "CPU", lambda x: x * 3)
    (text,) = [t for t in torch._C._dispatch_find_dangling_impls() if "pytorchs::" in t]
    assert text.startswith("name: pytorchs::f\nschema: none\nCPU: ") and __file__ in text
    assert "pytorchs::f" in dispatch.find_dangling_impls()
    assert torch._C._dispatch_dump("pytorchs::f") == text and torch._C._dispatch_has_kernel("pytorchs::f")
    assert dispatch.registrations("pytorchs::f")[0].key == "CPU"
    torch._C._dispatch_check_invariants("pytorchs::f")
    definition = torch._C._dispatch_library("FRAGMENT", "pytorchs", "")
    assert definition.define("f(Tensor x) -> Tensor") == "f"
    assert definition.def_("g(Tensor x) -> Tensor") is definition
    assert "pytorchs::f" not in dispatch.find_dangling_impls()
    assert torch.ops.pytorchs.f(torch.ones(1)).item() == 3
    torch._C._dispatch_check_all_invariants()
    dispatch.check_invariants()
    dispatch.check_invariants("aten::mm")


def test_the_threads_keys():
    tls = torch._C._dispatch_tls_is_dispatch_key_excluded
    assert dispatch.included_keys() == dispatch.excluded_keys() == torch.DispatchKeySet()
    with dispatch.exclude("AutogradCPU"), dispatch.include("Profiler"):
        assert tls("AutogradCPU") and tls(torch.DispatchKey.AutogradMeta) and not tls("CPU")
        assert torch._C._dispatch_tls_is_dispatch_key_included("Profiler")
        assert torch._C._dispatch_tls_local_include_set().names() == ["Profiler"] == dispatch.included_keys().names()
        assert torch._C._dispatch_tls_local_exclude_set() == dispatch.excluded_keys() != torch.DispatchKeySet()
        other = []
        thread = threading.Thread(target=lambda: other.append(tls("AutogradCPU")))
        thread.start()
        thread.join()
        assert other == [False]
    torch._C._dispatch_tls_set_dispatch_key_excluded("Profiler", True)
    torch._C._dispatch_tls_set_dispatch_key_included("Autocast", True)
    assert tls("Profiler") and dispatch.included_keys().names() == ["Autocast"]
    torch._C._dispatch_tls_set_dispatch_key_excluded("Profiler", False)
    torch._C._dispatch_tls_set_dispatch_key_included("Autocast", False)
    assert dispatch.included_keys() == dispatch.excluded_keys() == torch.DispatchKeySet()


def test_keys_with_nothing_behind_them_are_not_listed():
    assert "SparseCPU" not in dispatch.keys() and "SparseCPU" in dispatch.keys(unused=True)
    assert dispatch.keys()[0] == "CPU" and not dispatch.has_fallback("Autocast")
    assert torch._C._dispatch_has_backend_fallback("Autocast") is False
    with torch.library.Library("behind", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x, "SparseCPU")
        assert "SparseCPU" in dispatch.keys() and "SparseMeta" not in dispatch.keys()
        assert dispatch.operators_with_kernel("SparseCPU") == ["behind::f"]
    assert "SparseCPU" not in dispatch.keys()
