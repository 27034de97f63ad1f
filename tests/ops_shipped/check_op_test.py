"""tenon check-op: what it says of operators that follow its points, and of those that break them."""

import json
import threading
from enum import IntEnum

import numpy as np
import pytest

import tenon
from tenon import check_op
from tenon._tools.command import main
from tenon.library import Library


def points(name, given=None):
    return {p.name: p for p in check_op.check(name, given, limit=1e9)}


@pytest.mark.parametrize(
    "name, given",
    [
        ("tenon::rmsnorm", None),
        ("tenon::rmsnorm", "(tenon.rand(3, 2, 4), [2, 4], tenon.rand(2, 4), 1e-3)"),
        ("tenon::layernorm", None),
        ("tenon::sdpa", None),
        ("tenon::rmsnorm_backward", None),
    ],
)
def test_shipped_operators_over_graphs_hold_all_points(name, given):
    found = check_op.check(name, given, limit=1e9)
    assert len(found) == 9 and all(p.holds is not False for p in found), [p for p in found if p.holds is False]
    assert sum(p.holds is None for p in found) == name.endswith("backward")  # out=, whose results autograd allocates


def test_an_operator_without_a_graph_says_why_points_do_not_apply():
    found = points("tenon::moe_matmul", "(tenon.ones(4, 8), tenon.ones(3, 8, 5), tenon.tensor([2, 0, 1, 2]))")
    assert found["the graph is cached"] == ("the graph is cached", None, "not applicable: it runs no graph")
    assert found["out= form"].holds
    assert sum(p.holds is None for p in found.values()) == 6


@pytest.fixture
def careless():
    """An operator that does everything that the points warn of."""
    kept = tenon.empty(1 << 16, dtype=tenon.uint8)

    def kernel(x):
        g = tenon.pygraph(handle=tenon.graph.Handle("cpu"))
        tx = g.tensor_like(x, name="x")
        y = g.matmul(g.matmul(tx, tx), tx).set_output(True)
        g.build()
        out = tenon.empty_like(x)
        g.execute({tx: x, y: out}, kept)
        return out

    with Library("careless", "FRAGMENT") as lib:
        lib.define("cube(Tensor x) -> Tensor")
        lib.impl("cube", kernel, "CPU")
        yield "careless::cube"


def test_each_point_that_fails_says_what_to_do(careless):
    found = points(careless, "tenon.ones(16, 16)")
    failed = {name: p.sentence for name, p in found.items() if p.holds is False}
    assert "built 3 graphs" in failed.pop("the graph is cached")
    assert "_execute_with_ptrs" in failed.pop("executed by addresses")
    assert "IntEnum" in failed.pop("explicit UIDs")
    assert "made 3 handles" in failed.pop("one handle for a device")
    assert "a workspace outlived its call" in failed.pop("a workspace for each call")
    assert "there is none; declare careless::cube.out" in failed.pop("out= form")
    assert "meta" in failed.pop("the key is complete")
    assert not failed


class Uid(IntEnum):
    X = 1
    Y = 2


class Careful:
    """cube(x) = x @ x @ x over a graph, as the points ask for it. Each method is a part that a fault can replace."""

    def __init__(self):
        self.graphs = {}

    def key(self, x):
        return tuple(x.shape), x.stride(), x.dtype, x.device

    def handle(self):
        return tenon.create_handle("cpu")

    def name_tensors(self, x, y):
        x.set_uid(Uid.X)
        y.set_uid(Uid.Y)

    def build(self, x):
        g = tenon.pygraph(handle=self.handle())
        tx = g.tensor_like(x, name="x")
        y = g.matmul(g.matmul(tx, tx), tx).set_output(True)
        self.name_tensors(tx, y)
        g.build()
        return g

    def find(self, x):
        key = self.key(x)
        if key not in self.graphs:
            self.graphs[key] = self.build(x)
        return self.graphs[key]

    def run(self, g, x, out):
        workspace = tenon.empty(g.get_workspace_size(), dtype=tenon.uint8)
        g._execute_with_ptrs([x.data_ptr(), out.data_ptr()], workspace)

    def kernel(self, x):
        out = tenon.empty_like(x)
        if not x.is_meta:
            self.run(self.find(x), x, out)
        return out

    def kernel_out(self, x, *, out):
        return out.copy_(self.kernel(x))

    def register(self, lib):
        lib.define("cube(Tensor x) -> Tensor")
        lib.define("cube.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
        for key in ("CPU", "Meta"):
            lib.impl("cube", self.kernel, key)
        lib.impl("cube.out", self.kernel_out, "CPU")


def failed_points(operator, given="tenon.rand(16, 16)"):
    with Library("planted", "FRAGMENT") as lib:
        operator.register(lib)
        return {p.name: p.sentence for p in check_op.check("planted::cube", given, limit=1e9) if p.holds is False}


@pytest.mark.parametrize("given", ["tenon.rand(16, 16)", None])
def test_a_careful_operator_without_cached_plan_holds_them(given):
    assert failed_points(Careful(), given) == {}


class BuildsAtEachCall(Careful):
    def find(self, x):
        return self.build(x)


class PassesADictionary(Careful):
    def run(self, g, x, out):
        g.execute({Uid.X: x, Uid.Y: out}, tenon.empty(g.get_workspace_size(), dtype=tenon.uint8))


class MakesHandles(Careful):
    def kernel(self, x):
        tenon.graph.Handle("cpu")
        return super().kernel(x)


class KeepsItsWorkspace(Careful):
    def __init__(self):
        super().__init__()
        self.workspace = tenon.empty(1 << 16, dtype=tenon.uint8)

    def run(self, g, x, out):
        g._execute_with_ptrs([x.data_ptr(), out.data_ptr()], self.workspace)


class KeepsTheAddressOfItsWorkspace(KeepsItsWorkspace):
    def run(self, g, x, out):
        g._execute_with_ptrs([x.data_ptr(), out.data_ptr()], self.workspace.data_ptr())


class KeepsTheMemoryOfNumPy(Careful):
    def __init__(self):
        super().__init__()
        self.workspace = np.empty(1 << 16, dtype=np.uint8)

    def run(self, g, x, out):
        start = self.workspace.ctypes.data
        g._execute_with_ptrs([x.data_ptr(), out.data_ptr()], start + -start % 64)


class AsksForTheOrder(Careful):
    def run(self, g, x, out):
        place = {Uid.X: x, Uid.Y: out}
        workspace = tenon.empty(g.get_workspace_size(), dtype=tenon.uint8)
        g._execute_with_ptrs([place[uid].data_ptr() for uid in g._get_variant_pack_uids_sorted()], workspace)


class LeavesUidsToTheGraph(Careful):
    def name_tensors(self, x, y):
        pass


class KeyWithout(Careful):
    """A key that lacks one property of its argument."""

    def __init__(self, lacks):
        super().__init__()
        self.lacks = lacks

    def key(self, x):
        parts = {"sizes": tuple(x.shape), "strides": x.stride(), "dtype": x.dtype, "device": x.device}
        del parts[self.lacks]
        return tuple(parts.values())


class KeyThatNeverAsksForTheDevice(Careful):
    def key(self, x):
        return tuple(x.shape), x.stride(), x.dtype


@pytest.mark.parametrize(
    "operator, point, sentence",
    [
        (BuildsAtEachCall(), "the graph is cached", "three further calls built 3 graphs"),
        (PassesADictionary(), "executed by addresses", "calls pass a dictionary to execute"),
        (MakesHandles(), "one handle for a device", "three further calls made 3 handles"),
        (KeepsItsWorkspace(), "a workspace for each call", "a workspace outlived its call"),
        (KeepsTheAddressOfItsWorkspace(), "a workspace for each call", "two calls at once would share it"),
        (KeepsTheMemoryOfNumPy(), "a workspace for each call", "two calls at once would share it"),
        (AsksForTheOrder(), "the graph is cached", "asked 3 times for the order of UIDs"),
        (LeavesUidsToTheGraph(), "explicit UIDs", "UIDs of matmul_1::C, x are given automatically"),
        (KeyWithout("dtype"), "the key is complete", "ran on `x` of another dtype: put the dtype into the key"),
        (KeyWithout("strides"), "the key is complete", "ran on `x` of other strides: put the strides into the key"),
        (KeyWithout("sizes"), "the key is complete", "ran on `x` of other sizes: put the sizes into the key"),
        (KeyWithout("device"), "the key is complete", "ran on `x` of another device: put the device into the key"),
        (KeyThatNeverAsksForTheDevice(), "the key is complete", "ran on `x` of another device: put the device into the key"),
    ],
    ids=lambda value: type(value).__name__ + getattr(value, "lacks", "") if isinstance(value, Careful) else "",
)
@pytest.mark.parametrize("given", ["tenon.rand(4, 4)", None])
def test_a_planted_fault_is_found_alone(operator, point, sentence, given):
    operator.graphs.clear()
    failed = failed_points(operator, given)
    assert sentence in failed.pop(point) and not failed


def test_uids_are_seen_of_a_graph_that_was_built_before():
    operator = LeavesUidsToTheGraph()
    operator.kernel(tenon.ones(16, 16))
    assert list(failed_points(operator)) == ["explicit UIDs"]


class AnyStrides(Careful):
    """Over all elements of dense memory, in the order in which they lie: its graph holds for all dense strides."""

    def key(self, x):
        return tuple(x.shape), x.dtype, x.device

    def build(self, x):
        g = tenon.pygraph(handle=self.handle())
        tx = g.tensor([x.numel()], [1], x.dtype, name="x")
        self.name_tensors(tx, g.relu(tx).set_output(True))
        g.build()
        return g

    def kernel(self, x):
        x = x if x.is_contiguous() or x.t().is_contiguous() else x.contiguous()
        out = tenon.empty_like(x)  # the same strides
        if not x.is_meta:
            self.run(self.find(x), x, out)
        return out


class PartByPart(Careful):
    """Rows four at a time, by one graph."""

    def key(self, x):
        return x.shape[1], x.dtype, x.device

    def build(self, x):
        return super().build(x[:4].contiguous())

    def kernel(self, x):
        out = tenon.empty_like(x, memory_format=tenon.contiguous_format)
        for i in range(0, 0 if x.is_meta else x.shape[0], 4):
            self.run(self.find(x), x.contiguous()[i:], out[i:])
        return out


class OfCopies(Careful):
    """Its graph runs on copies of one kind, whatever the argument is."""

    def key(self, x):
        return tuple(x.shape), x.device

    def kernel(self, x):
        return super().kernel(x if x.is_meta else x.to(tenon.float64, copy=True).contiguous())


class OfViews(Careful):
    """Its key is made of a view of its argument."""

    def kernel(self, x):
        return super().kernel(x.view(x.shape))


class UnderALock(Careful):
    """Its calls wait for each other."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def kernel(self, x):
        with self.lock:
            return super().kernel(x)


@pytest.mark.parametrize("operator", [AnyStrides(), PartByPart(), OfCopies(), OfViews(), UnderALock()], ids=lambda o: type(o).__name__)
def test_what_is_right_in_another_way_raises_no_alarm(operator, monkeypatch):
    monkeypatch.setattr(check_op, "_PATIENCE_S", 0.05)
    assert failed_points(operator, "tenon.rand(4, 4)") == {}


@pytest.fixture
def out_forms():
    """Operators without graphs whose out= forms are right, and one whose form is wrong."""

    def noise(x):
        return x + tenon.rand(x.shape)

    def standard(x):  # of one row: 0 / 0
        return (x - x.mean(0)) / x.std(0, unbiased=False).clamp(max=0)

    def two(x, eps):
        return x * eps, 3

    def one_row(x, *, out):
        out[:1].copy_(x[:1] / 2)
        return out

    with Library("outs", "FRAGMENT") as lib:
        for name, schema, results, kernel in (
            ("noise", "(Tensor x{}) -> {}", "Tensor", noise),
            ("standard", "(Tensor x{}) -> {}", "Tensor", standard),
        ):
            lib.define(name + schema.format("", results))
            lib.define(name + ".out" + schema.format(", *, Tensor(a!) out", "Tensor(a!)"))
            lib.impl(name, kernel, "CPU")
            lib.impl(name + ".out", lambda x, *, out, kernel=kernel: out.copy_(kernel(x)), "CPU")
        lib.define("two(Tensor x, float eps) -> (Tensor, int)")
        lib.define("two.out(Tensor x, float eps, *, Tensor(a!) out) -> (Tensor(a!), int)")
        lib.impl("two", two, "CPU")
        lib.impl("two.out", lambda x, eps, *, out: (out.copy_(x * eps), 3), "CPU")
        lib.define("half(Tensor x) -> Tensor")
        lib.define("half.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
        lib.impl("half", lambda x: x / 2, "CPU")
        lib.impl("half.out", one_row, "CPU")
        yield


@pytest.mark.parametrize("given", [None, "(tenon.ones(1, 4),)"])
@pytest.mark.parametrize("name", ["noise", "standard"])
def test_a_right_out_form_is_right_of_noise_and_of_nan(out_forms, name, given):
    assert points(f"outs::{name}", given)["out= form"].holds is True


def test_an_out_form_beside_a_number_is_right(out_forms):
    assert points("outs::two")["out= form"].holds is True


def test_an_out_form_that_writes_a_part_is_wrong(out_forms):
    found = points("outs::half")["out= form"]
    assert found.holds is False and "outs::half.out writes something else than the operator returns" in found.sentence


def test_the_command_has_an_exit_code(careless, capsys):
    assert main(["check-op", "tenon::rmsnorm", "--limit", "1e9"]) == 0
    assert "pass" in capsys.readouterr().out
    assert main(["check-op", careless, "--json", "--limit", "1e9", "--arguments", "tenon.ones(16, 16)"]) == 1
    assert len(json.loads(capsys.readouterr().out)) == 9
    assert main(["check-op", "tenon::no_such"]) == 1
    assert "no operator 'no_such'" in capsys.readouterr().err
    assert main(["check-op", "tenon::moe_matmul"]) == 1
    assert "pass arguments: --arguments" in capsys.readouterr().err


FILE = """
import tenon
from tenon.library import custom_op

@custom_op("fromfile::twice", mutates_args=())
def twice(x: tenon.Tensor) -> tenon.Tensor:
    return x * 2
"""


def test_an_operator_of_a_file_or_a_module_is_taken(tmp_path, capsys):
    (tmp_path / "json.py").write_text(FILE)  # whatever the file is called
    assert main(["check-op", "-i", str(tmp_path / "json.py"), "fromfile::twice", "--limit", "1e9"]) == 1  # it has no out= form
    assert "there is none; declare fromfile::twice.out" in capsys.readouterr().out
    assert json.loads("1") == 1
    assert main(["check-op", "fromfile::no_such"]) == 1
    assert "is there once the module that registers it is imported" in capsys.readouterr().err
    assert main(["check-op", "-i", str(tmp_path / "none.py"), "fromfile::twice"]) == 1
    assert "none.py': FileNotFoundError: there is no such file" in capsys.readouterr().err


def test_arguments_that_do_not_fit_are_named(capsys):
    assert main(["check-op", "tenon::rmsnorm", "--arguments", "1 / 0"]) == 1
    assert "--arguments '1 / 0' cannot be evaluated: ZeroDivisionError: division by zero" in capsys.readouterr().err
    assert main(["check-op", "tenon::rmsnorm", "--arguments", "(1, 2)"]) == 1
    assert "tenon::rmsnorm does not take --arguments '(1, 2)'" in capsys.readouterr().err
