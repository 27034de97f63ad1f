"""What no operator shows of a device's table: ids, events that are asked, times, figures of memory, errors, further devices."""

from contextlib import suppress
from itertools import permutations
from time import perf_counter

import tenon

#: The name of the part, as --ops has it.
NAME = "table"
#: How often a task is given, so that a device with queues is still at work; and its elements.
TASKS, ELEMENTS = 64, 2**17
#: How long the host looks on between two events, in milliseconds; how often it looks for what need not show.
WHILE, TRIES = 20, 3
#: The memory that a check of figures takes: more than Tenon keeps in blocks for several tensors.
BLOCK = 32 << 20


class NotOffered(Exception):
    """The plug-in has not the function."""


class NotSeen(Exception):
    """What is no promise did not show."""


class Bench:
    """A device, and work for it."""

    def __init__(self, device):
        self.device = device if ":" in device else f"{device}:0"
        self.module = tenon.devices.module_if_there(device.partition(":")[0])

    def work(self, stream):
        """Gives the stream work that takes a while; returns what it writes, and what every element will be."""
        x = tenon.zeros(ELEMENTS, device=self.device)
        self.module.synchronize(self.device)
        with self.module.stream(stream):
            for _ in range(TASKS):
                x += 1
        return x

    def shown(self, x):
        """Whether the work has run, seen from another stream, which waits for nothing."""
        other = self.module.Stream(self.device)
        with self.module.stream(other):
            return bool((x.cpu() == TASKS).all())


def streams(b):
    first, second = b.module.Stream(b.device), b.module.Stream(b.device)
    ids = {b.module.default_stream(b.device).stream_id, first.stream_id, second.stream_id}
    assert len(ids) == 3, f"stream_new gives an id that is taken: {first.stream_id}, {second.stream_id}; 0 is the default stream's"
    x = b.work(first)
    first.synchronize()
    assert b.shown(x), "stream_sync returns before the work of the stream has run"


def event_query(b):
    stream, event = b.module.Stream(b.device), b.module.Event(b.device)
    assert event.query(), "event_query says no of an event that was never recorded"
    x = b.work(stream)
    event.record(stream)
    if event.query():
        assert b.shown(x), "event_query says yes before the marked work has run"
    stream.synchronize()
    assert event.query(), "event_query says no when the marked work has run"


def event_sync(b):
    stream, event = b.module.Stream(b.device), b.module.Event(b.device)
    event.synchronize()  # never recorded: marks nothing
    x = b.work(stream)
    event.record(stream)
    event.synchronize()
    assert b.shown(x), "event_sync returns before the marked work has run"
    stream.synchronize()


def stream_wait_event(b):
    stream, other = b.module.Stream(b.device), b.module.Stream(b.device)
    x = b.work(stream)
    other.wait_stream(stream)
    with b.module.stream(other):
        shown = bool((x.cpu() == TASKS).all())
    stream.synchronize()
    assert shown, "stream_wait_event, event_record: work behind an event runs before what the event marks"


def event_elapsed(b):
    stream = b.module.Stream(b.device)
    begin, end = (b.module.Event(b.device, enable_timing=True) for _ in range(2))
    before = perf_counter()
    begin.record(stream)
    x = b.work(stream)
    end.record(stream)
    stream.synchronize()
    host = (perf_counter() - before) * 1000
    try:
        took, back = begin.elapsed_time(end), end.elapsed_time(begin)
    except NotImplementedError as e:
        raise NotOffered(str(e)) from None
    assert took >= 0, f"event_elapsed says {took} ms from an event to a later one"
    assert back <= 0, f"event_elapsed says {back} ms from an event to an earlier one"
    # The clocks are two; a device's may be as coarse as a millisecond.
    assert took <= host * 1.1 + 2, f"event_elapsed says {took} ms of what took {host:.3f} ms on the host: it counts milliseconds"
    del x
    begin.record(stream)
    begin.synchronize()  # it is over before the host's clock starts, and the other one is given after that has stopped
    before = perf_counter()
    while (host := (perf_counter() - before) * 1000) < WHILE:
        b.work(stream)
        stream.synchronize()
    end.record(stream)
    stream.synchronize()
    took = begin.elapsed_time(end)
    assert took >= host / 100, f"event_elapsed says {took} ms of what took {host:.3f} ms on the host: it counts milliseconds"


def memory_info(b):
    """Figures are sound, and follow what is allocated on the device that they are of."""
    devices = [f"{b.module._name}:{i}" for i in range(b.module.device_count())]
    for device in devices:
        free, total = b.module.mem_get_info(device)
        assert 0 <= free <= total, f"memory_info says that {free} bytes of {total} are free on {device}"
    less = {device: missing(b, device, devices[:2]) for device in devices[:2]}
    for device, other in permutations(less, 2):
        if less[device][other] >= BLOCK and less[device][device] <= 0:
            raise AssertionError(f"raw_alloc, memory_info: {BLOCK} bytes for {device} are missing on {other}, not there")
        if less[device][other] >= BLOCK and less[other][other] <= 0:
            raise AssertionError(f"memory_info: what is free on {other} follows what {device} takes, and not what {other} does")
    b.module.empty_cache()


def missing(b, device, devices):
    """How much less is free on each of the devices while one of them has a block more."""
    b.module.synchronize(device)
    b.module.empty_cache()
    before = {d: b.module.mem_get_info(d)[0] for d in devices}
    block = tenon.zeros(BLOCK // 4, device=device)
    b.module.synchronize(device)
    less = {d: before[d] - b.module.mem_get_info(d)[0] for d in devices}
    del block
    return less


def out_of_memory(b):
    """What is too large is told by the error's kind, and the device goes on."""
    total = b.module.mem_get_info(b.device)[1] or b.module.get_device_properties(b.device).total_memory
    for nbytes in (total + BLOCK if total else 0, 2**55):
        if not nbytes:
            continue
        try:
            kept = tenon.empty([nbytes], dtype=tenon.uint8, device=b.device)
        except tenon.OutOfMemoryError:
            continue
        except Exception as e:
            raise AssertionError(f"raw_alloc of {nbytes} bytes fails with {type(e).__name__}, not as out of memory: {e}") from e
        del kept
    assert tenon.ones(5, device=b.device).cpu().tolist() == [1] * 5, "after an allocation that failed nothing goes on"


def host_alloc(b):
    """Pinned memory takes part in copies that the host does not wait for."""
    try:
        here = tenon.arange(ELEMENTS, dtype=tenon.float32).pin_memory()
    except (NotImplementedError, RuntimeError) as e:
        raise NotOffered(str(e)) from None
    there = here.to(b.device, non_blocking=True)
    back = tenon.zeros(ELEMENTS).pin_memory()
    back.copy_(there, non_blocking=True)
    b.module.synchronize(b.device)
    assert back.equal(tenon.arange(ELEMENTS, dtype=tenon.float32)), "host_alloc, copy: pinned memory has not what was copied to it"


def devices(b):
    """Each device of the plug-in has memory and streams of its own."""
    count = b.module.device_count()
    if count < 2:
        raise NotOffered("there is one device")
    b.module.empty_cache()  # new segments of each
    first, second = (tenon.full((ELEMENTS,), v, device=f"{b.module._name}:{i}") for i, v in ((0, 3.0), (1, 5.0)))
    with b.module.device(1):
        second += 1
    first += 1
    assert bool((first.cpu() == 4).all()) and bool((second.cpu() == 6).all()), "devices 0 and 1 share memory"
    assert bool((first.to(second.device).cpu() == 4).all()), "copies from device 0 to device 1 are wrong"


def seen_apart(b, stream, other):
    """Whether what one stream was given before is still to run when another one has none left, in one of some tries."""
    for _ in range(TRIES):
        x, event = b.work(stream), b.module.Event(stream.device)
        event.record(stream)
        other.synchronize()
        early = not event.query()
        stream.synchronize()
        del x
        if early:
            return
    raise NotSeen(f"{stream} and {other} are one queue, or done at once")


def streams_apart(b):
    """A device may run all its streams in one queue, or work at once: order is promised, no more. So none of this is wrong."""
    seen_apart(b, b.module.Stream(b.device), b.module.Stream(b.device))


def devices_apart(b):
    if b.module.device_count() < 2:
        raise NotOffered("there is one device")
    seen_apart(b, b.module.default_stream(0), b.module.default_stream(1))


CHECKS = {f.__name__: f for f in
          (streams, event_query, event_sync, stream_wait_event, event_elapsed, memory_info, out_of_memory, host_alloc, devices,
           streams_apart, devices_apart)}  # fmt: skip


def names():
    return [f"{NAME}.{check}" for check in CHECKS]


def try_check(name, device):
    """("kept", "not offered", "not seen" or "wrong"; what was seen)"""
    bench = Bench(device)
    try:
        CHECKS[name.partition(".")[2]](bench)
        bench.module.synchronize(bench.device)  # the next check may get the memory of this one
    except NotOffered as e:
        return "not offered", str(e)
    except NotSeen as e:
        return "not seen", str(e)
    except Exception as e:  # the device's own errors, too
        with suppress(Exception):
            bench.module.synchronize(bench.device)
        return "wrong", str(e) if isinstance(e, AssertionError) else f"{type(e).__name__}: {e}"
    return "kept", ""
