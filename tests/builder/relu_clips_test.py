"""The bounds and the slope of relu, as cuDNN defines them, and the sign of mod: values that were worked out by hand."""

import math

import pytest

import tenon
from tenon.graph import pygraph

X = [-10.0, -1.0, 0.0, 1.0, 5.0, 7.0]

# attributes, the values of relu at X, its derivatives there
CLIPS = [
    ({}, [0, 0, 0, 1, 5, 7], [0, 0, 0, 1, 1, 1]),
    ({"upper_clip": 6.0}, [0, 0, 0, 1, 5, 6], [0, 0, 0, 1, 1, 0]),
    ({"lower_clip": 1.0}, [1, 1, 1, 1, 5, 7], [0, 0, 0, 0, 1, 1]),
    ({"negative_slope": 0.5}, [-5, -0.5, 0, 1, 5, 7], [0.5, 0.5, 0.5, 1, 1, 1]),
    ({"negative_slope": 0.5, "lower_clip": 2.0}, [-4, 0.5, 1, 1.5, 5, 7], [0.5, 0.5, 0.5, 0.5, 1, 1]),
    ({"negative_slope": 0.5, "lower_clip": 2.0, "upper_clip": 6.0}, [-4, 0.5, 1, 1.5, 5, 6], [0.5, 0.5, 0.5, 0.5, 1, 0]),
    # The upper bound holds for what the lower branch gives, too.
    ({"negative_slope": -1.0, "upper_clip": 6.0}, [6, 1, 0, 1, 5, 6], [0, -1, -1, 1, 1, 0]),
    ({"negative_slope": 0.5, "upper_clip": -3.0}, [-5, -3, -3, -3, -3, -3], [0.5, 0, 0, 0, 0, 0]),
    ({"lower_clip": 8.0, "upper_clip": 6.0}, [6, 6, 6, 6, 6, 6], [0, 0, 0, 0, 0, 0]),
    ({"lower_clip": 8.0, "upper_clip": 6.0, "negative_slope": 0.0}, [6, 6, 6, 6, 6, 6], [0, 0, 0, 0, 0, 0]),
    ({"lower_clip": 8.0, "upper_clip": 6.0, "negative_slope": 2**-20}, [6, 6, 6, 6, 6, 6], [0, 0, 0, 0, 0, 0]),
    ({"lower_clip": 8.0, "upper_clip": 6.0, "negative_slope": 0.5}, [-1, 3.5, 4, 4.5, 6, 6], [0.5, 0.5, 0.5, 0.5, 0, 0]),
]


def run(g, y, pack, dtype=tenon.float32):
    g.build()
    out = tenon.empty(y.get_dim(), dtype=dtype)
    g.execute({**pack, y: out}, tenon.empty(max(g.get_workspace_size(), 64), dtype=tenon.uint8))
    return out.tolist()


@pytest.mark.parametrize("attributes, values, slopes", CLIPS, ids=lambda v: str(v) if isinstance(v, dict) else "")
def test_relu_and_its_derivative(attributes, values, slopes):
    x, loss = tenon.tensor(X), tenon.tensor([2.0] * len(X))
    g = pygraph()
    t = g.tensor_like(x)
    y = g.relu(t, **attributes).set_output(True)
    assert run(g, y, {t: x}) == values
    g = pygraph()
    t, d = g.tensor_like(x), g.tensor_like(loss)
    y = g.relu_backward(d, t, **attributes).set_output(True)
    assert run(g, y, {t: x, d: loss}) == [2 * slope for slope in slopes]


@pytest.mark.parametrize("attributes, values", [(a, v) for a, v, _ in CLIPS if not a.get("negative_slope")], ids=str)
def test_whole_numbers_stay_exact(attributes, values):
    x = tenon.tensor([*map(int, X), 2**24 + 1], dtype=tenon.int32)
    g = pygraph()
    t = g.tensor_like(x)
    y = g.relu(t, **{name: int(value) for name, value in attributes.items()}).set_output(True)
    assert run(g, y, {t: x}, tenon.int32) == [*values, 6 if "upper_clip" in attributes else 2**24 + 1]


def test_no_number_stays_none():
    x = tenon.tensor([math.nan])
    for attributes in ({}, {"negative_slope": 0.5, "lower_clip": 1.0, "upper_clip": 6.0}, {"upper_clip": 6.0}):
        g = pygraph()
        t = g.tensor_like(x)
        y = g.relu(t, **attributes).set_output(True)
        assert math.isnan(run(g, y, {t: x})[0])


def test_a_remainder_has_the_sign_of_the_dividend():
    for dtype in (tenon.float32, tenon.int32):
        a, b = tenon.tensor([7, -7, 7, -7], dtype=dtype), tenon.tensor([3, 3, -3, -3], dtype=dtype)
        g = pygraph()
        ta, tb = g.tensor_like(a), g.tensor_like(b)
        y = g.mod(ta, tb).set_output(True)
        assert run(g, y, {ta: a, tb: b}, dtype) == [1, -1, 1, -1]
