"""What no operator shows of captured work: that it does not run, what its replays do, and what becomes of it."""

import tenon

from .device_bench import NotOffered


class _ThrownAway(Exception):
    """Ends a capture that is not kept."""


def captured(b, *copies):
    """A graph of copies, each from one tensor to another, which are work of every device."""
    graph = b.module.Graph()
    try:
        with b.module.device(b.device), b.module.graph(graph):
            for to, source in copies:
                to.copy_(source)
    except NotImplementedError as e:
        raise NotOffered(str(e)) from None
    return graph


def filled(b, *values):
    found = [tenon.full((1000,), v, device=b.device) for v in values]
    b.module.synchronize(b.device)
    return found


def check_filled(tensors, values, what):
    got = [sorted(set(t.cpu().tolist())) for t in tensors]
    assert got == [[v] for v in values], f"{what}: values are {got}, expected {[[v] for v in values]}"


def capture_begin(b):
    """What is captured does not run."""
    x, y = filled(b, 1.0, 2.0)
    graph = captured(b, (y, x))
    b.module.synchronize(b.device)
    check_filled([x, y], [1.0, 2.0], "capture_begin: work that is captured ran at once, y = x")
    graph.reset()


def capture_launch(b):
    """Replays run in the order of the stream, each once, with the values that are there then."""
    x, y, z = filled(b, 1.0, 2.0, 3.0)
    graph, other = captured(b, (z, y), (y, x)), captured(b, (x, z))
    graph.replay()
    b.module.synchronize(b.device)
    check_filled([x, y, z], [1.0, 1.0, 2.0], "capture_launch: a replay of z = y, y = x")
    x.fill_(4.0)
    graph.replay()
    x.fill_(5.0)
    graph.replay()  # the one before may still be to run
    b.module.synchronize(b.device)
    check_filled([x, y, z], [5.0, 5.0, 4.0], "capture_launch: two replays of z = y, y = x that follow each other")
    other.replay()
    b.module.synchronize(b.device)
    check_filled([x, y, z], [4.0, 5.0, 4.0], "capture_end, capture_launch: a replay of x = z, which was captured second")
    stream = b.module.Stream(b.device)
    stream.wait_stream(b.module.current_stream(b.device))
    with b.module.stream(stream):
        x.fill_(6.0)
        graph.replay()
        shown = x.cpu(), y.cpu(), z.cpu()
    check_filled(shown, [6.0, 6.0, 5.0], "capture_launch: a replay of z = y, y = x on another stream")


def capture_free(b):
    """What was launched still runs, and other captures stay."""
    x, y, z = filled(b, 1.0, 2.0, 3.0)
    graph, other = captured(b, (y, x)), captured(b, (z, y))
    graph.replay()
    graph.reset()
    other.replay()
    b.module.synchronize(b.device)
    check_filled([x, y, z], [1.0, 1.0, 1.0], "capture_free: y = x was launched before it was freed, and z = y after it")


def capture_end(b):
    """What is thrown away does not run, and the stream goes on."""
    x, y = filled(b, 1.0, 2.0)
    captured(b)  # whether it is offered
    stream = b.module.Stream(b.device)
    try:
        with b.module.device(b.device), b.module.graph(b.module.Graph(), stream=stream):
            y.copy_(x)
            raise _ThrownAway
    except _ThrownAway:
        pass
    b.module.synchronize(b.device)
    check_filled([x, y], [1.0, 2.0], "capture_end with out NULL: y = x was captured, and thrown away")
    with b.module.stream(stream):
        x.copy_(y)
    stream.synchronize()
    check_filled([x, y], [2.0, 2.0], "capture_end with out NULL: x = y is queued on the stream that had been captured")


CHECKS = (capture_begin, capture_launch, capture_free, capture_end)
