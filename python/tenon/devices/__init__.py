"""Devices that are built outside Tenon: loading them, and a module for each, with the names that `torch.cuda` has.

    import tenon
    openreg = tenon.load_device("build/openreg.so", options={"devices": 2})   # or by name: TENON_PLUGIN_PATH=build
    x = tenon.ones(3, device="openreg")
    with openreg.stream(openreg.Stream()):
        y = x + 1
    openreg.synchronize()
"""

from __future__ import annotations

import os
import sys
import threading
import types
import weakref
from typing import Any, NamedTuple

from .. import _C, namespaces
from ..arguments import check_module as _check_module
from ..callers import warn as _warn
from . import graphs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..types import Path

_devices = _C._devices
_TENON = __package__.partition(".")[0]


def load_device(path: Path, name: str | None = None, options: dict[str, Any] | None = None) -> DeviceModule:
    """Loads a device from the shared library at `path` and returns its module.

    `name` is what it is called, by default what its plug-in proposes; one file may be loaded under several names. `options`
    are the plug-in's own. Raises OSError (tenon.FileError) for a file that cannot be loaded, RuntimeError if it is no device or
    the name is taken, and ValueError for a name or an option that is not allowed; nothing is registered then.
    """
    if name is not None:
        _check_name(name)
    given = {str(key): str(value) for key, value in (options or {}).items()}
    file = os.fsdecode(path)
    if not file:
        raise _C.FileError("load_device: path must name a shared library, got ''")
    return module_of(_devices.load(os.path.abspath(file), name, given))


def load_file(path: Path) -> None:
    """Loads a device, or a library of operators: the file's export says which it is."""
    # Opening it as a library to look would already register its operators.
    path = os.fspath(path)  # not a number: open() would take it for a file that is open, and close it
    try:
        with open(path, "rb") as file:
            is_device = b"\0tenon_plugin_v1\0" in file.read()
    except OSError:
        is_device = False  # loading it reports what is wrong
    if is_device:
        load_device(path)
    else:
        namespaces.load_library(path)


def unload_device(name: str) -> None:
    """Unloads a device: its name is free again, and its file may be loaded again.

    Raises RuntimeError, and does nothing, while tensors, streams, events or pinned memory of it live; the message counts them.
    """
    try:
        _devices.unload(name)
    finally:
        if name not in {loaded for loaded, _, _ in _devices.loaded()}:  # what a device throws at its end does not keep it
            _forget(name)


def _forget(name: str) -> None:
    if _modules.pop(name, None) is None:
        return
    for owner, attribute in _added.pop(name, ()):
        delattr(owner, attribute)
    vars(sys.modules[_TENON]).pop(name, None)
    sys.modules.pop(f"{_TENON}.{name}", None)


def installed_file(name: str) -> str | None:
    """The file of a device that an installed distribution offers: an entry point of group `tenon.plugins`, called as the device,
    is its path or a function that returns it."""
    from importlib.metadata import entry_points

    for point in entry_points(group="tenon.plugins", name=name):
        found = point.load()
        return os.path.abspath(os.fspath(found() if callable(found) else found))
    return None


# Modules of tenon that answer for devices that are not there, until one of that name is.
_NOT_THERE = ("xpu", "mps")


def _check_name(name: str) -> None:
    """`tenon.NAME` and `Tensor.NAME()` will be the device's."""
    from ..nn import Module

    if not name:
        raise ValueError("load_device: '' cannot be the name of a device")
    for there, what in (
        (hasattr(_C.Tensor, name), "tenon.Tensor"),
        (hasattr(Module, name), "nn.Module"),
        (name in vars(sys.modules[_TENON]) and name not in _NOT_THERE, "tenon"),
    ):
        if there and name not in _modules:
            raise ValueError(f"load_device: {name!r} cannot be the name of a device: {what} has it")


def loaded() -> list[tuple[str, str, str]]:
    """(name, path, description) of every loaded device, in the order of loading."""
    return _devices.loaded()


def module_if_there(name: str) -> DeviceModule | None:
    """The module of a device that is loaded, or that a folder of TENON_PLUGIN_PATH has; None for another name."""
    if name in _modules:
        return _modules[name]
    if not any(name == known for known, _, _ in loaded()):
        try:
            _devices.find(name)
        except ValueError:
            return None
    return module_of(name)


class Stream:
    """A queue of work on a device; work in one stream runs in order. `Stream(device)` makes a new one.

    Each device has a class of its own, `tenon.NAME.Stream`, whose device is by default the current one.
    """

    _module: DeviceModule | None = None  # of the classes of devices

    def __init__(self, device: Any = None, stream_id: int | None = None):
        device = _device_of(type(self), device, "Stream")
        if stream_id is None:
            # The device cannot be unloaded while the owner lives.
            self.device, self.stream_id, self._owner = _devices.new_stream(device)
        else:
            _devices.check_stream(device, stream_id)
            index = _devices.current_device(device) if device.index is None else device.index
            self.device, self.stream_id = _C.device(f"{device.type}:{index}"), int(stream_id)

    def synchronize(self) -> None:
        """Waits until all work that was queued has run."""
        _devices.synchronize_stream(self.device, self.stream_id)

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event, by default a new one, and returns it."""
        event = event if event is not None else _class_of(self.device, "Event")(self.device)
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Work queued from now on runs after the event; the caller does not wait."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Work queued from now on runs after what `stream` has now."""
        self.wait_event(stream.record_event())

    def query(self) -> bool:
        """Whether all work that was queued has run."""
        return self.record_event().query()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device, self.stream_id) == (other.device, other.stream_id)

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __repr__(self) -> str:
        return f"Stream(device={str(self.device)!r}, stream_id={self.stream_id})"


class Event:
    """A point in a stream that other streams, or the host, may wait for.

    `enable_timing`: when the work before it has run is noted, for `elapsed_time`. `blocking` makes no difference: waiting
    never spins. An event cannot be shared between processes.
    """

    _module: DeviceModule | None = None

    def __init__(self, device: Any = None, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        if interprocess:
            raise ValueError("Event: an event cannot be shared between processes; interprocess must be False")
        self._device = _device_of(type(self), device, "Event")
        self._event = _devices.new_event(self._device, enable_timing)

    def record(self, stream: Stream | None = None) -> None:
        """Marks the end of the work queued on `stream` so far, by default the current one."""
        stream = stream if stream is not None else _current_stream(self._device)
        _devices.record_event(self._event, stream.device, stream.stream_id)

    def wait(self, stream: Stream | None = None) -> None:
        """Work queued on `stream` from now on, by default the current one, runs after the event."""
        stream = stream if stream is not None else _current_stream(self._device)
        _devices.wait_event(self._event, stream.device, stream.stream_id)

    def query(self) -> bool:
        """Whether the marked work has run."""
        return _devices.query_event(self._event)

    def synchronize(self) -> None:
        """Waits until the marked work has run."""
        _devices.synchronize_event(self._event)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to a later one. Both need `enable_timing`, and their work must have run."""
        return _devices.elapsed(self._event, end_event._event)


def _device_of(owner: Any, device: Any, what: str) -> _C.device:
    if owner._module is not None:
        return owner._module._device(device, what)
    if device is None:
        raise TypeError(f"{what}: which device? Give one, or use the class of its module, tenon.NAME.{what}")
    return _C.device(device) if isinstance(device, str) else device


def _class_of(device: _C.device, what: str) -> Any:
    """The class Stream or Event of a device."""
    return getattr(module_of(device.type), what)


def _current_stream(device: Any) -> Stream:
    owner, stream_id = _devices.current_stream(device)
    return _class_of(owner, "Stream")(owner, stream_id)


class _DeviceContext:
    """Makes a device the current one of its backend, and restores the previous one."""

    def __init__(self, module: DeviceModule, device: Any):
        self._module, self._index = module, module._index(device, "device")

    def __enter__(self) -> None:
        self._before = self._module.current_device()
        self._module.set_device(self._index)

    def __exit__(self, *error: object) -> None:
        self._module.set_device(self._before)


class _StreamContext:
    """Makes a stream and its device current, and restores the previous ones."""

    def __init__(self, module: DeviceModule, stream: Stream | None):
        self._module, self._stream = module, stream

    def __enter__(self) -> Stream | None:
        if self._stream is not None:
            self._device = self._module.current_device()
            self._before = _current_stream(self._stream.device)
            self._module.set_stream(self._stream)
        return self._stream

    def __exit__(self, *error: object) -> None:
        if self._stream is not None:
            _devices.set_stream(self._before.device, self._before.stream_id)
            self._module.set_device(self._device)


class DeviceProperties(NamedTuple):
    """What a device says of itself."""

    name: str
    total_memory: int  #: In bytes; 0 where it is not known.
    granularity: int  #: Of its allocations, in bytes.
    dtypes: list[Any]  #: That its kernels compute in; empty: it does not say.
    pointwise: bool  #: Whether it runs pointwise programs.
    operations: int  #: Bit i: of programs, the operation TenonOp i.
    map_granularity: int  #: In bytes, of the memory that it maps; 0: it maps none, and has no expandable segments.


class DeviceModule(types.ModuleType):
    """The functions of one device, `tenon.NAME`: a device is a number, a text ("openreg:1"), a tenon.device, or None for the
    current one."""

    def __init__(self, name: str):
        super().__init__(f"tenon.{name}", f"The device {name}.")
        self._name = name
        self._capture_streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._captures = threading.RLock()  # held while a capture begins
        for owner in (Stream, Event):
            names = {"_module": self, "__doc__": owner.__doc__, "__module__": self.__name__}
            setattr(self, owner.__name__, type(owner.__name__, (owner,), names))

    def _index(self, device: Any, function: str) -> int:
        if device is None:
            return self.current_device()
        if isinstance(device, int) and not isinstance(device, bool):
            return device
        d = _C.device(device) if isinstance(device, str) else device
        if not isinstance(d, _C.device) or d.type != self._name:
            raise ValueError(f"{self._name}.{function}: expected a device of {self._name}, but got {device}")
        return self.current_device() if d.index is None else d.index

    def _device(self, device: Any, function: str) -> _C.device:
        return _C.device(f"{self._name}:{self._index(device, function)}")

    def is_available(self) -> bool:
        """Whether the device can be used: as long as it is loaded."""
        return _modules.get(self._name) is self

    def is_initialized(self) -> bool:
        """Whether the device has been started: as long as it is loaded."""
        return self.is_available()

    def device_count(self) -> int:
        """How many devices there are."""
        return _devices.device_count(self._name)

    def get_device_properties(self, device: Any = None) -> DeviceProperties:
        """What a device says of itself, and what it computes."""
        return DeviceProperties(*_devices.properties(self._device(device, "get_device_properties")))  # type: ignore[call-arg]

    def current_device(self) -> int:
        """The number of this thread's current device."""
        return _devices.current_device(self._name)

    def set_device(self, device: Any) -> None:
        """Makes a device this thread's current one."""
        _devices.set_device(self._device(device, "set_device"))

    def device(self, device: Any) -> _DeviceContext:
        """A context in which a device is the current one."""
        return _DeviceContext(self, device)

    def current_stream(self, device: Any = None) -> Stream:
        """This thread's current stream of a device."""
        return _current_stream(self._device(device, "current_stream"))

    def default_stream(self, device: Any = None) -> Stream:
        """The stream that a device always has."""
        return self.Stream(self._device(device, "default_stream"), 0)

    def set_stream(self, stream: Stream) -> None:
        """Makes a stream, and its device, this thread's current ones."""
        self._check_stream(stream, "set_stream")
        self.set_device(stream.device)
        _devices.set_stream(stream.device, stream.stream_id)

    def stream(self, stream: Stream | None) -> _StreamContext:
        """A context in which a stream is the current one; None changes nothing."""
        if stream is not None:
            self._check_stream(stream, "stream")
        return _StreamContext(self, stream)

    def _check_stream(self, stream: Any, function: str) -> None:
        if not isinstance(stream, Stream):
            raise TypeError(f"{self._name}.{function}: expected a Stream, such as {self._name}.Stream(), but got {stream!r}")
        if stream.device.type != self._name:
            raise ValueError(f"{self._name}.{function}: expected a stream of {self._name}, but got one of {stream.device}")

    def synchronize(self, device: Any = None) -> None:
        """Waits until the work of all streams of a device has run."""
        _devices.synchronize(self._device(device, "synchronize"))

    def memory_stats(self, device: Any = None) -> dict[str, Any]:
        """The statistics of the caching allocator by PyTorch's keys, and its fragmentation and waste (docs/memory.md)."""
        return _devices.memory_stats(self._device(device, "memory_stats"))

    def memory_stats_as_nested_dict(self, device: Any = None) -> dict[str, Any]:
        """The same as dicts in dicts: `stats["allocated_bytes"]["all"]["peak"]`."""
        nested: dict[str, Any] = {}
        for key, value in self.memory_stats(device).items():
            *groups, name = key.split(".")
            inside = nested
            for group in groups:
                inside = inside.setdefault(group, {})
            inside[name] = value
        return nested

    def host_memory_stats(self) -> dict[str, Any]:
        """The same of pinned host memory, which the device's plug-in allocates."""
        return _devices.host_memory_stats(self._device(None, "host_memory_stats"))

    def set_allocator_settings(self, settings: str) -> None:
        """Settings of the caching allocator, as in PyTorch: "expandable_segments:True" or "expandable_segments:False", for
        segments that are taken from now on. A device that cannot map memory warns, and takes them whole."""
        for setting in settings.split(","):
            name, _, value = (part.strip() for part in setting.partition(":"))
            if name != "expandable_segments" or value not in ("True", "False"):
                raise ValueError(
                    f"{self._name}.set_allocator_settings: expected expandable_segments:True or expandable_segments:False, "
                    f"got {setting!r}; what else can be set is set by variables of the environment (docs/memory.md)"
                )
            if value == "True":
                self._warn_unless_expandable()
            for index in range(self.device_count()):
                _devices.set_expandable(self._device(index, "set_allocator_settings"), value == "True")

    def _warn_unless_expandable(self) -> None:
        if self.get_device_properties(0).map_granularity == 0:
            _warn(f"expandable_segments is not supported on {self._name}, which cannot map memory")

    def Graph(self) -> graphs.Graph:
        """A graph that has captured nothing yet."""
        return graphs.Graph(self)

    def graph(self, graph: graphs.Graph, pool: Any = None, stream: Stream | None = None) -> graphs.GraphContext:
        """A context that captures what its body queues; see graphs.py."""
        return graphs.GraphContext(self, graph, pool, stream)

    def _capture_stream(self) -> Stream:
        """The stream that graphs of the current device are captured on, or another one while it is captured. It lives as long as
        one of them."""
        device = self._device(None, "graph")
        for stream in sorted(self._capture_streams, key=lambda s: s.stream_id):
            if stream.device == device and not graphs.is_stream_capturing(stream):
                return stream
        stream = self.Stream(device)
        self._capture_streams.add(stream)
        return stream

    def graph_pool_handle(self) -> Any:
        """A pool of memory that graphs may share which are never replayed at the same time."""
        return graphs.new_pool(self)

    def is_current_stream_capturing(self) -> bool:
        """Whether the current stream is being captured."""
        return graphs.is_capturing(self)

    def warm_up(
        self, step: Any = None, /, *args: Any, families: Any = None, dtypes: Any = None, gradients: bool = True,
        strided: bool = False, **kwargs: Any,
    ) -> int:  # fmt: skip
        """Compiles kernels before they are needed, many at once, which takes half as long or less; how many they were.

        `warm_up(step, *args, **kwargs)` compiles what that call needs, which runs for real meanwhile, on host copies. Without a
        step, the pointwise operators of `families` ("activation", "arithmetic", ...; all by default) in `dtypes` (float32), with
        their derivatives unless `gradients` is False, for dense operands and, if `strided`, for some others. A device that
        compiles nothing has nothing to do: it returns 0, and calls nothing.
        """
        from . import warm_up

        device = self._device(None, "warm_up")
        if step is not None:
            return warm_up.compile_for(device, lambda: step(*args, **kwargs))
        if args or kwargs:
            raise TypeError(f"{self._name}.warm_up: arguments of a step, but no step: {', '.join([*map(repr, args), *kwargs])}")
        return warm_up.compile_families(device, families, dtypes or [_C.float32], gradients, strided)

    def memory_summary(self, device: Any = None, abbreviated: bool = False) -> str:
        """The statistics as a table."""
        return _devices.memory_summary(self._device(device, "memory_summary"), abbreviated)

    def memory_snapshot(self, device: Any = None) -> list[dict[str, Any]]:
        """All segments with their blocks, as dicts with PyTorch's keys."""
        import json

        return json.loads(_devices.memory_snapshot(self._device(device, "memory_snapshot"))[0])

    def memory_history(self, device: Any = None) -> list[dict[str, Any]]:
        """What was recorded since `record_memory_history`, oldest first."""
        import json

        return json.loads(_devices.memory_snapshot(self._device(device, "memory_history"))[1])

    def record_memory_history(self, max_entries: int = 100_000, device: Any = None) -> None:
        """Notes allocations and frees from now on, with the lines that made them; 0 stops."""
        _devices.record_memory_history(self._device(device, "record_memory_history"), max_entries)

    def memory_allocated(self, device: Any = None) -> int:
        """Bytes that tensors hold."""
        return self.memory_stats(device)["allocated_bytes.all.current"]

    def max_memory_allocated(self, device: Any = None) -> int:
        """The maximum of `memory_allocated()` since the start or `reset_peak_memory_stats()`."""
        return self.memory_stats(device)["allocated_bytes.all.peak"]

    def memory_reserved(self, device: Any = None) -> int:
        """Bytes that the allocator holds, in use or kept for reuse."""
        return self.memory_stats(device)["reserved_bytes.all.current"]

    def max_memory_reserved(self, device: Any = None) -> int:
        """The maximum of `memory_reserved()` since the start or `reset_peak_memory_stats()`."""
        return self.memory_stats(device)["reserved_bytes.all.peak"]

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        """Resets all peaks to the current values."""
        _devices.reset_peak_memory_stats(self._device(device, "reset_peak_memory_stats"))

    def reset_accumulated_memory_stats(self, device: Any = None) -> None:
        """Resets all sums to zero."""
        _devices.reset_accumulated_memory_stats(self._device(device, "reset_accumulated_memory_stats"))

    def empty_cache(self) -> None:
        """Returns the free blocks of every device to it."""
        for index in range(self.device_count()):
            _devices.empty_cache(self._device(index, "empty_cache"))

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        """(free bytes, total bytes), as the device counts them."""
        return _devices.mem_get_info(self._device(device, "mem_get_info"))

    def manual_seed(self, seed: int) -> None:
        """Seeds the generator: one stream of numbers serves all devices."""
        _C.manual_seed(seed)

    manual_seed_all = manual_seed

    def get_rng_state(self, device: Any = None) -> _C.Tensor:
        """The generator's position in its stream."""
        return _C.default_generator.get_state()

    def set_rng_state(self, new_state: Any, device: Any = None) -> None:
        """Restores a position of the generator."""
        _C._set_rng_state(new_state)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({name for name in dir(type(self)) if not name.startswith("_")} | {*vars(self)})


_modules: dict[str, DeviceModule] = {}
_added: dict[str, list[tuple[Any, str]]] = {}  # what classes have because of a device


def module_of(name: str) -> DeviceModule:
    """The module of a loaded device; tensors and modules get their `NAME()` and `is_NAME` with it."""
    if name not in _modules:
        from ..nn import Module

        def to_device(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
            index = _modules[name]._index(device, name)
            return self.to(_C.device(f"{name}:{index}"), non_blocking=non_blocking)

        def module_to_device(self: Any, device: Any = None) -> Any:
            return self.to(_C.device(f"{name}:{_modules[name]._index(device, name)}"))

        to_device.__name__ = module_to_device.__name__ = name
        to_device.__doc__ = f"The tensor on the device {name}."
        module_to_device.__doc__ = f"Moves all parameters and buffers to the device {name}."
        is_device = property(lambda self: self.device.type == name, doc=f"Whether the tensor is on the device {name}.")
        for owner, attribute, value in (
            (_C.Tensor, name, to_device),
            (_C.Tensor, f"is_{name}", is_device),
            (Module, name, module_to_device),
        ):
            if not hasattr(owner, attribute):
                setattr(owner, attribute, value)
                _added.setdefault(name, []).append((owner, attribute))
        module = _modules[name] = DeviceModule(name)
        sys.modules[f"tenon.{name}"] = module
        if name in _NOT_THERE:
            vars(sys.modules[_TENON])[name] = module
        if os.environ.get("TENON_EXPANDABLE_SEGMENTS") == "1":
            module._warn_unless_expandable()
    return _modules[name]


_check_module(globals())
