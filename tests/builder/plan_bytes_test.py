"""Plans as bytes: what was cut off, altered or written for somebody else is refused, whatever the byte."""

import random

import pytest

import tenon


def plan(relu=True):
    g = tenon.pygraph(io_data_type=tenon.float32)
    x, w = g.tensor(dim=[8, 6], uid=1), g.tensor(dim=[6, 5], uid=2)
    y = g.add(g.matmul(x, w), 0.5)
    (g.relu(y) if relu else y).set_uid(3).set_output(True)
    return g


def operations(g):
    g.validate()
    g.build_operation_graph()
    return g


@pytest.fixture(scope="module")
def data():
    g = plan()
    g.build()
    return g.serialize()


def test_any_byte_that_is_missing_or_another_is_noticed(data):
    rng = random.Random(13)
    for _ in range(300):
        at = rng.randrange(len(data))
        changed = bytearray(data)
        changed[at] ^= 1 << rng.randrange(8)
        for bad in (bytes(changed), data[:at]):
            with pytest.raises(ValueError, match="deserialize: "):
                tenon.pygraph().deserialize(bad)
    with pytest.raises(ValueError, match="these bytes are no plan"):
        tenon.pygraph().deserialize(b"")


def test_a_plan_of_another_graph(data):
    g = operations(plan())
    g.deserialize(data)
    x, w, out = tenon.randn(8, 6), tenon.randn(6, 5), tenon.empty(8, 5)
    g.execute({1: x, 2: w, 3: out}, tenon.empty(max(g.get_workspace_size(), 1), dtype=tenon.uint8))
    assert tenon.equal(out, (x @ w + 0.5).relu())
    with pytest.raises(ValueError, match="the plan is of another graph: its key is"):
        operations(plan(relu=False)).deserialize(data)
    with pytest.raises(RuntimeError, match="neither empty nor one whose operations"):
        plan().deserialize(data)
    with pytest.raises(RuntimeError, match="neither empty nor one whose operations"):
        g.deserialize(data)


def test_another_version(data):
    with pytest.raises(ValueError, match="this is version 255 of the form; this build reads version 3"):
        tenon.pygraph().deserialize(data[:8] + b"\xff" + data[9:])
