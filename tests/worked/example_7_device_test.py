"""The worked example 7 on a device: its kernel wins over a catch-all one, a second one overrides, and unloading restores."""

import pytest

import tenon
from tests.devices.conftest import loaded


@pytest.fixture(scope="module")
def device():
    return loaded("openreg", mode="thread", devices=2)._name


def test_a_devices_kernel_wins_over_a_catch_all_one(device):
    with tenon.library.Library("myops_device", "DEF") as ops, tenon.library.Library("myops_device", "IMPL") as first:
        ops.define("myadd(Tensor self, Tensor other) -> Tensor")
        ops.define("mysub(Tensor self, Tensor other) -> Tensor")
        ops.impl("mysub", lambda x, y: x - y)  # catch-all
        myadd, mysub = tenon.ops.myops_device.myadd, tenon.ops.myops_device.mysub
        x, y = tenon.tensor([4.0], device=device), tenon.tensor([1.0], device=device)
        host = tenon.ones(1)
        assert mysub(x, y).tolist() == [3] and mysub(x, y).device.type == device
        first.impl("myadd", lambda x, y: x + y, "OpenReg")
        first.impl("mysub", lambda x, y: x * 0 + 100, "OpenReg")
        assert myadd(x, y).tolist() == [5] and mysub(x, y).tolist() == [100]
        assert mysub(host, host).tolist() == [0], "the host still has the catch-all one"
        with pytest.raises(NotImplementedError, match="'myops_device::myadd' is not implemented for device cpu; kernels exist for: OpenReg"):
            myadd(host, host)
        table = {c.key: c.source for c in tenon.dispatch.computed_table("myops_device::mysub")}
        assert (table["OpenReg"], table["CPU"]) == ("kernel", "composite kernel")
        assert (table["AutogradOpenReg"], table["AutogradCPU"]) == ("fallthrough", "composite kernel")
        with tenon.library.Library("myops_device", "IMPL", "OpenReg") as second:
            second.impl("myadd", lambda x, y: x * 10)
            assert myadd(x, y).tolist() == [40]
        assert myadd(x, y).tolist() == [5], "the first one runs again"
    assert "myops_device::myadd" not in tenon.dispatch.operators()
