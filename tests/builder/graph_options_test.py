"""What is said of a graph, of its tensors and numbers, and of rng has the effect that it says, or is refused."""

import inspect
import itertools
import math
import re

import numpy as np
import pytest

import tenon
from tenon.graph import pygraph


def run(g, outputs, pack):
    """Results of a graph whose outputs are those."""
    for y in outputs:
        y.set_output(True)
    g.build()
    results = [tenon.empty_strided(y.get_dim(), y.get_stride(), dtype=y.get_data_type()) for y in outputs]
    used = set(g._get_variant_pack_uids_sorted())
    pack = {t: x for t, x in pack.items() if not isinstance(t, tenon.graph.Tensor) or t.get_uid() in used}
    g.execute({**pack, **dict(zip(outputs, results))}, tenon.empty(max(g.get_workspace_size(), 64), dtype=tenon.uint8))
    return results


# Types of the graph

EIGHTS, THIRDS = tenon.tensor([1.125, 2.25]), tenon.tensor([1 / 3, 2 / 3])


def test_io_data_type_is_that_of_inputs_and_outputs():
    g = pygraph(io_data_type=tenon.float16)
    x, number = g.tensor(dim=[2]), g.tensor(is_pass_by_value=True)
    y, truth, index = g.mul(x, number), g.cmp_gt(x, 0.5), g.gen_index(x, axis=0)
    value = THIRDS.half()
    results = run(g, [y, truth, index], {x: value, number: tenon.tensor(3.0).half()})
    assert [r.dtype for r in results] == [tenon.float16] * 3 and x.get_data_type() == number.get_data_type() == tenon.float16
    np.testing.assert_allclose(results[0].float().numpy(), [1, 2], rtol=1e-3)
    assert results[1].tolist() == [0, 1] and results[2].tolist() == [0, 1]
    # What says its own keeps it.
    g = pygraph(io_data_type=tenon.float16)
    x = g.tensor(dim=[2], data_type=tenon.float32)
    y, truth = g.mul(x, 3.0).set_data_type(tenon.float64), g.cmp_gt(x, 0.5).set_data_type(tenon.bool)
    results = run(g, [y, truth], {x: THIRDS})
    assert [r.dtype for r in results] == [tenon.float64, tenon.bool]


@pytest.mark.parametrize("dtype", [tenon.float16, tenon.float32, tenon.int32])
def test_intermediate_data_type_is_that_of_virtual_tensors(dtype):
    g = pygraph(io_data_type=tenon.float32, intermediate_data_type=dtype)
    x = g.tensor(dim=[2])
    middle = g.mul(x, 3.0)
    (y,) = run(g, [g.identity(middle)], {x: THIRDS})
    assert middle.get_data_type() == dtype
    exact = THIRDS.numpy() * np.float32(3)
    np.testing.assert_array_equal(y.numpy(), exact.astype({tenon.float16: np.float16, tenon.int32: np.int32}.get(dtype, np.float32)))
    # A sum of truths is one of numbers.
    g = pygraph(io_data_type=tenon.float32, intermediate_data_type=dtype)
    x = g.tensor(dim=[2])
    truth = g.cmp_gt(x, 0.5)
    (y,) = run(g, [g.add(truth, truth)], {x: THIRDS})
    assert truth.get_data_type() == dtype and y.tolist() == [0, 2]


def test_a_node_computes_in_the_widest_of_its_declared_types():
    """Without compute types: nothing is rounded or wraps before it is converted."""
    x, w = tenon.randn(6, 300).half(), tenon.randn(300, 5).half()
    g = pygraph()
    tx, tw = g.tensor_like(x), g.tensor_like(w)
    (y,) = run(g, [g.matmul(tx, tw).set_data_type(tenon.float32)], {tx: x, tw: w})
    np.testing.assert_allclose(y.numpy(), x.double().numpy() @ w.double().numpy(), rtol=1e-5, atol=1e-5)
    # Comparisons keep their operands' type: 2**24 and 2**24 + 1 are one in float32.
    big = tenon.tensor([2**24, 2**24 + 1], dtype=tenon.int64)
    g = pygraph()
    t = g.tensor_like(big)
    (y,) = run(g, [g.cmp_gt(t, 2**24).set_data_type(tenon.float32)], {t: big})
    assert y.tolist() == [0, 1]
    # int64 has values that float32 has not: the sum is exact, and rounded once.
    g = pygraph()
    t = g.tensor_like(big)
    (y,) = run(g, [g.sub(t, 2**24).set_data_type(tenon.float32)], {t: big})
    assert y.tolist() == [0, 1]


def test_compute_types_that_do_not_hold_the_operands():
    g = pygraph(compute_data_type=tenon.int32)
    x = g.tensor(dim=[2], data_type=tenon.int8, name="x")
    g.mul(x, 1.5, name="m").set_output(True)
    with pytest.raises(TypeError, match=r"node 'm': mul: it computes in int32 \(compute_data_type\), and input `b` is float"):
        g.validate()


def test_names():
    assert "graph '" not in repr(pygraph(name="mine"))
    g = pygraph()
    x = g.tensor(dim=[3], data_type=tenon.float32, name="image")
    y = g.exp(x, name="node")
    assert x.get_name() == "image" and y.get_name() == "node::OUT_0" and g.exp(x).get_name() == "exp_1::OUT_0"
    assert y.set_name("result").get_name() == "result"


# Tensors

TENSOR = {"dim", "stride", "data_type", "is_virtual", "is_pass_by_value", "name", "uid"}


def test_tensors():
    assert set(inspect.signature(pygraph.tensor).parameters) == TENSOR | {"self"}
    g = pygraph()
    x = g.tensor(dim=[2, 3], stride=[1, 2], data_type=tenon.float64, name="x", uid=7)
    assert (x.get_dim(), x.get_stride(), x.get_data_type(), x.get_uid()) == ([2, 3], [1, 2], tenon.float64, 7)
    value = tenon.arange(6.0, dtype=tenon.float64).view(3, 2).t()
    (y,) = run(g, [g.neg(x)], {7: value})
    assert y.tolist() == [[0, -2, -4], [-1, -3, -5]]
    g = pygraph()
    x = g.tensor(dim=[2], data_type=tenon.float32)
    y = g.exp(x).set_is_pass_by_value().set_output(True)
    with pytest.raises(ValueError, match="tensor 'exp_0::OUT_0' is passed by value, and a node makes it"):
        g.validate()
    y.set_is_pass_by_value(False)
    g.validate()


def test_a_data_type_that_is_not_set_any_more():
    g = pygraph(io_data_type=tenon.float16)
    x = g.tensor(dim=[2], data_type=tenon.float32)
    y, z = g.exp(x).set_data_type(tenon.float64).set_data_type(tenon.graph.data_type.NOT_SET), g.exp(x).set_data_type(tenon.float64)
    assert [r.dtype for r in run(g, [y, z], {x: THIRDS})] == [tenon.float16, tenon.float64]


def test_strides_of_another_number_of_dimensions():
    for output in (True, False):
        g = pygraph(io_data_type=tenon.float32)
        y = g.exp(g.tensor(dim=[2, 3])).set_name("y").set_stride([1]).set_output(output)
        g.exp(y).set_output(True)
        with pytest.raises(tenon.ShapeError, match=r"tensor 'y' has strides \[1\] for sizes \[2, 3\]"):
            g.validate()


def test_numbers_have_their_sizes():
    """As any other operand, a number of n dimensions makes the result have n at least."""
    x = tenon.tensor([1.0, 2.0])
    for node, wanted in (("add", [4, 5]), ("sub", [-2, -1]), ("max", [3, 3]), ("pow", [1, 8])):
        g = pygraph()
        tx = g.tensor_like(x)
        number = g.tensor(dim=[1, 1, 1], is_pass_by_value=True, data_type=tenon.float32)
        (y,) = run(g, [getattr(g, node)(tx, number)], {tx: x, number: tenon.tensor(3.0)})
        assert tuple(y.shape) == (1, 1, 2) and y.flatten().tolist() == wanted


NUMBERS = {
    tenon.bool: True,
    tenon.uint8: 200,
    tenon.int8: -100,
    tenon.int16: -30000,
    tenon.int32: -(2**31),
    tenon.int64: 2**53,
    tenon.float16: 0.333251953125,
    tenon.bfloat16: 0.333984375,
    tenon.float32: 0.3333333432674408,
    tenon.float64: 1 / 3,
}


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_numbers_of_every_type(dtype):
    """Read from memory in their own type, whatever the operand's is."""
    x = tenon.tensor([1.0, -2.0], dtype=tenon.float64)
    for node in ("mul", "max"):  # of a tensor and a number; of two tensors
        g = pygraph()
        tx, number = g.tensor_like(x), g.tensor(is_pass_by_value=True, data_type=dtype)
        (y,) = run(g, [getattr(g, node)(tx, number)], {tx: x, number: tenon.tensor(NUMBERS[dtype], dtype=dtype)})
        value = float(NUMBERS[dtype])
        assert y.tolist() == ([value, -2 * value] if node == "mul" else [max(1, value), max(-2, value)])
    g = pygraph()
    g.exp(g.tensor(is_pass_by_value=True, data_type=tenon.complex64, name="c")).set_output(True)
    with pytest.raises(TypeError, match="tensor 'c' is passed by value, and complex64 is no type of real numbers"):
        g.validate()


def test_several_numbers_of_one_node():
    x = tenon.tensor([1.0, 2.0])
    g = pygraph()
    tx, a, b = g.tensor_like(x), *(g.tensor(is_pass_by_value=True, data_type=tenon.float32) for _ in range(2))
    y = g.binary_select(a, b, g.cmp_gt(tx, 1.5))
    assert run(g, [y], {tx: x, a: tenon.tensor(3.0), b: tenon.tensor(4.0)})[0].tolist() == [4, 3]


def test_numbers_of_the_graph_have_their_type():
    def scaled(x, *number, **options):
        g = pygraph()
        t = g.tensor_like(x)
        return run(g, [g.mul(t, g.tensor_scalar(*number, **options)), g.sub(g.tensor_scalar(*number, **options), t)], {t: x})

    one = tenon.tensor([1.0], dtype=tenon.float64)
    for dtype in (tenon.float16, tenon.bfloat16, tenon.float32, tenon.float64):
        rounded = tenon.tensor(0.1, dtype=dtype).double().item()
        y, z = scaled(one, 0.1, data_type=dtype)
        assert y.item() == rounded and z.item() == rounded - 1
    y, z = scaled(one, 0.1)  # as exact as it is written
    assert y.item() == 0.1 and z.item() == 0.1 - 1
    for value, dtype, message in ((2.5, tenon.int32, "is 2.5, which its data type int32 cannot hold"), (300, tenon.int8, "int8")):
        with pytest.raises((TypeError, ValueError, RuntimeError), match=message):
            scaled(one, value, data_type=dtype)


def test_tensors_like_those_of_graphs():
    g = pygraph()
    x, number = g.tensor(dim=[2, 3], stride=[1, 2], data_type=tenon.float16, name="x", uid=5), g.tensor(is_pass_by_value=True, data_type=tenon.float64)
    y = g.matmul(x, g.transpose(x, permutation=[1, 0])).set_output(True)
    other = pygraph()
    with pytest.raises(ValueError, match=r"tensor_like: the sizes of 'matmul_1::C' follow from a node; validate\(\) its graph first"):
        other.tensor_like(y)
    g.validate()
    like = other.tensor_like(x, name="copy")
    assert (like.get_dim(), like.get_stride(), like.get_data_type(), like.get_name()) == ([2, 3], [1, 2], tenon.float16, "copy")
    assert other.tensor_like(number).get_is_pass_by_value() and not like.get_is_pass_by_value()
    made = other.tensor_like(y)
    assert made.get_dim() == [2, 2] and not made.get_is_virtual() and made.get_uid() == 0
    constant = other.tensor_like(g.tensor_scalar(2.0))
    (z,) = run(other, [other.mul(made, constant)], {made: tenon.ones(2, 2).half()})
    assert z.tolist() == [[2, 2], [2, 2]]


def test_policies():
    g = pygraph()
    g.exp(g.tensor(dim=[2], data_type=tenon.float32)).set_output(True)
    g.validate()
    g.build_operation_graph()
    g.create_execution_plans()
    g.check_support()
    with pytest.raises(ValueError, match="FASTEST"):
        g.build_plans("FASTEST")
    g.build_plans("ALL")


# Random numbers

RNG_ARGUMENTS = {"seed", "offset", "dim", "distribution", "low", "high", "mean", "std", "probability", "name", "compute_data_type"}


def drawn(seed=3, offset=0, pack=None, how=lambda g, value: value, **attributes):
    g = pygraph()
    made, pack = [], {}
    for value in (seed, offset):
        made.append(how(g, value))
        if isinstance(made[-1], tenon.graph.Tensor):
            pack[made[-1]] = tenon.full(made[-1].get_dim(), value, dtype=made[-1].get_data_type())
    return run(g, [g.rng(*made, **{"dim": [500], **attributes})], pack)[0].numpy()


def test_each_argument_of_rng():
    assert set(inspect.signature(pygraph.rng).parameters) == RNG_ARGUMENTS | {"self"}
    uniform = drawn(distribution="UNIFORM")
    normal = drawn(distribution="NORMAL")
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.06 and abs(uniform.std() - 12**-0.5) < 0.03
    assert abs(normal.mean()) < 0.15 and abs(normal.std() - 1) < 0.15 and abs(normal).max() > 2
    assert drawn(distribution="UNIFORM", dim=[3, 4]).shape == (3, 4)
    np.testing.assert_allclose(drawn(distribution="UNIFORM", low=-1.0), uniform * 2 - 1, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(drawn(distribution="UNIFORM", high=5.0), uniform * 5, rtol=1e-5)
    np.testing.assert_allclose(drawn(distribution="NORMAL", mean=2.0), normal + 2, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(drawn(distribution="NORMAL", std=0.5), normal / 2, rtol=1e-5, atol=1e-6)
    for p in (0.25, 0.75):
        bits = drawn(distribution="BERNOULLI", probability=p)
        assert set(bits) == {0, 1} and abs(bits.mean() - p) < 0.08
    for refused in ({"distribution": "NORMAL", "low": 1.0}, {"mean": 1.0}, {"std": 1.0}, {"probability": 0.5}, {"distribution": "BERNOULLI", "high": 1.0}):
        with pytest.raises(ValueError, match=f"rng: attribute `{list(refused)[-1]}` has no effect"):
            drawn(**refused)


WAYS = {
    "tensor_scalar": lambda g, value: g.tensor_scalar(value),
    "by value": lambda g, value: g.tensor(is_pass_by_value=True, data_type=tenon.int64),
    "by value, int32": lambda g, value: g.tensor(is_pass_by_value=True, data_type=tenon.int32),
    "a tensor": lambda g, value: g.tensor(dim=[1, 1, 1, 1], data_type=tenon.int64),
}


@pytest.mark.parametrize("distribution", ["UNIFORM", "NORMAL", "BERNOULLI"])
@pytest.mark.parametrize("how", WAYS)
def test_seeds_and_offsets_however_they_are_passed(how, distribution):
    if how == "by value":  # seeds of 64 bits
        big = drawn(seed=2**40 + 3, how=WAYS[how], distribution=distribution)
        assert np.array_equal(big, drawn(seed=2**40 + 3, distribution=distribution))
        assert not np.array_equal(big, drawn(seed=3, distribution=distribution))
    seen = {}
    for seed, offset in ((3, 0), (4, 0), (3, 8), (4, 8)):
        numbers = drawn(seed, offset, how=WAYS[how], distribution=distribution)
        assert np.array_equal(numbers, drawn(seed, offset, distribution=distribution))
        seen[numbers.tobytes()] = 1
    assert len(seen) == 4


def test_seeds_that_are_none():
    with pytest.raises(TypeError, match="rng: input `seed` has to be a whole number, and is float32"):
        drawn(how=lambda g, value: g.tensor(is_pass_by_value=True, data_type=tenon.float32))
    with pytest.raises(TypeError, match="rng: input `seed` has to be a whole number"):
        drawn(how=lambda g, value: g.tensor_scalar(2.5))


def test_ints_beyond_64_bits():
    for name, value in itertools.product(("seed", "offset"), (2**63, -(2**63) - 1)):
        with pytest.raises(ValueError, match=re.escape(f"rng: `{name}` is {value}, expected an int from -2**63 to 2**63 - 1")):
            drawn(**{name: value})
    assert np.array_equal(drawn(seed=2**63 - 1), drawn(seed=2**63 - 1))
    with pytest.raises(TypeError, match="rng: `seed` has to be an int of at most 64 bits, and is 1.5"):
        drawn(seed=1.5)


def test_averages_of_whole_numbers_say_in_what_to_compute():
    def averaged(**options):
        g = pygraph()
        y = g.reduction(g.tensor(dim=[4, 3], data_type=tenon.int32, name="x"), "AVG", axis=[1], **options).set_output(True)
        g.build()
        x, out = tenon.tensor([[1, 2, 4]] * 4, dtype=tenon.int32), tenon.empty(4)
        g.execute({1: x, y: out}, tenon.empty(max(g.get_workspace_size(), 64), dtype=tenon.uint8))
        return out.tolist()

    with pytest.raises(TypeError, match="reduction: AVG is of floating-point numbers, not of int32; .*compute_data_type"):
        averaged()
    assert averaged(compute_data_type=tenon.float32) == pytest.approx([7 / 3] * 4)


@pytest.mark.parametrize("kind", ["layernorm", "rmsnorm"])
def test_an_epsilon_that_cannot_be_meant(kind):
    def normed(how):
        g = pygraph(io_data_type=tenon.float32)
        getattr(g, kind)("INFERENCE", g.tensor(dim=[2, 4]), g.tensor(dim=[4]), epsilon=how(g))[0].set_output(True)
        g.validate()

    for value in (-1, -1.0, -1e-9, math.nan):
        for how in (lambda g: value, lambda g: g.tensor_scalar(value)):
            with pytest.raises(ValueError, match=f"{kind}: .*`epsilon` is (-1|NaN)"):
                normed(how)
    for value in (0, 0.0, 1e-3, 1):
        normed(lambda g: value)


NORMS = {
    "rmsnorm": lambda g, x, wide: g.rmsnorm("INFERENCE", x, g.tensor(dim=[5]), wide)[0],
    "batchnorm_inference": lambda g, x, wide: g.batchnorm_inference(x, x, x, x, wide),
}


@pytest.mark.parametrize("kind", NORMS)
def test_parameters_of_norms_that_are_larger_than_the_input(kind):
    g = pygraph(io_data_type=tenon.float32)
    NORMS[kind](g, g.tensor(dim=[1, 3, 5]), g.tensor(dim=[2, 3, 5])).set_output(True)
    with pytest.raises(tenon.ShapeError, match=rf"{kind}: its parameters make a result of shape \[2, 3, 5\] of an input of shape \[1, 3, 5\]"):
        g.validate()


# Attributes that say nothing next to others


def test_attributes_without_effect():
    def window(**attributes):
        g = pygraph(io_data_type=tenon.float32)
        g.conv_fprop(g.tensor(dim=[1, 1, 4, 4]), g.tensor(dim=[1, 1, 2, 2]), **attributes).set_output(True)
        g.validate()

    for given in ({"padding": [1, 1], "pre_padding": [0, 0], "post_padding": [1, 1]}, {"pre_padding": [1, 1]}, {"post_padding": [1, 1]}, {"padding": [1, 1], "post_padding": [0, 0]}):
        with pytest.raises(ValueError, match="either `padding` is given, for both sides, or `pre_padding` and `post_padding`"):
            window(**given)
    for options in ({"keepdim": True}, {"keepdim": False}):
        g = pygraph(io_data_type=tenon.float32)
        g.reduction(g.tensor(dim=[4, 4]), "ADD", **options).set_dim([4, 1]).set_output(True)
        with pytest.raises(ValueError, match="`keepdim` says what becomes of the dimensions of `axis`, which is not given"):
            g.validate()
    g = pygraph(io_data_type=tenon.float32)
    g.reduction(g.tensor(dim=[4, 4]), "SUM").set_dim([4, 4]).set_output(True)
    with pytest.raises(ValueError, match="reduction: `mode` is one of ADD, .*, not SUM"):
        g.validate()
    for causal in (False, True):
        g = pygraph(io_data_type=tenon.float32)
        q, bias = g.tensor(dim=[1, 1, 4, 4]), g.tensor(dim=[1, 1, 4, 4])
        g.sdpa(q, q, q, bias, use_causal_mask=causal)[0].set_output(True)
        if not causal:
            g.validate()
            continue
        with pytest.raises(NotImplementedError, match="sdpa: `use_causal_mask` with a bias; let the bias be -inf where keys are masked"):
            g.validate()
