"""Every input, attribute and type of every node has the effect that NumPy's float64 says it has, or is refused."""

import inspect
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import tenon
from graph_cases import as_list, to_array
from node_samples import RNG, SAMPLES, conv_fprop

KINDS = {name: (inputs, attributes) for name, inputs, attributes, _ in tenon._C._builder.kinds()}
COMMON = ["name", "compute_data_type"]
PAGE = (Path(__file__).parents[2] / "docs" / "graphs.md").read_text()
TRUTHS = {kind for kind in SAMPLES if kind.startswith("cmp_")}
# What a compute type means nothing to: operands are moved, or count as bools.
MOVES = {"concatenate", "gen_index", "reshape", "slice", "transpose", "logical_and", "logical_not", "logical_or"}
NUMBERS = sorted(set(SAMPLES) - TRUTHS - MOVES)
by_kind = pytest.mark.parametrize("kind", sorted(SAMPLES))


def mapped(function, x):
    return [function(part) for part in x] if isinstance(x, list) else x if x is None else function(x)


def fitted(sample, given):
    """The loss of a convolution's gradient has the sizes of the convolution's result."""
    if sample.kind not in ("conv_dgrad", "conv_wgrad"):
        return given
    window = {k: v for k, v in given.items() if k in sample.values}
    image = sample.dims[0] if sample.kind == "conv_dgrad" else given["image"].shape
    filters = given["filter"].shape if sample.kind == "conv_dgrad" else sample.dims[0]
    shape = conv_fprop(np.zeros(image), np.zeros(filters), **window).shape
    return {**given, "loss": np.resize(given["loss"], shape)}


def arguments(sample, **changes):
    """Those of a call with some changes: arrays and attributes by name."""
    return fitted(sample, {**sample.inputs, **sample.attributes, **changes})


def expected(sample, given):
    shape = {"shape": sample.dims[0]} if sample.dims else {}
    exact = {k: mapped(lambda a: a.astype(np.float64), v) if k in sample.inputs else v for k, v in given.items()}
    return [y for y in as_list(sample.reference(**exact, **shape)) if y is not None]


def call(sample, given, dtype=None, out=None, compute=None, number=None, **options):
    """The results of one node. `dtype`: of the operands that are numbers; `out`: of the outputs. `number`: makes what is passed
    for a number, (graph, value) -> (what is passed, {tensor of the graph: its value})."""

    def tensor(a):
        t = tenon.from_numpy(np.ascontiguousarray(a))
        return t.to(dtype) if dtype and t.dtype != tenon.bool else t

    g = tenon.pygraph(**options)
    pack, passed = {}, {}
    for key, value in given.items():
        if key in sample.inputs:
            values = mapped(tensor, value)
            passed[key] = mapped(g.tensor_like, values)
            pack |= dict(zip(as_list(passed[key]), as_list(values))) if value is not None else {}
        elif number and key + "#" in KINDS[sample.kind][0]:
            passed[key], more = number(g, value)
            pack |= more
        else:
            passed[key] = value
    if compute:
        passed["compute_data_type"] = compute
    count = len(expected(sample, given))
    outputs = as_list(getattr(g, sample.kind)(**passed))[:count]
    for i, y in enumerate(outputs):
        y.set_output(True)
        if out:
            y.set_data_type(out)
        if sample.dims:
            y.set_dim(sample.dims[i])
    g.build()
    results = [tenon.empty_strided(y.get_dim(), y.get_stride(), dtype=y.get_data_type()) for y in outputs]
    used = set(g._get_variant_pack_uids_sorted())
    pack = {t: x for t, x in pack.items() if t.get_uid() in used} | dict(zip(outputs, results))
    g.execute(pack, tenon.empty(max(g.get_workspace_size(), 64), dtype=tenon.uint8))
    return results


def check(results, wanted, rtol=2e-5, atol=2e-5):
    assert len(results) == len(wanted)
    for result, want in zip(results, wanted):
        assert tuple(result.shape) == np.shape(want)
        np.testing.assert_allclose(to_array(result).astype(np.float64), np.asarray(want, np.float64), rtol=rtol, atol=atol)


def differ(a, b):
    same = len(a) == len(b) and all(np.shape(x) == np.shape(y) and np.array_equal(x, y) for x, y in zip(a, b))
    return not same


def test_each_argument_of_each_node_has_a_sample():
    assert set(SAMPLES) == set(KINDS) - {"rng"}
    nodes = PAGE[PAGE.index("## Nodes") : PAGE.index("## From the graph to a plan")]
    assert set(KINDS) <= set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", nodes))))
    for kind, sample in SAMPLES.items():
        named = list(inspect.signature(getattr(tenon.pygraph, kind)).parameters)[1:]
        assert set(named) - set(COMMON) == {*sample.inputs, *sample.values, *sample.attributes}, kind
        assert set(COMMON) <= set(named), kind
        assert set(sample.attributes) <= set(sample.values), kind


@by_kind
def test_inputs(kind):
    sample = SAMPLES[kind]
    given = arguments(sample)
    base = expected(sample, given)
    check(call(sample, given), base)
    for name in sample.inputs:
        if kind == "gen_index":  # its sizes alone
            change = np.zeros((4, 2), np.float32)
        else:
            change = mapped(lambda a: ~a if a.dtype == bool else np.roll(a.ravel(), 1).reshape(a.shape) * np.float32(1.25), given[name])
        changed = {**given, name: change}
        wanted = expected(sample, changed)
        assert differ(wanted, base), name
        check(call(sample, changed), wanted)
    for name in sample.optional:
        absent = {**given, name: None} | ({"axis": 1} if name == "scale" else {})
        wanted = expected(sample, absent)
        assert differ(wanted, base), name
        check(call(sample, absent), wanted)


@by_kind
def test_attributes(kind):
    sample = SAMPLES[kind]
    for name, values in sample.values.items():
        wanted = []
        for value in values:
            given = arguments(sample, **(value if isinstance(value, dict) else {name: value}))
            wanted.append(expected(sample, given))
            check(call(sample, given), wanted[-1])
        assert any(differ(a, b) for a, b in itertools.combinations(wanted, 2)), name


def by_value(dtype):
    def number(g, value):
        t = g.tensor(is_pass_by_value=True, data_type=dtype)
        return t, {t: tenon.tensor(value, dtype=dtype)}

    return number


def in_memory(sizes):
    def number(g, value):
        x = tenon.full(sizes, value)
        t = g.tensor_like(x)
        return t, {t: x}

    return number


PASSED = {
    "a number of Python": lambda g, value: (value, {}),
    "tensor_scalar": lambda g, value: (g.tensor_scalar(value), {}),
    "by value": by_value(tenon.float32),
    "by value, float64": by_value(tenon.float64),
    "a tensor": in_memory([]),
    "a tensor of four dimensions": in_memory([1, 1, 1, 1]),
}


@pytest.mark.parametrize("how", PASSED)
@pytest.mark.parametrize("kind", [kind for kind in SAMPLES if "#" in KINDS[kind][0]])
def test_numbers(kind, how):
    sample = SAMPLES[kind]
    for name in re.findall(r"(\w+)#", KINDS[kind][0]):
        for value in sample.values[name]:
            given = arguments(sample, **{name: value})
            check(call(sample, given, number=PASSED[how]), expected(sample, given))


@pytest.mark.parametrize("kind", [kind for kind in SAMPLES if "#" in KINDS[kind][0]])
def test_numbers_that_are_none(kind):
    sample = SAMPLES[kind]
    refused = {
        "cannot be it: a node makes it": lambda g, value: (g.exp(in_memory([1])(g, value)[0]), {}),
        "cannot be it: it has not one element": in_memory([2]),
        "has to be a floating-point number, and is int32": by_value(tenon.int32),
    }
    for name in re.findall(r"(\w+)#", KINDS[kind][0]):
        for message, number in refused.items():
            with pytest.raises((ValueError, TypeError), match=f"{kind}: input `{name}` .*{message}"):
                call(sample, arguments(sample, **{name: 1.0}), number=number)


@pytest.mark.parametrize("kind", NUMBERS)
def test_compute_types(kind):
    """float64 is exact to 1e-8, and the type of the result; whole numbers do not hold the operands."""
    sample = SAMPLES[kind]
    given = arguments(sample)
    for options in ({"compute": tenon.float64}, {"compute_data_type": tenon.float64}):
        results = call(sample, given, **options)
        assert {r.dtype for r in results} == {tenon.float64}
        check(results, expected(sample, given), rtol=1e-8, atol=1e-8)
    for whole in (tenon.int32, tenon.bool):
        with pytest.raises(TypeError, match=f"{kind}: it computes in {str(whole)[6:]} .*and input `.*` is float32"):
            call(sample, given, compute=whole)


@pytest.mark.parametrize("kind", sorted(TRUTHS))
def test_compute_types_of_comparisons(kind):
    a, b = np.array([1.0, 2.0, 3.0], np.float32), np.array([1.0001, 2.5, 2.0], np.float32)
    for dtype, x, y in ((tenon.float32, a, b), (tenon.float16, a.astype(np.float16), b.astype(np.float16))):
        wanted = SAMPLES[kind].reference(input=x, comparison=y)
        check(call(SAMPLES[kind], {"input": a, "comparison": b}, compute=dtype), [wanted])


@pytest.mark.parametrize("kind", sorted(MOVES))
def test_compute_types_of_what_computes_nothing(kind):
    given = arguments(SAMPLES[kind])
    for compute in (tenon.float16, tenon.int8):
        check(call(SAMPLES[kind], given, compute=compute), expected(SAMPLES[kind], given), rtol=0, atol=0)


@by_kind
@pytest.mark.parametrize("options", [{}, {"compute_data_type": tenon.float32}, {"io_data_type": tenon.float32}], ids=str)
def test_declared_types_of_results(kind, options):
    """All results of halves that are declared float32 are as exact as float32."""
    sample = SAMPLES[kind]
    rounded = {k: mapped(lambda a: a if a.dtype == bool else a.astype(np.float16), v) if k in sample.inputs else v for k, v in arguments(sample).items()}
    if "norm_forward_phase" in sample.values:
        rounded["norm_forward_phase"] = "TRAINING"
    if kind == "sdpa":
        rounded["generate_stats"] = True
    out = None if "io_data_type" in options else tenon.float32
    results = call(sample, rounded, out=out, **options)
    assert {r.dtype for r in results} == {tenon.float32}
    check(results, expected(sample, rounded), rtol=2e-5, atol=2e-5)


WHOLE = "abs add add_square bias binary_select conv_dgrad conv_fprop conv_wgrad identity matmul max min mul neg reduction relu scale sub".split()


@pytest.mark.parametrize("kind", WHOLE)
def test_whole_numbers(kind):
    """int8 operands do not wrap where the node computes in a wider type, or its result is declared of one."""
    sample = SAMPLES[kind]

    def whole(a):
        return a if a.dtype == bool else np.clip(RNG.integers(-128, 128, a.shape), -128, 127).astype(np.int8)

    inputs = {k: mapped(whole, v) for k, v in arguments(sample).items() if k in sample.inputs}
    for name in inputs:
        if isinstance(inputs[name], np.ndarray) and inputs[name].dtype == np.int8:
            inputs[name].flat[:2] = -128, 127
    modes = [{"mode": m} for m in ("ADD", "MAX", "MIN", "AMAX", "MUL_NO_ZEROS")] if kind == "reduction" else [{}]
    for mode in modes:
        given = {**arguments(sample), **inputs, **mode}
        wanted = expected(sample, given)
        wrapped = [(y + 2.0**31) % 2.0**32 - 2.0**31 for y in wanted]
        for options in ({"compute": tenon.int32}, {"compute_data_type": tenon.int32}, {}):
            results = call(sample, given, out=tenon.int32, **options)
            assert {r.dtype for r in results} == {tenon.int32}
            check(results, wrapped, rtol=0, atol=0)
        for options in ({"compute": tenon.float32}, {"compute_data_type": tenon.float32}, {}):
            check(call(sample, given, out=tenon.float32, **options), wanted, rtol=1e-6, atol=0)
