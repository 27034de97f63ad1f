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
        (lambda: F.cross_entropy(tenon.ones(2, 3), tenon.tensor([0])), "cross_entropy"),
        (lambda: F.cross_entropy(tenon.ones(2, 3), tenon.tensor([0, 7])), "cross_entropy"),
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


def several_results():
    """Calls with `out` of the structured operators that have several results, and the shape of those."""
    x = tenon.tensor([[3, 1, 2], [4, 6, 5]])
    return {
        "max": (lambda out: tenon.max(x, 1, out=out), (2,)),
        "min": (lambda out: tenon.min(x, 1, out=out), (2,)),
        "max with keepdim": (lambda out: tenon.max(x, 1, True, out=out), (2, 1)),
        "max without elements": (lambda out: tenon.max(x[:0], 1, out=out), (0,)),
    }


@pytest.mark.parametrize("name", several_results())
def test_outputs_that_share_memory_are_refused(name):
    call, shape = several_results()[name]
    size = 1
    for extent in shape:
        size *= extent
    whole = tenon.full((2 * size + 2,), 7)
    same, empty = tenon.full(shape, 7), tenon.empty(0, dtype=tenon.int64)
    refused = [((same, same), "are the same tensor"), ((empty, empty), "are the same tensor")]
    if size > 0:
        refused += [
            ((out, other), "overlap in memory")
            for out, other in [
                (same, same.view(shape)),
                (whole[:size].view(shape), whole[size - 1 : 2 * size - 1].view(shape)),
                (whole[:0], whole[:0]),
                (whole[:0], whole[:size].view(shape)),
                (whole[size - 1 : 2 * size - 1].view(shape), whole[:0]),
            ]
        ]
    for out, message in refused:
        with pytest.raises(RuntimeError, match=f"m[axin]+: outputs 0 and 1 {message}"):
            call(out)
    assert (same == 7).all() and (whole == 7).all() and empty.shape == (0,)
    # Neighbours in one storage are apart, also where the elements of one lie between those of the other.
    values, indices = tenon.empty(0, dtype=tenon.int64), tenon.empty(0, dtype=tenon.int64)
    call((values, indices))
    for pair in [(whole[:size], whole[size : 2 * size]), (whole[: 2 * size : 2], whole[1 : 2 * size : 2])]:
        pair = tuple(t.view(shape) for t in pair)
        call(pair)
        assert pair[0].tolist() == values.tolist() and pair[1].tolist() == indices.tolist()


@pytest.mark.parametrize(("call", "shape"), [(lambda x: tenon.amax(x, -1, out=x), (0, 3)), (lambda x: tenon.any(x, 1, out=x), (0, 5))])
def test_an_operand_is_not_resized_as_the_output(call, shape):
    x = tenon.empty(*shape, dtype=tenon.bool)
    with pytest.raises(RuntimeError, match="`out` of shape .* is an operand too"):
        call(x)
    assert tuple(x.shape) == shape


def test_numbers_at_the_end_of_int64_are_numbers():
    assert tenon.zeros(3, 2).diagonal(-(2**63)).shape == (0,)
    for call in (lambda x: x.view(2**63 - 1), lambda x: x.sum_to_size(1, 2**63 - 1), lambda x: x.unflatten(0, (1, 2**63 - 1))):
        with pytest.raises((RuntimeError, ValueError)):
            call(tenon.zeros(3, 1))
    with pytest.raises(IndexError):
        tenon.zeros(5).permute(2**63 - 1)
    x = tenon.arange(10).reshape(2, 5)
    assert x.unfold(1, 1, 2**63 - 1).tolist() == [[[0]], [[5]]]
    assert x[:, :: 2**62].clone().tolist() == [[0], [5]] and (x[:, :: -(2**63)] + 1).tolist() == [[5], [10]]
    assert tenon.eye(0, 2**63 - 1).shape == (0, 2**63 - 1)
    assert tenon.zeros(0, 1).as_strided((1, 0), (2**60, 1)).clone().shape == (1, 0)


@pytest.mark.parametrize(
    ("name", "arguments", "match"),
    [
        ("split_backward", ([], [4], 2, 0), "0 gradients for 2 parts"),
        ("split_backward", ([tenon.ones(2)] * 2, [], 2, 0), "split_backward: no tensor of sizes"),
        ("split_backward", ([tenon.ones(2)] * 2, [4], -2, 0), "split_backward: no tensor of sizes"),
        ("split_with_sizes_backward", ([tenon.ones(4)], [2, 5], [], -1), "1 gradients for 0 parts"),
        ("split_with_sizes_backward", ([tenon.ones(4)], [], [4], 0), "1 gradients for 1 parts of a tensor of sizes"),
        ("unbind_backward", ([None], [], -1), "a 0-dim tensor has no parts"),
        ("unbind_backward", ([tenon.ones(())], [2], 0), "1 gradients for 2 parts"),
        ("index_backward", (tenon.ones(2, 1), [3], [tenon.tensor([0])]), "the gradient has shape"),
        ("index_backward", (tenon.ones(2), [2, 2**62, 4], [tenon.tensor([0, 1])]), "more elements than int64 can count"),
        ("mean_backward", (tenon.ones(2), [5, 4, 2**63 - 1], None, True), "more elements than int64 can count"),
        ("gather_backward", (tenon.ones(2), [3], 0, tenon.tensor([0])), "the gradient has shape"),
        ("value_selecting_backward", (tenon.ones(2), 0, tenon.tensor([0]), [3], True), "the gradient has shape"),
        ("unfold_backward", (tenon.ones(1, 4), [3, 2], 0, 1, 1), "the gradient has shape"),
        ("as_strided_backward", (tenon.ones(2), [3], [1], 0, [3], [1]), "the gradient has shape"),
        ("as_strided_backward", (tenon.ones(3), [3], [1], 0, [3], [1, 1]), "mismatch in length of strides"),
        ("as_strided_backward", (tenon.ones(0), [1, 2], [1, 1], 0, [0], [1, 2]), "mismatch in length of strides"),
        ("as_strided_elements", (tenon.ones(3), [1, -2], [1, 1], 0, [2], [1]), "negative size"),
        ("as_strided_elements", (tenon.ones(3, 2), [2, 3], [3, 1], 0, [2], [1]), r"`self` has shape \[3, 2\], expected"),
        ("select_backward", (tenon.ones(1), [2, 3], 0, 1), r"the gradient has shape \[1\], expected \[3\] as the view"),
        ("slice_backward", (tenon.ones(3), [2, 3], 0, 0, 1, 1), r"the gradient has shape \[3\], expected \[1, 3\]"),
        ("diagonal_backward", (tenon.ones(3), [2, 3], 0, 0, 1), r"the gradient has shape \[3\], expected \[2\]"),
        ("split_backward", ([tenon.ones(2, 3), tenon.ones(1, 3)], [2, 3], 1, 0), r"has shape \[2, 3\], expected \[1, 3\]"),
        ("split_with_sizes_backward", ([tenon.ones(1, 3), tenon.ones(5, 3)], [2, 3], [1, 1], 0), r"has shape \[5, 3\]"),
        ("angle_backward", (tenon.ones(3), tenon.ones(2)), r"the gradient has shape \[3\], expected \[2\] as `self`"),
        ("sgn_backward", (tenon.ones(3), tenon.ones(2)), r"the gradient has shape \[3\], expected \[2\] as `self`"),
        ("index_backward", (tenon.ones(3), [-1, 3], []), "negative size"),
        ("index_select_backward", (tenon.ones(2), [3], 0, tenon.tensor([0])), "the gradient has shape"),
        ("sum_backward", (tenon.ones(()), [2, 3], [0], False), r"the gradient has shape \[\], expected \[3\] as the result"),
        ("sum_backward", (tenon.ones(1, 1), [2, 3], None, False), r"has shape \[1, 1\], expected \[\]"),
        ("mean_backward", (tenon.ones(1, 1), [2, 3], [1], True), r"has shape \[1, 1\], expected \[2, 1\]"),
        ("amax_backward", (tenon.ones(1), tenon.ones(2, 3), tenon.ones(2), [1], False), r"the gradient has shape \[1\]"),
        ("amax_backward", (tenon.ones(2), tenon.ones(2, 3), tenon.ones(()), [1], False), r"`result` has shape \[\]"),
        ("value_selecting_backward", (tenon.ones(2), 0, tenon.tensor(0), [], False), r"the gradient has shape \[2\]"),
        ("prod_backward", (tenon.ones(3), tenon.ones(2, 3), 0), r"has shape \[3\], expected \[2, 3\] as `self`"),
        ("prod_backward", (tenon.ones(1), tenon.ones(2, 3), None), r"has shape \[1\], expected \[\]"),
        ("var_backward", (tenon.ones(5, 2), tenon.ones(2, 3), [1], None, False), r"has shape \[5, 2\], expected \[2\]"),
        ("std_backward", (tenon.ones(2), tenon.ones(1), tenon.ones(2, 3), [1], None, False), r"`result` has shape \[1\]"),
    ],
)
def test_gradients_that_fit_no_result_are_refused(name, arguments, match):
    with pytest.raises((RuntimeError, ValueError), match=match):
        getattr(tenon.ops.aten, name).default(*arguments)


def test_a_view_is_not_set_to_another_storage():
    with pytest.raises(NotImplementedError, match="set_: `self` is a view, whose history is that of its base"):
        tenon.ones(3)[1:].set_(tenon.zeros(2))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda z: tenon.nn.functional.mse_loss(z, z), "mse_loss: not implemented for complex"),
        (lambda z: tenon.randint(3, (2,), dtype=z.dtype), "randint: not implemented for complex64"),
        (lambda z: tenon.ops.aten._softmax_backward_data.default(z, z, 0, z.dtype), "softmax backward: not implemented"),
    ],
)
def test_complex_numbers_are_refused_where_they_mean_nothing(call, match):
    with pytest.raises(NotImplementedError, match=match):
        call(tenon.tensor([1j, 2.0]))


def test_polar_takes_no_integers():
    with pytest.raises(TypeError, match="polar: expected `abs` of float32 or float64, got int64"):
        tenon.polar(tenon.tensor([1]), tenon.tensor([2]))


def test_the_gradient_of_the_product_of_no_elements_has_none():
    x = tenon.ones(2, 0, 3, requires_grad=True)
    x.prod().backward()
    assert x.grad.shape == (2, 0, 3)


@pytest.mark.parametrize(
    "f, error, text",
    [
        (lambda: tenon.ones((2, 3), (4,)), TypeError, r"takes 1 positional arguments, got 2"),
        (lambda: tenon.ones([2, 3.5]), TypeError, r"'size' must be Sequence\[int\], but element 1 is float"),
        (lambda: tenon.cat([tenon.ones(2), 5]), TypeError, r"'tensors' must be Sequence\[Tensor\], but element 1 is int"),
        (lambda: tenon.ones(1) + 2**100, ValueError, f"beyond 64 bits: {2**100}"),
        (lambda: tenon.tensor(2**63), ValueError, f"beyond 64 bits: {2**63}"),
        (lambda: tenon.tensor(1) & 1.5, TypeError, "^bitwise_and: `and` needs integers or masks, got float32"),
        (lambda: tenon.empty(2, dtype=tenon.int64, device="meta") & 0.5, TypeError, "^bitwise_and: `and` needs integers"),
        (lambda: tenon.hypot(*[tenon.tensor([3], dtype=tenon.int8)] * 2), TypeError, "^hypot: the operands are int8.*convert integers"),
        (lambda: tenon.zeros(3, device="tpu"), ValueError, "no loaded device is called 'tpu'; there are cpu, .*meta"),
        (lambda: tenon.arange(5)[0, 0], IndexError, r"too many indices for tensor of dimension 1 \(got 2\)"),
        (lambda: 2**40 - tenon.tensor([1], dtype=tenon.int32), ValueError, "sub: .* which does not fit int32"),
    ],
)
def test_messages_name_what_was_given(f, error, text):
    with pytest.raises(error, match=text):
        f()


@pytest.mark.parametrize(
    "call",
    [
        lambda: tenon.tensor(1.0, requires_grad="yes"), lambda: tenon.ones(1).requires_grad_(1),
        lambda: tenon.set_grad_enabled("on"), lambda: setattr(tenon.ones(1), "requires_grad", 5),
        lambda: tenon.ones(1, requires_grad=True).sum().backward(retain_graph="no"),
    ],
)  # fmt: skip
def test_flags_are_bools(call):
    with pytest.raises(TypeError, match="bool"):
        call()


def test_a_copy_that_cannot_be_made_resizes_nothing():
    x = tenon.ones(2, 5)
    with pytest.raises(NotImplementedError, match="_copy_from_and_resize: cannot copy out of a meta tensor"):
        tenon._copy_from_and_resize(tenon.ones(1, 3, device="meta"), x)
    assert x.shape == (2, 5) and x.sum().item() == 10


class Asked:
    """A size that counts how often it is asked for its value."""

    def __init__(self, number):
        self.number, self.times = number, 0

    def __index__(self):
        self.times += 1
        return self.number


@pytest.mark.parametrize(
    "call, times",
    [
        (lambda n: three.narrow(n, 0, "one"), 1),
        (lambda n: tenon.ops.aten.narrow.default(three, n, 0, "one"), 1),
        (lambda n: tenon.amax(three, n, keepdim="no"), 1),
        (lambda n: tenon.sum(three, n, keepdim="no"), 2),  # two overloads take a number there
        (lambda n: three.repeat_interleave(n, dim="no"), 2),
    ],
)
def test_a_refused_call_asks_each_argument_once_for_each_overload(call, times):
    size = Asked(0)
    with pytest.raises(TypeError):
        call(size)
    assert size.times <= times


def test_a_refused_call_computes_nothing_that_was_recorded():
    with tenon.recording(threshold=0):
        y = tenon.ones(3) + 1
        segments = tenon._C._record_stats()["segments"]
        with pytest.raises(TypeError):
            tenon.narrow(y, 0, 0, "one")
        assert tenon._C._record_stats()["segments"] == segments
        assert y.tolist() == [2, 2, 2]
