"""Two copies of openreg: in a thread, and lazily, so that a missing wait shows. And opencl, where there is a driver."""

import os
import pathlib

import pytest

import tenon

BUILD = pathlib.Path(tenon._C.__file__).parents[2]
OPENREG = BUILD / "backends/openreg/openreg.so"
OPENCL = BUILD / "backends/opencl/opencl.so"
#: PoCL keeps compiled kernels from one run to the next.
OPENCL_ENVIRONMENT = {"POCL_CACHE_DIR": os.environ.get("POCL_CACHE_DIR", str(BUILD / "pocl_cache"))}


def loaded(name, **options):
    """The module of the device; it is loaded once in the process."""
    known = [device for device, _, _ in tenon.devices.loaded()]
    return getattr(tenon, name) if name in known else tenon.load_device(OPENREG, name=name, options=options)


@pytest.fixture(scope="session")
def openreg():
    assert os.path.exists(OPENREG), "build openreg first"
    return loaded("openreg", mode="thread", devices=2)


@pytest.fixture(scope="session")
def lazyreg():
    return loaded("lazyreg", mode="lazy", devices=1)


@pytest.fixture(scope="session")
def opencl():
    if not OPENCL.exists():
        pytest.skip("opencl is not built: its headers are not installed")
    os.environ.update(OPENCL_ENVIRONMENT)
    known = [device for device, _, _ in tenon.devices.loaded()]
    return tenon.opencl if "opencl" in known else tenon.load_device(OPENCL)


@pytest.fixture(params=["openreg", "lazyreg"])
def device(request):
    return request.getfixturevalue(request.param)._name


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item):
    """pytest keeps what a test was given for as long as fixtures end, and a device is not unloaded while a tensor of it lives."""
    item.funcargs = {}
