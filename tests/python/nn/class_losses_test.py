"""Losses of label sequences, pairs of classes and triplets; bilinear forms; softmax over frequent and rare classes."""

import itertools
import math

import numpy as np
import pytest

import tenon
import tenon.nn.functional as F
from tenon import nn

RNG = np.random.default_rng(3)


def tensor(*shape):
    return tenon.tensor(RNG.standard_normal(shape))


def likelihood(probs, labels, blank):
    """The probability of labels: the sum over every path that they follow from."""
    total = 0.0
    for path in itertools.product(range(probs.shape[1]), repeat=len(probs)):
        collapsed = [c for c, _ in itertools.groupby(path) if c != blank]
        if collapsed == list(labels):
            total += math.prod(probs[t, c] for t, c in enumerate(path))
    return total


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc_is_the_sum_over_all_paths(blank):
    log_probs = tensor(5, 3, 3).log_softmax(2).requires_grad_()
    letters = [c for c in range(3) if c != blank]
    labels = [[letters[0], letters[0]], [letters[1]], []]
    steps, counts = [5, 4, 3], [len(row) for row in labels]
    want = [-math.log(likelihood(log_probs.detach().exp().numpy()[:s, n], row, blank)) for n, (s, row) in enumerate(zip(steps, labels))]
    flat = tenon.tensor(sum(labels, []))
    got = F.ctc_loss(log_probs, flat, steps, counts, blank, "none")
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-12)
    matrix = tenon.tensor([labels[0], [letters[1], 0], [0, 0]])
    assert F.ctc_loss(log_probs, matrix, tenon.tensor(steps), tenon.tensor(counts), blank, "none").equal(got)
    np.testing.assert_allclose(F.ctc_loss(log_probs, flat, steps, counts, blank).item(), np.mean(np.array(want) / [2, 1, 1]), rtol=1e-12)
    np.testing.assert_allclose(nn.CTCLoss(blank, "sum")(log_probs, flat, steps, counts).item(), sum(want), rtol=1e-12)
    np.testing.assert_allclose(tenon.ctc_loss(log_probs, flat, steps, counts, blank, 2).item(), sum(want), rtol=1e-12)
    one = F.ctc_loss(log_probs[:, 0], tenon.tensor(labels[0]), tenon.tensor(5), tenon.tensor(2), blank, "none")
    np.testing.assert_allclose(one.item(), want[0], rtol=1e-12)


def test_the_gradient_of_ctc_is_that_of_the_paths():
    logits = tensor(4, 2, 3).requires_grad_()

    def loss(x):
        return F.ctc_loss(x.log_softmax(2), tenon.tensor([[1, 2], [1, 1]]), [4, 3], [2, 2], reduction="sum")

    loss(logits).backward()
    for at in itertools.product(range(4), range(2), range(3)):
        step = np.zeros((4, 2, 3))
        step[at] = 1e-5
        slope = (loss(logits.detach() + tenon.tensor(step)).item() - loss(logits.detach() - tenon.tensor(step)).item()) / 2e-5
        assert abs(slope - logits.grad[at].item()) < 1e-8


def test_ctc_has_one_derivative():
    log_probs, scale = tensor(4, 1, 3).log_softmax(2).requires_grad_(), tenon.tensor(2.0, dtype=tenon.float64, requires_grad=True)
    loss = scale * F.ctc_loss(log_probs, tenon.tensor([[1]]), [4], [1])
    (slope,) = tenon.autograd.grad(loss, log_probs, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        slope.sum().backward()


def test_labels_that_do_not_fit_have_no_likelihood():
    log_probs = tensor(2, 1, 3).log_softmax(2).requires_grad_()
    assert F.ctc_loss(log_probs, tenon.tensor([[1, 1]]), [2], [2], reduction="none").tolist() == [math.inf]
    none = F.ctc_loss(log_probs, tenon.tensor([[1, 1]]), [2], [2], reduction="sum", zero_infinity=True)
    none.backward()
    assert none.item() == 0 and (log_probs.grad == 0).all()
    half = F.ctc_loss(log_probs.detach().half(), tenon.tensor([[1]]), [2], [1])
    assert half.dtype == tenon.float16
    assert F.ctc_loss(log_probs, tenon.tensor([[1]]), [0], [0], reduction="none").item() == 0


def test_margins_between_classes():
    x, y, w = tensor(4, 5), np.array([0, 4, 2, 2]), np.abs(RNG.standard_normal(5))
    a = x.numpy()
    for p in (1, 2):
        want = [sum(w[c] * max(0, 0.7 - row[c] + row[i]) ** p for i in range(5) if i != c) / 5 for row, c in zip(a, y)]
        args = (x, tenon.tensor(y), p, 0.7, tenon.tensor(w))
        np.testing.assert_allclose(F.multi_margin_loss(*args, reduction="none").numpy(), want, rtol=1e-12)
        np.testing.assert_allclose(nn.MultiMarginLoss(p, 0.7, tenon.tensor(w))(x, tenon.tensor(y)).item(), np.mean(want), rtol=1e-12)
    assert F.multi_margin_loss(x[0], tenon.tensor(1)).shape == ()
    # One class has no other to be apart from; a number is a row of one.
    for loss in (F.multi_margin_loss, F.multilabel_margin_loss):
        assert loss(tenon.tensor(0.5), tenon.tensor(0)).tolist() == 0
    weight = tenon.tensor(w).requires_grad_()
    F.multi_margin_loss(x, tenon.tensor(y), weight=weight, reduction="sum").backward()
    assert weight.grad[1] == 0 and weight.grad[2] > 0
    labels = np.array([[0, 3, -1, 2, 2], [-1, 0, 1, 2, 3], [1, 2, 3, 4, 0], [4, -1, -1, -1, -1]])
    want = []
    for row, given in zip(a, labels):
        chosen = list(itertools.takewhile(lambda c: c >= 0, given))
        want.append(sum(max(0, 1 - row[c] + row[i]) for c in chosen for i in range(5) if i not in chosen) / 5)
    np.testing.assert_allclose(F.multilabel_margin_loss(x, tenon.tensor(labels), reduction="none").numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(nn.MultiLabelMarginLoss()(x, tenon.tensor(labels)).item(), np.mean(want), rtol=1e-12)
    target = RNG.integers(0, 2, (4, 5)).astype(float)
    likely = 1 / (1 + np.exp(-a))
    want = (-(target * np.log(likely) + (1 - target) * np.log(1 - likely)) * w).mean(1)
    soft = F.multilabel_soft_margin_loss(x, tenon.tensor(target), tenon.tensor(w), reduction="none")
    np.testing.assert_allclose(soft.numpy(), want, rtol=1e-10)
    np.testing.assert_allclose(nn.MultiLabelSoftMarginLoss(tenon.tensor(w))(x, tenon.tensor(target)).item(), want.mean(), rtol=1e-10)


def test_triplets_by_a_distance_of_ones_own():
    a, p, n = tensor(3, 4), tensor(3, 4), tensor(3, 4)
    apart = lambda x, y: (x - y).abs().sum(-1)  # noqa: E731
    d = lambda x, y: np.abs(x.numpy() - y.numpy()).sum(-1)  # noqa: E731
    want = np.maximum(0, 0.5 + d(a, p) - np.minimum(d(a, n), d(p, n)))
    got = F.triplet_margin_with_distance_loss(a, p, n, distance_function=apart, margin=0.5, swap=True, reduction="none")
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    module = nn.TripletMarginWithDistanceLoss(distance_function=apart, margin=0.5, swap=True)
    np.testing.assert_allclose(module(a, p, n).item(), want.mean(), rtol=1e-12)
    assert nn.TripletMarginWithDistanceLoss()(a, p, n).equal(nn.TripletMarginLoss()(a, p, n))


def test_bilinear_forms():
    x, y, w, b = tensor(2, 5, 3), tensor(2, 5, 4), tensor(6, 3, 4), tensor(6)
    want = np.einsum("nbi,oij,nbj->nbo", x.numpy(), w.numpy(), y.numpy()) + b.numpy()
    np.testing.assert_allclose(F.bilinear(x, y, w, b).numpy(), want, rtol=1e-10)
    module = nn.Bilinear(3, 4, 6, dtype=tenon.float64)
    assert module(x, y).equal(F.bilinear(x, y, module.weight, module.bias)) and module.weight.abs().max() <= 3**-0.5
    assert repr(module) == "Bilinear(in1_features=3, in2_features=4, out_features=6, bias=True)"
    assert nn.Bilinear(3, 4, 6, bias=False).bias is None
    assert issubclass(nn.NLLLoss2d, nn.NLLLoss)


def test_a_softmax_of_frequent_and_rare_classes():
    tenon.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6], div_value=2.0, dtype=tenon.float64)
    x, target = tensor(7, 8), tenon.tensor([0, 2, 3, 5, 6, 9, 1])
    full = layer.log_prob(x)
    np.testing.assert_allclose(full.exp().sum(1).detach().numpy(), 1, rtol=1e-12)
    output, loss = layer(x, target)
    np.testing.assert_allclose(output.detach().numpy(), full.gather(1, target.unsqueeze(1)).squeeze(1).detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(loss.item(), -output.detach().numpy().mean(), rtol=1e-12)
    assert layer.predict(x).equal(full.argmax(1))
    assert layer(x[0], target[0]).output.shape == () and [p.shape for p in layer.tail[1].parameters()] == [(2, 8), (4, 2)]
    before = layer.head.weight.clone()
    layer.reset_parameters()
    assert not layer.head.weight.equal(before)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda p: F.ctc_loss(p[0, 0], tenon.tensor([1]), [2], [1]), RuntimeError, r"log_probs must be \[T, N, C\]"),
        (lambda p: F.ctc_loss([1], tenon.tensor([1]), [2], [1]), TypeError, "log_probs must be a Tensor"),
        (lambda p: F.ctc_loss(p.long(), tenon.tensor([[1]]), [2], [1]), TypeError, "log_probs must have a floating-point"),
        (lambda p: F.ctc_loss(p, tenon.tensor([[1.0]]), [2], [1]), TypeError, "targets must be int32 or int64"),
        (lambda p: F.ctc_loss(p, tenon.tensor([[1]]), [2], [1], blank=3), RuntimeError, "blank must be a class, from 0 to 2"),
        (lambda p: F.ctc_loss(p[:, :0], tenon.tensor([1]), [2], [1]), RuntimeError, "at least one sequence"),
        (lambda p: F.ctc_loss(p, tenon.tensor([[1]]), [3], [1]), RuntimeError, "input_lengths must be between 0 and 2"),
        (lambda p: F.ctc_loss(p, tenon.tensor([[1]]), [2], [-1]), RuntimeError, "target_lengths must be between 0"),
        (lambda p: F.ctc_loss(p, tenon.tensor([[1]]), [2, 2], [1]), RuntimeError, "input_lengths must have 1 numbers"),
        (lambda p: F.ctc_loss(p, tenon.tensor([[1]]), 2, [1]), TypeError, "must be a Tensor or a sequence of ints"),
        (lambda p: F.ctc_loss(p, tenon.tensor([[1]]), tenon.ones(1), [1]), RuntimeError, "input_lengths must be integers"),
        (lambda p: F.ctc_loss(p, tenon.tensor([1, 2]), [2], [1]), RuntimeError, "add up to the 2 labels"),
        (lambda p: F.ctc_loss(p, tenon.tensor([[1]]), [2], [2]), RuntimeError, r"targets must be \[1, at least 2\]"),
        (lambda p: F.ctc_loss(p, tenon.tensor([[7]]), [2], [1]), RuntimeError, "targets must be classes, from 0 to 2"),
        (lambda p: F.ctc_loss(p, tenon.tensor([[1]]), [2], [1], reduction="x"), ValueError, "reduction must be"),
        (lambda p: tenon.ctc_loss(p, tenon.tensor([[1]]), [2], [1], 0, 3), ValueError, r"reduction must be 0 \(none\)"),
        (lambda p: F.multi_margin_loss(p[0], tenon.tensor([1, 2])), RuntimeError, r"expected input \[N, C\] and target \[N\]"),
        (lambda p: F.multi_margin_loss(p[0], tenon.tensor([3])), RuntimeError, "target must be from 0 to 2"),
        (lambda p: F.multi_margin_loss(p[0], tenon.tensor([1.0])), RuntimeError, "target must be int64"),
        (lambda p: F.multi_margin_loss(p[0].long(), tenon.tensor([1])), TypeError, "convert input to a floating-point"),
        (lambda p: F.multi_margin_loss(p[0], tenon.tensor([1]), 3), ValueError, "p must be 1 or 2"),
        (lambda p: F.multi_margin_loss(p[0], tenon.tensor([1]), weight=tenon.ones(1, 3)), ValueError, r"weight must be \[C\]"),
        (lambda p: F.multi_margin_loss(p[0], tenon.tensor([1]), weight=tenon.ones(2)), RuntimeError, r"weight must be \[3\]"),
        (lambda p: nn.MultiMarginLoss(3), ValueError, "p must be 1 or 2"),
        (lambda p: nn.MultiMarginLoss(weight=tenon.ones(1, 3)), ValueError, r"weight must be \[C\]"),
        (lambda p: F.multilabel_margin_loss(p[0], tenon.tensor([1])), RuntimeError, r"target \[N, C\]"),
        (lambda p: F.multilabel_margin_loss(p[0], tenon.tensor([[1, 2, 5]])), RuntimeError, "from -1 to 2"),
        (lambda p: F.triplet_margin_with_distance_loss(p, p, p, margin=0), ValueError, "margin must be above 0"),
        (lambda p: nn.TripletMarginWithDistanceLoss(margin=-1.0), ValueError, "margin must be above 0"),
        (lambda p: F.triplet_margin_with_distance_loss(p, p[0], p), RuntimeError, "as many dimensions"),
        (lambda p: F.bilinear(p, p[0], tenon.ones(1, 3, 3)), RuntimeError, "with the same leading sizes"),
        (lambda p: F.bilinear(p, p, tenon.ones(1, 3, 2)), RuntimeError, r"weight must be \[O, 3, 3\]"),
        (lambda p: F.bilinear(p, p, tenon.ones(1, 3, 3), tenon.ones(2)), RuntimeError, r"bias must be \[1\]"),
        (lambda p: F.bilinear(1, p, tenon.ones(1, 3, 3)), TypeError, "input1 must be a Tensor"),
        (lambda p: nn.Bilinear(0, 2, 2), ValueError, "in1_features must be greater than 0"),
        (lambda p: nn.AdaptiveLogSoftmaxWithLoss(4, 5, [3, 2]), ValueError, "cutoffs must be ascending"),
        (lambda p: nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(tenon.ones(2, 4), tenon.tensor([5, 0])), RuntimeError, "from 0 to 4"),
        (lambda p: nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(tenon.ones(2, 4), tenon.tensor([0])), RuntimeError, r"target_ \[N\]"),
        (lambda p: nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(tenon.ones(2, 4), tenon.tensor([[0]])), RuntimeError, "0 or 1 dimensions"),
    ],
)
def test_errors_say_what_is_wrong(call, kind, text):
    with pytest.raises(kind, match=text):
        call(tenon.zeros(2, 1, 3).log_softmax(2))
