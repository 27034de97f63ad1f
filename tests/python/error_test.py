"""What an error says: the operator that was called, not one inside it; and nothing has changed."""

import pytest

import tenon
import tenon.nn.functional as F

three = tenon.ones(3)
meta = tenon.ones(2, device="meta")


@pytest.mark.parametrize(
    ("call", "operator"),
    [
        # Factories allocate, reductions share a shape function, composites call others.
        (lambda: tenon.zeros(-1), "zeros"),
        (lambda: tenon.ones(2, -1), "ones"),
        (lambda: tenon.randn(-2), "randn"),
        (lambda: tenon.full((-2,), 1.0), "full"),
        (lambda: tenon.arange(2**61), "arange"),
        (lambda: tenon.arange(3).std(), "std"),
        (lambda: three.std(3), "std"),
        (lambda: three.amin(3), "amin"),
        (lambda: tenon.empty(0).min(), "min"),
        (lambda: three.min(4), "min"),
        (lambda: tenon.empty(0).argmin(), "argmin"),
        (lambda: three.any(4), "any"),
        (lambda: three.prod(4), "prod"),
        (lambda: three.log_softmax(3), "log_softmax"),
        (lambda: three @ tenon.ones(2), "matmul"),
        (lambda: tenon.ones(2, 3) @ tenon.ones(2), "matmul"),
        (lambda: tenon.ones(2, 3) @ tenon.ones(2, 2), "matmul"),
        (lambda: tenon.ones(2, 2, 3) @ tenon.ones(3, 2, dtype=tenon.float64), "matmul"),
        (lambda: F.linear(tenon.ones(2, 3), tenon.ones(4, 3), tenon.ones(3)), "linear"),
        (lambda: F.cross_entropy(tenon.ones(2, 3), tenon.tensor([0])), "cross_entropy_loss"),
        (lambda: F.cross_entropy(tenon.ones(2, 3), tenon.tensor([0, 7])), "cross_entropy_loss"),
        (lambda: F.mse_loss(tenon.ones(2, 3), tenon.ones(2)), "mse_loss"),
        (lambda: three.masked_select(tenon.tensor([True, False])), "masked_select"),
        (lambda: three.clamp(tenon.ones(2)), "clamp"),
        (lambda: three.expand_as(tenon.ones(2)), "expand_as"),
        (lambda: tenon.allclose(three, tenon.ones(2)), "allclose"),
        (lambda: meta.type_as(three), "type_as"),
        (lambda: tenon.max(three, tenon.ones(2)), "max"),
        (lambda: three.add_(tenon.ones(2, 3)), "add_"),
    ],
)
def test_an_error_names_the_operator_that_was_called(call, operator):
    with pytest.raises((ValueError, TypeError, IndexError, NotImplementedError)) as caught:
        call()
    assert str(caught.value).startswith(operator + ": ")


def test_matmul_names_its_own_arguments():
    with pytest.raises(ValueError, match=r"`self` \[3\] and `other` \[2\] cannot be multiplied"):
        three @ tenon.ones(2)
    with pytest.raises(TypeError, match="`other` is float64, `self` is float32"):
        three @ tenon.ones(3, dtype=tenon.float64)
    with pytest.raises(ValueError, match=r"expected `bias` of 4 elements"):
        F.linear(tenon.ones(2, 3), tenon.ones(4, 3), tenon.ones(3))


@pytest.mark.parametrize(
    ("convert", "error"), [(float, ValueError), (int, ValueError), (complex, ValueError), (bool, RuntimeError)]
)
def test_many_elements_are_no_number(convert, error):
    with pytest.raises(error, match="2 elements"):
        convert(tenon.zeros(2))


@pytest.mark.parametrize("call", [lambda t: t.chunk(2**62), lambda t: t.expand(2**62, 0).unbind(), lambda t: t.expand(2**62, 0).split(1)])
def test_more_views_than_memory_holds_are_refused(call):
    with pytest.raises(ValueError, match="views are more than"):
        call(tenon.empty(0))


def test_cat_does_not_overflow():
    with pytest.raises(ValueError, match="cat: the sizes in dimension 0 add up to more than int64"):
        tenon.cat([tenon.empty(2**62, 0), tenon.empty(2**62, 0)])
def test_no_output_is_resized_before_all_are_checked():
    values, indices = tenon.empty(0), tenon.empty(0, dtype=tenon.bool)
    x = tenon.ones(2, 3)
    with pytest.raises(TypeError, match="max: the result is int64"):
        tenon.max(x, 1, out=(values, indices))
    assert values.shape == (0,) and indices.shape == (0,)


