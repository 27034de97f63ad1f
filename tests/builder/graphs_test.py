"""Graphs of every node and mode: as float64 has it by every plan, and as eager operators have it, bit by bit."""

import numpy as np
import pytest

import tenon
from graph_cases import CASES, as_list, packed, proposed, to_array


def to_tensor(x):
    return x if isinstance(x, tenon.Tensor) else tenon.from_numpy(x.copy())


def run(case, index=None):
    """The outputs of a plan of the case's graph; the number of plans."""
    inputs = {name: to_tensor(x) for name, x in case.inputs.items()}
    g, tensors, outputs = proposed(case, inputs)
    g.build_plan_at_index(index or 0)
    results, pack = packed(g, tensors, outputs, inputs)
    size = g.get_workspace_size_plan_at_index(index or 0)
    g.execute_plan_at_index(pack, tenon.empty(max(size, 64), dtype=tenon.uint8), index or 0)
    loaded = tenon.pygraph()
    loaded.deserialize(g.serialize())
    again = [tenon.empty_strided(r.shape, r.stride(), dtype=r.dtype) for r in results]
    pack |= dict(zip(outputs, again))
    loaded.execute({t.get_uid(): x for t, x in pack.items()}, tenon.empty(max(size, 64), dtype=tenon.uint8))
    assert loaded.key() == g.key()
    for result, own in zip(results, again):
        assert to_array(result).tobytes() == to_array(own).tobytes(), "another result once it was loaded"
    return results, g.get_execution_plan_count()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_plan_agrees_with_float64_and_with_eager(case):
    inputs = {name: to_tensor(x) for name, x in case.inputs.items()}
    wanted = as_list(case.reference(**{name: to_array(x) for name, x in inputs.items()}))
    first, plans = run(case)
    for index in range(plans):
        results, _ = run(case, index)
        for result, want, own in zip(results, wanted, first, strict=True):
            assert tuple(result.shape) == np.shape(want)
            np.testing.assert_allclose(to_array(result), want, rtol=case.rtol, atol=case.atol, err_msg=f"plan {index}")
            assert to_array(result).tobytes() == to_array(own).tobytes(), f"plan {index} has other bits than plan 0"
    if case.eager:
        for result, eager in zip(first, as_list(case.eager(**inputs)), strict=True):
            assert result.dtype == eager.dtype
            assert to_array(result).tobytes() == to_array(eager).tobytes()


def test_there_are_enough_graphs():
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", [c for c in CASES if "matmul" in c.name or "conv" in c.name or "product" in c.name], ids=lambda case: case.name)
def test_relaxed_plans_agree_with_float64(case):
    """By the engine of a vendor, where there is one; rounded less often."""
    inputs = {name: to_tensor(x) for name, x in case.inputs.items()}
    g = tenon.pygraph(**case.options)
    tensors = {name: g.tensor_like(x, name=name) for name, x in inputs.items()}
    outputs = [y.set_output(True) for y in as_list(case.build(g, **tensors))]
    g.validate()
    g.build_operation_graph()
    g.create_execution_plan("fused", {"relaxed": 1})
    g.check_support()
    g.build_plans()
    assert g.get_plan_name_at_index(0) == "fused(position=0, rows=1, relaxed=1)"
    results = [tenon.empty_strided(y.get_dim(), y.get_stride(), dtype=y.get_data_type()) for y in outputs]
    pack = {tensors[name]: x for name, x in inputs.items()} | dict(zip(outputs, results))
    g.execute(pack, tenon.empty(max(g.get_workspace_size(), 64), dtype=tenon.uint8))
    wanted = as_list(case.reference(**{name: to_array(x) for name, x in inputs.items()}))
    for result, want in zip(results, wanted, strict=True):
        np.testing.assert_allclose(to_array(result), want, rtol=case.rtol, atol=case.atol)


def test_random_numbers_follow_from_seed_and_offset():
    g = tenon.pygraph(io_data_type=tenon.float32)
    seed = g.tensor(is_pass_by_value=True, data_type=tenon.int64, uid=10)
    nodes = [
        g.rng(seed, 3, dim=[1000, 7], distribution=tenon.graph.rng_distribution.UNIFORM, low=-1.0, high=2.0),
        g.rng(5, dim=[1000, 7], distribution="NORMAL", mean=1.0, std=0.5),
        g.rng(seed=7, offset=11, distribution="BERNOULLI", probability=0.25).set_dim([1000, 7]),
    ]
    outputs = [y.set_output(True).set_uid(20 + i) for i, y in enumerate(nodes)]
    outputs.append(g.mul(nodes[0], 2.0).set_output(True).set_uid(30))
    g.build()
    results = [tenon.empty(1000, 7) for _ in outputs]
    for value in (1, 2):
        number = tenon.tensor(value)
        g.execute({10: number, **{y.get_uid(): r for y, r in zip(outputs, results)}})
        aten, eager = tenon.ops.aten, [tenon.empty(1000, 7) for _ in range(3)]
        aten._philox_uniform_(eager[0], -1.0, 2.0, value, 3)
        aten._philox_normal_(eager[1], 1.0, 0.5, 5, 0)
        aten._philox_bernoulli_(eager[2], 0.25, 7, 11)
        for result, want in zip(results, [*eager, eager[0] * 2]):
            assert tenon.equal(result, want)
