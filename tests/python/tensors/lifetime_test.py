"""Who keeps whom alive: tensors, their Python objects, weak references, and gradients that are read while they grow."""

import gc
import weakref

import numpy
import pytest

import tenon
from tenon import nn


def test_a_weak_reference_finds_the_tensor_that_only_the_graph_keeps():
    x = tenon.ones(2, requires_grad=True)
    seen = weakref.ref(x)
    y = x * x
    del x
    found = seen()
    assert found.shape == (2,)
    y.sum().backward()
    assert found.grad.tolist() == [2.0, 2.0]
    del y, found
    gc.collect()
    assert seen() is None


def test_a_finalizer_sees_its_tensor_and_may_keep_it():
    kept = []

    class Keeper(nn.Parameter):
        def __del__(self):
            kept.append((self.shape, self.requires_grad, self))

    x = Keeper(tenon.ones(3))
    y = x * x
    del x
    assert not kept
    del y
    gc.collect()
    (shape, requires_grad, tensor), = kept
    assert shape == (3,) and requires_grad
    assert tensor.tolist() == [1.0, 1.0, 1.0]
    (tensor * 2).sum().backward()
    assert tensor.grad.tolist() == [2.0, 2.0, 2.0]


def test_retained_gradients_are_those_of_the_tensor_after_a_write():
    x = tenon.ones(3, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0, 1.0]
    assert x.grad.tolist() == [6.0, 6.0, 6.0]


def test_a_kernel_may_read_the_gradient_that_it_adds_to():
    from tenon.library import Library

    x = tenon.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    with Library("aten", "IMPL") as library:
        library.impl("add_.Tensor", lambda a, b, **options: (x.grad, a)[1], "CPU")
        (x * 2).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_arrays_beside_tensors_are_tensors(dtype):
    x = tenon.tensor([1, 2, 3]).to(getattr(tenon, dtype))
    array = numpy.array([1, 5, 3], dtype=dtype)
    assert (x == array).tolist() == [True, False, True]
    assert (x != array).tolist() == [False, True, False]
    assert (x < array).tolist() == [False, True, False]
    product = x * array
    assert isinstance(product, tenon.Tensor) and product.tolist() == [1, 10, 9]
    x += array
    assert isinstance(x, tenon.Tensor) and x.tolist() == [2, 7, 6]
