"""Views and in-place writes: what may be combined, with which gradients, and what is refused with which error.

Each case starts from a leaf x = [1, 2, 3, 4]; the gradients of results are distinct powers of ten, so that the
expected numbers, derived by hand, show which element went where. The table holds for PyTorch as well: run this file
with `import torch as tenon` to compare.
"""

import pytest

import tenon

POWERS = [1.0, 10.0, 100.0, 1000.0]


def leaf(*values):
    return tenon.tensor(values, requires_grad=True)


def of_result(x):
    y = x * 1
    y.mul_(3)
    return y


def through_a_slice(x):
    y = x * 1
    y[1:3].mul_(5)
    return y


def through_a_column(x):
    y = (x * 1).view(2, 2)
    y.t()[0].mul_(2)
    return y


def of_the_base_seen_by_a_view(x):
    y = x * 1
    v = y[:2]
    y.mul_(7)
    return v


def through_one_view_seen_by_another(x):
    y = x * 1
    a, b = y[:3], y[1:]
    a.mul_(2)
    return b


def through_two_overlapping_views(x):
    y = x * 1
    a, b = y[:3], y[1:]
    a.mul_(2)
    b.mul_(3)
    return y


def into_a_plain_tensor(x):
    y = tenon.zeros(4)
    y[2:] = x[:2] * 2
    return y


def into_a_plain_tensor_seen_by_a_view(x):
    y = tenon.zeros(4)
    v = y[1:3]
    y.copy_(x)
    return v


def of_one_element(x):
    y = x * 1
    y[0] = 9.0
    return y


def of_a_base_seen_expanded(x):
    y = x[:1] * 1
    e = y.expand(4)
    y.mul_(2)
    return e


def by_its_own_leaf(x):
    y = x * 1
    y.mul_(x)
    return y


def with_an_index(x):
    y = x * 1
    y[tenon.tensor([0, 2])] = 0.0
    return y


def with_a_mask(x):
    y = x * 1
    y[x.detach() > 2.5] = 7.0
    return y


def by_a_clamp(x):
    y = x * 1
    y.clamp_(min=2.5)
    return y


def by_a_relu(x):
    y = x - 2.5
    y.relu_()
    return y


def whose_derivative_needs_the_result(x):
    y = x * 0
    y.exp_()
    return y


def of_a_view_of_a_view(x):
    y = x * 1
    y[1:][1:][0].mul_(4)
    return y


def of_a_reshaped_view(x):
    y = x * 1
    y.view(2, 2)[1].add_(tenon.tensor([5.0, 6.0]))
    return y


def of_a_diagonal(x):
    y = (x * 1).view(2, 2)
    y.diagonal().mul_(3)
    return y


def of_elements_already_replaced(x):
    y = x * 1
    y[:2] = 0.0
    y[1:3].mul_(2)
    return y


def after_detach(x):
    y = x * 1
    y.detach().mul_(2)
    return y


def of_a_leaf_outside_recording(x):
    with tenon.no_grad():
        x.mul_(2)
    return x * 1


def of_a_leafs_view_outside_recording(x):
    with tenon.no_grad():
        x[:2].mul_(2)
    return x * x


def of_a_leafs_data(x):
    x.data.add_(1)
    return x * x


def outside_recording_of_a_view_of_a_result(x):
    y = x * 1
    with tenon.no_grad():
        y[:2].mul_(10)
    return y * 1


def of_a_clone_of_a_piece(x):
    a, b = (x * 1).split(2)
    c = a.clone()
    c.mul_(6)
    return tenon.cat([c, b])


def under_enable_grad(x):
    with tenon.no_grad():
        with tenon.enable_grad():
            y = x * 1
            y[:1].mul_(8)
    return y


LEGAL = [
    (of_result, [3, 30, 300, 3000]),
    (through_a_slice, [1, 50, 500, 1000]),
    (through_a_column, [2, 10, 200, 1000]),
    (of_the_base_seen_by_a_view, [7, 70, 0, 0]),
    (through_one_view_seen_by_another, [0, 2, 20, 100]),
    (through_two_overlapping_views, [2, 60, 600, 3000]),
    (into_a_plain_tensor, [200, 2000, 0, 0]),
    (into_a_plain_tensor_seen_by_a_view, [0, 1, 10, 0]),
    (of_one_element, [0, 10, 100, 1000]),
    (of_a_base_seen_expanded, [2222, 0, 0, 0]),
    (by_its_own_leaf, [2, 40, 600, 8000]),
    (with_an_index, [0, 10, 0, 1000]),
    (with_a_mask, [1, 10, 0, 0]),
    (by_a_clamp, [0, 0, 100, 1000]),
    (by_a_relu, [0, 0, 100, 1000]),
    (whose_derivative_needs_the_result, [0, 0, 0, 0]),
    (of_a_view_of_a_view, [1, 10, 400, 1000]),
    (of_a_reshaped_view, [1, 10, 100, 1000]),
    (of_a_diagonal, [3, 10, 100, 3000]),
    (of_elements_already_replaced, [0, 0, 200, 1000]),
    (after_detach, [1, 10, 100, 1000]),
    (of_a_leaf_outside_recording, [1, 10, 100, 1000]),
    (of_a_leafs_view_outside_recording, [4, 80, 600, 8000]),
    (of_a_leafs_data, [4, 60, 800, 10000]),
    (outside_recording_of_a_view_of_a_result, [1, 10, 100, 1000]),
    (of_a_clone_of_a_piece, [6, 60, 100, 1000]),
    (under_enable_grad, [8, 10, 100, 1000]),
]


@pytest.mark.parametrize("build, expected", LEGAL, ids=[f.__name__ for f, _ in LEGAL])
def test_a_legal_write_and_its_gradient(build, expected):
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = build(x)
    y.backward(tenon.tensor(POWERS[: y.numel()]).reshape(y.shape))
    assert x.grad.tolist() == [float(e) for e in expected]


def leaf_written(x):
    x.mul_(2)


def leaf_copied_into(x):
    x.copy_(tenon.ones(4))


def leaf_element_assigned(x):
    x[0] = 1.0


def view_of_a_leaf(x):
    x[:2].mul_(2)


def view_of_a_view_of_a_leaf(x):
    x.view(2, 2).t().mul_(2)


def view_of_a_leaf_with_another_history(x):
    tenon.ones(4)[:2].copy_(x[:2])
    x.view(2, 2)[0].copy_(x[2:] * 2)


def piece_of_a_split(x):
    (x * 1).split(2)[1].mul_(2)


def piece_of_a_chunk(x):
    (x * 1).chunk(2)[0].mul_(2)


def piece_of_an_unbind(x):
    (x * 1).unbind()[0].mul_(2)


def only_piece_of_a_split(x):
    (x * 1).split(4)[0].mul_(2)


def view_of_a_piece(x):
    (x * 1).split(2)[0][:1].mul_(2)


def piece_whose_base_was_written(x):
    y = x * 1
    pieces = y.split(2)
    y.mul_(2)
    pieces[0].grad_fn


def view_made_without_recording(x):
    y = x * 1
    with tenon.no_grad():
        v = y[:2]
    v.mul_(2)


def view_made_without_recording_whose_base_was_written(x):
    y = x * 1
    with tenon.no_grad():
        v = y[:2]
    y.mul_(2)
    v.grad_fn


def inference_tensor_written(x):
    with tenon.inference_mode():
        t = tenon.ones(4)
    t.mul_(x)


def inference_tensor_saved(x):
    with tenon.inference_mode():
        t = tenon.ones(4)
    t * x


def inference_tensor_made_a_leaf(x):
    with tenon.inference_mode():
        t = tenon.ones(4)
    t.requires_grad_()


def out_argument_that_requires_grad(x):
    tenon.mul(x, x, out=tenon.empty(4))


def out_argument_with_a_history(x):
    tenon.add(tenon.ones(4), tenon.ones(4), out=x * 1)


def detach_in_place_of_a_view(x):
    (x * 1)[:2].detach_()


def result_made_a_constant(x):
    (x * 1).requires_grad_(False)


def overlapping_elements_written(x):
    (x[:1] * 1).expand(4).mul_(2)


def argument_overlaps_what_is_written(x):
    y = x * 1
    y[1:].add_(y[:-1])


def saved_argument_changed(x):
    y = x * 1
    z = y.sin()
    y.add_(1)
    z.sum().backward()


def saved_result_changed(x):
    y = x.exp()
    y.add_(1)
    y.sum().backward()


def saved_tensor_changed_through_a_view(x):
    y = x * 1
    z = y * y
    y[:1].zero_()
    z.sum().backward()


def argument_that_is_what_is_written(x):
    y = x * 1
    y.mul_(y)
    y.sum().backward()


def saved_tensor_changed_without_recording(x):
    y = x * 1
    z = y * y
    with tenon.no_grad():
        y.detach()[:1].zero_()
    z.sum().backward()


ILLEGAL = [
    (leaf_written, "a leaf Variable that requires grad"),
    (leaf_copied_into, "a leaf Variable that requires grad"),
    (leaf_element_assigned, "a view of a leaf Variable|a leaf Variable"),
    (view_of_a_leaf, "a view of a leaf Variable that requires grad"),
    (view_of_a_view_of_a_leaf, "a view of a leaf Variable that requires grad"),
    (view_of_a_leaf_with_another_history, "a view of a leaf Variable that requires grad"),
    (piece_of_a_split, "Output 1 of Split(Backward0)? is a view and is being modified inplace.*returns multiple views"),
    (piece_of_a_chunk, "is a view and is being modified inplace.*returns multiple views"),
    (piece_of_an_unbind, "Output 0 of Unbind(Backward0)? is a view.*returns multiple views"),
    (only_piece_of_a_split, "Output 0 of Split(Backward0)? is a view.*returns multiple views"),
    (view_of_a_piece, "is a view and is being modified inplace.*returns multiple views"),
    (piece_whose_base_was_written, "Output 0 of Split(Backward0)? is a view and its base or another view of its base"),
    (view_made_without_recording, "A view was created in no_grad mode and is being modified inplace with grad mode"),
    (
        view_made_without_recording_whose_base_was_written,
        "A view was created in no_grad mode and its base or another view of its base has been modified inplace",
    ),
    (inference_tensor_written, "Inplace update to inference tensor outside InferenceMode is not allowed"),
    (inference_tensor_saved, "Inference tensors cannot be saved for backward"),
    (inference_tensor_made_a_leaf, "Setting requires_grad=True on inference tensor outside InferenceMode"),
    (out_argument_that_requires_grad, "don't support automatic differentiation"),
    (out_argument_with_a_history, "don't support automatic differentiation"),
    (detach_in_place_of_a_view, "Can't detach views in-place"),
    (result_made_a_constant, "you can only change requires_grad flags of leaf variables"),
    (overlapping_elements_written, "more than one element of the written-to tensor refers to|writes some element more than once"),
    (argument_overlaps_what_is_written, "some elements of the input tensor and the written-to tensor refer to|overlap in memory"),
    (saved_argument_changed, "changed in place|modified by an inplace operation"),
    (saved_result_changed, "changed in place|modified by an inplace operation"),
    (saved_tensor_changed_through_a_view, "changed in place|modified by an inplace operation"),
    (argument_that_is_what_is_written, "changed in place|modified by an inplace operation"),
    (saved_tensor_changed_without_recording, "changed in place|modified by an inplace operation"),
]


@pytest.mark.parametrize("write, message", ILLEGAL, ids=[f.__name__ for f, _ in ILLEGAL])
def test_an_illegal_write_and_its_error(write, message):
    x = leaf(1.0, 2.0, 3.0, 4.0)
    with pytest.raises(RuntimeError, match=f"(?s){message}"):
        write(x)
    # Nothing was written.
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_writes_through_views_of_a_tensor_without_history_are_recorded():
    """PyTorch refuses these (docs/differences.md)."""
    w = leaf(5.0, 6.0)
    y = tenon.zeros(4)
    _, piece = y.split(2)
    with tenon.no_grad():
        v = y[:2]
    piece.copy_(w)
    v.copy_(w * 2)
    y.backward(tenon.tensor(POWERS))
    assert w.grad.tolist() == [102.0, 1020.0]


def test_a_view_made_in_inference_mode_is_written_without_history():
    """PyTorch refuses this (docs/differences.md), as both refuse writes to a tensor made there."""
    with tenon.inference_mode():
        t = tenon.ones(2)
    with pytest.raises(RuntimeError, match="inference tensor"):
        t.add_(1)
    # What is written through the view is no history, but no secret either.
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y * y
    with tenon.inference_mode():
        v = y[:1]
    v.mul_(2)
    assert y.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="changed in place"):
        z.sum().backward()
