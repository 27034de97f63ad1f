"""Backward over several devices: threads, streams, errors, nested passes, fork and exit."""

import os
import struct
import threading
import traceback

import pytest

import tenon
from tests.devices.conftest import loaded
from tests.devices.programs import run


@pytest.fixture(scope="session")
def secondreg():
    """A third device of another backend."""
    return loaded("secondreg", mode="random", devices=1)


def bits(t):
    values = t.detach().cpu().flatten().tolist()
    return struct.pack(f"{len(values)}d", *values)


def leaves(device="cpu"):
    x = tenon.linspace(-1, 2, 12, dtype=tenon.float64).view(3, 4).to(device).requires_grad_()
    w = tenon.linspace(0.3, 1.9, 16, dtype=tenon.float64).view(4, 4).to(device).requires_grad_()
    return x, w


def over(x, w, first, second, third):
    """One graph over the host and three devices; gradients meet in the leaves and on the way."""
    a = (x.to(first) @ w.to(first)).tanh()
    b = (a.to(second) * 1.3 + x.to(second)).softmax(1)
    c = (b.to(third).exp() @ w.to(third).t()) * a.to(third)
    return (c.cpu() * x + b.cpu().sum(0) + (a * a).cpu()).sum() + a.cpu().std()


def test_s22_gradients_over_four_devices_have_the_bits_of_the_host(openreg, lazyreg, secondreg):
    def gradients(*devices):
        x, w = leaves()
        over(x, w, *devices).backward()
        return bits(x.grad), bits(w.grad)

    host = gradients("cpu", "cpu", "cpu")
    for devices in [
        ("openreg:0", "openreg:1", "lazyreg"),
        ("secondreg", "openreg:0", "openreg:1"),
        ("lazyreg", "cpu", "secondreg"),
        ("openreg:1", "openreg:1", "openreg:1"),
    ]:
        for _ in range(3):
            assert gradients(*devices) == host, devices


def test_leaves_of_several_devices_get_gradients_where_they_are(openreg, lazyreg):
    x = tenon.ones(3, device="openreg:0", requires_grad=True)
    y = tenon.full((3,), 2.0, device="openreg:1", requires_grad=True)
    z = tenon.full((3,), 3.0, device="lazyreg", requires_grad=True)
    h = tenon.full((3,), 4.0, requires_grad=True)
    for i in range(1, 3):
        (x.cpu() * y.cpu() * z.cpu() * h).sum().backward()
        for leaf, value in ((x, 24), (y, 12), (z, 8), (h, 6)):
            assert leaf.grad.device == leaf.device and leaf.grad.tolist() == [i * value] * 3


def test_hooks_run_on_their_devices_worker_in_the_callers_mode(openreg):
    x = tenon.ones(2, device="openreg:0", requires_grad=True)
    y = tenon.ones(2, device="openreg:1", requires_grad=True)
    h = tenon.ones(2, requires_grad=True)
    seen = {}

    def note(name):
        def hook(g):
            seen.setdefault(name, set()).add((threading.get_ident(), tenon.is_grad_enabled(), openreg.current_device()))

        return hook

    a, b, c = x * 2, y * 2, h * 2
    for name, t in (("a", a), ("x", x), ("b", b), ("c", c)):
        t.register_hook(note(name))
    x.register_post_accumulate_grad_hook(lambda p: note("x")(p))
    with openreg.device(1):
        (a.cpu() + b.cpu() + c).sum().backward(retain_graph=True)
    threads = {name: thread for name, ((thread, _, _),) in seen.items()}
    assert threads["c"] == threading.get_ident() and threads["a"] == threads["x"]
    assert len({threads["a"], threads["b"], threads["c"]}) == 3
    assert {(mode, index) for entries in seen.values() for _, mode, index in entries} == {(False, 0), (False, 1)}
    assert next(iter(seen["c"]))[2] == 1 and next(iter(seen["a"]))[2] == 0
    seen.clear()
    (a.cpu() + b.cpu()).sum().backward(create_graph=True)
    assert all(mode for entries in seen.values() for _, mode, _ in entries)
    for leaf in (x, y):
        leaf.grad = None


def test_nodes_run_in_the_stream_of_the_forward_call(openreg):
    stream, caller = openreg.Stream(0), openreg.Stream(0)
    x = tenon.ones(4, device="openreg:0", requires_grad=True)
    stream.wait_stream(openreg.current_stream(0))
    with openreg.stream(stream):
        y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(openreg.current_stream(0)))
    x.register_hook(lambda g: seen.append(openreg.current_stream(0)))
    caller.wait_stream(stream)
    with openreg.stream(caller):
        (y * y).sum().backward()
        assert x.grad.tolist() == [18] * 4
    assert seen == [stream, caller]


@pytest.mark.parametrize("mode", ["lazy", "random"])
def test_gradients_are_ordered_across_streams(mode):
    """A missing event or record_stream gives other numbers here: nothing runs unless somebody waits."""
    out = run("""
openreg = tenon.load_device(sys.argv[1], options={"mode": sys.argv[2], "devices": 2, "seed": 7})
for turn in range(20):
    a, b = openreg.Stream(0), openreg.Stream(0)
    x = tenon.full((100,), 2.0, device="openreg:0", requires_grad=True)
    a.wait_stream(openreg.current_stream(0))
    with openreg.stream(a):
        y = x * x
    b.wait_stream(a)
    with openreg.stream(b):
        z = y * x
    y.record_stream(b)
    a.wait_stream(b)
    with openreg.stream(a):
        v = z * y
    z.record_stream(a)
    openreg.current_stream(0).wait_stream(a)
    v.backward(tenon.ones_like(v))          # x ** 5
    assert (x.grad + 0).tolist() == [80.0] * 100, x.grad.tolist()
    v = z = y = None
print("done")
""", mode)
    assert out == "done\n"


class Planted(Exception):
    pass


def test_s20_an_exception_in_a_hook_arrives_with_type_and_traceback(openreg):
    x = tenon.ones(2, device="openreg:0", requires_grad=True)
    y = tenon.ones(2, device="openreg:1", requires_grad=True)

    def planted_hook(g):
        raise Planted("in a hook")

    ran = []
    a, b = x * 2, y.to("openreg:0").to("openreg:1") * 2
    handle = a.register_hook(planted_hook)
    x.register_hook(lambda g: ran.append("after it"))
    for _ in range(3):
        with pytest.raises(Planted, match="in a hook") as caught:
            (a.cpu() + b.cpu()).sum().backward(retain_graph=True)
        frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert frames[-1] == "planted_hook" and "test_s20_an_exception_in_a_hook_arrives_with_type_and_traceback" in frames
    assert not ran
    handle.remove()
    x.grad = y.grad = None
    (a.cpu() + b.cpu()).sum().backward()
    assert x.grad.tolist() == [2, 2] == y.grad.tolist() and ran == ["after it"]


def test_s20_an_exception_in_backward_of_a_function(openreg):
    class Raises(tenon.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise Planted(str(g.device))

    x = tenon.ones(2, device="openreg:1", requires_grad=True)
    with pytest.raises(Planted, match="openreg:1"):
        Raises.apply(x).sum().backward()


def test_s21_nested_backward_from_hooks_on_two_devices_and_one_lock(openreg):
    lock, meet = threading.Lock(), threading.Barrier(2)
    inner = tenon.full((2,), 3.0, device="openreg:0", requires_grad=True)

    def hook(g):
        meet.wait()
        with lock, tenon.enable_grad():
            z = (inner * 2).to("openreg:1")
            z.register_hook(lambda g: g * 1)
            (z * z).sum().backward()

    x = tenon.ones(2, device="openreg:0", requires_grad=True)
    y = tenon.ones(2, device="openreg:1", requires_grad=True)
    a, b = x * 2, y * 3
    a.register_hook(hook)
    b.register_hook(hook)
    for _ in range(5):
        (a.cpu() + b.cpu()).sum().backward(retain_graph=True)
    assert inner.grad.tolist() == [5 * 2 * 24.0] * 2 and y.grad.tolist() == [15, 15]


def test_s21_hooks_on_both_devices_take_one_lock(openreg):
    lock, counts = threading.Lock(), []

    def hook(g):
        with lock:
            counts.append((g * 2).sum().item())

    ends = []
    for device in ("openreg:0", "openreg:1"):
        t = tenon.ones(2, device=device, requires_grad=True)
        for _ in range(20):
            t = t * 1.0
            t.register_hook(hook)
        ends.append(t.cpu())
    sum(ends).sum().backward()
    assert counts == [4] * 40


def test_s23_custom_abs_is_quiet_until_backward_which_names_it(openreg, recwarn):
    x = tenon.tensor([-1.0, 2.0], device="openreg", requires_grad=True)
    y = tenon.ops.openreg.custom_abs(x)
    assert y.tolist() == [1, 2] and y.requires_grad and not recwarn
    loss = (y * 2).cpu().sum()
    assert not recwarn
    with pytest.raises(RuntimeError, match="openreg::custom_abs"):
        loss.backward()


def test_s23_a_saved_tensor_changed_in_place_is_reported_as_on_the_cpu(openreg, lazyreg):
    def report(device):
        x = tenon.ones(3, device=device, requires_grad=True)
        y = x.exp()
        y.add_(1)
        with pytest.raises(RuntimeError) as caught:
            y.backward(tenon.ones(3, device=device))
        return str(caught.value)

    host = report("cpu")
    assert "`exp` saved its result, which was changed in place (version 1, expected 0)" in host
    assert __file__ in host or os.path.basename(__file__) in host
    assert report("openreg:1") == host == report("lazyreg")


def test_anomaly_mode_names_the_forward_line_of_a_devices_node(openreg):
    x = tenon.zeros(2, device="openreg:1", requires_grad=True)
    with tenon.autograd.detect_anomaly():
        y = (x - 1).sqrt()
        with pytest.warns(UserWarning, match="(?s)Error detected in SqrtBackward0.*test_anomaly_mode"):
            with pytest.raises(RuntimeError, match="nan values in its 0th output"):
                y.sum().backward()


def test_higher_derivatives_and_grad(openreg):
    x = tenon.full((2,), 2.0, device="openreg:0", requires_grad=True)
    y = (x * x).to("openreg:1") * x.to("openreg:1")
    (first,) = tenon.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = tenon.autograd.grad(first.sum(), x)
    assert first.tolist() == [12, 12] and second.tolist() == [12, 12] and x.grad is None


def test_threads_run_passes_at_once(openreg):
    x = tenon.ones(8, device="openreg:0", requires_grad=True)
    loss = (x.to("openreg:1") * 2).cpu().sum()
    threads = [threading.Thread(target=lambda: [loss.backward(retain_graph=True) for _ in range(10)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert x.grad.tolist() == [80] * 8


def test_python_objects_of_a_pass_die_with_it(openreg):
    import gc
    import weakref

    class Thing:
        pass

    class Keeps(tenon.autograd.Function):
        @staticmethod
        def forward(ctx, x, thing):
            ctx.thing = thing
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    thing = Thing()
    gone = weakref.ref(thing)
    x = tenon.ones(2, device="openreg:0", requires_grad=True)
    y = Keeps.apply(x, thing).to("openreg:1")
    y.register_hook(lambda g, thing=thing: None)
    y.sum().backward()
    del y, thing
    gc.collect()
    assert gone() is None and x.grad.tolist() == [2, 2]


def test_idle_workers_do_not_keep_a_device():
    out = run("""
import gc
for turn in range(3):
    guest = tenon.load_device(sys.argv[1], name="guest")
    x = tenon.ones(3, device="guest:0", requires_grad=True)
    stream = guest.Stream(0)
    stream.wait_stream(guest.current_stream(0))
    with guest.stream(stream), tenon.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x.exp() * x
    guest.current_stream(0).wait_stream(stream)
    with guest.stream(guest.Stream(1)):
        y.to("guest:1").sum().backward()
    assert x.grad.cpu().tolist() == (x.exp() * (x + 1)).cpu().tolist()
    del x, y, stream
    gc.collect()
    tenon.unload_device("guest")
print("unloaded")
""")
    assert out == "unloaded\n"


def test_s17_a_child_of_fork_refuses_a_graph_of_devices_and_runs_one_of_the_host():
    out = run("""
openreg = tenon.load_device(sys.argv[1])
x = tenon.ones(3, device="openreg:0", requires_grad=True)
loss = (x.to("openreg:1") * 2).cpu().sum()
loss.backward(retain_graph=True)            # the workers are there now
child = os.fork()
if child == 0:
    h = tenon.ones(2, requires_grad=True)
    (h * 3).sum().backward()
    assert h.grad.tolist() == [3, 3]
    try:
        loss.backward()
    except RuntimeError as error:
        assert "belongs to the process that loaded it" in str(error), error
        os._exit(0)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
loss.backward()
print(x.grad.tolist())
""")
    assert out == "[4.0, 4.0, 4.0]\n"


def test_s17_a_pass_cannot_be_finished_in_a_child_that_was_forked_within_it():
    out = run("""
openreg = tenon.load_device(sys.argv[1])
x = tenon.ones(3, device="openreg:0", requires_grad=True)
h = tenon.ones(3, requires_grad=True)
child = []
held = threading.Event()

def hook(g):
    child.append(os.fork())

y, z = x * 2, h * 1
y.register_hook(lambda g: held.wait() and None)         # its worker is busy when the caller forks
z.register_hook(lambda g: (hook(g), child[0] and held.set()) and None)
try:
    (y.cpu() + z).sum().backward()
except RuntimeError as error:
    assert not child[0] and "the process was forked while a pass ran over devices" in str(error), error
    (h * 3).sum().backward()
    os._exit(0)
assert child[0] and os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1]) == 0
print(x.grad.tolist())
""", timeout=300)
    assert out == "[2.0, 2.0, 2.0]\n"


def test_gradients_of_every_form_cross_streams_and_devices(openreg):
    """Without elements, expanded, of no dimension, a view's, and the caller's own."""
    stream = openreg.Stream(0)
    stream.wait_stream(openreg.current_stream(0))

    def other_stream(f, *tensors):
        with openreg.stream(stream):
            return f(*tensors)

    empty = tenon.ones(0, 3, device="openreg:0", requires_grad=True)
    other_stream(lambda: (empty * 2).to("openreg:1")).sum().backward()
    assert empty.grad.shape == (0, 3)
    x = tenon.arange(6.0, device="openreg:0").requires_grad_()
    stream.wait_stream(openreg.current_stream(0))
    y = other_stream(lambda: x.view(2, 3).t()[1:] * 2)
    openreg.current_stream(0).wait_stream(stream)
    y.sum().backward()
    assert x.grad.tolist() == [0, 2, 2, 0, 2, 2]
    x.grad = None
    y = other_stream(lambda: x * 2)
    openreg.current_stream(0).wait_stream(stream)
    given = tenon.arange(6.0, device="openreg:0")
    tenon.autograd.backward([y, y.to("openreg:1")], [given, given.to("openreg:1")])
    assert x.grad.tolist() == [0, 4, 8, 12, 16, 20] and given.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(RuntimeError, match="^backward: `gradient` 0 is on openreg:1, the output on openreg:0"):
        (x * 2).backward(tenon.ones(6, device="openreg:1"))


def test_a_function_with_results_on_two_devices(openreg):
    class Both(tenon.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.cpu() * 2, x.to("openreg:1") * 3

        @staticmethod
        def backward(ctx, host, there):
            assert str(host.device) == "cpu" and str(there.device) == "openreg:1"
            return host.to("openreg:0") * 2 + there.to("openreg:0") * 3

    x = tenon.ones(2, device="openreg:0", requires_grad=True)
    host, there = Both.apply(x)
    (host + there.cpu()).sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_a_leaf_that_moved_after_the_forward_pass(openreg):
    x = tenon.ones(2, device="openreg:0", requires_grad=True)
    y = (x * 2).sum()
    x.data = tenon.ones(2, device="openreg:0") * 5
    y.backward()
    assert x.grad.tolist() == [2, 2]


def test_reentrant_backward_within_a_function(openreg):
    """As checkpointing does it: the forward pass again, and its gradients."""

    class Again(tenon.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return (x * w).exp()

        @staticmethod
        def backward(ctx, g):
            x, w = (t.detach().requires_grad_() for t in ctx.saved_tensors)
            with tenon.enable_grad():
                y = (x.to("openreg:1") * w.to("openreg:1")).exp().to("openreg:0")
            y.backward(g)
            return x.grad, w.grad

    x = tenon.tensor([0.5, 1.0], device="openreg:0", requires_grad=True)
    w = tenon.tensor([2.0, 0.1], device="openreg:0", requires_grad=True)
    y = x
    for _ in range(3):
        y = Again.apply(y, w)
    y.sum().backward()
    a, b = (t.detach().cpu().requires_grad_() for t in (x, w))
    z = a
    for _ in range(3):
        z = (z * b).exp()
    z.sum().backward()
    assert x.grad.tolist() == a.grad.tolist() and w.grad.tolist() == b.grad.tolist()


EXIT = """
openreg = tenon.load_device(sys.argv[1], options={{"mode": sys.argv[2]}})
started = threading.Event()

def python(g):
    started.set()
    {python}

def work():
    while True:
        x = tenon.ones(300, 200, device="openreg:0", requires_grad=True)
        y = x.exp().to("openreg:1") * 2
        y.register_hook(python)
        x.register_hook(python)
        y.sum().backward()

for _ in range({threads}):
    threading.Thread(target=work, daemon=True).start()
started.wait()
"""


@pytest.mark.parametrize("mode", ["thread", "lazy"])
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("python", ["pass", "sum(range(20000))", "(g * 2).sum().item()", "threading.Event().wait()"])
def test_s18_exit_with_daemon_threads_and_workers_under_backward(python, threads, mode):
    for _ in range(2):
        run(EXIT.format(python=python, threads=threads), mode, timeout=300)


def test_s18_backward_while_the_interpreter_ends():
    """Other threads run no Python any more: hooks run on the thread that ends it."""
    out = run("""
openreg = tenon.load_device(sys.argv[1])
x = tenon.ones(3, device="openreg:0", requires_grad=True)

class AtTheEnd:
    def __init__(self):
        y = x.to("openreg:1") * 2
        y.register_hook(lambda g, write=os.write: write(1, b"hook ") and None)
        self.loss = y.cpu().sum()

    def __del__(self, write=os.write):
        self.loss.backward()
        write(1, b"backward")

kept = AtTheEnd()
(x * 2).sum().backward()
""", timeout=300)
    assert out == "hook backward"


def test_s18_exit_with_idle_workers_and_a_graph_alive():
    run("""
openreg = tenon.load_device(sys.argv[1])
x = tenon.ones(3, device="openreg:0", requires_grad=True)
loss = (x.to("openreg:1") * 2).cpu().sum()
loss.backward(retain_graph=True)
""")
