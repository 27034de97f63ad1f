"""Branches, loops, scans and sequences, against the same lines in NumPy."""

import numpy as np
import pytest

import tenon

from onnx_networks import graph, load, node, port, tensor

ints = lambda *values: np.array(values, np.int64)


def doubling(extra=(), outputs=(), go_on="keep"):
    """The body of a loop that doubles what it carries, by a factor that it reads from outside."""
    nodes = [node("Identity", "keep", "kept"), node("Mul", "v factor", "w"), *extra]
    return graph(nodes, ["i", "keep", "v"], ["kept" if go_on == "keep" else go_on, "w", *outputs])


@pytest.mark.parametrize("compiled", [False, True])
def test_a_loop_runs_as_often_as_its_trip_count_and_its_condition_allow(compiled):
    small = doubling([node("Less", "w limit", "small")], go_on="small")
    inputs = "n c x factor limit"
    both = load([node("Loop", "n c x", "y", body=small)], inputs, "y")
    wrap = tenon.compile if compiled else lambda f: f
    numbers = lambda n, c, x: (tensor(np.int64(n)), tensor(np.bool_(c)), tensor(np.float32(x)), tensor(np.float32(2)), tensor(np.float32(50)))
    assert wrap(both)(*numbers(3, True, 1.0)).item() == 8
    assert wrap(both)(*numbers(30, True, 1.0)).item() == 64
    assert wrap(both)(*numbers(3, False, 1.0)).item() == 1
    assert wrap(both)(*numbers(0, True, 1.0)).item() == 1


@pytest.mark.parametrize("given", ["n", "c", ""])
def test_a_loop_needs_neither_a_trip_count_nor_a_condition(given):
    from onnx import helper

    small = doubling([node("Less", "w limit", "small")], go_on="small")
    loop = helper.make_node("Loop", [given if given == "n" else "", given if given == "c" else "", "x"], ["y"], body=small)
    model = load([loop], "n c x factor limit", "y")
    result = model(tensor(np.int64(4)), tensor(np.bool_(True)), tensor(np.float32(1)), tensor(np.float32(2)), tensor(np.float32(100)))
    assert result.item() == (16 if given == "n" else 128)


def test_scan_outputs_of_a_loop_are_stacked_and_what_it_carries_may_change_its_shape():
    body = graph([node("Identity", "keep", "kept"), node("Concat", "v v", "w", axis=0), node("ReduceSum", "w", "s", keepdims=0)],
                 ["i", "keep", "v"], ["kept", "w", "s"])  # fmt: skip
    model = load([node("Loop", "n c x", "y s", body=body)], "n c x", "y s")
    y, sums = model(tensor(np.int64(3)), tensor(np.bool_(True)), tensor(np.ones(2, np.float32)))
    assert y.shape == (16,) and sums.tolist() == [4, 8, 16]


def test_a_loop_without_iterations_has_empty_scan_outputs_of_the_shape_that_the_file_says():
    body = graph([node("Identity", "keep", "kept"), node("Identity", "v", "w"), node("Expand", "i shape", "s")], ["i", "keep", "v"],
                 ["kept", "w", port("s", np.int64, [3, None, 2])], shape=ints(3, 1, 2))  # fmt: skip
    model = load([node("Loop", "n c x", "y s", body=body)], "n c x", "y s")
    y, empty = model(tensor(np.int64(0)), tensor(np.bool_(True)), tensor(np.ones(2, np.float32)))
    assert y.shape == (2,) and empty.shape == (0, 3, 0, 2) and empty.dtype == tenon.int64


def test_gradients_flow_through_branches_and_iterations():
    power = load([node("Loop", "n c one", "y", body=doubling())], "n c one factor", "y")
    x = tenon.tensor(3.0, requires_grad=True)
    power(tensor(np.int64(4)), tensor(np.bool_(True)), tensor(np.float32(1)), x).backward()
    assert x.grad.item() == 4 * 3.0**3
    chosen = load([node("If", "c", "y", then_branch=graph([node("Mul", "x x", "a")], [], ["a"]),
                        else_branch=graph([node("Neg", "x", "b")], [], ["b"]))], "c x", "y")  # fmt: skip
    for condition, gradient in ((True, 6), (False, -1)):
        x = tenon.tensor(3.0, requires_grad=True)
        chosen(tensor(np.bool_(condition)), x).backward()
        assert x.grad.item() == gradient


def running_sum(state="s", step="x"):
    return graph([node("Add", f"{state} {step}", "t"), node("Identity", "t", "each")], [state, step], ["t", "each"])


@pytest.mark.parametrize("axis, backward, out_axis, out_backward", [(0, 0, 0, 0), (1, 1, -1, 0), (-1, 0, 1, 1), (2, 1, 0, 1)])
def test_a_scan_goes_along_any_axis_in_both_directions(axis, backward, out_axis, out_backward):
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    moved = np.moveaxis(x, axis, 0)[:: -1 if backward else 1]
    model = load([node("Scan", "s x", "final all", body=running_sum(), num_scan_inputs=1, scan_input_axes=[axis], scan_input_directions=[backward],
                       scan_output_axes=[out_axis], scan_output_directions=[out_backward])], "s x", "final all")  # fmt: skip
    final, every = model(tensor(np.zeros(moved.shape[1:], np.float32)), tensor(x))
    sums = np.cumsum(moved, 0)
    np.testing.assert_allclose(final.numpy(), sums[-1], rtol=1e-6)
    np.testing.assert_allclose(every.numpy(), np.moveaxis(sums[:: -1 if out_backward else 1], 0, out_axis), rtol=1e-6)


def test_a_scan_of_version_8_has_a_batch_whose_sequences_end_early():
    x = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    model = load([node("Scan", "n s x", "final all", body=running_sum(), num_scan_inputs=1)], "n s x", "final all", opset=8)
    final, every = model(tensor(ints(4, 2)), tensor(np.zeros((2, 3), np.float32)), tensor(x))
    sums = np.cumsum(x, 1)
    np.testing.assert_array_equal(final.numpy(), [sums[0, 3], sums[1, 1]])
    sums[1, 2:] = 0
    np.testing.assert_array_equal(every.numpy(), sums)


def test_sequences_are_taken_apart_and_put_together():
    nodes = [node("SplitToSequence", "x two", "a", axis=1), node("SequenceErase", "a last", "b"), node("SequenceInsert", "b x last", "c"),
             node("SequenceAt", "c last", "y"), node("SequenceLength", "c", "n"), node("ConcatFromSequence", "c", "z", axis=1)]  # fmt: skip
    x = np.arange(10).reshape(2, 5)
    y, n, z = load(nodes, "x", "y n z", two=np.int64(2), last=np.int64(-1))(tensor(x))
    assert y.tolist() == x[:, 2:4].tolist() and n.item() == 3
    np.testing.assert_array_equal(z.numpy(), np.concatenate([x[:, :2], x, x[:, 2:4]], 1))


def text_of(nodes, inputs, outputs, *values, opset=21, **constants):
    with pytest.raises((ValueError, TypeError, IndexError, RuntimeError, NotImplementedError)) as error:
        load(nodes, inputs, outputs, opset, **constants)(*map(tensor, values))
    return str(error.value)


def test_messages_say_what_is_wrong_with_a_loop():
    no_values = graph([node("Identity", "keep", "kept")], ["i", "keep", "v"], ["kept"])
    assert "Loop: its body has 1 outputs, expected a condition and 1 carried values" in text_of(
        [node("Loop", "n c x", "y", body=no_values)], "n c x", "y", np.int64(1), np.bool_(True), np.float32(1))  # fmt: skip
    few = graph([node("Identity", "keep", "kept")], ["i", "keep"], ["kept", "v"], v=np.float32(1))
    assert "Loop: its graph takes 2 inputs, and gets 3" in text_of(
        [node("Loop", "n c x", "y", body=few)], "n c x", "y", np.int64(1), np.bool_(True), np.float32(1))  # fmt: skip
    wide = graph([node("Expand", "keep two", "kept")], ["i", "keep"], ["kept"], two=ints(2))
    assert "Loop: the condition of its body is not one element" in text_of(
        [node("Loop", "n c", "y", body=wide)], "n c", "y", np.int64(1), np.bool_(True))  # fmt: skip
    listed = graph([node("Identity", "keep", "kept"), node("SequenceConstruct", "i i", "s")], ["i", "keep"], ["kept", "s"])
    assert "Loop: a scan output is no tensor" in text_of([node("Loop", "n c", "y", body=listed)], "n c", "y", np.int64(1), np.bool_(True))


def test_messages_say_what_is_wrong_with_branches_scans_and_sequences():
    one = graph([node("Neg", "x", "a")], [], ["a"])
    assert "If: its branch has fewer outputs than the node" in text_of(
        [node("If", "c", "y z", then_branch=one, else_branch=one)], "c x", "y z", np.bool_(True), np.float32(1))  # fmt: skip
    x, s = np.ones((2, 3), np.float32), np.zeros(3, np.float32)
    scan = lambda **attributes: text_of([node("Scan", "s x", "f", body=running_sum(), **attributes)], "s x", "f", s, x)
    assert "Scan: attribute `num_scan_inputs` is 3, of 2 inputs" in scan(num_scan_inputs=3)
    assert "Scan: attribute `scan_input_axes` has 2 numbers, expected 1" in scan(num_scan_inputs=1, scan_input_axes=[0, 1])
    assert "Scan: its sequences have 2 and 3 elements" in text_of([node("Scan", "x y", "f", body=running_sum(), num_scan_inputs=2)], "x y", "f", x, s)
    assert "Scan: its body has fewer outputs than states" in text_of(
        [node("Scan", "s t u x", "f", body=running_sum(), num_scan_inputs=1)], "s t u x", "f", s, s, s, x)  # fmt: skip
    batch = lambda lengths, x: text_of([node("Scan", "n s x", "f", body=running_sum(), num_scan_inputs=1)], "n s x", "f", lengths, np.zeros((2, 1), np.float32), x, opset=8)
    assert "Scan: a sequence without a batch" in batch(ints(1), s)
    assert "Scan: 1 lengths for a batch of 2" in batch(ints(1), x)
    assert "Scan: a sequence of 9 elements, of 3" in batch(ints(9, 1), x)
    at = lambda op, inputs, **constants: text_of([node("SplitToSequence", "x", "s"), node(op, inputs, "y")], "x", "y", x, **constants)
    assert "SequenceAt: position 2 of a sequence of 2 values" in at("SequenceAt", "s two", two=np.int64(2))
    assert "SequenceErase: position -3 of a sequence of 2 values" in at("SequenceErase", "s three", three=np.int64(-3))
    assert "SequenceErase: its sequence is empty" in text_of([node("SequenceEmpty", "", "s"), node("SequenceErase", "s", "y")], "x", "y", x)
    assert "SequenceLength: input 0 is no sequence" in text_of([node("SequenceLength", "x", "y")], "x", "y", x)
    assert "SplitToSequence: parts of 0 elements" in text_of([node("SplitToSequence", "x n", "y")], "x", "y", x, n=np.int64(0))
    pairs = graph([node("Add", "a b", "c")], ["a", "b"], ["c"])
    assert "SequenceMap: its sequences have 2 and 3 values" in text_of(
        [node("SplitToSequence", "x", "s"), node("SplitToSequence", "x", "t", axis=1), node("SequenceMap", "s t", "y", body=pairs)], "x", "y", x)  # fmt: skip
    lists = graph([node("SequenceConstruct", "a", "c")], ["a"], ["c"])
    assert "SequenceMap: an output of its body is no tensor" in text_of(
        [node("SplitToSequence", "x", "s"), node("SequenceMap", "s", "y", body=lists)], "x", "y", x)  # fmt: skip


def test_a_missing_optional_value_has_no_element():
    import onnx

    nothing = node("Optional", "", "o", type=onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [1]))
    assert not load([nothing, node("OptionalHasElement", "o", "y")], "x", "y")(tensor(np.float32(1))).item()
    assert "OptionalGetElement: its input is empty" in text_of([nothing, node("OptionalGetElement", "o", "y")], "x", "y", np.float32(1))
