"""tenon.inference: the same results as the module, planned once. `exact=True` gives eager's bits."""

import gc
import re
import threading

import numpy as np
import pytest
import tenon
from tenon import nn


def convnet():
    tenon.manual_seed(3)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2, bias=False, groups=2),
        nn.BatchNorm2d(8, affine=False), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5), nn.Softmax(-1),
    )  # fmt: skip
    for part in net.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2)
            if part.affine:
                part.weight.data.normal_()
                part.bias.data.normal_()
    return net.eval()


MODULES = {
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 3)), (4, 6)),
    "convnet": (convnet, (2, 3, 12, 12)),
    "transformer": (lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), (2, 5, 16)),
    "norms": (lambda: nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 6), nn.RMSNorm(6)), (4, 6)),
    "one dimension": (lambda: nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.MaxPool1d(2)), (3, 2, 20)),
    "upwards": (lambda: nn.Sequential(nn.ConvTranspose2d(2, 4, 3), nn.BatchNorm2d(4)), (1, 2, 5, 5)),
}


@pytest.mark.parametrize("name", MODULES)
def test_exact_plans_have_eager_bits_and_others_are_close(name):
    make, shape = MODULES[name]
    module, x = make().eval(), tenon.randn(*shape)
    with tenon.no_grad():
        wanted = module(x)
        exact, folded = tenon.inference(module, x, exact=True), tenon.inference(module, x)
        for _ in range(3):
            assert tenon.equal(exact(x), wanted)
            np.testing.assert_allclose(folded(x).numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)
            x = tenon.randn(*shape)
            wanted = module(x)


TURNED = {
    "lstm": (lambda: nn.LSTM(5, 7, num_layers=2, bidirectional=True), (3, 2, 5)),
    "long lstm": (lambda: nn.LSTM(5, 40), (9, 1, 5)),
    "gru": (lambda: nn.GRU(5, 7), (6, 1, 5)),
    "projected lstm": (lambda: nn.LSTM(5, 7, proj_size=3), (3, 1, 5)),
    "few results": (lambda: nn.Conv1d(6, 10, 3, padding=1, groups=2), (1, 6, 4)),
    "few results of images": (lambda: nn.Conv2d(6, 10, (2, 3), dilation=(1, 2), stride=2), (2, 6, 3, 7)),
    "one tap": (lambda: nn.Conv2d(6, 10, 1), (1, 6, 2, 2)),
    "one channel": (lambda: nn.Conv1d(1, 20, 16, stride=8, bias=False), (1, 1, 32)),
    "doubles": (lambda: nn.Sequential(nn.Linear(9, 33), nn.Tanh(), nn.Linear(33, 2)).double(), (3, 9)),
    "panels": (lambda: nn.Sequential(nn.Linear(300, 520), nn.GELU(), nn.Linear(520, 60, bias=False)), (70, 300)),
    "panels of doubles": (lambda: nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 47)).double(), (2, 5, 30)),
    "LSTM": (lambda: nn.LSTM(9, 20, 2, bidirectional=True), (6, 3, 9)),
    "LSTM with projections": (lambda: nn.LSTM(9, 33, proj_size=5), (2, 3, 9)),
    "GRU of doubles": (lambda: nn.GRU(9, 11).double(), (6, 9)),
    "GRU of halves": (lambda: nn.GRU(9, 11).to(tenon.bfloat16), (6, 9)),
}


@pytest.mark.parametrize("name", [*TURNED, "mlp", "transformer", "norms"])
def test_the_order_of_weights_in_memory_changes_no_bits(name):
    make, shape = (TURNED | MODULES)[name]
    module = make().eval()
    x = tenon.randn(*shape, dtype=next(module.parameters()).dtype)
    with tenon.no_grad():
        got, wanted = tenon.inference(module, x)(x), module(x)
    for one, other in zip(*[y if isinstance(y, tuple) else (y,) for y in (got, wanted)]):
        pairs = zip(one, other) if isinstance(one, tuple) else [(one, other)]
        assert all(tenon.equal(a, b) for a, b in pairs)


def test_weights_are_packed_where_products_read_several_rows():
    for n, m, packed in ((64, 1, True), (64, 20, True), (5, 20, False), (33, 20, False), (700, 20, True)):
        weight, x = tenon.randn(90, n), tenon.randn(m, 90)
        run = tenon.inference(lambda x, weight=weight: (x @ weight).relu(), x)
        assert ("_packed_product" in run.report()) == packed, (n, m)
        assert tenon.equal(run(x), (x @ weight).relu())
    # Only what is added to each row is a bias.
    bias, weight, x = tenon.randn(4, 64), tenon.randn(90, 64), tenon.randn(4, 90)
    for f in (lambda x: tenon.addmm(bias, x, weight), lambda x: tenon.addmm(bias[0], x, weight, alpha=2), lambda x: tenon.addmm(x[0, :64], x, weight)):
        assert tenon.equal(tenon.inference(f, x)(x), f(x))


def unrolled(x, w, b=None, rows=20):
    return tenon.stack([tenon.addmm(b, x[i], w) if b is not None else x[i] @ w for i in range(rows)])


def with_writes_between(x, w):
    x, results = x * 2, []
    for i in range(20):
        results.append(x[i] @ w)
        if i % 5 == 4:
            x[(i + 1) % 20 :].add_(results[-1].sum())
    return tenon.stack(results)


def with_results_that_are_written(x, w):
    x = x + 1
    first = [(x[i] @ w).relu_() for i in range(20)]
    return tenon.stack(first + [x[i] @ w for i in range(20)])


def of_columns(x, w):
    x = x.permute(1, 2, 0).contiguous()  # [1, k, rows]
    return tenon.stack([x[:, :, i] @ w for i in range(20)])


def rows_that_are_asked_for_twice(x, w):
    results = [x[i] @ w for i in (0, 1, 2, 3, 3)]
    results[4].add_(100)
    return tuple(results)


def rows_that_overlap(x, w):
    results = [x[i : i + 2, 0] @ w for i in range(5)]
    results[3].mul_(0)
    return tuple(results)


def results_seen_as_others(x, w):
    return tuple((x[i] @ w)[:, :6].contiguous().view(tenon.int64) for i in range(6))


def weights_that_are_written(x, w):
    w, results = w.clone(), []
    for i in range(8):
        results.append(x[i] @ w)
        if i in (3, 6):
            w *= 0.5
    return tuple(results)


def weights_of_convolutions_that_are_written(x, w):
    w, x = w[:, :, None].contiguous(), x[:1].mT
    first = tenon.nn.functional.conv1d(x, w.permute(1, 0, 2).contiguous())
    kernel = w.permute(1, 0, 2).contiguous()
    second = tenon.nn.functional.conv1d(x, kernel)
    kernel.mul_(2)
    return first, second, tenon.nn.functional.conv1d(x, kernel)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    "f",
    [
        unrolled, with_writes_between, with_results_that_are_written, of_columns, rows_that_are_asked_for_twice, rows_that_overlap,
        results_seen_as_others, weights_that_are_written, weights_of_convolutions_that_are_written,
    ],
)  # fmt: skip
def test_products_of_rows_by_one_weight(f, exact):
    weight, x = tenon.randn(70, 64), tenon.randn(20, 1, 70)
    run = tenon.inference(lambda x: f(x, weight), x, exact=exact)
    for given in (x, tenon.randn(20, 1, 70)):
        got, wanted = run(given), f(given, weight)
        pairs = zip(got, wanted) if isinstance(got, tuple) else [(got, wanted)]
        assert all(tenon.equal(a, b) for a, b in pairs)


def test_rows_of_a_few_of_many_and_with_a_bias():
    weight, bias = tenon.randn(70, 64), tenon.randn(64)
    for rows, few in ((20, 20), (2, 2), (1000, 4)):
        x = tenon.randn(rows, 3, 70)
        run = tenon.inference(lambda x, few=few: unrolled(x, weight, bias, few), x)
        assert tenon.equal(run(x), unrolled(x, weight, bias, few))


def test_norms_of_rows_are_all_folded():
    norm, linear = nn.BatchNorm1d(16).eval(), nn.Linear(8, 16)
    norm.running_mean.normal_()
    x = tenon.randn(1, 3, 8).expand(6, 3, 8).contiguous()
    results = tenon.inference(lambda x: tenon.stack([norm(linear(row)) for row in x]), x)(x)
    assert all(tenon.equal(results[0], row) for row in results)


def test_a_norm_is_folded_into_the_convolution_before_it():
    net, x = convnet(), tenon.randn(1, 3, 12, 12)
    exact, folded = tenon.inference(net, x, exact=True), tenon.inference(net, x)
    assert "_batch_norm_inference" in exact.report() and "_batch_norm" not in folded.report()


def random_norms(module):
    """Statistics and weights of batch norms that are not those of a new one."""
    for part in module.modules():
        for t in [*part.buffers(recurse=False), *part.parameters(recurse=False)] if hasattr(part, "running_mean") else ():
            if t.is_floating_point():
                t.data.copy_(tenon.rand(t.shape) + 0.5)
    return module.eval()


FOLDED = {
    "transposed": (lambda: [nn.ConvTranspose2d(4, 6, 3, groups=2), nn.BatchNorm2d(6)], (1, 4, 5, 5)),
    "transposed without a bias": (lambda: [nn.ConvTranspose1d(3, 4, 2, bias=False), nn.BatchNorm1d(4, affine=False)], (2, 3, 5)),
    "linear": (lambda: [nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4, bias=False), nn.BatchNorm1d(4)], (3, 8)),
}


@pytest.mark.parametrize("name", FOLDED)
def test_norms_are_folded_into_what_is_before_them(name):
    make, shape = FOLDED[name]
    module, x = random_norms(nn.Sequential(*make())), tenon.randn(*shape)
    plan = tenon.inference(module, x)
    with tenon.no_grad():
        np.testing.assert_allclose(plan(x).numpy(), module(x).numpy(), rtol=1e-4, atol=1e-5)
    exact = tenon.inference(module, x, exact=True)
    assert int(re.search(r"(\d+) steps", plan.report())[1]) < int(re.search(r"(\d+) steps", exact.report())[1])


def written_result(x, conv, norm):
    return norm(conv(x).relu_())


def other_shape(x, conv, norm):
    return norm(conv(x).reshape(2, 3, 2, 8))


def written_argument(x, conv, norm):
    x = x * 2
    y = conv(x)
    x.add_(1)
    return norm(y) + x.sum()


@pytest.mark.parametrize("f", [written_result, other_shape, written_argument])
def test_a_norm_of_something_else_than_the_layers_result_stays(f):
    conv, norm = nn.Conv2d(2, 3, 3), random_norms(nn.BatchNorm2d(3))
    x = tenon.randn(2, 2, 6, 6)
    with tenon.no_grad():
        wanted = f(x, conv, norm)
        np.testing.assert_allclose(tenon.inference(lambda x: f(x, conv, norm), x)(x).numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)


def test_a_convolution_whose_result_is_used_twice_stays():
    conv, norm = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3).eval()
    norm.running_var.fill_(4.0)

    def f(x):
        y = conv(x)
        return y, norm(y)

    x = tenon.randn(1, 2, 6, 6)
    with tenon.no_grad():
        for got, wanted in zip(tenon.inference(f, x)(x), f(x)):
            np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-6)


def test_exact_plans_read_the_weights_at_each_run():
    linear, x = nn.Linear(3, 2), tenon.ones(1, 3)
    run = tenon.inference(linear, x, exact=True)
    with tenon.no_grad():
        linear.weight.fill_(2.0)
        linear.bias.fill_(1.0)
    assert run(x).tolist() == [[7, 7]]


def test_what_follows_from_weights_alone_is_computed_once():
    w = tenon.randn(50, 50)
    x = tenon.randn(2, 50)
    run = tenon.inference(lambda x: x @ (w @ w.exp()), x)
    assert "exp" not in run.report() and "1 steps" in run.report()
    np.testing.assert_allclose(run(x).numpy(), (x @ (w @ w.exp())).numpy(), rtol=1e-4, atol=1e-4)


def test_other_sizes_make_other_plans():
    net = nn.Linear(4, 2)
    run = tenon.inference(net)
    with tenon.no_grad():
        for rows in (1, 3, 1, 0, 7):
            x = tenon.randn(rows, 4)
            assert tenon.equal(run(x), net(x))
        double = tenon.inference(lambda x: x * 2)
        for x in (tenon.ones(2), tenon.ones(2, dtype=tenon.int64), tenon.ones((), dtype=tenon.float64)):
            assert double(x).dtype == x.dtype and tenon.equal(double(x), x * 2)


def test_inputs_of_any_stride():
    run = tenon.inference(lambda x, y: x + 2 * y, tenon.ones(3, 4), tenon.ones(4))
    x = tenon.randn(4, 3).t()
    for other in (x, x.flip(0), x[:, :1].expand(3, 4)):
        y = tenon.randn(8)[::2]
        np.testing.assert_allclose(run(other, y).numpy(), other.numpy() + 2 * y.numpy(), rtol=1e-6)


def first_row(x):
    x[0] = 7
    return x.sum(0)


def scattered(x):
    return x.index_add_(0, tenon.tensor([0]), tenon.ones(1, 3)), x


WRITERS = {
    "before more pointwise": lambda x: x.relu_() + 1,
    "before a product": lambda x: x.relu_() @ tenon.ones(3, 2),
    "before a sort": lambda x: x.add_(1).sort(1)[0],
    "a part": first_row,
    "a view": lambda x: x.t().add_(1).sum(),
    "twice": lambda x: x.mul_(2).view(-1).add_(x.view(-1)),
    "rows by index": scattered,
}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", WRITERS)
def test_inputs_keep_their_values(name, exact):
    f, x = WRITERS[name], tenon.randn(2, 3)
    kept = x.clone()
    run = tenon.inference(f, tenon.ones(2, 3), exact=exact)
    for _ in range(2):
        got, wanted = run(x), f(kept.clone())
        for a, b in zip(*(y if isinstance(y, tuple) else (y,) for y in (got, wanted))):
            assert tenon.equal(a, b)
        assert tenon.equal(x, kept)


@pytest.mark.parametrize(
    "draw",
    [
        tenon.rand_like, tenon.randn_like, lambda x: tenon.randint_like(x, 3), lambda x: x.clone().exponential_(),
        nn.functional.gumbel_softmax, lambda x: tenon.empty_like(x).random_(), lambda x: x + tenon.rand(3),
    ],
)  # fmt: skip
def test_random_numbers_are_refused(draw):
    with pytest.raises(ValueError, match="draws random numbers"):
        tenon.inference(draw, tenon.ones(3))


def test_arguments_that_are_no_tensors_stay_who_they_are():
    run = tenon.inference(lambda x, f: f(x), tenon.ones(1), lambda z: z * 2)
    for k in range(3, 9):  # no function gets the address of one before it
        assert run(tenon.ones(1), lambda z: z * k).item() == k


def test_a_plan_inside_of_another_program_is_refused():
    inner = tenon.inference(lambda x: x + 1, tenon.ones(3))
    with pytest.raises(NotImplementedError, match="^inference: the inputs have no values"):
        tenon.inference(lambda x: inner(x), tenon.ones(3))


def test_structures_and_other_arguments():
    def f(pair, *, scale, names):
        return {"sum": (pair[0] + pair[1]) * scale, "parts": [pair[0] - 1, names]}

    run = tenon.inference(f)
    a, b = tenon.tensor([1.0]), tenon.tensor([2.0])
    got = run((a, b), scale=3, names=("x",))
    assert got["sum"].tolist() == [9] and got["parts"][0].tolist() == [0] and got["parts"][1] == ("x",)
    assert run((a, b), scale=4, names=("x",))["sum"].tolist() == [12]


def test_results_share_no_memory():
    def f(x):
        y = x * 2
        return x, y, y[:1], y, tenon.ones(2)

    run = tenon.inference(f, tenon.ones(2))
    x = tenon.tensor([1.0, 2.0])
    first = run(x)
    assert [t.tolist() for t in first] == [[1, 2], [2, 4], [2], [2, 4], [1, 1]]
    for t in first:
        t.zero_()
    assert x.tolist() == [1, 2]
    assert [t.tolist() for t in run(x)] == [[1, 2], [2, 4], [2], [2, 4], [1, 1]]


def test_the_plan_keeps_its_weights_alive():
    x = tenon.randn(2, 64)
    net = nn.Linear(64, 64)
    with tenon.no_grad():
        wanted = net(x)
    run = tenon.inference(lambda x, w=net.weight, b=net.bias: nn.functional.linear(x, w, b), x)
    run._function = None
    del net
    gc.collect()
    noise = [tenon.randn(64, 64) for _ in range(8)]
    assert tenon.equal(run(x), wanted) and len(noise) == 8


def test_threads_share_a_plan():
    net = convnet()
    x = [tenon.randn(1, 3, 12, 12) for _ in range(4)]
    run = tenon.inference(net, x[0], exact=True)
    with tenon.no_grad():
        wanted = [net(one) for one in x]
    wrong = []

    def work(i):
        for k in range(20):
            j = (i + k) % len(x)
            if not tenon.equal(run(x[j]), wanted[j]):
                wrong.append(j)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def filled(x):
    y = tenon.zeros(2, 3)
    y[0] = x
    y[:, 1] += 1
    return y, y.sum(0)


def read_and_then_changed(x):
    y = tenon.zeros(3)
    before = x + y
    y.add_(1)
    return before, x + y


def written_twice(x):
    y = tenon.ones(3)
    view = y[1:]
    view.mul_(x[1:])
    total = y.sum()
    view.add_(1)
    return y, total, view


@pytest.mark.parametrize("f", [filled, read_and_then_changed, written_twice, lambda x: nn.functional.one_hot(x.long(), 4)])
def test_tensors_that_the_function_makes_and_then_writes(f):
    run = tenon.inference(f, tenon.ones(3), exact=True)
    for x in (tenon.tensor([1.0, 0.0, 2.0]), tenon.tensor([3.0, 2.0, 1.0]), tenon.tensor([1.0, 0.0, 2.0])):
        got, wanted = run(x), f(x)
        got, wanted = ([v] if isinstance(v, tenon.Tensor) else v for v in (got, wanted))
        assert [v.tolist() for v in got] == [v.tolist() for v in wanted]


@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (lambda x: x if x.sum() > 0 else -x, NotImplementedError, "cannot be part of a graph: a number is made of it"),
        (lambda x: nn.functional.dropout(x), ValueError, r"draws random numbers; call eval\(\)"),
        (lambda x: x + tenon.rand(2), ValueError, "draws random numbers"),
        (nn.BatchNorm1d(2), ValueError, r"writes a tensor that was there before, as a module in training does; call eval\(\)"),
        (lambda x: None, TypeError, "the function returns no tensor"),
        (lambda x: x.nonzero(), RuntimeError, "the shape of the result depends on the data"),
        (lambda x: x.bernoulli(), ValueError, "draws random numbers"),
        (lambda x: x @ tenon.ones(7), ValueError, "matmul|mv|shape"),
    ],
)
def test_what_cannot_be_planned_is_refused(f, error, words):
    x = tenon.ones(3, 2) if isinstance(f, nn.Module) else tenon.ones(2)
    with pytest.raises(error, match=words):
        tenon.inference(f, x)
    assert (tenon.ones(2) + 1).tolist() == [2, 2]  # the thread writes nothing down any more


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match="`module` is called with tensors"):
        tenon.inference(5)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, w: nn.functional.conv2d(x.reshape(1, 1, 1, 1, 2, 3, 4), w),
        lambda x, w: nn.functional.conv2d(x.reshape(24), w),
        lambda x, w: nn.functional.conv2d(x, w, stride=0),
        lambda x, w: nn.functional.conv2d(x, w, stride=(1, 1, 1)),
        lambda x, w: nn.functional.conv2d(x, w, dilation=(1, 1, 1, 1)),
    ],
)
def test_convolutions_that_do_not_fit_are_refused_as_they_are_eager(call):
    """Of a few results, whose weight a plan turns around; a step of 0 and lists of other lengths ended the process."""
    x, w = tenon.ones(1, 2, 3, 4), tenon.ones(3, 2, 2, 2)
    with pytest.raises((ValueError, RuntimeError)) as eager:
        call(x, w)
    with pytest.raises(type(eager.value)):
        tenon.inference(lambda x: call(x, w), x)
