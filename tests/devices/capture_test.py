"""Capture and replay (S34): what a replay computes, where its memory is, and what is refused meanwhile."""

import pathlib

import pytest

import tenon
from tests.devices.programs import run, run_on

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEVICES = ["thread", "sync", "lazy", "random", "opencl"]


@pytest.mark.parametrize("device", DEVICES)
def test_a_replay_computes_from_what_its_inputs_are_then(device):
    run_on(device, """
x = tenon.full((100,), 1.0, device=NAME)
g = device.Graph()
assert not device.is_current_stream_capturing()
with device.graph(g):
    assert device.is_current_stream_capturing()
    y = (x * 2).t().exp()
    y += x
    z = y.view(2, 50)[:, ::3].clone()
assert not device.is_current_stream_capturing()
y.zero_()
assert y.sum().item() == 0, "nothing has run while it was captured"
for value in (1.0, 3.0, -2.0):
    x.fill_(value)
    g.replay()
    want = (tenon.full((100,), value) * 2).exp() + value
    assert y.cpu().equal(want) and z.cpu().equal(want.view(2, 50)[:, ::3])
s = device.Stream()
x.fill_(0.5)
s.wait_stream(device.current_stream())
with device.stream(s):
    g.replay()
    g.replay()
s.synchronize()
assert y.cpu().equal((tenon.full((100,), 0.5) * 2).exp() + 0.5)
g.replay()
g.reset()                                # what was replayed still runs
device.synchronize()
try:
    g.replay()
except RuntimeError as error:
    assert "nothing has been captured" in str(error)
else:
    raise AssertionError
with device.graph(g):                    # and again
    z = x + 1
g.replay()
assert z[0].item() == 1.5
""")


STEP = """
import struct
sys.path.insert(0, sys.argv[2])
import digits
import tenon.nn.functional as F
from tenon import nn

device = tenon.load_device(sys.argv[1], options={"mode": sys.argv[3], "devices": 1, "kernels": "network"})
pixels, labels = digits.load_digits(digits.DATA)
tenon.manual_seed(0)
order = tenon.randperm(len(labels))
batches = [order[i : i + 32] for i in range(0, 32 * STEPS, 32)]

def model_on(where):
    tenon.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)).to(where)
    return model, tenon.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)

def train(where, model, optimizer, batches):
    losses = []
    for b in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(pixels[b].to(where)), labels[b].to(where))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

def bits(losses, model):
    return struct.pack(f"{len(losses)}f", *losses), [p.detach().cpu().numpy().tobytes() for p in model.parameters()]
"""


@pytest.mark.parametrize("mode", ["thread", "lazy", "random"])
def test_captured_digits_steps_replay_with_the_bits_of_eager_ones(mode):
    steps = {"thread": 30, "lazy": 12, "random": 8}[mode]
    run(STEP.replace("STEPS", str(steps)) + """
model, optimizer = model_on("cpu")
host = bits(train("cpu", model, optimizer, batches), model)

tenon.reset_fallbacks()
model, optimizer = model_on("openreg")
eager = bits(train("openreg", model, optimizer, batches), model)
assert not tenon.fallbacks(), tenon.fallbacks()
assert eager == host, "the CPU's bits"

model, optimizer = model_on("openreg")
losses = train("openreg", model, optimizer, batches[:3])    # momentum has its memory now
x, y = pixels[batches[0]].to("openreg"), labels[batches[0]].to("openreg")
g = device.Graph()
optimizer.zero_grad()
with device.graph(g):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
reserved = device.memory_reserved()
calls = device.memory_stats()["num_device_alloc"]
for b in batches[3:]:
    x.copy_(pixels[b])
    y.copy_(labels[b])
    g.replay()
    losses.append(loss.item())
assert bits(losses, model) == eager
assert device.memory_stats()["num_device_alloc"] == calls and device.memory_reserved() == reserved
""", ROOT / "examples/digits", mode)


def test_replays_draw_the_numbers_that_calls_would_draw():
    run("""
device = tenon.load_device(sys.argv[1], options={"mode": "lazy", "devices": 1, "kernels": "network"})
other = tenon.Generator()

def draw():
    a = tenon.empty(1001, device="openreg").uniform_(-1, 3)
    b = tenon.empty(7, device="openreg").uniform_(generator=other) * a[:7]
    c = tenon.empty(5, device="openreg").uniform_()
    return a, b, c

def seed(n):
    tenon.manual_seed(n)
    other.manual_seed(n + 1)

seed(5)
eager = [[t.cpu() for t in draw()] for _ in range(4)]
assert not eager[0][0].equal(eager[1][0])
seed(5)
state = tenon.default_generator.get_state()
g = device.Graph()
with device.graph(g):
    drawn = draw()
assert tenon.default_generator.get_state().equal(state), "a capture takes nothing"
for want in eager:
    g.replay()
    for got, t in zip(drawn, want):
        assert got.cpu().equal(t)
after = tenon.default_generator.get_state()
seed(5)
for _ in range(4):
    draw()
assert tenon.default_generator.get_state().equal(after)
seed(6)
fresh = [t.cpu() for t in draw()]
seed(6)
g.replay()
assert drawn[0].cpu().equal(fresh[0]) and drawn[2].cpu().equal(fresh[2]), "a new seed counts for old graphs"
""")


REFUSED = {
    "item": "x[0].item()",
    "cpu": "x.cpu()",
    "print": "repr(x)",
    "synchronize": "device.synchronize()",
    "stream": "device.current_stream().synchronize()",
    "query": "device.current_stream().query()",
    "event": "device.current_stream().record_event().synchronize()",
    "other stream": "device.default_stream().wait_stream(device.current_stream())",
    "fallback": "x.sort()",
    "fallback that only writes": "tenon.linspace(0, 1, 5, device=NAME)",
    "from the host": "x.copy_(tenon.ones(100))",
    "a sum": "x.sum()",
    "random": "x.uniform_()",
    "strided from the host": "x.view(10, 10).t().copy_(tenon.ones(10, 10).t()[:, :1])",
    "bool": "bool(x[0])",
    "replay": "ready.replay()",
    "dropout of attention": "q = x.view(1, 10, 10); tenon.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.5)",
}


#: A device's own function that waits is openreg's alone.
CASES = [(device, what, call) for device in ("lazy", "opencl") for what, call in REFUSED.items()]
CASES.append(("lazy", "outside", "tenon.ops.openreg.sum_on_host(x)"))


@pytest.mark.parametrize("device, what, call", CASES, ids=[f"{device}-{what}" for device, what, _ in CASES])
def test_waiting_is_refused_while_work_is_captured(device, what, call):
    out = run_on(device, f"""
x = tenon.ones(100, device=NAME)
ready = device.Graph()
with device.graph(ready):
    y = x + 1
g = device.Graph()
before = device.memory_reserved()
try:
    with device.graph(g):
        z = x * 2
        {call}
except RuntimeError as error:
    print(error)
else:
    raise AssertionError("it was allowed")
z = None
assert not device.is_current_stream_capturing() and x[3].item() == 1
device.empty_cache()
assert device.memory_reserved() == before, "the pool of a failed capture is given back"
try:
    g.replay()
except RuntimeError as error:
    assert "nothing has been captured" in str(error)
with device.graph(g):                       # the next capture works
    z = x * 3
g.replay()
ready.replay()
assert z[0].item() == 3 and y[0].item() == 2
""")
    assert "captured" in out, out
    if what == "dropout of attention":
        assert out.startswith("scaled_dot_product_attention: ") and "capture it with dropout_p=0" in out, out


def test_a_capture_in_which_something_was_refused_has_failed():
    """Also where the program goes on after the exception."""
    run("""
device = tenon.load_device(sys.argv[1], options={"devices": 1})
x = tenon.ones(100, device="openreg")
x.sum().item()
device.empty_cache()
before = device.memory_reserved()
g = device.Graph()
try:
    with device.graph(g):
        y = x + 1
        try:
            y[0].item()
        except RuntimeError:
            pass
        z = y * 2
except RuntimeError as error:
    assert "the capture has failed" in str(error) and "being captured" in str(error), error
else:
    raise AssertionError
try:
    with device.graph(g):
        raise KeyError("the program's own")
except KeyError:
    pass
del y, z
device.empty_cache()
assert device.memory_reserved() == before
""")


def test_what_cannot_be_captured_says_so(openreg):
    g = openreg.Graph()
    for call, match in (
        (g.replay, "nothing has been captured"),
        (g.capture_end, "nothing is being captured"),
        (g.pool, "nothing has been captured"),
        (g.capture_begin, "the default stream of openreg:0 cannot be captured"),
    ):
        with pytest.raises(RuntimeError, match=match):
            call()
    x = tenon.ones(3, device="openreg")
    with openreg.graph(g):
        y = x + 1
    with pytest.raises(RuntimeError, match="captured already"):
        with openreg.graph(g):
            pass
    other = openreg.Graph()
    with pytest.raises(RuntimeError, match="captured already"):
        with openreg.graph(other):
            third = openreg.Graph()
            third.capture_begin()
    with pytest.raises(RuntimeError, match="pool is one of another device"):
        with openreg.device(1), openreg.graph(openreg.Graph(), pool=g.pool()):
            pass
    g.replay()
    assert y.tolist() == [2, 2, 2]


def test_streams_that_are_not_captured_go_on(openreg, lazyreg):
    x = tenon.ones(50, device="openreg")
    source = tenon.full((50,), 4.0, pin_memory=True)
    g = openreg.Graph()
    with openreg.graph(g):
        y = x.clone()
        y.copy_(source, non_blocking=True)          # pinned: read anew by each replay
        assert tenon.ones(3, device="lazyreg").sum().item() == 3
        assert (tenon.ones(4) * 2).sum().item() == 8
        with openreg.stream(openreg.default_stream()):
            assert (x * 5)[7].item() == 5
        z = y + 1
    for value in (4.0, 6.0):
        source.fill_(value)
        g.replay()
        assert z.cpu().tolist() == [value + 1] * 50
    del source                                      # the graph keeps it
    taken = [tenon.full((50,), 9.0, pin_memory=True) for _ in range(4)]
    g.replay()
    assert z.cpu().tolist() == [7.0] * 50 and taken


@pytest.mark.parametrize("device", ["thread", "lazy", "opencl"])
def test_threads_capture_on_one_device_at_once(device):
    """Each on a stream and from a pool of its own; neither fails by what the other does."""
    run_on(device, """
import threading
both = threading.Barrier(2)
found = {}

def work(name, value):
    x = tenon.full((1000,), value, device=NAME)
    for round in range(5):
        g = device.Graph()
        both.wait()
        with device.graph(g):
            stream = device.current_stream()
            both.wait()                         # both capture
            y = x * 2
            both.wait()
            z = y + 1
            both.wait()
        assert g._stream == stream
        results = []
        for i in range(3):
            x.fill_(value + i)
            g.replay()
            results.append(z.cpu())
        assert all(r.equal(tenon.full((1000,), (value + i) * 2 + 1)) for i, r in enumerate(results)), (name, round)
        found.setdefault(round, []).append(stream)
        both.wait()

def guarded(*arguments):
    try:
        work(*arguments)
    except BaseException as error:
        errors.append(error)
        both.abort()

errors = []
threads = [threading.Thread(target=guarded, args=(name, value)) for name, value in (("a", 1.0), ("b", 100.0))]
for t in threads:
    t.start()
for t in threads:
    t.join()
if errors:
    raise errors[0]
assert all(len(set(streams)) == 2 for streams in found.values()), found
reserved = device.memory_reserved()
x = tenon.ones(10, device=NAME)
for _ in range(2):                              # and graphs after each other share their stream again
    g = device.Graph()
    with device.graph(g):
        y = x + 1
    found.setdefault("later", []).append(g._stream)
    kept = g
assert len(set(found["later"])) == 1
""")


def test_graphs_share_a_pool(openreg):
    x = tenon.ones(1 << 20, device="openreg")
    pool = openreg.graph_pool_handle()
    graphs, results = [], []
    for i in range(3):
        g = openreg.Graph()
        with openreg.graph(g, pool=pool if i == 0 else graphs[0].pool()):
            results.append(((x + i) * 2 + 1)[:8].clone())
        graphs.append(g)
    snapshot = [s for s in openreg.memory_snapshot() if s["segment_pool_id"][1] != 0]
    pools = {tuple(s["segment_pool_id"]) for s in snapshot}
    assert len(pools) == 1
    assert sum(s["total_size"] for s in snapshot if s["total_size"] > 2 << 20) == 20 << 20, "temporaries are reused"
    for i, g in enumerate(graphs):
        g.replay()
        assert results[i].cpu().tolist() == [(1 + i) * 2 + 1] * 8


def test_the_memory_of_a_graph_is_nobody_elses():
    run("""
device = tenon.load_device(sys.argv[1], options={"mode": "lazy", "devices": 1, "memory": 64 << 20})
x = tenon.ones(1 << 18, device="openreg")
g = device.Graph()
with device.graph(g):
    y = ((x + 1) * (x + 2)).sqrt()           # temporaries, which are freed while it is captured
addresses = {b["address"] for s in device.memory_snapshot() if s["segment_pool_id"][1] for b in s["blocks"]}
assert len(addresses) > 1
device.empty_cache()
held = []
try:
    while True:
        held.append(tenon.zeros(1 << 18, device="openreg"))
        assert held[-1].data_ptr() not in addresses
except MemoryError:
    pass
g.replay()
assert y[5].item() == tenon.tensor(6.0).sqrt().item() and all(t[9].item() == 0 for t in held)
reserved = device.memory_reserved()
del g, y
held.append(tenon.zeros(1 << 18, device="openreg"))      # the pool's memory is free now
assert device.memory_reserved() <= reserved
""")


def test_out_of_memory_in_a_capture_frees_nothing_and_names_the_reason():
    run("""
device = tenon.load_device(sys.argv[1], options={"devices": 1, "memory": 64 << 20})
x = tenon.ones(1 << 18, device="openreg")
kept = tenon.empty(40 << 20, dtype=tenon.uint8, device="openreg")
del kept
device.empty_cache()
g = device.Graph()
s = device.Stream()
kept = tenon.empty(30 << 20, dtype=tenon.uint8, device="openreg")
try:
    with device.graph(g, stream=s):
        kept = None                                   # free memory of the default stream
        y = tenon.empty(40 << 20, dtype=tenon.uint8, device="openreg")
except MemoryError as error:
    assert "while something is captured, nothing is waited for or returned" in str(error), error
else:
    raise AssertionError
y = tenon.empty(40 << 20, dtype=tenon.uint8, device="openreg")
with device.graph(g, stream=s):
    z = x + 2
g.replay()
assert z[4].item() == 3
""")
