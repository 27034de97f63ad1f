"""Pending tensors that are resized, moved into others, made leaves, or emptied: the header changes as eager's does."""

import gc

import pytest
from beside_eager import alike, same

import tenon


def x_of(*shape):
    return tenon.linspace(-1, 2, tenon.ones(shape).numel()).reshape(shape)


def resized(x):
    y = x * 2
    y.resize_(2)
    z = y + 1
    y.resize_(3, 3)[2:].zero_()
    return y[2:], z, y[0, :2] + 0


def set_to_another(x):
    y = x * 2
    z = x + 1
    y.set_(z)
    z.add_(1)
    return y, z, y.data_ptr() == z.data_ptr()


def set_to_a_storage(x):
    y = x * 2
    v = tenon.empty(0).set_(y.untyped_storage(), 1, (2, 2), (1, 1))
    y.add_(1)
    return v, v + 1


def data_assigned(x):
    y = x * 2
    y.data = x + 5
    x.data = y * 3
    return y, x + y


def detached(x):
    y = x * 2
    z = y.detach()
    z.add_(1)
    y.detach_()
    return y, z, y.requires_grad


def made_a_leaf(x):
    y = x.detach() * 2
    y.requires_grad_()
    z = (y * y).sum()
    z.backward()
    return y, z


def swapped_names(x):
    x, y = x * 2, x + 1
    x, y = y, x
    return x - y


@pytest.mark.parametrize("f", [resized, set_to_another, set_to_a_storage, data_assigned, detached, made_a_leaf, swapped_names])
def test_headers(f):
    same(f, x_of(4))


def test_a_result_is_an_ordinary_tensor_afterwards():
    def program(c):
        y, v = c(lambda x: (x * 2, (x + 1)[1:]))(x_of(4))
        resizable = y.untyped_storage().resizable(), y.untyped_storage().nbytes(), v.untyped_storage().nbytes()
        y.resize_(100)[4:].fill_(3.0)
        v.untyped_storage().resize_(4 * 50)
        return y, resizable, v.untyped_storage().nbytes(), v

    alike(program)


def test_results_of_every_size_are_resized_afterwards():
    def program(c):
        results = []
        for n in (1, 200, 225, 5000, 40_000, 300_000):
            y = c(lambda x: x * 2 + 1)(x_of(n))
            y.resize_(n + 10)[n:].zero_()
            results.append(y)
        return results

    alike(program)


def test_a_temporary_that_dies_pending():
    def f(x):
        y = x * 2
        del y
        z = x + 1
        z = z * 2
        v = (x - 1)[1:]
        gc.collect()
        return z, v

    same(f, x_of(4))


def test_escaped_tensors_have_their_values():
    kept = {}

    class Box:
        pass

    def program(c):
        kept.clear()
        box, cell = Box(), None

        def f(x):
            nonlocal cell
            kept["dict"] = [x * 2]
            box.attribute = x + 1
            cell = x - 1
            raise_later = RuntimeError("holds a tensor")
            raise_later.tensor = x.exp()
            raise raise_later

        try:
            c(f)(x_of(4))
        except RuntimeError as e:
            held = e.tensor
        return kept["dict"][0], box.attribute, cell, held

    alike(program)


def test_escaped_tensors_hold_nothing_else_alive():
    def f(x):
        a = x.exp()
        b = a * 2
        return (b + a)[:3]

    tenon.cpu.empty_cache()
    x = x_of(1 << 18)
    before = tenon.cpu.memory_allocated()
    y = f(x)
    eager = tenon.cpu.memory_allocated() - before
    del y
    compiled = tenon.compile(f, threshold=0)
    y = compiled(x)
    gc.collect()
    assert tenon.cpu.memory_allocated() - before == eager
    assert y.untyped_storage().nbytes() == 4 << 18
    del y
    gc.collect()
    assert tenon.cpu.memory_allocated() == before


def test_inputs_are_let_go_after_the_end():
    def f(x):
        return x * 2

    compiled = tenon.compile(f, threshold=0)
    tenon.cpu.empty_cache()
    before = tenon.cpu.memory_allocated()
    for _ in range(3):
        y = compiled(x_of(1 << 18))
        assert tenon.cpu.memory_allocated() - before == 4 << 18
        del y
    assert tenon.cpu.memory_allocated() == before


def test_weak_references_and_attributes_of_pending_tensors():
    def program(c):
        import weakref

        def f(x):
            y = x * 2
            y.note = "mine"
            gone = weakref.ref(x + 1)
            gc.collect()
            return y, y.note, gone() is None

        return c(f)(x_of(3))

    alike(program)
