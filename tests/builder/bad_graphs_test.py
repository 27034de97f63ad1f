"""What is wrong with a graph, or with a call of its plan, is said at the step that can know it, by name."""

import enum

import pytest

import tenon
from tenon.graph import heur_mode, pygraph


def built(x, **kwargs):
    g = pygraph(**kwargs)
    t = g.tensor_like(x, name="x")
    y = g.exp(t, name="e").set_output(True)
    g.build([heur_mode.A, heur_mode.FALLBACK])
    return g, t, y


def raises(kind, text=""):
    return pytest.raises(kind, match=text)


def test_uids():
    class Uid(enum.IntEnum):
        X = 40
        Y = 41

    g = pygraph()
    x = g.tensor(dim=[4], data_type=tenon.float32, uid=Uid.X, name="x")
    with raises(ValueError, "UID 40 is that of tensor 'x' already"):
        g.tensor(dim=[4], data_type=tenon.float32, uid=40)
    with raises(ValueError, "a UID is at least 1"):
        g.tensor(dim=[4], data_type=tenon.float32, uid=0)
    y = g.exp(x).set_uid(Uid.Y).set_output(True)
    with raises(ValueError, "UID 41 is that of"):
        x.set_uid(Uid.Y)
    g.build()
    assert g._get_variant_pack_uids_sorted() == [Uid.X, Uid.Y]
    with raises(RuntimeError, "set_uid: the graph's operations are built"):
        y.set_uid(42)
    data, out = tenon.ones(4), tenon.empty(4)
    g.execute({Uid.X: data, Uid.Y: out})
    assert tenon.equal(out, data.exp())
    with raises(ValueError, r"execute: UID 77 is no tensor of the graph"):
        g.execute({Uid.X: data, Uid.Y: out, 77: data})
    with raises(ValueError, r"the address of UID 41 \('exp_0::OUT_0'\) is missing"):
        g.execute({Uid.X: data})
    with raises(ValueError, "a UID is passed twice"):
        g.execute({x: data, 40: data, y: out})


def test_tensors_that_nobody_makes_or_describes():
    g = pygraph()
    hidden = g.tensor(dim=[4], data_type=tenon.float32, is_virtual=True, name="h")
    g.exp(hidden).set_output(True)
    with raises(ValueError, "tensor 'h' is virtual, and no node makes it"):
        g.validate()
    g = pygraph()
    g.tensor(dim=[4], name="x")
    with raises(ValueError, "no tensor is an output"):
        g.validate()
    g = pygraph()
    g.exp(g.tensor(dim=[4], name="x")).set_output(True)
    with raises(ValueError, "tensor 'x' has no data type: set_data_type"):
        g.validate()
    g = pygraph()
    g.tensor(dim=[4], data_type=tenon.float32, name="x").set_output(True)
    with raises(ValueError, "'x' is an output, and no node makes it"):
        g.validate()
    with raises(tenon.ShapeError, r"^tensor: dim must not have a negative size, got \[4, -1\]$"):
        pygraph().tensor(dim=[4, -1], data_type=tenon.float32)
    with raises(tenon.ShapeError, r"^set_dim: dim must not have a negative size, got \[-2\]$"):
        pygraph().tensor(dim=[4], data_type=tenon.float32).set_dim([-2])
    g = pygraph()
    g.rng(dim=[-3], distribution="UNIFORM", seed=1, offset=0, name="r").set_output(True)
    with raises(tenon.ShapeError, r"'r': rng: dim must not have a negative size, got \[-3\]$"):
        g.build()
    g = pygraph()
    g.exp(g.tensor(dim=[4, 1], stride=[1], data_type=tenon.float32, name="x")).set_output(True)
    with raises(ValueError, r"strides \[1\] for sizes \[4, 1\]"):
        g.validate()


def test_nodes():
    g, other = pygraph(), pygraph()
    x = g.tensor(dim=[4, 3], data_type=tenon.float32, name="x")
    with raises(ValueError, "tensor 'x' is another graph's"):
        other.exp(x)
    with raises(TypeError, "exp: missing a required argument: 'input'"):
        g.exp()
    with raises(TypeError, "elu: got an unexpected keyword argument 'beta'"):
        g.elu(x, beta=1.0)
    with raises(TypeError, "leaky_relu: missing a required argument: 'negative_slope'"):
        g.leaky_relu(x)
    with raises(TypeError, "leaky_relu: attribute `negative_slope` is missing"):
        g.leaky_relu(x, None)
    with raises(TypeError, "input `b` is missing"):
        g.add(x, None)
    with raises(AttributeError, "fft"):
        g.fft(x)
    g.matmul(x, x, name="square").set_output(True)
    with raises(ValueError, "node 'square': matmul: .*cannot be multiplied"):
        g.validate()
    g = pygraph()
    x = g.tensor(dim=[4, 3], data_type=tenon.float32)
    g.reduction(x, mode="SUM", axis=[1]).set_output(True)
    with raises(ValueError, "`mode` is one of ADD, AVG, .* not SUM"):
        g.validate()
    g = pygraph()
    g.reduction(g.tensor(dim=[4, 3], data_type=tenon.float32), mode="ADD", name="r").set_output(True)
    with raises(ValueError, "node 'r': reduction: the sizes of its output do not follow from its inputs"):
        g.validate()
    g = pygraph()
    x = g.tensor(dim=[4, 3], data_type=tenon.float32)
    g.exp(x, name="e").set_dim([4, 4]).set_output(True)
    with raises(ValueError, r"node 'e': .* has sizes \[4, 3\], and \[4, 4\] were set"):
        g.validate()
    g = pygraph()
    x, scale = g.tensor(dim=[4, 3], data_type=tenon.float32), g.tensor(dim=[3], data_type=tenon.float32)
    g.layernorm("TESTING", x, scale)[0].set_output(True)
    with raises(ValueError, "TRAINING or INFERENCE, not TESTING"):
        g.validate()
    g = pygraph()
    x, scale = g.tensor(dim=[4, 3], data_type=tenon.float32), g.tensor(dim=[3], data_type=tenon.float32)
    y, mean, _ = g.layernorm("INFERENCE", x, scale)
    mean.set_output(True)
    with raises(ValueError, "MEAN' is an output, and the node makes none"):
        g.validate()


def test_a_dtype_that_operators_refuse():
    g = pygraph()
    x = g.tensor(dim=[4, 3], data_type=tenon.int32, name="x")
    g.softmax(x, name="s").set_output(True)
    with raises((TypeError, NotImplementedError, RuntimeError), "node 's': .*softmax"):
        g.validate()


def test_steps_in_their_order():
    g = pygraph()
    g.exp(g.tensor(dim=[4], data_type=tenon.float32)).set_output(True)
    with raises(RuntimeError, r"build_operation_graph: call validate\(\) first"):
        g.build_operation_graph()
    with raises(RuntimeError, r"create_execution_plans: call validate\(\), build_operation_graph\(\) first"):
        g.create_execution_plans()
    with raises(RuntimeError, r"execute: call validate\(\), .*, check_support\(\), build_plans\(\) first"):
        g.execute({})
    with raises(RuntimeError, r"key: call validate\(\), build_operation_graph\(\) first"):
        g.key()
    g.validate()
    g.build_operation_graph()
    with raises(RuntimeError, r"check_support: call create_execution_plans\(\) first"):
        g.check_support()
    g.create_execution_plans([heur_mode.A])
    with raises(RuntimeError, r"build_plans: call check_support\(\) first"):
        g.build_plans()
    with raises(RuntimeError, "the graph's operations are built"):
        g.tensor(dim=[4], data_type=tenon.float32)
    with raises(RuntimeError, r"plan 1 .* is not built; build_plan_at_index\(\) does"):
        g.execute_plan_at_index({}, None, 1)
    with raises(IndexError, "99 of"):
        g.get_plan_name_at_index(99)


def test_plans_that_are_refused_say_why():
    g = pygraph()
    x = g.tensor(dim=[64, 32], data_type=tenon.float32)
    w = g.tensor(dim=[32, 48], data_type=tenon.float32)
    g.reduction(g.matmul(g.matmul(x, w), g.transpose(w, permutation=[1, 0])), "ADD", axis=[0]).set_output(True)
    g.validate()
    g.build_operation_graph()
    with raises(ValueError, "there is no engine 'cudnn'; there are fused and operators"):
        g.create_execution_plan("cudnn")
    with raises(ValueError, "has no knob 'tile'"):
        g.create_execution_plan("fused", {"tile": 3})
    for position, shown in ((9, "9"), ("d", "'d'")):
        with raises(ValueError, f"^create_execution_plan: knob 'position' is one of 0, 1, 2, 3, by name a, b-A, b-B, c, not {shown}$"):
            g.create_execution_plan("fused", {"position": position})
    with raises(ValueError, "^create_execution_plan: knob 'rows' is one of 0, 1, not 'a'$"):
        g.create_execution_plan("fused", {"rows": "a"})
    with raises(TypeError, r"^create_execution_plan\(\): argument 'position' must be int, not float$"):
        g.create_execution_plan("fused", {"position": 1.5})
    g.create_execution_plans([heur_mode.A])
    with raises(ValueError, "deselect_engines: there is no engine 'x'; there are fused, operators, and .*composed.* of regions"):
        g.deselect_engines(["x"])
    with raises(ValueError, "^deselect_workspace_greater_than: nbytes must be at least 0, got -1$"):
        g.deselect_workspace_greater_than(-1)
    with raises(IndexError, "^get_plan_name_at_index: index must be at least 0, got -1$"):
        g.get_plan_name_at_index(-1)
    g.deselect_engines(["operators"]).deselect_workspace_greater_than(64)
    with raises(NotImplementedError) as e:
        g.check_support()
    lines = str(e.value).splitlines()[1:]
    assert len(lines) == g.get_execution_plan_count()
    assert lines[-1] == "  operators: it was deselected"
    assert all("it needs a workspace of" in line for line in lines[:-1])


def test_positions_have_names():
    def plan(position):
        g = pygraph()
        g.exp(g.tensor(dim=[4], data_type=tenon.float32)).set_output(True)
        g.validate()
        g.build_operation_graph()
        g.create_execution_plan("fused", {"position": position})
        return g.get_plan_name_at_index(0)

    assert [plan(name) for name in ("a", "b-A", "b-B", "c")] == [plan(number) for number in range(4)]
    assert plan("b-A").startswith("fused(position=1,")


def test_a_handle_of_a_device_without_engines():
    handle = tenon.create_handle("meta")
    g = pygraph(handle=handle)
    g.exp(g.tensor(dim=[4], data_type=tenon.float32)).set_output(True)
    with raises(NotImplementedError, "plan: tensors of meta have no memory to run on"):
        g.build()


def test_calls_that_do_not_fit():
    x, out = tenon.randn(8, 4), tenon.empty(8, 4)
    g, t, y = built(x)
    with raises(TypeError, r"the tensor for UID 1 \('x'\) is float64, the graph's is float32"):
        g.execute({t: x.double(), y: out})
    with raises(ValueError, r"has sizes \[4, 4\], the graph's has \[8, 4\]"):
        g.execute({t: x[:4], y: out})
    with raises(ValueError, r"has strides \[1, 8\], the graph's has \[4, 1\]"):
        g.execute({t: x, y: tenon.empty(4, 8).t()})
    with raises(RuntimeError, "is on meta; the plan runs on the host"):
        g.execute({t: x.to("meta"), y: out})
    with raises(ValueError, "1 addresses, expected 2, one for each UID of"):
        g._execute_with_ptrs([x.data_ptr()])
    with raises(ValueError, "the address of UID 2 is null"):
        g._execute_with_ptrs([x.data_ptr(), 0])
    g.execute({t: x, y: out})
    assert tenon.equal(out, x.exp())


def test_workspaces():
    g = pygraph()
    x = g.tensor(dim=[16, 16], data_type=tenon.float32)
    g.matmul(g.matmul(x, x), x).set_output(True)
    g.build()
    size = g.get_workspace_size()
    assert size >= 16 * 16 * 4
    data, out = tenon.randn(16, 16), tenon.empty(16, 16)
    pointers = [data.data_ptr(), out.data_ptr()]
    with raises(ValueError, f"the workspace has 0 bytes, the plan needs {size}"):
        g._execute_with_ptrs(pointers)
    with raises(ValueError, f"the workspace has 100 bytes, the plan needs {size}"):
        g._execute_with_ptrs(pointers, tenon.empty(100, dtype=tenon.uint8))
    room = tenon.empty(size + 64, dtype=tenon.uint8)
    with raises(ValueError, "the workspace is not aligned to 64 bytes"):
        g._execute_with_ptrs(pointers, room[1:])
    with raises(RuntimeError, "the workspace is on meta"):
        g._execute_with_ptrs(pointers, tenon.empty(size, dtype=tenon.uint8, device="meta"))
    with raises(ValueError, f"the address of the workspace is null, and the plan needs {size} bytes"):
        g._execute_with_ptrs(pointers, 0)
    with raises(ValueError, "the address of the workspace is null"):
        g.execute(dict(zip(g._get_variant_pack_uids_sorted(), [data, out])), 0)
    g._execute_with_ptrs(pointers, room[-room.data_ptr() % 64 :])
    assert tenon.equal(out, data @ data @ data)


def test_outputs_have_addresses_of_their_own():
    g = pygraph()
    x = g.tensor(dim=[6], data_type=tenon.float32, uid=1)
    for uid, node in enumerate((g.exp, g.neg, g.abs), 10):
        node(x).set_uid(uid).set_output(True)
    none = g.reshape(g.tensor(dim=[0], data_type=tenon.float32, uid=2), dim=[0, 2])
    g.exp(none).set_uid(20).set_output(True)
    g.log(none).set_uid(21).set_output(True)
    g.build()
    data, empty, pair, out = tenon.randn(6), tenon.empty(0), tenon.empty(0, 2), tenon.empty(6)
    with raises(ValueError, "execute: the outputs of UIDs 10 and 12 share memory; each needs its own"):
        g.execute({1: data, 2: empty, 10: out, 11: tenon.empty(6), 12: out, 20: pair, 21: pair})
    # Those without elements may have any; outputs may lie side by side.
    both = tenon.empty(12)
    g.execute({1: data, 2: empty, 10: both[:6], 11: both[6:], 12: out, 20: pair, 21: pair})
    assert tenon.equal(both, tenon.cat([data.exp(), -data])) and tenon.equal(out, data.abs())


def test_packs_that_are_none():
    x, out = tenon.randn(4), tenon.empty(4)
    g = pygraph()
    t, unused = g.tensor_like(x, name="x"), g.tensor_like(x, name="unused")
    y = g.exp(t).set_output(True)
    g.build()
    with raises(TypeError, "a variant pack maps tensors of the graph or UIDs, and is no list"):
        g.execute([x, out])
    with raises(ValueError, r"UID 2 \('unused'\) is no tensor that a node reads, and no output; these are \[1, 3\]"):
        g.execute({t: x, unused: x, y: out})


def test_sizes_and_strides_that_no_memory_holds():
    with raises(TypeError, "argument 'dim' must be int, not float"):
        pygraph().tensor(dim=[4, 1.5], data_type=tenon.float32)
    for dim, stride in [([2**62, 2**62], None), ([8, 8], [2**62, 1]), ([8, 8], [-(2**63), 1]), ([2**31, 2**31], [1, 1])]:
        g = pygraph()
        g.exp(g.tensor(dim=dim, stride=stride, data_type=tenon.float32, name="x")).set_output(True)
        with raises(tenon.ShapeError, "tensor 'x' has sizes .* and strides .*, which no memory can hold"):
            g.validate()
    g = pygraph()
    g.exp(g.tensor(dim=[8, 8], data_type=tenon.float32)).set_name("y").set_stride([2**62, 1]).set_output(True)
    with raises(tenon.ShapeError, "tensor 'y' has sizes .* which no memory can hold"):
        g.validate()
    for stride in ([3, 1], [0, 1]):
        g = pygraph()
        g.exp(g.tensor(dim=[8, 8], data_type=tenon.float32)).set_name("y").set_stride(stride).set_output(True)
        with raises(ValueError, "output 'y' has strides .* with which elements overlap"):
            g.validate()


def test_slices_and_numbers_that_are_none():
    g = pygraph()
    x = g.tensor(dim=[4, 3], data_type=tenon.float32)
    with raises(TypeError, r"^slice: slices must be a list with one slice for .*, got slice\(0, 1, None\) \(slice\)$"):
        g.slice(x, slice(0, 1))
    for wrong in (slice(0.5, 1), slice(0, "x"), slice(0, 1, 0.5)):
        with raises(TypeError, r"^slice: start, stop and step of a slice must be ints or None, got slice\("):
            g.slice(x, [wrong])
    with raises(TypeError, "slice: one slice for each of the first dimensions, not 1"):
        g.slice(x, (1,))
    g.slice(x, (slice(None, None, 0),), name="s").set_output(True)
    with raises(ValueError, "node 's': slice: slice step cannot be zero"):
        g.validate()
    with raises(TypeError, "a number that is complex cannot be part of a graph"):
        pygraph().tensor_scalar(1j)
    for mode in ("NORM1", "NORM2"):
        g = pygraph()
        g.reduction(g.tensor(dim=[4, 3], data_type=tenon.int32), mode=mode, axis=[1]).set_output(True)
        with raises(TypeError, f"reduction: {mode} is of floating-point numbers, not of int32"):
            g.validate()


def test_outputs_count_as_written():
    x, out = tenon.randn(4), tenon.zeros(4)
    g, t, y = built(x)
    version = out._version
    g.execute({t: x, y: out})
    assert out._version == version + 1


def test_other_libraries_tensors():
    numpy = pytest.importorskip("numpy")
    x, out = numpy.random.default_rng(1).random(5, dtype=numpy.float32), numpy.zeros(5, numpy.float32)
    g, t, y = built(x)
    g.execute({t: x, y: out})
    assert tenon.equal(tenon.from_numpy(out), tenon.from_numpy(x).exp())
    with raises(TypeError, "is 1.5, which is no memory to read or write; pass .* an array .of one element for a number."):
        g.execute({t: 1.5, y: out})


def test_streams_of_handles():
    handle = tenon.create_handle()
    assert tenon.create_handle() is handle
    tenon.set_stream(handle=handle, stream=0)
    with raises(ValueError, "has one stream"):
        tenon.set_stream(handle=handle, stream=3)
    g, t, y = built(tenon.ones(3), handle=handle)
    out = tenon.empty(3)
    g.execute({t: tenon.ones(3), y: out}, None, handle=handle)
    assert tenon.equal(out, tenon.ones(3).exp())
    tenon.destroy_handle(handle)


def test_what_is_no_tensor_and_what_are_no_bytes():
    g = pygraph()
    for value, shown in ((1000000, "int"), (-1, "int"), (2**70, "int"), (1.5, "1.5"), ("x", "str"), (None, "None")):
        with raises(TypeError, "tensor_like.*like.*a tensor or an array") as caught:
            g.tensor_like(value)
        assert shown in str(caught.value) and "address" not in str(caught.value)
    for value in (10**10, 5, "text", [1, 2], None):  # bytes(10**10) would take ten gigabytes
        with raises(TypeError, "deserialize.*data.*must be bytes"):
            pygraph().deserialize(value)
    whole = built(tenon.ones(3))[0].serialize()
    for value in (whole, bytearray(whole), memoryview(whole)):
        loaded = pygraph()
        loaded.deserialize(value)
        assert loaded.key() == built(tenon.ones(3))[0].key()
    with raises(ValueError, "deserialize: these bytes are no plan"):
        pygraph().deserialize(b"plan")
    with raises(BufferError, "deserialize: data must be contiguous bytes, got a memoryview"):
        pygraph().deserialize(memoryview(whole)[::2])
