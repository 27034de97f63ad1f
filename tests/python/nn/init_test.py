"""nn.init: what each function fills a tensor with, against its definition in float64."""

import math
import statistics

import numpy as np
import pytest

import tenon
from tenon.nn import init


def drawn(f, *shape):
    t = tenon.empty(*shape, dtype=tenon.float64)
    assert f(t) is t
    return t.numpy()


def test_normal_values_within_bounds_have_the_right_quantiles():
    tenon.manual_seed(0)
    normal = statistics.NormalDist(0.5, 2.0)
    a, b = -1.0, 3.0
    values = np.sort(drawn(lambda t: init.trunc_normal_(t, 0.5, 2.0, a, b), 50_000))
    assert values[0] >= a and values[-1] <= b
    share = (np.array([normal.cdf(v) for v in values]) - normal.cdf(a)) / (normal.cdf(b) - normal.cdf(a))
    assert np.abs(share - (np.arange(50_000) + 0.5) / 50_000).max() < 1.95 / math.sqrt(50_000)  # Kolmogorov and Smirnov, 0.1 %
    narrow = drawn(lambda t: init.trunc_normal_(t, 0, 1, 1.9, 4.0), 1000)
    assert 1.9 <= narrow.min() and narrow.max() <= 4
    with pytest.warns(UserWarning, match="more than 2 std away"):
        init.trunc_normal_(tenon.empty(3), 10.0, 1.0, -2, 2)
    with pytest.raises(ValueError, match="a must not be above b"):
        init.trunc_normal_(tenon.empty(3), a=2.0, b=1.0)
    quantiles = [1e-300, 1e-20, 1e-6, 0.01, 0.075, 0.3, 0.5, 0.7, 0.95, 1 - 1e-6, 1 - 1e-15]
    want = [statistics.NormalDist().inv_cdf(q) for q in quantiles]
    np.testing.assert_allclose(init._normal_quantile(tenon.tensor(quantiles, dtype=tenon.float64)).numpy(), want, rtol=1e-13)


@pytest.mark.parametrize("shape", [(5, 5), (7, 3), (3, 7), (4, 2, 3), (1, 6), (6, 1), (40, 40)])
def test_orthogonal_rows_or_columns(shape):
    tenon.manual_seed(1)
    q = drawn(lambda t: init.orthogonal_(t, gain=2.0), *shape).reshape(shape[0], -1)
    small = q.T @ q if q.shape[0] >= q.shape[1] else q @ q.T
    np.testing.assert_allclose(small, 4 * np.eye(min(q.shape)), atol=1e-12)
    assert init.orthogonal_(tenon.empty(shape)).dtype is tenon.float32 and init.orthogonal_(tenon.empty(0, 3)).shape == (0, 3)


def test_orthogonal_matrices_prefer_no_direction():
    tenon.manual_seed(2)
    q = np.stack([drawn(init.orthogonal_, 3, 3) for _ in range(600)])
    assert np.abs(q.mean(0)).max() < 5 * math.sqrt(1 / 3 / 600)
    assert abs((np.linalg.det(q) > 0).mean() - 0.5) < 5 * 0.5 / math.sqrt(600)


def test_what_has_one_value_by_definition():
    assert drawn(init.eye_, 2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    x = np.random.default_rng(0).standard_normal((4, 5))
    w = drawn(init.dirac_, 4, 4, 3)
    assert np.array_equal(np.stack([np.convolve(x[0], w[0, 0][::-1], "same")]), x[:1]) and w.sum() == 4
    grouped = drawn(lambda t: init.dirac_(t, groups=2), 6, 2, 3, 3)
    assert [tuple(i) for i in np.argwhere(grouped)] == [(0, 0, 1, 1), (1, 1, 1, 1), (3, 0, 1, 1), (4, 1, 1, 1)]
    assert drawn(init.zeros_, 2).tolist() == [0, 0] and drawn(init.ones_, 2).tolist() == [1, 1]
    sparse = drawn(lambda t: init.sparse_(t, 0.35, std=2.0), 10, 6)
    assert ((sparse == 0).sum(0) == 4).all()
    gains = [init.calculate_gain(n) for n in ("conv2d", "tanh", "relu", "selu", "leaky_relu")]
    assert gains == [1.0, 5 / 3, math.sqrt(2), 0.75, math.sqrt(2 / (1 + 0.01**2))]


@pytest.mark.parametrize(
    ("f", "deviation"),
    [
        (lambda t: init.xavier_uniform_(t, gain=2.0), 2 * math.sqrt(2 / (60 * 9 + 40 * 9))),
        (lambda t: init.xavier_normal_(t), math.sqrt(2 / (60 * 9 + 40 * 9))),
        (lambda t: init.kaiming_uniform_(t, nonlinearity="relu"), math.sqrt(2 / (60 * 9))),
        (lambda t: init.kaiming_normal_(t, mode="fan_out"), math.sqrt(2 / (40 * 9))),
    ],
)
def test_deviations_follow_from_fans(f, deviation):
    tenon.manual_seed(3)
    values = drawn(f, 40, 60, 3, 3)
    assert abs(values.std() / deviation - 1) < 0.02 and abs(values.mean()) < 5 * deviation / math.sqrt(values.size)


def test_generators_seeds_and_old_names():
    for f in (init.uniform_, init.normal_, init.trunc_normal_, init.orthogonal_, init.xavier_normal_, init.kaiming_uniform_):
        a, b = (f(tenon.empty(4, 4), generator=tenon.Generator().manual_seed(9)) for _ in range(2))
        assert a.tolist() == b.tolist()
    with pytest.warns(FutureWarning, match="nn.init.eye is deprecated in favor of nn.init.eye_"):
        assert init.eye(tenon.empty(1, 1)).tolist() == [[1.0]]
    for call in (
        lambda: init.eye_(tenon.empty(3)),
        lambda: init.dirac_(tenon.empty(3, 2)),
        lambda: init.dirac_(tenon.empty(3, 2, 1), 2),
        lambda: init.orthogonal_(tenon.empty(3)),
        lambda: init.xavier_normal_(tenon.empty(3)),
        lambda: init.calculate_gain("swish"),
        lambda: init.kaiming_normal_(tenon.empty(3, 3), mode="fan"),
    ):
        with pytest.raises(ValueError):
            call()
