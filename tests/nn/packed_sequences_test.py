"""nn.utils.rnn: sequences that are packed and padded, compared with lists of NumPy arrays; and layers over them."""

import numpy as np
import pytest
from recurrent_reference import run

import tenon
from tenon import nn
from tenon.nn.utils.rnn import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)


def sequences(*lengths, rest=(3,), dtype=tenon.float64):
    tenon.manual_seed(0)
    return [tenon.randn(n, *rest, dtype=dtype) for n in lengths]


def test_packed_data_has_the_steps_of_all_sequences_one_after_the_other():
    packed = pack_sequence([tenon.tensor([1, 4, 6]), tenon.tensor([2, 5]), tenon.tensor([3])])
    assert packed.data.tolist() == [1, 2, 3, 4, 5, 6]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices is None and packed.unsorted_indices is None


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("lengths", [(4, 4, 2, 1), (1, 5, 3), (2,), (3, 3)])
@pytest.mark.parametrize("rest", [(), (3,), (2, 3)])
def test_what_is_packed_is_what_is_unpacked(batch_first, lengths, rest):
    listed = sequences(*lengths, rest=rest)
    padded = pad_sequence(listed, batch_first, padding_value=-7)
    longest = max(lengths)
    assert padded.shape == ((len(lengths), longest, *rest) if batch_first else (longest, len(lengths), *rest))
    packed = pack_padded_sequence(padded, tenon.tensor(lengths), batch_first, enforce_sorted=False)
    order = np.argsort(-np.array(lengths), kind="stable")
    steps = [listed[n][t].numpy() for t in range(longest) for n in order if t < lengths[n]]
    assert np.array_equal(packed.data.numpy(), np.array(steps))
    assert packed.batch_sizes.tolist() == [sum(n > t for n in lengths) for t in range(longest)]
    assert packed.sorted_indices[packed.unsorted_indices].tolist() == list(range(len(lengths)))
    again, counts = pad_packed_sequence(packed, batch_first, padding_value=-7, total_length=longest + 2)
    assert counts.tolist() == list(lengths)
    axis = 1 if batch_first else 0
    assert again.narrow(axis, 0, longest).equal(padded)
    assert (again.narrow(axis, longest, 2) == -7).all()
    for a, b in zip(unpack_sequence(packed), listed):
        assert a.equal(b)
    for a, b in zip(unpad_sequence(padded, counts, batch_first), listed):
        assert a.equal(b)


def test_padding_on_the_left():
    padded = pad_sequence([tenon.tensor([1, 2, 3]), tenon.tensor([4])], batch_first=True, padding_side="left")
    assert padded.tolist() == [[1, 2, 3], [0, 0, 4]]


def test_gradients_pass_through_packing():
    x = tenon.randn(4, 3, 2, dtype=tenon.float64, requires_grad=True)

    def f(x):
        return pad_packed_sequence(pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False))[0]

    assert tenon.autograd.gradcheck(f, x)
    f(x).sum().backward()
    assert x.grad[..., 0].tolist() == [[1, 1, 1], [1, 1, 0], [0, 1, 0], [0, 1, 0]]


def test_a_packed_sequence_is_a_tuple_that_can_be_converted():
    packed = pack_sequence(sequences(1, 3), enforce_sorted=False)
    data, batch_sizes, order, back = packed
    assert order.tolist() == [1, 0] and back.equal(invert_permutation(order))
    single = packed.float()
    assert single.data.dtype == tenon.float32 and single.unsorted_indices.equal(back)
    assert packed.to(tenon.float64) is packed and packed.cpu() is packed and not packed.is_cuda
    assert PackedSequence((data, batch_sizes)).sorted_indices is None
    assert invert_permutation(None) is None
    assert repr(packed).startswith("PackedSequence(data=tensor(")


@pytest.mark.parametrize("mode", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("lengths, enforce_sorted", [((6, 4, 4, 1), True), ((2, 5, 1, 5), False), ((1, 1), True)])
def test_layers_of_packed_sequences_compute_each_by_itself(mode, lengths, enforce_sorted):
    tenon.manual_seed(1)
    options = {"proj_size": 3} if mode == "LSTM" else {}
    module = getattr(nn, mode)(3, 5, 2, bidirectional=True, dtype=tenon.float64, **options)
    listed = sequences(*lengths)
    h = tenon.randn(4, len(lengths), module.proj_size or 5, dtype=tenon.float64)
    c = tenon.randn(4, len(lengths), 5, dtype=tenon.float64)
    output, state = module(pack_sequence(listed, enforce_sorted), (h, c) if mode == "LSTM" else h)
    want, hy, cy = run(module, [s.numpy() for s in listed], h.numpy(), c.numpy())
    for a, b in zip(unpack_sequence(output), want):
        np.testing.assert_allclose(a.detach().numpy(), b, atol=1e-13)
    for a, b in zip(state if mode == "LSTM" else (state,), (hy, cy)):
        np.testing.assert_allclose(a.detach().numpy(), b, atol=1e-13)
    zeros = module(pack_sequence(listed, enforce_sorted))[0]
    for a, s in zip(unpack_sequence(zeros), listed):
        np.testing.assert_allclose(a.detach().numpy(), module(s)[0].detach().numpy(), atol=1e-13)


X = tenon.zeros(4, 3, 2)


def recurrence(batch_sizes):
    return tenon._recurrence(tenon.zeros(3, 3), tenon.zeros(2, 1), None, tenon.zeros(3, 1), None, None, tenon.tensor(batch_sizes), 3, False, False)




@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: pack_padded_sequence(X, [4, 3]), RuntimeError, r"expected `lengths` of the batch's 3 sequences, got \[2\]"),
        (lambda: pack_padded_sequence(X, [4, 3, 0]), RuntimeError, r"expected `lengths` of all sequences to be greater than 0, got \[4, 3, 0\]"),
        (lambda: pack_padded_sequence(X, [3, 4, 1]), RuntimeError, r"`lengths` must be in decreasing order .* got \[3, 4, 1\]; .* enforce_sorted=False"),
        (lambda: pack_padded_sequence(X, [5, 4, 1]), RuntimeError, r"expected `lengths` of at most the 4 steps of `input` \[4, 3, 2\], got 5"),
        (lambda: pack_padded_sequence(X[0, 0], [1]), RuntimeError, r"expected `input` with at least 2 dimensions, got \[2\]"),
        (lambda: pack_padded_sequence([1], [1]), TypeError, "`input` must be a Tensor, got .*list"),
        (lambda: pad_packed_sequence(X), TypeError, "`sequence` must be a PackedSequence, got Tensor"),
        (
            lambda: pad_packed_sequence(pack_padded_sequence(X, [4, 3, 1]), total_length=3),
            ValueError,
            "Expected total_length to be at least the length of the longest sequence in input, but got total_length=3",
        ),
        (lambda: pad_sequence([]), RuntimeError, "expected at least one sequence"),
        (lambda: pad_sequence(3), RuntimeError, "`sequences` must be an iterable of Tensors, got 3 .int"),
        (lambda: pad_sequence([X, X[..., :1]]), RuntimeError, r"expected all sequences \[length, 3, 2\], got \[4, 3, 1\]"),
        (lambda: pad_sequence([X], padding_side="up"), RuntimeError, "padding_side must be 'right' or 'left', got 'up'"),
        (lambda: unpad_sequence(X, tenon.tensor([1])), ValueError, "expected `lengths` of 3 sequences, got 1"),
        (lambda: PackedSequence(X), TypeError, "without batch_sizes, data must be a pair of both, got Tensor"),
        (lambda: recurrence([2]), ValueError, "_recurrence: expected `batch_sizes` that sum up to the 3 rows of `input`, got 2"),
        (lambda: recurrence([2, 3]), ValueError, r"_recurrence: expected batch_sizes\[1\] between 1 and 2, got 3"),
        (lambda: recurrence([3]), ValueError, r"_recurrence: expected batch_sizes\[0\] to be the batch of `hx`, 2, got 3"),
        (lambda: recurrence([2.0]), RuntimeError, r"_recurrence: expected `batch_sizes` int64 \[1\], got float32 \[1\]"),
    ],
)
def test_errors_name_argument_and_shapes(call, error, text):
    with pytest.raises(error, match=text):
        call()


