"""Two copies of openreg: in a thread, and lazily, so that a missing wait shows."""

import os
import pathlib

import pytest

import tenon

BUILD = pathlib.Path(tenon._C.__file__).parents[2]
OPENREG = BUILD / "backends/openreg/openreg.so"


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


@pytest.fixture(params=["openreg", "lazyreg"])
def device(request):
    return request.getfixturevalue(request.param)._name
