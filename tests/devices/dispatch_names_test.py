"""PyTorch's names for the dispatcher with a device loaded: PrivateUse1 and the device's own key are one, and what is published prints."""

import subprocess
import sys

import pytest

import tenon as torch
from tests.devices.conftest import OPENREG

#: Functions that take an operator and a key, and operators of every make: a view, a stub, an expression, a composite, one that is absent.
OF_KEYS = ("has_kernel_for_dispatch_key", "has_computed_kernel_for_dispatch_key", "kernel_for_dispatch_key_is_fallthrough")
OPERATORS = ("aten::as_strided", "aten::abs", "aten::add.Tensor", "aten::view", "aten::sort", "aten::mm", "aten::empty.memory_format", "aten::silu")


@pytest.mark.parametrize("key", ["", "Autograd"])
@pytest.mark.parametrize("function", OF_KEYS)
def test_privateuse1_is_the_first_devices_key(function, key):
    program = f"""
import tenon as torch
torch.load_device({str(OPENREG)!r}, name="openreg")
ask = torch._C._dispatch_{function}
found = [(op, ask(op, {key + 'PrivateUse1'!r}), ask(op, {key + 'OpenReg'!r})) for op in {OPERATORS!r}]
assert all(a == b for _, a, b in found), found
if {function!r} == "has_kernel_for_dispatch_key" and not {key!r}:
    assert dict((op, a) for op, a, _ in found)["aten::as_strided"]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("line, parts", [
    ("print(torch._C._dispatch_key_set(x))", ["DispatchKeySet(OpenReg)"]),
    ("print(torch._C._dispatch_dump('aten::abs'))", ["name: aten::abs", "schema: aten::abs(Tensor self) -> Tensor"]),
    ("print(torch._C._dispatch_dump_table('aten::as_strided'))", ["OpenReg", "AutogradOpenReg", "default backend kernel"]),
    ("torch._C._dispatch_print_registrations_for_dispatch_key('PrivateUse1')", ["aten::empty.memory_format"]),
    ("print(torch._C._dispatch_get_registrations_for_dispatch_key('PrivateUse1'))", ["aten::empty.memory_format"]),
    ("print([n for n in dir(torch._C) if n.startswith('_dispatch_')])", ["_dispatch_dump_table", "_dispatch_has_kernel"]),
    ("print(torch._C._dispatch_key_name('PrivateUse1'), torch._C._dispatch_key_for_device('openreg'))", ["OpenReg OpenReg"]),
    ("print(torch._C._dispatch_keyset_full())", ["OpenReg", "AutogradOpenReg"]),
    ("print(torch._C._dispatch_has_kernel('aten::abs'), torch._C._dispatch_is_included_in_alias('AutogradPrivateUse1', 'Autograd'))", ["True True"]),
    ("print(torch._C._dispatch_get_backend_keyset_from_autograd('AutogradPrivateUse1'))", ["DispatchKeySet(OpenReg)"]),
    ("print(torch._C._dispatch_get_computed_kernel_for_dispatch_key('aten::abs', 'PrivateUse1'))", ["OpenReg", "unary.yaml"]),
])  # fmt: skip
def test_published_lines_print(line, parts):
    program = f"import tenon as torch\ntorch.load_device({str(OPENREG)!r}, name='openreg')\nx = torch.ones(2, device='openreg')\n{line}"
    printed = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert all(part in printed for part in parts), printed


@pytest.mark.parametrize("arguments", [
    ["keys"], ["keys", "PrivateUse1"], ["keys", "torch.ones(2, device='openreg')"], ["keys", "--all"], ["info"], ["ops", "aten::abs*"],
    ["ops", "--key", "PrivateUse1"], ["check"], ["check", "aten::add.Tensor"], ["dump", "abs"], ["table", "as_strided"], ["stubs"],
    ["trace", "-c", "tenon.ones(2, device='openreg')"], ["where", "abs"], ["where", "torch.softmax"], ["where", "soft*"], ["plans"], ["plans", "list"], ["docs"],
])  # fmt: skip
def test_published_commands_print(arguments):
    load = [] if arguments[0] in ("plans", "docs") else ["-l", str(OPENREG)]
    arguments = [a.replace("torch.ones", "tenon.ones") for a in arguments]
    done = subprocess.run([sys.executable, "-m", "tenon", arguments[0], *load, *arguments[1:]], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip(), (done.returncode, done.stderr)
    assert ", ," not in done.stdout


def test_fused_sdp_choice_is_a_function(openreg):
    """PyTorch's SDPBackend: 1 is flash attention, by blocks; 0 by operators. The stub decides for a device."""
    q = torch.ones(1, 2, 3, 4)
    assert torch._fused_sdp_choice(q, q, q) == torch._fused_sdp_choice(q, q, q, None, 0.0, True, scale=0.5) == 1
    there = q.to("openreg")
    assert torch._fused_sdp_choice(there, there, there) == 1
    with pytest.raises(TypeError, match="_fused_sdp_choice"):
        torch._fused_sdp_choice(q, q)
    with pytest.raises(RuntimeError, match="_fused_sdp_choice: `key` is on cpu"):
        torch._fused_sdp_choice(there, q, there)
    with pytest.raises(AttributeError):
        torch._no_operator_of_this_name
