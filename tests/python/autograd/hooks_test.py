"""Hooks: on gradients, on nodes, on leaves, on what is saved; and anomaly mode."""

import threading
import warnings

import pytest

import tenon
from tenon.autograd import graph


def leaf(*values):
    return tenon.tensor(values, requires_grad=True)


def test_hooks_run_in_order_and_see_each_other():
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * 3).backward()
    assert seen == [[30.0]] and x.grad.tolist() == [60.0]


def test_a_handle_removes_its_hook_also_from_inside():
    x = leaf(1.0)
    calls = []
    handle = x.register_hook(lambda g: (calls.append(1), handle.remove())[0])
    with x.register_hook(lambda g: g * 0):
        (x * 2).backward()
        assert x.grad.tolist() == [0.0]
    (x * 2).backward()
    assert calls == [1] and x.grad.tolist() == [2.0]
    handle.remove()


def test_a_hook_stays_with_the_value_that_it_was_registered_on():
    x = leaf(1.0)
    y = x * 2
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.item()))
    y.mul_(5)
    y.backward()
    assert seen == [5.0]
    handle.remove()


@pytest.mark.parametrize(
    "result, error, match",
    [
        (lambda g: tenon.ones(3), RuntimeError, "has changed the size of value"),
        (lambda g: g.double(), RuntimeError, "has changed the type of value"),
        (lambda g: tenon.ones(2, device="meta"), RuntimeError, "has changed the device of value"),
        (lambda g: 3, TypeError, "must return a Tensor or None, not int"),
        (lambda g: {}["missing"], KeyError, "missing"),
    ],
)
def test_what_a_hook_returns_is_checked(result, error, match):
    x = leaf(1.0, 2.0)
    y = x * 2
    handle = y.register_hook(result)
    z = y.sum()
    with pytest.raises(error, match=match):
        z.backward(retain_graph=True)
    # The failed pass left nothing behind.
    handle.remove()
    x.grad = None
    z.backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_node_hooks_before_and_after():
    x, w = leaf(3.0), leaf(4.0)
    y = x * w
    log = []

    def before(grads):
        log.append([g.item() for g in grads])
        return (grads[0] * 10,)

    def after(results, grads):
        log.append([t.item() for t in results] + [g.item() for g in grads])
        return results[0], None

    node = y.grad_fn
    node.register_prehook(before)
    handle = node.register_hook(after)
    y.backward(retain_graph=True)
    assert log == [[1.0], [40.0, 30.0, 10.0]]
    assert x.grad.tolist() == [40.0] and w.grad is None
    handle.remove()
    y.backward()
    assert w.grad.tolist() == [30.0]


def test_what_node_hooks_return_is_checked():
    y = leaf(1.0) * leaf(2.0)
    handle = y.grad_fn.register_hook(lambda results, grads: (None,))
    with pytest.raises(RuntimeError, match="incorrect number of values"):
        y.backward(retain_graph=True)
    handle.remove()
    with y.grad_fn.register_hook(lambda results, grads: (tenon.ones(3), None)):
        with pytest.raises(RuntimeError, match="has changed the size of value"):
            y.backward(retain_graph=True)
    y.grad_fn.register_prehook(lambda grads: 5)
    with pytest.raises(TypeError, match="must return Tensors or None"):
        y.backward()
    with pytest.raises(TypeError):
        y.grad_fn.register_hook(3)


def test_post_accumulate_hooks_see_the_leaf_itself():
    x = leaf(1.0, 2.0)
    seen = []

    def step(p):
        assert p is x
        seen.append(p.grad.tolist())
        with tenon.no_grad():
            p.sub_(p.grad)
        p.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    assert seen == [[2.0, 2.0]] and x.tolist() == [-1.0, 0.0] and x.grad is None
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(step)
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        tenon.ones(1).register_post_accumulate_grad_hook(step)
    x.register_post_accumulate_grad_hook(lambda p: p)
    with pytest.raises(RuntimeError, match="should return None"):
        x.sum().backward()


def test_a_leaf_with_a_hook_is_freed():
    freed = []

    class Note:
        def __del__(self):
            freed.append(True)

    x = leaf(1.0)
    note = Note()
    x.register_post_accumulate_grad_hook(lambda p, note=note: None)
    x.register_hook(lambda g, note=note: None)
    del note, x
    assert freed == [True]


def test_retain_grad_keeps_the_replaced_gradient():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 7)
    (y * 3).backward()
    assert y.grad.tolist() == [21.0]
    with pytest.raises(RuntimeError, match="can't retain_grad"):
        tenon.ones(1).retain_grad()


def test_backward_inside_a_hook():
    x, z = leaf(2.0), leaf(5.0)

    def hook(g):
        assert not tenon.is_grad_enabled()
        with tenon.enable_grad():
            (z * z).backward()

    y = x * x
    y.register_hook(hook)
    y.backward()
    assert x.grad.tolist() == [4.0] and z.grad.tolist() == [10.0]


def test_saved_tensors_hooks():
    packed = []

    def pack(t):
        packed.append(t.tolist())
        assert not t.requires_grad and not tenon.is_grad_enabled()
        return len(packed) - 1

    def unpack(i):
        return tenon.tensor(packed[i])

    x, w = leaf(2.0), leaf(3.0)
    with graph.saved_tensors_hooks(pack, unpack):
        y = x * w
        z = y.exp()
    assert packed == [[2.0], [3.0], [z.item()]]
    packed[1] = [100.0]  # what backward gets is what unpack returns
    y.backward(retain_graph=True)
    assert x.grad.tolist() == [100.0] and w.grad.tolist() == [2.0]
    # Second derivatives lead to what was packed.
    x.grad = None
    with graph.saved_tensors_hooks(pack, unpack):
        cube = x * x * x
    (first,) = tenon.autograd.grad(cube, x, create_graph=True)
    assert tenon.autograd.grad(first, x)[0].tolist() == [12.0]


def test_saved_tensors_hooks_that_misbehave():
    x = leaf(2.0)
    with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        with graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
            (x * 1).exp()
    with graph.saved_tensors_hooks(lambda t: t, lambda t: "text"):
        y = x.exp()
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of type str"):
        y.backward()
    with pytest.raises(ZeroDivisionError):
        with graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t):
            x.exp()
    assert x.exp().requires_grad  # the hooks are off again


def test_innermost_hooks_apply_and_can_be_forbidden():
    x = leaf(2.0)
    outer, inner = [], []
    with graph.saved_tensors_hooks(lambda t: outer.append(1) or t, lambda t: t):
        x.exp()
        with graph.saved_tensors_hooks(lambda t: inner.append(1) or t, lambda t: t):
            x.exp()
    assert (len(outer), len(inner)) == (1, 1)
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                pass
    with graph.save_on_cpu():
        y = x.exp()
    y.backward()
    assert x.grad.item() == y.item()


def test_anomaly_mode_names_the_forward_call():
    x = leaf(0.0)
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled") as caught:
        mode = tenon.autograd.detect_anomaly()
    assert caught[0].filename == __file__
    with mode:
        y = x.sqrt() * 0  # the line that is named
        with pytest.warns(UserWarning, match=r"(?s)Error detected in SqrtBackward0.*the line that is named"):
            with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"):
                y.backward()
    assert not tenon.is_anomaly_enabled()
    (x.sqrt() * 0).backward()
    assert x.grad.isnan().all()


def test_anomaly_mode_without_nan_and_for_other_errors():
    x = leaf(0.0)
    with tenon.autograd.set_detect_anomaly(True, check_nan=False):
        assert tenon.is_anomaly_enabled() and not tenon.is_anomaly_check_nan_enabled()
        (x.sqrt() * 0).backward()
        y = x.exp()
        z = y.exp()
        y.add_(1)
        with pytest.warns(UserWarning, match=r"Error detected in Exp"):
            with pytest.raises(RuntimeError, match="changed in place"):
                z.backward()
    y = x.sqrt() * 0
    with tenon.autograd.set_detect_anomaly(True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError, match="nan"):
            y.backward()
    assert "No forward pass information available" in str(caught[0].message)


def test_anomaly_mode_names_the_pass_that_recorded():
    x = leaf(0.0)
    with tenon.autograd.set_detect_anomaly(True, check_nan=False):
        (first,) = tenon.autograd.grad(x.sqrt() * 0 + x * x, x, create_graph=True)
    with tenon.autograd.set_detect_anomaly(True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError, match="nan"):
            first.backward()
    assert "Previous calculation was induced by SqrtBackward0" in str(caught[0].message)


def test_threads_run_hooks_side_by_side():
    x = leaf(1.0)
    y = x * 2
    calls = []
    y.register_hook(lambda g: calls.append(1))
    errors = []

    def work():
        try:
            for _ in range(100):
                y.backward(retain_graph=True)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and len(calls) == 400 and x.grad.tolist() == [800.0]


def test_a_detached_tensor_keeps_its_hooks():
    w, seen = leaf(1.0, 2.0), []
    y = w * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    removed = y.register_hook(lambda g: seen.append("removed"))
    z = y * 5
    y.detach_()
    removed.remove()
    y.requires_grad_()
    (y * 3).sum().backward()
    assert seen == [[3, 3]] and y.grad.tolist() == [3, 3] and w.grad is None
    # What was computed before has the same hooks.
    z.sum().backward()
    assert seen == [[3, 3], [5, 5]] and w.grad.tolist() == [10, 10]


def test_hooks_of_a_detached_tensor_can_replace_the_gradient_and_be_removed():
    y = leaf(1.0, 2.0) * 2
    handle = y.register_hook(lambda g: g * 10)
    y.detach_()
    y.requires_grad_()
    y.sum().backward()
    assert y.grad.tolist() == [10, 10]
    y.detach_()
    y.requires_grad_()
    y.sum().backward()
    handle.remove()
    y.sum().backward()
    assert y.grad.tolist() == [21, 21]


def test_hooks_of_a_detached_tensor_end_when_it_is_written():
    w, seen = leaf(1.0), []
    y = w * 2
    y.register_hook(lambda g: seen.append("first"))
    y.detach_()
    y.mul_(w)
    y.register_hook(lambda g: seen.append("second"))
    y.sum().backward()
    assert seen == ["second"]
    y.detach_()
    y.requires_grad_()
    y.sum().backward()
    assert seen == ["second", "second"]


def test_hooks_of_one_result_of_several_stay_with_it():
    x, seen = leaf(1.0, 2.0, 3.0), []
    values, indices = (x * 1).sort()
    values.register_hook(lambda g: seen.append(g.tolist()))
    first, second = tenon.std_mean(x * 1, 0)
    second.register_hook(lambda g: seen.append("mean"))
    first.detach_()
    first.requires_grad_()
    first.backward()
    assert seen == [] and first.grad.item() == 1
