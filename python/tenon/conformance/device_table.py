"""What no operator shows of streams and events: ids, what waits for what, events that are asked, times, further devices."""

from time import perf_counter

import tenon

from .device_bench import ELEMENTS, TASKS, TRIES, NotOffered, NotSeen

#: How long the host looks on between two events, in milliseconds.
WHILE = 20


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
    assert shown, "stream_wait_event, event_record: work that waits for an event runs before the work that the event marks"


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


CHECKS = (streams, event_query, event_sync, stream_wait_event, event_elapsed, devices, streams_apart, devices_apart)
