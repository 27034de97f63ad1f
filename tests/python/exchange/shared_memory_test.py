"""Memory that NumPy or DLPack was given: it outlives what becomes of the tensor that showed it."""

import gc

import numpy as np
import pytest

import tenon

ELEMENTS = 100_000


def by_capsule(x):
    return np.from_dlpack(Producer(x.__dlpack__(), x.__dlpack_device__()))


class Producer:
    """An array of another library, which has only the capsule."""

    def __init__(self, capsule, device):
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return self.device


EXPORTS = {
    "numpy": lambda x: x.numpy(),
    "asarray": np.asarray,
    "detached": lambda x: x.detach().numpy(),
    "view": lambda x: x[:].numpy(),
    "from_dlpack": np.from_dlpack,
    "tenon.from_dlpack": tenon.from_dlpack,
    "capsule": by_capsule,
}


def set_data(x):
    x.data = tenon.ones(5)


CHANGES = {
    "data": set_data,
    "set_ tensor": lambda x: x.set_(tenon.ones(5)),
    "set_ storage": lambda x: x.set_(tenon.ones(5).untyped_storage()),
}

GROWTHS = {
    "resize_": lambda x: x.resize_(10**6),
    "resize_ of a view": lambda x: x.detach().resize_(10**6),
    "out": lambda x: tenon.add(tenon.ones(10**6), 1, out=x[:0]),
}


def reuse_freed_memory():
    gc.collect()
    return [tenon.full((ELEMENTS,), 7.0) for _ in range(4)] + [tenon.full((3,), 7.0) for _ in range(64)]


def is_twos(exported):
    return bool((np.array(exported.tolist()) == 2).all())


@pytest.mark.parametrize("elements", [3, ELEMENTS])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("export", EXPORTS)
def test_export_survives_other_elements(export, change, elements):
    x = tenon.full((elements,), 2.0)
    exported = EXPORTS[export](x)
    CHANGES[change](x)
    others = reuse_freed_memory()
    assert is_twos(exported)
    assert x.tolist() == [1] * 5
    del others


@pytest.mark.parametrize("elements", [3, ELEMENTS])
@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("export", EXPORTS)
def test_exported_memory_does_not_move(export, growth, elements):
    x = tenon.full((elements,), 2.0)
    exported = EXPORTS[export](x)
    assert not x.untyped_storage().resizable()
    with pytest.raises(RuntimeError, match="shared with a NumPy array or by DLPack"):
        GROWTHS[growth](x)
    others = reuse_freed_memory()
    assert is_twos(exported) and is_twos(x)
    x[0] = 5
    assert exported.tolist()[0] == 5  # still the same memory
    del others


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("export", EXPORTS)
def test_memory_moves_again_when_the_export_is_gone(export, growth):
    x = tenon.full((4,), 2.0)
    exported = EXPORTS[export](x)
    x.resize_(2).resize_(4)  # within the memory that there is
    assert is_twos(exported)
    del exported
    gc.collect()
    assert x.untyped_storage().resizable()
    GROWTHS[growth](x)
    assert x.tolist()[:4] == [2] * 4 or growth == "out"


def test_view_of_an_array_keeps_the_memory():
    x = tenon.full((ELEMENTS,), 2.0)
    part = x.numpy()[10:20]
    x.set_(tenon.ones(5))
    others = reuse_freed_memory()
    assert is_twos(part)
    del others


def test_buffer_of_a_module_that_changes_its_dtype():
    module = tenon.nn.Module()
    module.register_buffer("mean", tenon.full((ELEMENTS,), 2.0))
    exported = module.mean.numpy()
    module.to(tenon.float64)
    others = reuse_freed_memory()
    assert is_twos(exported) and exported.dtype == np.float32
    del others


def test_capsule_that_nobody_takes_gives_the_memory_back():
    x = tenon.ones(4)
    for version in (None, (1, 0)):
        capsule = x.__dlpack__(max_version=version)
        assert not x.untyped_storage().resizable()
        del capsule
        assert x.untyped_storage().resizable()
