"""What tensors print as: PyTorch's layout."""

import numpy as np
import pytest

import tenon


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: tenon.tensor(1), "tensor(1)"),
        (lambda: tenon.tensor(1.5), "tensor(1.5000)"),
        (lambda: tenon.tensor(True), "tensor(True)"),
        (lambda: tenon.tensor([]), "tensor([])"),
        (lambda: tenon.tensor([1, 2, 3]), "tensor([1, 2, 3])"),
        (lambda: tenon.tensor([1.0, 2.0]), "tensor([1., 2.])"),
        (lambda: tenon.tensor([1.0, -2.5]), "tensor([ 1.0000, -2.5000])"),
        (lambda: tenon.tensor([[1.0, 2.0], [3.0, 4.0]]), "tensor([[1., 2.],\n        [3., 4.]])"),
        (lambda: tenon.tensor([1, 2], dtype=tenon.int32), "tensor([1, 2], dtype=tenon.int32)"),
        (lambda: tenon.tensor([1.0], dtype=tenon.float64), "tensor([1.], dtype=tenon.float64)"),
        (lambda: tenon.tensor([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
        (lambda: tenon.tensor([float("nan"), float("inf"), 1.0]), "tensor([nan, inf, 1.])"),
        (lambda: tenon.zeros(2, 0), "tensor([], size=(2, 0))"),
        (lambda: tenon.nn.Parameter(tenon.ones(1)), "Parameter containing:\ntensor([1.], requires_grad=True)"),
    ],
)
def test_repr(make, text):
    assert repr(make()) == text
    assert str(make()) == text


@pytest.mark.parametrize(
    ("name", "text"), [("float8_e4m3fn", "[1.0000, 1.1250, 1.2500]"), ("float8_e5m2", "[0.5000, 0.6250, 0.7500]")]
)
def test_every_float8_is_shown_as_its_value(name, text):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    every = np.arange(256, dtype=np.uint8)
    wanted = every.view(getattr(ml_dtypes, name)).astype(np.float64)
    x = tenon.tensor(every).view(getattr(tenon, name))
    np.testing.assert_array_equal(x.tolist(), wanted)
    np.testing.assert_array_equal([e.item() for e in x], wanted)
    assert repr(x[0x38:0x3B]) == f"tensor({text}, dtype=tenon.{name})"


def test_results_name_their_node():
    x = tenon.ones(1, requires_grad=True)
    assert repr(x * (x + 1).detach()) == "tensor([2.], grad_fn=<MulBackward0>)"


def test_describe_shows_the_whole_picture():
    text = tenon.describe(tenon.zeros(3, 4).T)
    for part in ["[4, 3]", "[1, 4]", "48 bytes", "DispatchKeySet(CPU)", "float32"]:
        assert part in text
