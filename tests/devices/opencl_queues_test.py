"""Queues of OpenCL: times between events (S7), and work that is captured and replayed (S34)."""

import threading

import pytest

import tenon
from tests.devices.opencl_programs import run, same


def test_times_between_events(opencl, openreg):
    """S7"""
    begin, end = opencl.Event(enable_timing=True), opencl.Event(enable_timing=True)
    with pytest.raises(RuntimeError, match="must be recorded"):
        begin.elapsed_time(end)
    x = tenon.ones(200_000, device="opencl").sin()
    begin.record()
    for _ in range(5):
        x = x.sin()
    end.record()
    end.synchronize()
    first = begin.elapsed_time(end)
    assert first > 0 and end.elapsed_time(begin) == -first and begin.elapsed_time(begin) == 0
    for _ in range(5):
        x = x.sin()
    end.record()  # again
    end.synchronize()
    assert begin.elapsed_time(end) > first
    with opencl.stream(opencl.Stream()):  # of another stream of the device
        later = opencl.current_stream().record_event(opencl.Event(enable_timing=True))
    later.synchronize()
    assert end.elapsed_time(later) > 0
    plain = opencl.current_stream().record_event()
    plain.synchronize()
    for a, b in ((plain, end), (begin, plain)):
        with pytest.raises(RuntimeError, match="enable_timing=True"):
            a.elapsed_time(b)
    other = openreg.Event(enable_timing=True)
    other.record()
    with pytest.raises(RuntimeError, match="one event is of device opencl:0, the other of openreg:0"):
        begin.elapsed_time(other)
    with pytest.raises(RuntimeError, match="event of device openreg:0 cannot be recorded on a stream of opencl:0"):
        other.record(opencl.current_stream())
    with pytest.raises(RuntimeError, match="opencl.*openreg|openreg.*opencl"):
        begin.wait(openreg.current_stream())


def test_times_of_two_devices_are_not_compared():
    """S7: each has a clock of its own."""
    run("""
device = tenon.load_device(path)
if device.device_count() == 2:
    events = [device.Event(f"opencl:{i}", enable_timing=True) for i in range(2)]
    for i, event in enumerate(events):
        event.record(device.current_stream(i))
        event.synchronize()
    try:
        events[0].elapsed_time(events[1])
    except RuntimeError as error:
        assert "one event is of device opencl:0, the other of opencl:1" in str(error), error
    else:
        raise AssertionError
    events[0].wait(device.current_stream(1))
""", POCL_DEVICES="pthread pthread")  # fmt: skip


def test_a_replay_computes_from_what_its_inputs_are_then(opencl):
    x = tenon.full((100,), 1.0, device="opencl")
    (x * 2).t().exp().add_(x)  # compiles
    g = opencl.Graph()
    launches = tenon.ops.opencl.num_launches(x)
    with opencl.graph(g):
        assert opencl.is_current_stream_capturing()
        y = (x * 2).t().exp()
        y += x
        z = tenon.cat([y, x]).view(2, 100)[:, ::3].clone()
    assert tenon.ops.opencl.num_launches(x) == launches, "nothing has run while it was captured"
    y.zero_()
    for value in (1.0, 3.0, -2.0):
        x.fill_(value)
        g.replay()
        here = tenon.full((100,), value)
        want = (here * 2).exp() + here
        same(y, want)
        same(z, tenon.cat([want, here]).view(2, 100)[:, ::3])
    assert tenon.ops.opencl.num_launches(x) > launches
    s = opencl.Stream()
    x.fill_(0.5)
    s.wait_stream(opencl.current_stream())
    with opencl.stream(s):
        g.replay()
        g.replay()
    s.synchronize()
    same(y, (tenon.full((100,), 0.5) * 2).exp() + 0.5)
    g.replay()
    g.reset()  # what was replayed still runs
    opencl.synchronize()
    with pytest.raises(RuntimeError, match="nothing has been captured"):
        g.replay()
    with opencl.graph(g):
        z = x + 1
    g.replay()
    assert z[0].item() == 1.5


def test_a_captured_step_of_an_optimizer_has_the_bits_of_eager_ones(opencl):
    """Its gradients come from pointwise operators: sums and products of matrices run on host copies, which is refused."""

    def step(w, x, optimizer):
        optimizer.zero_grad()
        ((w * x).tanh() * w.sigmoid()).backward(x)
        optimizer.step()

    def parameters(where):
        tenon.manual_seed(5)
        w = tenon.nn.Parameter(tenon.randn(17, 3).to(where))
        return w, tenon.optim.SGD([w], lr=0.1, momentum=0.9, weight_decay=1e-3)

    batches = [tenon.randn(17, 3) for _ in range(6)]
    host, optimizer = parameters("cpu")
    for b in batches:
        step(host, b, optimizer)
    w, optimizer = parameters("opencl")
    x = batches[0].to("opencl")
    step(w, x, optimizer)  # momentum has its memory now
    g = opencl.Graph()
    optimizer.zero_grad()
    with opencl.graph(g):
        ((w * x).tanh() * w.sigmoid()).backward(x)
        optimizer.step()
    reserved = opencl.memory_reserved()
    for b in batches[1:]:
        x.copy_(b)
        g.replay()
    same(w.detach(), host.detach())
    assert opencl.memory_reserved() == reserved


REFUSED = {
    "item": "x[0].item()",
    "synchronize": "device.synchronize()",
    "event": "device.current_stream().record_event().synchronize()",
    "on host copies": "x.sort()",
    "a sum": "x.sum()",
    "random": "x.uniform_()",
    "from the host": "x.copy_(tenon.ones(100))",
}


@pytest.mark.parametrize("what", REFUSED)
def test_waiting_is_refused_while_work_is_captured(what):
    out = run(f"""
device = tenon.load_device(path)
x = tenon.ones(100, device="opencl")
g = device.Graph()
before = device.memory_reserved()
try:
    with device.graph(g):
        z = x * 2
        {REFUSED[what]}
except RuntimeError as error:
    print(error)
else:
    raise AssertionError("it was allowed")
z = None
assert not device.is_current_stream_capturing() and x[3].item() == 1
device.empty_cache()
assert device.memory_reserved() == before, "the pool of a failed capture is given back"
with device.graph(g):                       # the next capture works
    z = x * 3
g.replay()
assert z[0].item() == 3
""")
    assert "opencl:0" in out and "captured" in out, out


def test_recorded_copies_of_pinned_memory_read_it_anew(opencl):
    x = tenon.ones(300_000, device="opencl")
    source, back = tenon.full((300_000,), 4.0, pin_memory=True), tenon.zeros(300_000, pin_memory=True)
    g = opencl.Graph()
    with opencl.graph(g):
        y = x.clone()
        y.copy_(source, non_blocking=True)
        y *= x + 1
        back.copy_(y, non_blocking=True)
        with opencl.stream(opencl.default_stream()):
            assert (x * 5)[7].item() == 5, "streams that are not captured go on"
    for value in (4.0, 6.0):
        source.fill_(value)
        g.replay()
        opencl.synchronize()
        assert back[0].item() == back[-1].item() == 2 * value


def test_a_graph_keeps_the_buffers_that_it_uses(opencl):
    """Its inputs are the program's to keep; if it does not, a replay computes nothing that is of use, and breaks nothing."""
    x = tenon.ones(8 << 20, device="opencl")  # with a buffer of its own
    g = opencl.Graph()
    with opencl.graph(g):
        y = x + 1
    del x
    opencl.empty_cache()
    for _ in range(3):
        tenon.zeros(8 << 20, device="opencl").add_(1)
        g.replay()
    opencl.synchronize()
    assert y.shape == (8 << 20,)


def test_a_device_with_graphs_is_unloaded():
    out = run("""
for i in range(2):
    device = tenon.load_device(path)
    x = tenon.ones(100, device="opencl")
    g = device.Graph()
    with device.graph(g):
        y = x * 2
    g.replay()
    print(y[5].item())
    del x, y, g
    tenon.unload_device("opencl")
""")
    assert out == "2.0\n" * 2


def test_threads_capture_on_one_device_at_once(opencl):
    """Each on a stream of its own; what one records is not the other's."""
    both, errors = threading.Barrier(2), []

    def work(value):
        try:
            x = tenon.full((1000,), value, device="opencl")
            for _ in range(5):
                g = opencl.Graph()
                both.wait()
                with opencl.graph(g):
                    y = x * 2
                    both.wait()  # both capture
                    z = y + 1
                    both.wait()
                for i in range(3):
                    x.fill_(value + i)
                    g.replay()
                    assert z.tolist() == [(value + i) * 2 + 1] * 1000
                both.wait()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
            both.abort()

    threads = [threading.Thread(target=work, args=(value,)) for value in (1.0, 100.0)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors
