"""Functions under `tenon` that are written in Python: copies of views, other names, counts, low ranks, recurrent layers, switches."""

import re
import warnings

import numpy as np
import pytest

import tenon
from tenon import _functions

RNG = np.random.default_rng(11)


def tensor(*shape):
    return tenon.tensor(RNG.standard_normal(shape))


def test_the_table_lists_what_the_modules_have():
    import importlib

    for module, names in _functions.NAMES.items():
        own = vars(importlib.import_module(f"tenon._functions.{module}"))
        public = {n for n in own if not n.startswith("_") and (getattr(own[n], "__module__", "") or "").startswith(("tenon._functions", "tenon._C"))}
        assert set(names.split()) <= set(own) and public <= {*names.split(), "TYPE_CHECKING"}, module


X = tensor(4, 3)
COPIES = [
    ("alias_copy", (X,), lambda a: a),
    ("as_strided_copy", (X, [2, 2], [1, 3], 1), lambda a: np.lib.stride_tricks.as_strided(a.ravel()[1:], (2, 2), (8, 24))),
    ("detach_copy", (X,), lambda a: a),
    ("diagonal_copy", (X, -1), lambda a: np.diagonal(a, -1)),
    ("expand_copy", (X[:, :1], [4, 2]), lambda a: np.broadcast_to(a[:, :1], (4, 2))),
    ("permute_copy", (X, [1, 0]), lambda a: a.T),
    ("select_copy", (X, 1, 2), lambda a: a[:, 2]),
    ("slice_copy", (X, 0, 1, None, 2), lambda a: a[1::2]),
    ("squeeze_copy", (X[:, None],), lambda a: a),
    ("squeeze_copy", (X[:, None], 1), lambda a: a),
    ("t_copy", (X,), lambda a: a.T),
    ("transpose_copy", (X, 0, 1), lambda a: a.T),
    ("unfold_copy", (X, 0, 2, 2), lambda a: a.reshape(2, 2, 3).swapaxes(1, 2)),
    ("unsqueeze_copy", (X, 0), lambda a: a[None]),
    ("view_copy", (X, [3, 4]), lambda a: a.reshape(3, 4)),
    ("view_copy", (X, tenon.int64), lambda a: a.view(np.int64)),
    ("view_as_complex_copy", (X[:, :2].contiguous(),), lambda a: a[:, 0] + 1j * a[:, 1]),
]


@pytest.mark.parametrize(("name", "args", "want"), COPIES)
def test_copies_of_views(name, args, want):
    function, want = getattr(tenon, name), want(X.numpy())
    got = function(*args)
    np.testing.assert_array_equal(got.numpy(), want)
    assert got.is_contiguous() and got.untyped_storage().data_ptr() != X.untyped_storage().data_ptr()
    out = tenon.empty(0, dtype=got.dtype)
    assert function(*args, out=out) is out and out.equal(got)


def test_lists_of_copies():
    for name, args, want in (
        ("split_copy", (X, 3), [X.numpy()[:3], X.numpy()[3:]]),
        ("split_with_sizes_copy", (X, [1, 3]), [X.numpy()[:1], X.numpy()[1:]]),
        ("unbind_copy", (X,), list(X.numpy())),
        ("unsafe_split", (X, 3), [X.numpy()[:3], X.numpy()[3:]]),
        ("unsafe_split_with_sizes", (X, [1, 3]), [X.numpy()[:1], X.numpy()[1:]]),
    ):
        outs = [tenon.empty(0, dtype=X.dtype) for _ in want]
        assert getattr(tenon, name)(*args, out=outs) is None
        for got, out, there in zip(getattr(tenon, name)(*args), outs, want, strict=True):
            np.testing.assert_array_equal(got.numpy(), there)
            assert out.equal(got)
    assert [len(t) for t in tenon.unsafe_chunk(X, 2)] == [2, 2]
    base = tenon.arange(6.0).reshape(3, 2)
    assert tenon.slice_inverse(base[0:2], base, 0, 0, 2).shape == (3, 2)
    with pytest.raises(RuntimeError, match="slice_inverse: the slice of src is"):
        tenon.slice_inverse(base, base, 0, 0, 2)
    assert tenon.view_as_real_copy(tenon.tensor([1 + 2j])).tolist() == [[1, 2]]


def test_out_is_checked():
    for call, kind, text in (
        (lambda: tenon.t_copy(X, out=3), TypeError, "out must be a Tensor"),
        (lambda: tenon.t_copy(X, out=tenon.empty(0, dtype=tenon.int32)), RuntimeError, "cannot hold"),
        (lambda: tenon.t_copy(X, out=tenon.empty(0, dtype=X.dtype, requires_grad=True)), RuntimeError, "no gradient is recorded"),
        (lambda: tenon.unbind_copy(X, out=[tenon.empty(0)]), TypeError, "a list of 4 Tensors"),
    ):
        with pytest.raises(kind, match=text):
            call()


def test_other_names():
    a, b = tensor(3, 3), tensor(3, 3)
    np.testing.assert_array_equal(tenon.arctan2(a, b).numpy(), tenon.atan2(a, b).numpy())
    np.testing.assert_allclose(tenon.ger(a[0], b[0]).numpy(), np.outer(a[0].numpy(), b[0].numpy()))
    assert tenon.adjoint(tenon.tensor([[1j, 2]])).tolist() == [[-1j], [2]] and tenon.ones(2)[tenon.newaxis].shape == (1, 2)
    with pytest.warns(UserWarning, match="cross: give `dim`"):
        np.testing.assert_allclose(tenon.cross(a, b).numpy(), np.cross(a.numpy(), b.numpy(), axis=0))
    np.testing.assert_allclose(tenon.cross(a, b, 1).numpy(), np.cross(a.numpy(), b.numpy()))
    np.testing.assert_allclose(tenon.logspace(-1, 2, 4, dtype=tenon.float64).numpy(), np.logspace(-1, 2, 4), rtol=1e-15)
    np.testing.assert_allclose(tenon.logspace(0, 3, 4, 2).numpy(), [1, 2, 4, 8])
    with pytest.warns(UserWarning, match="range: use arange"):
        assert tenon.range(1, 4).tolist() == [1, 2, 3, 4] and tenon.range(0, 1, 0.5).tolist() == [0, 0.5, 1]
    np.testing.assert_allclose(tenon.frobenius_norm(a, [0, 1]).item(), np.linalg.norm(a.numpy()))
    np.testing.assert_allclose(tenon.nuclear_norm(a).item(), np.linalg.norm(a.numpy(), "nuc"))
    np.testing.assert_allclose(tenon.norm_except_dim(a, 2, 1).numpy(), np.linalg.norm(a.numpy(), axis=0, keepdims=True))
    np.testing.assert_allclose(tenon.norm_except_dim(a, 2, -1).item(), np.linalg.norm(a.numpy()))
    assert tenon.empty_permuted([2, 3, 4], [2, 0, 1]).stride() == (3, 1, 6)
    assert tenon.is_same_size(a, b) and not tenon.is_same_size(a, b[0]) and tenon.get_device(a) == -1 and tenon.is_signed(a)
    flags = (tenon.is_conj(a), tenon.is_neg(a), tenon.is_inference(a), tenon.is_distributed(a), tenon.is_vulkan_available(), tenon.has_mkl)
    assert not any(flags) and not tenon.cudnn_is_acceptable(a) and tenon.has_lapack and tenon.has_openmp and tenon.has_spectral
    assert tenon.resolve_neg(a) is a and tenon.from_dlpack(tenon.to_dlpack(a)).equal(a)
    assert tenon.legacy_contiguous_format is tenon.contiguous_format and tenon.compiled_with_cxx11_abi()


def test_functions_in_place():
    x = tenon.tensor([4, 6])
    assert tenon.gcd_(x, tenon.tensor([6, 4])) is x and x.tolist() == [2, 2]
    assert tenon.lcm_(x, tenon.tensor([3, 4])).tolist() == [6, 4]
    y = tenon.tensor([0.25, 0.5])
    assert tenon.ldexp_(y, tenon.tensor([1, 2])) is y and y.tolist() == [0.5, 2.0]
    assert tenon.clamp_max_(y, 1.0).tolist() == [0.5, 1.0] and tenon.clamp_min_(y, 0.75).tolist() == [0.75, 1.0]
    assert tenon.logit_(tenon.tensor([0.5])).tolist() == [0.0]
    assert tenon.resize_as_(tenon.empty(0), X).shape == (4, 3) and tenon.as_strided_(tenon.arange(4.0), [2], [2]).tolist() == [0.0, 2.0]
    with pytest.raises(RuntimeError, match="logit_: the result is .* cannot hold"):
        tenon.logit_(tenon.tensor([1, 2]))
    with pytest.raises(RuntimeError, match="ldexp_: the result has shape"):
        tenon.ldexp_(tenon.ones(1), tenon.ones(3))


def test_elements_of_a_file(tmp_path):
    path = tmp_path / "numbers"
    np.arange(5, dtype=np.int32).tofile(path)
    x = tenon.from_file(str(path), size=4, dtype=tenon.int32)
    assert x.tolist() == [0, 1, 2, 3]
    x[0] = 9
    shared = tenon.from_file(str(path), True, 6, dtype=tenon.int32)
    assert shared.tolist() == [0, 1, 2, 3, 4, 0]
    shared[1] = 7
    assert tenon.from_file(str(path), size=2, dtype=tenon.int32).tolist() == [0, 7] and tenon.from_file(str(path)).shape == (0,)
    with pytest.raises(RuntimeError, match="has 24 bytes, but 7 elements"):
        tenon.from_file(str(path), size=7, dtype=tenon.int32)
    with pytest.raises(ValueError, match="size must not be negative"):
        tenon.from_file(str(path), size=-1)


def test_histograms_of_points():
    points, weight = RNG.standard_normal((50, 2)), RNG.random(50)
    want, edges = np.histogramdd(points, [3, 4], weights=weight)
    got = tenon.histogramdd(tenon.tensor(points), [3, 4], weight=tenon.tensor(weight))
    np.testing.assert_allclose(got.hist.numpy(), want, rtol=1e-12)
    for mine, line in zip(got.bin_edges, edges):
        np.testing.assert_allclose(mine.numpy(), line, rtol=1e-12)
    assert isinstance(got, tenon.return_types.histogramdd)
    want, _ = np.histogramdd(points, 3, range=[(-1, 1), (0, 2)], density=True)
    np.testing.assert_allclose(tenon.histogramdd(tenon.tensor(points), 3, [-1, 1, 0, 2], density=True).hist.numpy(), want, rtol=1e-12)
    lines = [np.array([-1, 0, 0.5]), np.array([-2.0, 0, 1, 2])]
    want, _ = np.histogramdd(points, lines)
    np.testing.assert_array_equal(tenon.histogramdd(tenon.tensor(points), [tenon.tensor(e) for e in lines]).hist.numpy(), want)


def test_segments():
    data, lengths = RNG.standard_normal((6, 2)), [2, 0, 4]
    rows = [data[:2], data[2:2], data[2:]]
    for name, f in (("sum", np.sum), ("mean", np.mean), ("prod", np.prod), ("max", np.max), ("min", np.min)):
        got = tenon.segment_reduce(tenon.tensor(data), name, lengths=tenon.tensor(lengths)).numpy()
        np.testing.assert_allclose(got[[0, 2]], [f(r, 0) for r in (rows[0], rows[2])], rtol=1e-12)
        empty = {"sum": 0, "mean": np.nan, "prod": 1, "max": -np.inf, "min": np.inf}[name]
        np.testing.assert_array_equal(got[1], empty)
        assert tenon.segment_reduce(tenon.tensor(data), name, offsets=tenon.tensor([0, 2, 2, 6])).nan_to_num().equal(tenon.tensor(got).nan_to_num())
    both = tenon.segment_reduce(tenon.tensor(data.T.copy()), "sum", lengths=tenon.tensor([lengths, [1, 4, 1]]), axis=1, initial=1.0)
    np.testing.assert_allclose(both[1].numpy(), [1 + data[0, 1], 1 + data[1:5, 1].sum(), 1 + data[5, 1]])


def test_reductions_by_index():
    x, source, index = RNG.standard_normal((3, 2)), RNG.standard_normal((4, 2)), [0, 2, 0, 2]
    for name, f in (("prod", np.prod), ("mean", np.mean), ("amax", np.max), ("amin", np.min)):
        for own in (True, False):
            want = x.copy()
            for row in (0, 2):
                parts = [x[row]] * own + [source[i] for i, at in enumerate(index) if at == row]
                want[row] = f(parts, 0)
            got = tenon.index_reduce(tenon.tensor(x), 0, tenon.tensor(index), tenon.tensor(source), name, include_self=own)
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
            mine = tenon.tensor(x)
            assert mine.index_reduce_(0, tenon.tensor(index), tenon.tensor(source), name, include_self=own) is mine and mine.equal(got)
    assert tenon.nonzero_static(tenon.tensor([0, 1, 1]), size=3).tolist() == [[1], [2], [-1]]
    assert tenon.nonzero_static(tenon.tensor([0, 1, 1]), size=1).tolist() == [[1]]


def test_parts_of_batch_norms_make_one():
    x = tensor(6, 3, 4)
    w, b = tensor(3), tensor(3)
    mean, invstd = tenon.batch_norm_stats(x, 1e-5)
    np.testing.assert_allclose(mean.numpy(), x.numpy().mean((0, 2)))
    np.testing.assert_allclose(invstd.numpy(), 1 / np.sqrt(x.numpy().var((0, 2)) + 1e-5))
    parts = [tenon.batch_norm_stats(p, 1e-5) for p in (x[:2], x[2:])]
    means, stds = tenon.stack([m for m, _ in parts]), tenon.stack([s for _, s in parts])
    running = [tenon.zeros(3, dtype=x.dtype), tenon.ones(3, dtype=x.dtype)]
    both = tenon.batch_norm_gather_stats_with_counts(x, means, stds, *running, 0.1, 1e-5, tenon.tensor([8.0, 16.0]))
    for got, want in zip((*both, *running), (mean, invstd, 0.1 * mean, 0.9 + 0.1 * x.permute(1, 0, 2).reshape(3, -1).var(1))):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-10)
    halves = [tenon.batch_norm_stats(p, 1e-5) for p in (x[:3], x[3:])]
    even = tenon.batch_norm_gather_stats(x, tenon.stack([m for m, _ in halves]), tenon.stack([s for _, s in halves]), None, None, 0.1, 1e-5, 12)
    np.testing.assert_allclose(even[0].numpy(), mean.numpy(), rtol=1e-10)
    y = tenon.batch_norm_elemt(x, w, b, mean, invstd, 1e-5)
    leaf, weight, bias = x.clone().requires_grad_(), w.clone().requires_grad_(), b.clone().requires_grad_()
    whole, m, s = tenon.native_batch_norm(leaf, weight, bias, None, None, True, 0.1, 1e-5)
    for got, want in ((y, whole), (mean, m), (invstd, s)):
        np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=1e-10)
    grad = tensor(6, 3, 4)
    whole.backward(grad)
    dy, along, of_weight, of_bias = tenon.batch_norm_backward_reduce(grad, x, mean, invstd, w, True, True, True)
    of_input = tenon.batch_norm_backward_elemt(grad, x, mean, invstd, w, dy, along, tenon.tensor([8, 16]))
    for got, want in ((of_weight, weight.grad), (of_bias, bias.grad), (of_input, leaf.grad)):
        np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-12)
    mean, variance = tenon.batch_norm_update_stats(x, running[0].zero_(), None, 0.5)
    np.testing.assert_allclose(running[0].numpy(), 0.5 * mean.numpy())
    np.testing.assert_allclose(variance.numpy(), x.numpy().var((0, 2)))


def test_a_grid_of_integers():
    x = tenon.tensor([-9.0, -0.26, 0.24, 0.25, 0.3, 9.0, float("nan")], requires_grad=True)
    y = tenon.fake_quantize_per_tensor_affine(x, 0.5, 1, -2, 3)
    assert y.tolist() == [-1.5, -0.5, 0.0, 0.0, 0.5, 1.0, -1.5]
    y.sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 1, 1, 0, 0]
    scale, point = tenon.tensor([0.5, 2.0]), tenon.tensor([0, 1], dtype=tenon.int32)
    assert tenon.fake_quantize_per_channel_affine(tenon.tensor([[0.7, 3.1]]), scale, point, 1, 0, 3).tolist() == [[0.5, 4.0]]


def test_low_ranks():
    tenon.manual_seed(0)
    a = RNG.standard_normal((9, 3)) @ RNG.standard_normal((3, 7))
    for matrix in (a, a.T.copy()):
        U, S, V = tenon.svd_lowrank(tenon.tensor(matrix), 3)
        np.testing.assert_allclose((U * S @ V.T).numpy(), matrix, atol=1e-10)
        np.testing.assert_allclose(S.numpy(), np.linalg.svd(matrix)[1][:3], rtol=1e-10)
    centred = a - a.mean(0)
    U, S, V = tenon.pca_lowrank(tenon.tensor(a), 3)
    np.testing.assert_allclose((U * S @ V.T).numpy(), centred, atol=1e-10)
    U, S, V = tenon.svd_lowrank(tenon.tensor(a), 3, M=tenon.tensor(a.mean(0)))
    np.testing.assert_allclose(S.numpy(), np.linalg.svd(centred)[1][:3], rtol=1e-8)
    root, other = RNG.standard_normal((2, 12, 12))
    A, B = root @ root.T, other @ other.T + 12 * np.eye(12)
    for given in (None, B):
        spectrum = np.sort(np.linalg.eigvals(A if given is None else np.linalg.solve(B, A)).real)
        for largest in (True, False):
            e, v = tenon.lobpcg(tenon.tensor(A), 2, None if given is None else tenon.tensor(B), largest=largest, tol=1e-9)
            np.testing.assert_allclose(e.numpy(), spectrum[::-1][:2] if largest else spectrum[:2], rtol=1e-6, atol=1e-8)
            assert v.shape == (12, 2)
    e, v = tenon.lobpcg(tenon.tensor(np.stack([A, B])), 1, niter=30)
    np.testing.assert_allclose(e[1].numpy(), np.linalg.eigvalsh(B)[-1:], rtol=1e-6)


@pytest.mark.parametrize(("name", "layer"), [("rnn_tanh", "RNN"), ("rnn_relu", "RNN"), ("gru", "GRU"), ("lstm", "LSTM")])
def test_recurrent_layers_and_cells_of_weights(name, layer):
    options = {"nonlinearity": name.removeprefix("rnn_")} if layer == "RNN" else {}
    module = getattr(tenon.nn, layer)(3, 4, num_layers=2, bidirectional=True, dtype=tenon.float64, **options)
    x, h = tensor(5, 2, 3), tensor(4, 2, 4)
    hx = (h, tensor(4, 2, 4)) if layer == "LSTM" else h
    want, last = module(x, hx)
    params = [w for weights in module.all_weights for w in weights]
    got = getattr(tenon, name)(x, hx, params, True, 2, 0.0, False, True, False)
    assert got[0].equal(want) and all(map(tenon.equal, got[1:], last if layer == "LSTM" else (last,)))
    packed = tenon.nn.utils.rnn.pack_padded_sequence(x, [5, 3])
    want, _ = module(packed, hx)
    assert getattr(tenon, name)(packed.data, packed.batch_sizes, hx, params, True, 2, 0.0, False, True)[0].equal(want.data)
    cell = getattr(tenon.nn, layer + "Cell")(3, 4, dtype=tenon.float64, **options)
    state = (h[0], h[1]) if layer == "LSTM" else h[0]
    mine = getattr(tenon, name + "_cell")(x[0], state, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    theirs = cell(x[0], state)
    assert all(map(tenon.equal, mine, theirs)) if layer == "LSTM" else mine.equal(theirs)


def test_noise():
    tenon.manual_seed(1)
    x = tenon.ones(200, 5, 3)
    y = tenon.feature_dropout(x, 0.5, True)
    assert set(y.unique().tolist()) == {0.0, 2.0} and (y == y[:, :, :1]).all() and 0.4 < (y == 0).float().mean() < 0.6
    assert tenon.feature_dropout_(x.clone(), 1.0, True).sum() == 0 and tenon.feature_dropout(x, 0.5, False) is x
    assert tenon.alpha_dropout(x, 0.5, False) is x and tenon.feature_alpha_dropout(x, 0.5, False) is x
    z = x.clone()
    assert tenon.alpha_dropout_(z, 0.5, True) is z and len(z.unique()) == 2 and tenon.feature_alpha_dropout_(x.clone(), 0.3, True).shape == x.shape
    slopes = tenon.rrelu(-x, 0.2, 0.3, True)
    assert (slopes <= -0.2).all() and (slopes >= -0.3).all() and len(slopes.unique()) > 100
    np.testing.assert_allclose(tenon.rrelu_(-x.clone(), 0.2, 0.4).numpy(), -0.3, rtol=1e-6)


def test_losses_with_a_number_for_the_reduction():
    a, b, sign = tensor(4, 3), tensor(4, 3), tenon.tensor([1.0, -1.0, 1.0, -1.0])
    F = tenon.nn.functional
    for number, word in enumerate(("none", "mean", "sum")):
        assert tenon.cosine_embedding_loss(a, b, sign, 0.1, number).equal(F.cosine_embedding_loss(a, b, sign, 0.1, reduction=word))
        assert tenon.hinge_embedding_loss(a[:, 0], sign, 0.5, number).equal(F.hinge_embedding_loss(a[:, 0], sign, 0.5, reduction=word))
        assert tenon.margin_ranking_loss(a[:, 0], b[:, 0], sign, 0.5, number).equal(F.margin_ranking_loss(a[:, 0], b[:, 0], sign, 0.5, reduction=word))
        assert tenon.poisson_nll_loss(a, b.exp(), True, True, 1e-8, number).equal(F.poisson_nll_loss(a, b.exp(), full=True, reduction=word))
        assert tenon.triplet_margin_loss(a, b, -a, reduction=number).equal(F.triplet_margin_loss(a, b, -a, reduction=word))
    np.testing.assert_allclose(tenon.pairwise_distance(a, b, eps=0.0).numpy(), np.linalg.norm(a.numpy() - b.numpy(), axis=1))


def test_branches_and_loops():
    x = tenon.ones(2)
    assert tenon.cond(x.sum() > 1, lambda t: t + 1, lambda t: t, (x,)).tolist() == [2, 2]
    assert tenon.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t * 2), (tenon.tensor(0), x))[1].tolist() == [8, 8]
    assert (tenon.sym_float(3), tenon.sym_int(2.9), tenon.sym_max(1, 2.0), tenon.sym_min(1, 2), tenon.sym_not(0)) == (3.0, 2, 2.0, 1, True)
    assert (tenon.sym_sqrt(4), tenon.sym_sum([1, 2]), tenon.sym_sum(1, 2, 3), tenon.sym_ite(False, 1, 2), tenon.sym_fresh_size(5)) == (2.0, 3, 6, 2, 5)
    assert tenon.sym_constrain_range(3, min=1, max=4) is None and tenon.sym_constrain_range_for_size(3, max=9) is None
    assert not isinstance(3, (tenon.SymInt, tenon.SymBool, tenon.SymFloat))
    assert tenon.wait(tenon.fork(lambda a, b: a + b, 1, b=2)) == 3
    assert tenon.random.thread_safe_generator() is None


def test_switches(monkeypatch):
    tenon.set_deterministic_debug_mode("warn")
    assert tenon.get_deterministic_debug_mode() == 1 and tenon.are_deterministic_algorithms_enabled()
    tenon.set_deterministic_debug_mode(2)
    assert tenon.get_deterministic_debug_mode() == 2
    tenon.set_deterministic_debug_mode("default")
    assert tenon.get_deterministic_debug_mode() == 0
    assert tenon.set_flush_denormal(False) is True and tenon.set_flush_denormal(True) is False
    tenon.set_num_interop_threads(3)
    assert tenon.get_num_interop_threads() == 3
    tenon.set_num_interop_threads(1)
    tenon.set_warn_always(True)
    assert tenon.is_warn_always_enabled()
    tenon.set_warn_always(False)
    tenon.set_anomaly_enabled(True, False)
    assert tenon.is_anomaly_enabled() and not tenon.is_anomaly_check_nan_enabled()
    tenon.set_anomaly_enabled(False)
    try:
        for t in (tenon.DoubleTensor, "torch.DoubleTensor", "tenon.DoubleTensor"):
            tenon.set_default_tensor_type(t)
            assert tenon.tensor([1.0]).dtype is tenon.float64
            tenon.set_default_tensor_type(tenon.FloatTensor)
    finally:
        tenon.set_default_dtype(tenon.float32)
    assert tenon.get_device_module("cpu") is tenon.cpu and tenon.get_device_module() is not None


def test_autocast_keeps_what_it_is_told():
    assert tenon.get_autocast_cpu_dtype() is tenon.bfloat16 and tenon.get_autocast_gpu_dtype() is tenon.float16
    tenon.set_autocast_dtype("cuda", tenon.bfloat16)
    assert tenon.get_autocast_gpu_dtype() is tenon.bfloat16 and tenon.get_autocast_dtype("cuda") is tenon.bfloat16
    tenon.set_autocast_gpu_dtype(tenon.float16)
    assert tenon.autocast_increment_nesting() == 1 and tenon.autocast_decrement_nesting() == 0
    tenon.set_autocast_cache_enabled(False)
    assert not tenon.is_autocast_cache_enabled()
    tenon.set_autocast_cache_enabled(True)
    tenon.set_autocast_cpu_enabled(False)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        tenon.set_autocast_xla_enabled(True)
        tenon.set_autocast_ipu_enabled(True)
    assert not tenon.is_autocast_xla_enabled() and not tenon.is_autocast_ipu_enabled()
    with pytest.raises(NotImplementedError, match="set_autocast_cpu_enabled: mixed precision"):
        tenon.set_autocast_cpu_enabled(True)
    for value, shown in (("x", "'x' (str)"), (1, "1 (int)"), (None, "None (NoneType)")):
        for call in (tenon.set_autocast_enabled, tenon.set_autocast_cpu_enabled, tenon.use_deterministic_algorithms):
            with pytest.raises(TypeError, match=re.escape(f"{call.__name__}: ") + f"(enabled|mode) must be a bool, got {re.escape(shown)}"):
                call(value)


def test_how_tensors_print():
    x = tenon.tensor([1 / 3, 20000.0])
    try:
        tenon.set_printoptions(precision=2)
        assert repr(tenon.tensor([1 / 3])) == "tensor([0.33])"
        tenon.set_printoptions(sci_mode=False)
        assert repr(x) == "tensor([    0.33, 20000.00])"
        tenon.set_printoptions(precision=1, sci_mode=True)
        assert repr(tenon.tensor([1.0])) == "tensor([1.0e+00])"
        tenon.set_printoptions(threshold=3, edgeitems=1)
        assert repr(tenon.arange(5)) == "tensor([0,  ..., 4])"
        tenon.set_printoptions(profile="full")
        assert repr(tenon.arange(1200)).count(",") == 1199
    finally:
        tenon.set_printoptions(profile="default")
    assert repr(tenon.tensor([1 / 3])) == "tensor([0.3333])"
    with pytest.raises(ValueError, match="edgeitems must be between"):
        tenon.set_printoptions(profile="short", edgeitems=-1)
    tenon.set_printoptions()
    assert repr(tenon.tensor([1 / 3])) == "tensor([0.3333])"
