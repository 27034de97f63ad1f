"""Tensors of a run that share memory: results are right, or the run is refused and says which share it."""

import itertools
import random
import re

import numpy as np
import pytest

import tenon

SHARED = r"execute(_plan_at_index)?: the output of UID \d+ shares memory with the tensor of UID \d+, which the plan reads after it has written the output"


def built(build, *shapes, plans=("A",), dtype=tenon.float32):
    g = tenon.pygraph(io_data_type=dtype)
    inputs = [g.tensor(dim=list(shape), uid=i + 1) for i, shape in enumerate(shapes)]
    outputs = build(g, *inputs)
    for i, y in enumerate(outputs if isinstance(outputs, list) else [outputs]):
        y.set_uid(50 + i).set_output(True)
    g.validate()
    g.build_operation_graph()
    g.create_execution_plans(list(plans))
    g.check_support()
    return g


def execute(g, pack, index=0):
    g.build_plan_at_index(index)
    g.execute_plan_at_index(pack, tenon.empty(max(g.get_workspace_size_plan_at_index(index), 64), dtype=tenon.uint8), index)


@pytest.mark.parametrize("n", [8, 64, 129, 300])
def test_a_product_over_its_operand(n):
    g = built(lambda g, a, b: g.matmul(a, b), (n, n), (n, n))
    a, b = tenon.randn(n, n), tenon.randn(n, n)
    for written in (a, b):
        before = written.clone()
        with pytest.raises(ValueError, match=SHARED):
            execute(g, {1: a, 2: b, 50: written})
        assert tenon.equal(written, before)
        with pytest.raises(ValueError, match=SHARED):
            g._execute_with_ptrs([a.data_ptr(), b.data_ptr(), written.data_ptr()])
    room = tenon.randn(n + 1, n)
    with pytest.raises(ValueError, match=SHARED):  # by all rows but one
        execute(g, {1: room[:-1], 2: b, 50: room[1:]})


POINTWISE = {
    "one node": (lambda g, a, b: g.mul(a, b), lambda a, b: a * b),
    "a chain": (lambda g, a, b: g.sub(g.exp(g.mul(a, b)), a), lambda a, b: np.exp(a * b) - a),
    "a conversion": (lambda g, a, b: g.add(a, b).set_data_type(tenon.int32), lambda a, b: np.trunc(a + b)),
}


@pytest.mark.parametrize("name", POINTWISE)
@pytest.mark.parametrize("shape", [(5,), (7, 13), (300, 257)], ids=str)
def test_elementwise_results_over_an_operand(name, shape):
    """Each element is read before it is written, by every plan."""
    build, reference = POINTWISE[name]
    g = built(build, shape, shape, plans=("A", "B", "FALLBACK"))
    for index, over in itertools.product(range(g.get_execution_plan_count()), (1, 2)):
        pack = {1: tenon.randn(*shape), 2: tenon.randn(*shape)}
        wanted = reference(*(pack[i].double().numpy() for i in (1, 2)))
        out = pack[over].view(tenon.int32) if name == "a conversion" else pack[over]
        execute(g, {**pack, 50: out}, index)
        np.testing.assert_allclose(out.double().numpy(), wanted, rtol=1e-5, atol=1e-5)


REFUSED = {
    "an operand that is broadcast": (lambda g, a, b: g.add(a, b), (4, 4), (1, 4)),
    "a transposed operand": (lambda g, a, b: g.add(a, g.transpose(b, permutation=[1, 0])), (4, 4), (4, 4)),
    "an operand that a later step reads": (lambda g, a, b: [g.neg(b), g.matmul(a, b)], (4, 4), (4, 4)),
    "rows": (lambda g, a, b: g.softmax(g.add(a, b), axis=1), (4, 4), (4, 4)),
    "a convolution": (lambda g, a, b: g.conv_fprop(a, b), (1, 1, 4, 4), (1, 1, 4, 4)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_results_over_what_is_read_otherwise(name):
    """The first output over the second operand: the plan refuses, or its steps are such that it is right."""
    build, *shapes = REFUSED[name]
    g = built(build, *shapes, plans=("A", "FALLBACK"))
    sizes = {50: (1, 1, 1, 1) if name == "a convolution" else (4, 4), 51: (4, 4)}
    g.build_plan_at_index(0)
    uids = [uid for uid in g._get_variant_pack_uids_sorted() if uid in sizes]
    for index in range(g.get_execution_plan_count()):
        room = tenon.randn(4, 4)
        b = room[:1] if shapes[1] == (1, 4) else room.view(*shapes[1])
        over = room.view(-1)[:1].view(1, 1, 1, 1) if name == "a convolution" else room
        inputs = {1: tenon.randn(*shapes[0]), 2: b}
        wanted = {uid: tenon.empty(*sizes[uid]) for uid in uids}
        execute(g, {**{uid: x.clone() for uid, x in inputs.items()}, **wanted}, index)
        outs = {uid: over if uid == 50 else tenon.empty(*sizes[uid]) for uid in uids}
        try:
            execute(g, {**inputs, **outs}, index)
        except ValueError as error:
            assert re.search(SHARED, str(error))
            continue
        assert index > 0, "the first plan refuses"
        for uid in uids:
            assert tenon.equal(outs[uid], wanted[uid])


def test_outputs_that_share_memory():
    g = built(lambda g, a: [g.exp(a), g.neg(a)], (4, 6))
    a, room = tenon.randn(4, 6), tenon.empty(100)
    x, y = room[:24].view(4, 6), room[20:44].view(4, 6)
    for other in (x, y):
        with pytest.raises(ValueError, match="execute_plan_at_index: the outputs of UIDs 50 and 51 share memory; each needs its own"):
            execute(g, {1: a, 50: x, 51: other})
    execute(g, {1: a, 50: x, 51: room[24:48].view(4, 6)})
    assert tenon.equal(x, a.exp()) and tenon.equal(room[24:48].view(4, 6), -a)


def test_results_next_to_each_other():
    """Halves of a matrix, and every other element: ranges overlap, elements do not."""
    for dim, view in ((1, lambda m, i: m[:, 6 * i : 6 * i + 6]), (1, lambda m, i: m[:, i::3]), (0, lambda m, i: m[i::3])):
        shape = (4, 6)
        whole = tenon.randn(12, 6) if dim == 0 else tenon.randn(4, 18)
        g = tenon.pygraph(io_data_type=tenon.float32)
        a = g.tensor(dim=shape, stride=view(whole, 0).stride(), uid=1)
        for uid, node in ((50, g.exp), (51, g.neg)):
            node(a).set_stride(view(whole, 0).stride()).set_uid(uid).set_output(True)
        g.build()
        value = view(whole, 0).clone()
        g.execute({1: view(whole, 0), 50: view(whole, 1), 51: view(whole, 2)})
        for i, want in enumerate((value, value.exp(), -value)):
            assert tenon.equal(view(whole, i), want)


def test_a_workspace_that_shares_memory():
    g = built(lambda g, a, b: g.matmul(g.matmul(a, b), b), (64, 64), (64, 64))
    g.build_plans()
    a, b, out, size = tenon.randn(64, 64), tenon.randn(64, 64), tenon.empty(64, 64), g.get_workspace_size()
    room = tenon.empty(size + 64 + 64 * 64 * 4, dtype=tenon.uint8)
    room = room[-room.data_ptr() % 64 :]
    inside = room[size - 64 : size - 64 + 64 * 64 * 4].view(tenon.float32).view(64, 64)
    for uid, pack in ((50, {1: a, 2: b, 50: inside}), (1, {1: inside, 2: b, 50: out})):
        with pytest.raises(ValueError, match=f"execute: the workspace overlaps the tensor of UID {uid}"):
            g.execute(pack, room[:size])


def test_random_graphs_over_random_memory():
    """Whatever shares memory: a run that is not refused computes what it computes elsewhere."""
    rng = random.Random(24)
    ran = refused = 0
    for _ in range(150):
        n = rng.choice([3, 8, 33])
        count = rng.randint(1, 3)
        g = tenon.pygraph(io_data_type=tenon.float32)
        values = [g.tensor(dim=[n, n], uid=i + 1) for i in range(count)]
        nodes = []
        for _ in range(rng.randint(1, 5)):
            a, b = rng.choice(values), rng.choice(values)
            kind = rng.choice(["add", "mul", "sub", "relu", "tanh", "softmax", "transpose", "matmul"])
            binary = kind in ("add", "mul", "sub", "matmul")
            more = {"permutation": [1, 0]} if kind == "transpose" else {}
            nodes.append(getattr(g, kind)(a, b) if binary else getattr(g, kind)(a, **more))
            values.append(nodes[-1])
        outputs = {nodes[-1], rng.choice(nodes)}
        for i, y in enumerate(outputs):
            y.set_uid(50 + i).set_output(True)
        g.build([rng.choice(["A", "B", "FALLBACK"])])
        uids = g._get_variant_pack_uids_sorted()
        workspace = tenon.empty(max(g.get_workspace_size(), 64), dtype=tenon.uint8)
        room = tenon.randn(4 * n * n)
        strides = {y.get_uid(): y.get_stride() for y in outputs}
        pack = {uid: room.as_strided([n, n], strides.get(uid, [n, 1]), rng.choice([0, 1, 2, 3]) * n * n) for uid in uids}
        elsewhere = {uid: x.clone() for uid, x in pack.items()}
        g.execute(elsewhere, workspace)
        try:
            g.execute(pack, workspace)
        except ValueError as error:
            assert "share" in str(error)
            refused += 1
            continue
        ran += 1
        for uid in uids:
            if uid >= 50:
                assert pack[uid].numpy().tobytes() == elsewhere[uid].numpy().tobytes()
    assert ran > 20 and refused > 20
