"""gradcheck and gradgradcheck find wrong derivatives and accept right ones, with PyTorch's arguments."""

import random

import pytest

import tenon
from tenon.autograd import gradcheck, gradgradcheck
from tenon.autograd.gradcheck import GRADIENT_LAYOUTS, GradcheckError, gradient_of_layout


def leaf(*shape):
    return tenon.randn(*shape, dtype=tenon.float64, requires_grad=True)


def detached(x):
    """x squared, with half of its derivative."""
    return x * x.detach()


def test_right_derivatives_pass():
    x, y = leaf(2, 3), leaf(3)
    assert gradcheck(lambda a, b: a.exp() * b, (x, y), grad_layouts=GRADIENT_LAYOUTS)
    assert gradgradcheck(lambda a, b: a.exp() * b, (x, y), grad_layouts=GRADIENT_LAYOUTS)
    assert gradcheck(tenon.sin, x, fast_mode=True) and gradgradcheck(tenon.sin, x, fast_mode=True)
    assert gradgradcheck(lambda a: 3 * a, x)  # constant first derivatives


def test_the_inputs_are_as_before():
    x = leaf(2, 2).detach().t().requires_grad_()
    before = x.tolist()
    gradcheck(tenon.exp, x)
    gradcheck(tenon.exp, x, fast_mode=True)
    assert x.tolist() == before and x.grad is None


@pytest.mark.parametrize("fast_mode", [False, True])
def test_wrong_derivatives_are_found(fast_mode):
    x = leaf(2, 2)
    with pytest.raises(GradcheckError, match="gradient of input 0"):
        gradcheck(detached, x, fast_mode=fast_mode)
    assert not gradcheck(detached, x, raise_exception=False, fast_mode=fast_mode)
    # The first derivative of a * a.detach() is a constant; of its square it is not.
    assert not gradgradcheck(lambda a: detached(a) ** 2, x, raise_exception=False, fast_mode=fast_mode)


def test_several_outputs_and_constants():
    x, c = leaf(4), tenon.ones(4, dtype=tenon.float64)
    assert gradcheck(lambda a, b: (a * b, a.sum(), b + 1), (x, c))
    assert gradcheck(lambda a, b: (a * b, a.sum()), (x, c), check_undefined_grad=False)
    assert gradcheck(lambda a, b: a.max(0), (x, c))  # the indices have no derivative


@pytest.mark.parametrize("layout", GRADIENT_LAYOUTS)
def test_gradients_have_the_layout(layout):
    g = gradient_of_layout(tenon.zeros(2, 3, dtype=tenon.float64), layout, random.Random(1))
    want = {"contiguous": (3, 1), "transposed": (1, 2), "expanded": (0, 1), "negative": (-3, -1), "sliced": (7, 2)}
    assert tuple(g.shape) == (2, 3) and g.stride() == want[layout]


def test_what_cannot_be_checked_is_refused():
    x = leaf(2)
    with pytest.raises(ValueError, match="no input requires grad"):
        gradcheck(tenon.exp, x.detach())
    with pytest.raises(ValueError, match="no output requires grad"):
        gradcheck(lambda a: a > 0, x)
    with pytest.raises(ValueError, match="stride 0"):
        gradcheck(tenon.exp, leaf(1).detach().expand(3).requires_grad_())
    for option in ("check_forward_ad", "check_batched_grad", "check_batched_forward_grad", "masked"):
        with pytest.raises(NotImplementedError, match=option):
            gradcheck(tenon.exp, x, **{option: True})
    with pytest.raises(NotImplementedError):
        gradgradcheck(tenon.exp, x, check_fwd_over_rev=True)
    with pytest.raises(ValueError, match="none of"):
        gradcheck(tenon.exp, x, grad_layouts=["sideways"])


def test_a_backward_that_changes_its_mind_is_found():
    x = leaf(3)

    def unsteady(a):
        y = a * 2
        y.register_hook(lambda g: g + tenon.rand(3, dtype=tenon.float64) * 1e-9)
        return y

    assert not gradcheck(unsteady, x, raise_exception=False)
    assert gradcheck(unsteady, x, nondet_tol=1e-6)


def test_gradient_dtypes_are_checked_when_asked():
    x = leaf(2)
    assert gradcheck(lambda a: a * 2.0, x, check_grad_dtypes=True)
