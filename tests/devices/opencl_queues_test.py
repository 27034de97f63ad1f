"""Queues of OpenCL: times between events (S7), and work that is captured and replayed (S34)."""

import tenon
from tests.devices.opencl_programs import run, same


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


def test_nothing_runs_while_it_is_captured(opencl):
    x = tenon.full((100,), 2.0, device="opencl")
    (x * 2).t().exp()  # compiles
    g = opencl.Graph()
    launches = tenon.ops.opencl.num_launches(x)
    with opencl.graph(g):
        z = tenon.cat([(x * 2).t().exp(), x]).view(2, 100)[:, ::3].clone()
    assert tenon.ops.opencl.num_launches(x) == launches
    g.replay()
    here = tenon.full((100,), 2.0)
    same(z, tenon.cat([(here * 2).exp(), here]).view(2, 100)[:, ::3])
    assert tenon.ops.opencl.num_launches(x) > launches


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
