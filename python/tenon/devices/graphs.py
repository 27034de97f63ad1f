"""Work of a device that is captured once and replayed often, with the names that `torch.cuda` has.

    g = openreg.Graph()
    with openreg.graph(g):                  # what is queued is recorded, and does not run
        loss = step(static_input)
    static_input.copy_(batch)
    g.replay()                              # runs all of it, on the current stream

`docs/backends.md` says what a captured step may do.
"""

from __future__ import annotations

import gc
from typing import Any

from .. import _C
from ..arguments import check_module as _check_module

_graphs = _C._graphs


class Graph:
    """Captured work. What it reads and writes must live, and keep its memory, as long as it is replayed."""

    def __init__(self, module: Any):
        self._module = module
        self._graph = _graphs.new()
        self._stream: Any = None

    def capture_begin(self, pool: Any = None) -> None:
        """Records what is queued on the current stream from now on, which is not the default one. Memory comes from `pool`, that
        of another graph or a `graph_pool_handle()`, by default from a new one."""
        with self._module._captures:
            _graphs.begin(self._graph, self._module._device(None, "capture_begin"), pool)

    def capture_end(self) -> None:
        """Ends the recording. Raises RuntimeError if something was refused meanwhile, and nothing is captured then."""
        _graphs.end(self._graph)

    def replay(self) -> None:
        """Queues the captured work on the current stream."""
        _graphs.replay(self._graph)

    def reset(self) -> None:
        """Forgets the captured work and gives its pool back."""
        _graphs.reset(self._graph)

    def pool(self) -> Any:
        """The pool that the graph's memory is from, for other graphs that are never replayed at the same time."""
        return _graphs.pool(self._graph)

    def _abandon(self) -> None:
        _graphs.abandon(self._graph)


class GraphContext:
    """Captures what its body queues, on a stream of its own unless one is given."""

    def __init__(self, module: Any, graph: Graph, pool: Any, stream: Any):
        self._module, self._graph, self._pool, self._stream = module, graph, pool, stream

    def __enter__(self) -> None:
        module = self._module
        # Of two threads that begin to capture, the second must see what the first captures.
        with module._captures:
            if not _graphs.is_device_capturing(module._device(None, "graph")):
                module.synchronize()
                gc.collect()
                module.empty_cache()
            # Graphs share memory by pool and stream.
            stream = self._stream if self._stream is not None else module._capture_stream()
            self._graph._stream = stream
            self._current = module.stream(stream)
            self._current.__enter__()
            try:
                self._graph.capture_begin(self._pool)
            except BaseException:
                self._current.__exit__()
                raise

    def __exit__(self, kind: Any = None, *error: object) -> None:
        try:
            if kind is None:
                self._graph.capture_end()
            else:
                self._graph._abandon()
        finally:
            self._current.__exit__()


def new_pool(module: Any) -> Any:
    return _graphs.new_pool(module._device(None, "graph_pool_handle"))


def is_capturing(module: Any) -> bool:
    return _graphs.is_capturing(module._device(None, "is_current_stream_capturing"))


def is_stream_capturing(stream: Any) -> bool:
    return _graphs.is_stream_capturing(stream.device, stream.stream_id)


_check_module(globals())
