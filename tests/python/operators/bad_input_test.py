"""What no operator takes: sizes, positions, windows, probabilities, outputs and devices that do not fit.

Each error names the operator and the argument, or what is wrong with it. tests/conformance/errors_test.py spoils arguments of
every operator; these are the ways that it does not know.
"""

import numpy
import pytest

import tenon
import tenon.nn.functional as F

x, w, l = tenon.randn(2, 3, 8, 8), tenon.randn(4, 3, 3, 3), tenon.randn(3, 4)  # noqa: E741

CALLS = [
    ("conv2d", "`weight`", lambda: tenon.conv2d(x, w, groups=2)),
    ("conv2d", "`groups`", lambda: tenon.conv2d(x, w, groups=0)),
    ("conv2d", "`weight`", lambda: tenon.conv2d(tenon.randn(2, 6, 8, 8), tenon.randn(3, 3, 3, 3), groups=2)),
    ("conv2d", "`stride`", lambda: tenon.conv2d(x, w, stride=0)),
    ("conv2d", "`padding`", lambda: tenon.conv2d(x, w, padding=-1)),
    ("conv2d", "`dilation`", lambda: tenon.conv2d(x, w, dilation=0)),
    ("conv2d", "`input`", lambda: tenon.conv2d(x, tenon.randn(4, 3, 9, 9))),
    ("conv2d", "`weight`", lambda: tenon.conv2d(x, tenon.randn(4, 3, 0, 3))),
    ("conv2d", "`weight`", lambda: tenon.conv2d(x, w.double())),
    ("conv2d", "`weight`", lambda: tenon.conv2d(x, w, tenon.randn(3))),
    ("conv2d", "`input`", lambda: tenon.conv2d(x[0, 0], w)),
    ("conv2d", "`stride`", lambda: tenon.conv2d(x, w, stride=[1, 1, 1])),
    ("conv2d", "`padding`", lambda: tenon.conv2d(x, w, padding="hello")),
    ("conv2d", "`padding`", lambda: tenon.conv2d(x, w, padding="same", stride=2)),
    ("conv2d", "sizes", lambda: tenon.conv2d(x, w, padding=2 ** 62)),
    ("conv_transpose2d", "`output_padding`", lambda: tenon.conv_transpose2d(x, tenon.randn(3, 4, 3, 3), output_padding=5)),
    ("conv_transpose2d", "`weight`", lambda: tenon.conv_transpose2d(x, tenon.randn(3, 4, 3, 3), groups=2)),
    ("Conv2d", "groups", lambda: tenon.nn.Conv2d(3, 4, 3, groups=2)),
    ("Conv2d", "kernel_size", lambda: tenon.nn.Conv2d(3, 4, "a")),
    ("Conv2d", "kernel_size", lambda: tenon.nn.Conv2d(3, 4, 0)),
    ("Conv2d", "groups", lambda: tenon.nn.Conv2d(3, 4, 3, groups=0)),
    ("max_pool2d", "`kernel_size`", lambda: F.max_pool2d(x, 0)),
    ("max_pool2d", "`stride`", lambda: F.max_pool2d(x, 2, stride=0)),
    ("max_pool2d", "`self`", lambda: F.max_pool2d(x, 9)),
    ("max_pool2d", "`padding`", lambda: F.max_pool2d(x, 2, padding=2)),
    ("avg_pool2d", "`padding`", lambda: F.avg_pool2d(x, 2, padding=2)),
    ("avg_pool2d", "`divisor_override`", lambda: F.avg_pool2d(x, 2, divisor_override=0)),
    ("avg_pool2d", "`kernel_size`", lambda: F.avg_pool2d(x, -1)),
    ("adaptive_avg_pool2d", "`output_size`", lambda: F.adaptive_avg_pool2d(x, -1)),
    ("adaptive_max_pool2d", "`self`", lambda: F.adaptive_max_pool2d(tenon.randn(1, 2, 0, 3), 2)),
    ("interpolate", "`scale_factors`", lambda: F.interpolate(x, scale_factor=-1.0)),
    ("interpolate", "size", lambda: F.interpolate(x)),
    ("interpolate", "size", lambda: F.interpolate(x, size=3, scale_factor=2)),
    ("interpolate", "`output_size`", lambda: F.interpolate(x, size=0)),
    ("interpolate", "mode", lambda: F.interpolate(x, size=3, mode="foo")),
    ("interpolate", "mode", lambda: F.interpolate(x[0], size=3, mode="bilinear")),
    ("interpolate", "`scale_factors`", lambda: F.interpolate(x, scale_factor=float("inf"))),
    ("interpolate", "`scale_factors`", lambda: F.interpolate(x, scale_factor=float("nan"))),
    ("interpolate", "`scale_factors`", lambda: F.interpolate(x, scale_factor=1e+30)),
    ("pad", "`pad`", lambda: F.pad(x, (1,))),
    ("pad", "`self`", lambda: F.pad(x, (8, 0), mode="reflect")),
    ("pad", "`pad`", lambda: F.pad(x, (2 ** 62, 2 ** 62))),
    ("pad", "`pad`", lambda: F.pad(x, (-9, 0))),
    ("pad", "`mode`", lambda: F.pad(x, (1, 1), mode="zzz")),
    ("fold", "`self`", lambda: F.fold(tenon.randn(1, 5, 4), (4, 4), 2)),
    ("unfold", "`stride`", lambda: F.unfold(x, 2, stride=0)),
    ("unfold", "`kernel_size`", lambda: F.unfold(x, 0)),
    ("unfold", "size", lambda: x.unfold(0, 9, 1)),
    ("unfold", "step", lambda: x.unfold(0, 1, 0)),
    ("embedding", "`indices`", lambda: F.embedding(tenon.tensor([0, 9]), tenon.randn(4, 2))),
    ("embedding", "`indices`", lambda: F.embedding(tenon.tensor([0, -1]), tenon.randn(4, 2))),
    ("embedding", "indices", lambda: F.embedding(tenon.tensor([0.0, 1.0]), tenon.randn(4, 2))),
    ("embedding", "padding_idx", lambda: F.embedding(tenon.tensor([0]), tenon.randn(4, 2), padding_idx=4)),
    ("embedding", "padding_idx", lambda: F.embedding(tenon.tensor([0]), tenon.randn(4, 2), padding_idx=-5)),
    ("Embedding", "padding_idx", lambda: tenon.nn.Embedding(4, 2, padding_idx=4)),
    ("embedding_bag", "`offsets`", lambda: F.embedding_bag(tenon.tensor([0, 1, 2]), tenon.randn(4, 2), tenon.tensor([0, 5]))),
    ("embedding_bag", "`offsets`", lambda: F.embedding_bag(tenon.tensor([0, 1, 2]), tenon.randn(4, 2), tenon.tensor([1, 2]))),
    ("embedding_bag", "`offsets`", lambda: F.embedding_bag(tenon.tensor([0, 1, 2]), tenon.randn(4, 2), tenon.tensor([0, 2, 1]))),
    ("embedding_bag", "mode", lambda: F.embedding_bag(tenon.tensor([0, 1, 2]), tenon.randn(4, 2), tenon.tensor([0]), mode="zz")),
    ("embedding_bag", "`indices`", lambda: F.embedding_bag(tenon.tensor([0, 1, 7]), tenon.randn(4, 2), tenon.tensor([0]))),
    ("one_hot", "`self`", lambda: F.one_hot(tenon.tensor([0, 5]), 3)),
    ("one_hot", "`self`", lambda: F.one_hot(tenon.tensor([-1]))),
    ("one_hot", "`self`", lambda: F.one_hot(tenon.tensor([2**63 - 1]))),
    ("gather", "`index`", lambda: l.gather(1, tenon.tensor([[4]]))),
    ("gather", "dimension", lambda: l.gather(2, tenon.tensor([[0]]))),
    ("gather", "`index`", lambda: l.gather(1, tenon.tensor([0]))),
    ("gather", "`index`", lambda: l.gather(1, tenon.zeros(4, 1, dtype=tenon.int64))),
    ("gather", "index", lambda: l.gather(1, tenon.zeros(1, 1))),
    ("scatter", "`index`", lambda: l.scatter(1, tenon.tensor([[9]]), 1.0)),
    ("scatter_", "`index`", lambda: l.clone().scatter_(1, tenon.tensor([[0, 9]]), 1.0)),
    ("scatter_add", "`index`", lambda: l.scatter_add(1, tenon.tensor([[-5]]), l)),
    ("scatter_reduce", "`reduce`", lambda: l.scatter_reduce(1, tenon.tensor([[0]]), l, "foo")),
    ("index_select", "`index`", lambda: l.index_select(0, tenon.tensor([3]))),
    ("index_add", "`index`", lambda: l.index_add(0, tenon.tensor([3]), l[:1])),
    ("index_add", "`source`", lambda: l.index_add(0, tenon.tensor([1, 2]), l[:1])),
    ("index_copy", "`index`", lambda: l.index_copy(0, tenon.tensor([3]), l[:1])),
    ("index_fill", "`index`", lambda: l.index_fill(0, tenon.tensor([3]), 1)),
    ("take", "`index`", lambda: l.take(tenon.tensor([12]))),
    ("take_along_dim", "`index`", lambda: l.take_along_dim(tenon.tensor([[4]]), 1)),
    ("put", "`index`", lambda: l.put(tenon.tensor([12]), tenon.ones(1))),
    ("index", "`indices`", lambda: l[tenon.tensor([3])]),
    ("index", "`indices`", lambda: l[tenon.tensor([-4])]),
    ("index", "shape", lambda: l[tenon.ones(4, dtype=tenon.bool)]),
    ("index_put_", "`indices`", lambda: l.clone().__setitem__(tenon.tensor([3]), 1.0)),
    ("masked_scatter", "`source`", lambda: l.masked_scatter(tenon.ones(3, 4, dtype=tenon.bool), tenon.ones(3))),
    ("narrow", "start", lambda: l.narrow(0, 2, 2)),
    ("select", "index", lambda: l.select(0, 3)),
    ("nll_loss", "Target", lambda: F.nll_loss(l, tenon.tensor([0, 1, 4]))),
    ("cross_entropy", "Target", lambda: F.cross_entropy(l, tenon.tensor([0, 1, -2]))),
    ("cross_entropy", "`target`", lambda: F.cross_entropy(l, tenon.tensor([0.0, 1.0, 2.0]))),
    ("cross_entropy", "`self`", lambda: F.cross_entropy(l, tenon.tensor([0, 1]))),
    ("cross_entropy", "`weight`", lambda: F.cross_entropy(l, tenon.tensor([0, 1, 2]), weight=tenon.ones(3))),
    ("cross_entropy", "reduction", lambda: F.cross_entropy(l, tenon.tensor([0, 1, 2]), reduction="foo")),
    ("multinomial", "weights", lambda: tenon.multinomial(tenon.tensor([-1.0, 2]), 1)),
    ("multinomial", "weights", lambda: tenon.multinomial(tenon.zeros(3), 1)),
    ("multinomial", "weights", lambda: tenon.multinomial(tenon.tensor([float("nan"), 1]), 1)),
    ("multinomial", "weights", lambda: tenon.multinomial(tenon.tensor([float("inf"), 1]), 1)),
    ("multinomial", "num_samples", lambda: tenon.multinomial(tenon.ones(3), 0)),
    ("bernoulli_", "p", lambda: tenon.empty(3).bernoulli_(1.5)),
    ("dropout", "probability", lambda: F.dropout(l, 1.5)),
    ("dropout", "probability", lambda: F.dropout(l, float("nan"))),
    ("Dropout", "p", lambda: tenon.nn.Dropout(-0.1)),
    ("normal", "std", lambda: tenon.normal(0.0, -1.0, (2,))),
    ("uniform_", "from", lambda: tenon.empty(2).uniform_(2, 1)),
    ("randint", "low", lambda: tenon.randint(3, 3, (2,))),
    ("randperm", "n", lambda: tenon.randperm(-1)),
    ("sort", "dimension", lambda: l.sort(2)),
    ("topk", "`self`", lambda: l.topk(5)),
    ("topk", "`self`", lambda: l.topk(-1)),
    ("topk", "dimension", lambda: l.topk(1, dim=3)),
    ("scaled_dot_product_attention", "`query`", lambda: F.scaled_dot_product_attention(tenon.randn(2, 3, 4), tenon.randn(2, 3, 5), tenon.randn(2, 3, 4))),
    ("scaled_dot_product_attention", "`attn_mask`", lambda: F.scaled_dot_product_attention(tenon.randn(2, 3, 4), tenon.randn(2, 3, 4), tenon.randn(2, 3, 4), attn_mask=tenon.ones(4, 4))),
    ("scaled_dot_product_attention", "`attn_mask`", lambda: F.scaled_dot_product_attention(tenon.randn(2, 3, 4), tenon.randn(2, 3, 4), tenon.randn(2, 3, 4), attn_mask=tenon.ones(3, 3), is_causal=True)),
    ("scaled_dot_product_attention", "`query`", lambda: F.scaled_dot_product_attention(tenon.randn(1, 5, 3, 4), tenon.randn(1, 2, 3, 4), tenon.randn(1, 2, 3, 4), enable_gqa=True)),
    ("scaled_dot_product_attention", "dropout_p", lambda: F.scaled_dot_product_attention(tenon.randn(2, 3, 4), tenon.randn(2, 3, 4), tenon.randn(2, 3, 4), dropout_p=2.0)),
    ("MultiheadAttention", "num_heads", lambda: tenon.nn.MultiheadAttention(7, 2)),
    ("MultiheadAttention", "`query`", lambda: tenon.nn.MultiheadAttention(8, 2)(tenon.randn(3, 2, 6), tenon.randn(3, 2, 8), tenon.randn(3, 2, 8))),
    ("layer_norm", "`normalized_shape`", lambda: F.layer_norm(l, [3])),
    ("layer_norm", "`weight`", lambda: F.layer_norm(l, [4], tenon.ones(3))),
    ("group_norm", "`input`", lambda: F.group_norm(tenon.randn(2, 5, 3), 2)),
    ("batch_norm", "`weight`", lambda: tenon.nn.BatchNorm2d(4)(x)),
    ("BatchNorm2d", "input", lambda: tenon.nn.BatchNorm2d(3)(x[0])),
    ("batch_norm", "value", lambda: tenon.nn.BatchNorm1d(3).train()(tenon.randn(1, 3))),
    ("linear", "`input`", lambda: tenon.nn.Linear(3, 4)(l)),
    ("mm", "`self`", lambda: l.mm(l)),
    ("mm", "`mat2`", lambda: l.mm(l.T.double())),
    ("add", "shapes", lambda: l + tenon.ones(3)),
    ("zeros", "sizes", lambda: tenon.zeros(-1)),
    ("zeros", "sizes", lambda: tenon.zeros(2 ** 40, 2 ** 40)),
    ("arange", "step", lambda: tenon.arange(0, 1, 0)),
    ("arange", "bound", lambda: tenon.arange(1, 0)),
    ("arange", "elements", lambda: tenon.arange(0, 1e+30)),
    ("linspace", "number", lambda: tenon.linspace(0, 1, -1)),
    ("eye", "n", lambda: tenon.eye(-1)),
    ("repeat", "`repeats`", lambda: l.repeat(-1, 1)),
    ("repeat", "sizes", lambda: l.repeat(2 ** 40, 2 ** 40)),
    ("repeat", "`repeats`", lambda: l.repeat(2)),
    ("repeat_interleave", "`repeats`", lambda: l.repeat_interleave(-1)),
    ("repeat_interleave", "`repeats`", lambda: l.repeat_interleave(tenon.tensor([1, -1, 2]), 0)),
    ("expand", "size", lambda: l.expand(3, 5)),
    ("view", "shape", lambda: l.view(5, -1)),
    ("view", "dimension", lambda: l.view(-1, -1)),
    ("reshape", "shape", lambda: l.reshape(7)),
    ("cat", "sizes", lambda: tenon.cat([l, tenon.ones(2, 2)])),
    ("cat", "list", lambda: tenon.cat([])),
    ("stack", "size", lambda: tenon.stack([l, tenon.ones(2, 2)])),
    ("split", "split_size", lambda: l.split(-1)),
    ("split", "split_sizes", lambda: l.split([1, 1])),
    ("chunk", "`chunks`", lambda: l.chunk(0)),
    ("roll", "`shifts`", lambda: l.roll((1, 2), 0)),
    ("permute", "dim", lambda: l.permute(0, 0)),
    ("as_strided", "sizes", lambda: l.as_strided([100], [1])),
    ("add", "`out`", lambda: tenon.add(l, 1, out=tenon.ones(1, 4).expand(3, 4))),
    ("add", "`out`", lambda: (lambda b: tenon.add(b[:-1], 1, out=b[1:]))(tenon.ones(5))),
    ("add", "`out`", lambda: tenon.add(l, 1, out=tenon.empty(2, 2))),
    ("add", "`out`", lambda: tenon.add(l, 1, out=tenon.empty(3, 4, dtype=tenon.int64))),
    ("add", "`out`", lambda: tenon.add(l, 1, out=tenon.empty(3, 4, device="meta"))),
    ("add", "`self`", lambda: l + tenon.empty(3, 4, device="meta")),
    ("conv2d", "`weight`", lambda: tenon.conv2d(x, w.to("meta"))),
    ("embedding", "`indices`", lambda: F.embedding(tenon.tensor([1], device="meta"), l)),
    ("Device", "device", lambda: l.to("cuda")),
    ("Device", "device", lambda: tenon.zeros(1, device="cuda:0")),
    ("clamp", "`min`", lambda: l.clamp()),
    ("max", "`self`", lambda: tenon.empty(0).max()),
    ("argmax", "`self`", lambda: tenon.empty(0, 3).argmax(0)),
    ("item", "elements", lambda: l.item()),
    ("einsum", "dimension", lambda: tenon.einsum("ij,jk", l, l)),
    ("cumsum", "dimension", lambda: l.cumsum(2)),
    ("pixel_shuffle", "`self`", lambda: F.pixel_shuffle(x, 2)),
    ("glu", "`self`", lambda: F.glu(x, 1)),
    ("prelu", "`weight`", lambda: F.prelu(x, tenon.ones(4))),
    ("prelu", "expected one number for `self` []", lambda: F.prelu(tenon.tensor(1.0), tenon.ones(2))),
    ("prelu", "expected one number, or one for each of 3 channels, for `self` [2, 3]", lambda: F.prelu(tenon.ones(2, 3), tenon.ones(2))),
    ("softmax", "dimension", lambda: F.softmax(l, 5)),
    ("diag", "expected", lambda: tenon.diag(x)),
    ("tril", "dimensions", lambda: tenon.tril(tenon.ones(3))),
    ("flip", "dimension", lambda: l.flip(4)),
    ("Device", "device", lambda: l.to("float33")),
    ("kl_div", "shapes", lambda: F.kl_div(l, tenon.ones(2, 2))),
    ("binary_cross_entropy", "`self`", lambda: F.binary_cross_entropy(tenon.tensor([1.5]), tenon.tensor([1.0]))),
    ("binary_cross_entropy", "`target`", lambda: F.binary_cross_entropy(tenon.tensor([0.5, 0.5]), tenon.tensor([1.0]))),
    ("tensor", "sequence", lambda: tenon.tensor([[1, 2], [3]])),
    ("tensor", "number", lambda: tenon.tensor("a")),
    ("tensor", "number", lambda: tenon.tensor([None])),
    ("Adam", "lr", lambda: tenon.optim.Adam([tenon.zeros(1, requires_grad=True)], lr=-1)),
    ("Adam", "betas", lambda: tenon.optim.Adam([tenon.zeros(1, requires_grad=True)], betas=(1.0, 0.9))),
    ("Conv2d", "in_channels", lambda: tenon.nn.Conv2d(-3, 4, 3)),
    ("Conv2d", "padding_mode", lambda: tenon.nn.Conv2d(3, 4, 3, padding_mode="x")),
    ("Embedding", "num_embeddings", lambda: tenon.nn.Embedding(-4, 2)),
    ("GroupNorm", "num_channels", lambda: tenon.nn.GroupNorm(2, 5)),
    ("Linear", "in_features", lambda: tenon.nn.Linear(-3, 4)),
    ("multinomial", "samples", lambda: tenon.multinomial(tenon.tensor([1.0, 0, 0]), 2)),
    ("bernoulli", "probabilities", lambda: tenon.bernoulli(tenon.tensor([1.5]))),
    ("bernoulli", "probabilities", lambda: tenon.bernoulli(tenon.tensor([float("nan")]))),
    ("set_default_device", "device", lambda: tenon.set_default_device(numpy.zeros(3, dtype=[("a", "i4")]))),
    ("tenon::layernorm()", "normalized_shape", lambda: tenon.ops.layernorm(l, numpy.array(2.0))),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "argument", "call"), CALLS, ids=[f"{i}-{c[0]}" for i, c in enumerate(CALLS)])
def test_the_error_names_operator_and_argument(operator, argument, call):
    with pytest.raises((ValueError, TypeError, IndexError, RuntimeError)) as caught:
        call()
    message = str(caught.value)
    assert message.startswith(operator + ":") and argument in message, message


@pytest.mark.parametrize("path", ["", b""])
def test_an_empty_path_is_no_file(path):
    with pytest.raises(FileNotFoundError, match="^load: f must be a path .*, got an empty one"):
        tenon.load(path)


def test_nothing_is_written_before_the_output_is_checked():
    out = tenon.full([3, 4], 7.0)
    for call in (
        lambda: tenon.add(l, tenon.ones(3, 5), out=out),
        lambda: tenon.mm(l, l, out=out),
        lambda: tenon.index_select(l, 0, tenon.tensor([0, 3, 1]), out=out),
        lambda: tenon.gather(l, 1, tenon.tensor([[0, 1, 2, 3]] * 2 + [[0, 1, 2, 4]]), out=out),
    ):
        with pytest.raises((RuntimeError, IndexError)):
            call()
        assert out.eq(7).all()


def test_what_is_not_a_number_has_its_place():
    """NaN comes last in sort and wins max and min; -0 equals 0, so that sort keeps their order."""
    nan = float("nan")
    values = tenon.tensor([1.0, nan, -0.0, float("-inf"), 0.0, nan, float("inf")])
    order = values.argsort(stable=True).tolist()
    assert order == [3, 2, 4, 0, 6, 1, 5]
    assert values.argsort(descending=True, stable=True).tolist() == [1, 5, 6, 0, 2, 4, 3]
    assert values.max().isnan() and values.min().isnan() and values.argmax() == 1
    assert values.topk(3).indices.tolist() == [1, 5, 6]
    assert tenon.tensor([0.0, -0.0]).argmax() == 0 and tenon.tensor([-0.0, 0.0]).argmax() == 0
