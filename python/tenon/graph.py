"""Graphs that are written down rather than run, with the names of the cuDNN frontend, and the plans that run them.

    g = tenon.pygraph(io_data_type=tenon.float32)
    x, w, b = g.tensor_like(x_data), g.tensor_like(w_data), g.tensor_like(b_data)
    y = g.gelu(input=g.bias(input=g.matmul(A=x, B=w), bias=b))
    y.set_output(True)
    g.build([tenon.graph.heur_mode.A])
    g.execute({x: x_data, w: w_data, b: b_data, y: out}, workspace)

A graph becomes the same operators as a program that `tenon.compile` records, with the same bits and the same key.
`docs/graphs.md` has the rules.
"""

from __future__ import annotations

import builtins
import contextlib
import enum
import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _C
from .arguments import check_module as _check_module, describe

__all__ = [
    "Handle",
    "Tensor",
    "build_plan_policy",
    "create_handle",
    "data_type",
    "destroy_handle",
    "get_stream",
    "heur_mode",
    "norm_forward_phase",
    "pygraph",
    "reduction_mode",
    "rng_distribution",
    "set_stream",
]

_builder, _devices = _C._builder, _C._devices


def _find_onednn() -> None:
    """For plans in which vendors' libraries may take part; the library is looked for once in a process."""
    from ._tools.loaded import find_onednn

    find_onednn()


class _Replaced:
    """The functions of the library and those that replace some of them."""

    def __init__(self, library: Any, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._library = library
        self.__dict__.update(functions)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)


@contextlib.contextmanager
def _replaced_builder(**functions: Callable[..., Any]) -> Iterator[None]:
    """Graphs are built and run with these functions in place of the library's own of that name, while it is active."""
    global _builder
    library = _builder
    _builder = _Replaced(library, functions)  # type: ignore[assignment]
    try:
        yield
    finally:
        _builder = library


class _Words(enum.Enum):
    """An enumeration whose values the library takes as words."""

    def __str__(self) -> str:
        return str(self.value)


class heur_mode(_Words):
    """How plans are proposed."""

    A = "A"
    B = "B"
    FALLBACK = "FALLBACK"


class build_plan_policy(_Words):
    """Which plans are built."""

    HEURISTICS_CHOICE = "HEURISTICS_CHOICE"
    ALL = "ALL"


class norm_forward_phase(_Words):
    """Whether norms give their statistics, too."""

    INFERENCE = "INFERENCE"
    TRAINING = "TRAINING"


class reduction_mode(_Words):
    """What a reduction computes."""

    ADD = "ADD"
    AVG = "AVG"
    MAX = "MAX"
    MIN = "MIN"
    AMAX = "AMAX"
    MUL = "MUL"
    MUL_NO_ZEROS = "MUL_NO_ZEROS"
    NORM1 = "NORM1"
    NORM2 = "NORM2"


class rng_distribution(_Words):
    """What random numbers follow."""

    UNIFORM = "UNIFORM"
    NORMAL = "NORMAL"
    BERNOULLI = "BERNOULLI"


class data_type:
    """cuDNN's names of dtypes; tenon's own are accepted everywhere."""

    HALF, BFLOAT16, FLOAT, DOUBLE = _C.float16, _C.bfloat16, _C.float32, _C.float64
    INT8, UINT8, INT32, INT64, BOOLEAN = _C.int8, _C.uint8, _C.int32, _C.int64, _C.bool
    NOT_SET = None


def _with_index(device: Any) -> _C.device:
    """That of the thread's current device, where there is none and its backend has several."""
    return _devices.current_stream(_C.device(device))[0]


class Handle:
    """A device and its stream. `create_handle` returns a shared one; a handle made directly is private, so a thread may set its stream."""

    def __init__(self, device: Any = "cpu") -> None:
        self.device = _with_index(device)
        self.stream: Any = None

    @property
    def _place(self) -> tuple[_C.device, int | None]:
        return self.device, getattr(self.stream, "stream_id", self.stream)


_handles: dict[_C.device, Handle] = {}


def create_handle(device: Any = "cpu") -> Handle:
    """The handle of a device: one for each. Without an index it is the thread's current device."""
    device = _with_index(device)
    known = _handles.get(device)
    return known if known else _handles.setdefault(device, Handle(device))


def destroy_handle(handle: Handle) -> None:
    """Forgets a handle; the next `create_handle` makes another."""
    _handles.pop(handle.device, None)


def set_stream(handle: Handle, stream: Any) -> None:
    """The stream on which plans of the handle run from now on: a stream of its device or its `stream_id` (0: the default
    stream); None: the current one of the thread that runs the plan. The host has one, whose work runs at once."""
    device, number = getattr(stream, "device", handle.device), getattr(stream, "stream_id", stream)
    if device != handle.device:
        raise ValueError(f"set_stream: the handle is one of {handle.device}, the stream one of {device}")
    if number is not None and device.type == "cpu" and number != 0:
        raise ValueError(f"set_stream: {device} has one stream, the default one (0), not {stream!r}")
    if number is not None:
        _devices.check_stream(device, number)
    handle.stream = stream


def get_stream(handle: Handle) -> Any:
    """What `set_stream` was given; None: the current stream of the thread that runs a plan."""
    return handle.stream


class Tensor:
    """A tensor of a graph. Setters return it, and raise once the graph's operations are built."""

    __slots__ = ("_graph", "_number")

    def __init__(self, graph: pygraph, number: int) -> None:
        self._graph, self._number = graph, number

    def _set(self, what: str, value: Any) -> Tensor:
        _builder.set(self._graph._graph, self._number, what, value)
        return self

    def _get(self, place: int) -> Any:
        return _builder.get(self._graph._graph, self._number)[place]

    def set_uid(self, uid: int) -> Tensor:
        """A number of the user's, an IntEnum too, that no other tensor of the graph has."""
        return self._set("uid", _uid(uid, "set_uid: uid is an int"))

    def set_name(self, name: str) -> Tensor:
        return self._set("name", name)

    def set_dim(self, dim: Iterable[int]) -> Tensor:
        return self._set("dim", tuple(dim))

    def set_stride(self, stride: Iterable[int]) -> Tensor:
        return self._set("stride", tuple(stride))

    def set_data_type(self, data_type: _C.dtype | None) -> Tensor:
        return self._set("data_type", data_type)

    def set_output(self, is_output: bool = True) -> Tensor:
        """An output: its address is passed to `execute`."""
        return self._set("output", is_output)

    def set_is_virtual(self, is_virtual: bool = True) -> Tensor:
        return self._set("is_virtual", is_virtual)

    def set_is_pass_by_value(self, is_pass_by_value: bool = True) -> Tensor:
        return self._set("is_pass_by_value", is_pass_by_value)

    def get_uid(self) -> int:
        """0 before `validate`, if none was set."""
        return int(self._get(0))

    def get_name(self) -> str:
        return str(self._get(1))

    def get_dim(self) -> list[int]:
        return list(self._get(2))

    def get_stride(self) -> list[int]:
        return list(self._get(3))

    def get_data_type(self) -> _C.dtype | None:
        dtype: _C.dtype | None = self._get(4)
        return dtype

    def get_is_output(self) -> bool:
        return bool(self._get(5))

    def get_is_virtual(self) -> bool:
        return bool(self._get(6))

    def get_is_pass_by_value(self) -> bool:
        return bool(self._get(7))

    def __repr__(self) -> str:
        uid, name, dim, stride, dtype, *_ = _builder.get(self._graph._graph, self._number)
        return f"tensor({name!r}, uid={uid}, dim={dim}, stride={stride}, data_type={dtype})"


def _plain(value: Any) -> Any:
    """An attribute as the library takes it."""
    return value.value if isinstance(value, _Words) else value


def _as_memory(value: Any, what: Callable[[], str]) -> Any:
    """What is passed for memory: an address stays, all else is a tensor, without a copy. `what` names it for a message."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value < 2**64:
            raise ValueError(f"{what()} is {value}, which is no address; pass a tensor, an array, or an address")
        return value
    return _as_tensor(value, what, "a tensor, an array (of one element for a number), or an address")


def _as_tensor(value: Any, what: Callable[[], str], wanted: str) -> Any:
    """What is passed for a tensor, as one, without a copy. `what` names it for a message, and `wanted` says what to pass."""
    if isinstance(value, _C.Tensor):
        return value
    if hasattr(value, "__dlpack__"):
        try:
            return _C.from_dlpack(value)
        except (BufferError, ValueError) as e:
            raise type(e)(f"{what()} cannot be shared: {e}") from None
    try:
        return _C.as_tensor(memoryview(value))
    except TypeError:
        shown = repr(value) if isinstance(value, (float, bool)) or value is None else f"a {type(value).__name__}"
        raise TypeError(f"{what()} is {shown}, which is no memory to read or write; pass {wanted}") from None


def _uid(value: Any, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what}, not {value!r}")
    return operator.index(value)


def _number(what: str, value: Any) -> Any:
    """A number of a graph; refuses an int that the library cannot take."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        shown = value if value.bit_length() <= 128 else f"an int of {value.bit_length()} bits"
        raise ValueError(f"{what} is {shown}, expected an int from -2**63 to 2**63 - 1")
    return value


class pygraph:
    """A graph. Its nodes are methods, with the names of their inputs and attributes as keywords: `help(pygraph.conv_fprop)`."""

    def __init__(
        self,
        io_data_type: _C.dtype | None = None,
        intermediate_data_type: _C.dtype | None = None,
        compute_data_type: _C.dtype | None = None,
        handle: Handle | None = None,
        name: str = "graph",
    ) -> None:
        self._handle = handle
        device = handle.device if handle else None
        self._graph = _builder.new(name, io_data_type, intermediate_data_type, compute_data_type, device)

    @classmethod
    def _of(cls, capsule: Any) -> pygraph:
        """A graph that the library has made."""
        self = cls.__new__(cls)
        self._handle, self._graph = None, capsule
        return self

    if TYPE_CHECKING:  # nodes are added below, from the library's table

        def __getattr__(self, node: str) -> Callable[..., Any]: ...

    # Tensors

    def tensor(
        self,
        dim: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        data_type: _C.dtype | None = None,
        is_virtual: bool = False,
        is_pass_by_value: bool = False,
        name: str = "",
        uid: int | None = None,
    ) -> Tensor:
        """An input: an address is passed to `execute` for it; where `is_pass_by_value`, that of one number of the host."""
        uid = None if uid is None else _uid(uid, "tensor: uid is an int or None")
        return Tensor(self, _builder.tensor(self._graph, name, dim, stride, data_type, uid, is_virtual, is_pass_by_value))

    def tensor_like(self, like: Any, name: str = "") -> Tensor:
        """An input with the sizes, strides and dtype of a tensor of any library that speaks DLPack, or of a graph's tensor. In a
        graph of a device, a tensor of the host that has one element is a number that is passed by value."""
        if isinstance(like, Tensor):
            return Tensor(self, _builder.tensor_like_other(self._graph, like._graph._graph, like._number, name))
        return Tensor(self, _builder.tensor_like(self._graph, _as_tensor(like, lambda: "tensor_like: `like`", "a tensor or an array"), name))

    def tensor_scalar(self, value: Any, data_type: _C.dtype | None = None, name: str = "") -> Tensor:
        """A number that is part of the graph."""
        return Tensor(self, _builder.scalar(self._graph, _number("tensor_scalar: `value`", value), data_type, name))

    def _node(self, kind: str, inputs: Iterable[Any], attributes: Mapping[str, Any], name: str, compute_data_type: Any) -> list[Tensor]:
        numbers: list[int | None] = []
        for value in inputs:
            if value is not None and not isinstance(value, Tensor):
                value = self.tensor_scalar(_number(f"{kind}: a number", value))
            if value is not None and value._graph is not self:
                raise ValueError(f"{kind}: tensor {value.get_name()!r} is another graph's")
            numbers.append(None if value is None else value._number)
        plain = {key: _number(f"{kind}: `{key}`", _plain(value)) for key, value in attributes.items() if value is not None}
        made = _builder.node(self._graph, kind, numbers, plain, name, compute_data_type)
        return [Tensor(self, number) for number in made]

    def slice(self, input: Tensor, slices: Iterable[Any], name: str = "", compute_data_type: _C.dtype | None = None) -> Tensor:
        """Elements of a tensor: one slice of Python's for each of the first dimensions."""
        if not isinstance(slices, Iterable) or isinstance(slices, (str, bytes)):
            raise TypeError(f"slice: slices must be a list with one slice for each of the first dimensions, got {describe(slices)}")
        start, limit, step = [], [], []
        first, last = -(2**63), 2**63 - 1  # cut off where the tensor ends
        for s in slices:
            if not isinstance(s, builtins.slice):
                raise TypeError(f"slice: one slice for each of the first dimensions, not {s!r}")
            if not all(part is None or hasattr(part, "__index__") for part in (s.start, s.stop, s.step)):
                raise TypeError(f"slice: start, stop and step of a slice must be ints or None, got {s!r}")
            by = 1 if s.step is None else operator.index(s.step)
            start.append(s.start if s.start is not None else first if by > 0 else last)
            limit.append(s.stop if s.stop is not None else last if by > 0 else first)
            step.append(by)
        return self._node("slice", [input], {"start": start, "limit": limit, "step": step}, name, compute_data_type)[0]

    # The steps

    def validate(self) -> None:
        """Checks the graph; sizes, strides, dtypes and UIDs of all tensors are known afterwards."""
        _builder.validate(self._graph)

    def build_operation_graph(self) -> None:
        """Makes the graph of operators. Nothing can be added or set afterwards."""
        _builder.build_operation_graph(self._graph)

    def create_execution_plans(self, modes: Iterable[Any] = (heur_mode.A,)) -> None:
        """Plans that may run the graph, best first, as the modes propose them."""
        _builder.create_plans(self._graph, [str(mode) for mode in modes])

    def create_execution_plan(self, engine: str, knobs: Mapping[str, int] | None = None) -> None:
        """The plan of one engine, with some of its knobs set."""
        if knobs and knobs.get("relaxed"):
            _find_onednn()
        _builder.create_plan(self._graph, engine, dict(knobs or {}))

    def check_support(self) -> None:
        """Raises NotImplementedError, with the reason of each plan, if none runs the graph."""
        _builder.check_support(self._graph)

    def build_plans(self, policy: Any = build_plan_policy.HEURISTICS_CHOICE) -> None:
        """Builds the first plan that runs the graph, or all."""
        _builder.build_plans(self._graph, build_plan_policy(str(policy)) is build_plan_policy.ALL)

    def build_plan_at_index(self, index: int) -> None:
        _builder.build_plan(self._graph, index)

    def build(self, modes: Iterable[Any] = (heur_mode.A, heur_mode.FALLBACK)) -> None:
        """All steps, from `validate` to `build_plans`."""
        self.validate()
        self.build_operation_graph()
        self.create_execution_plans(modes)
        self.check_support()
        self.build_plans()

    def get_engine_count(self) -> int:
        return len(_builder.engines())

    def get_engines(self) -> list[str]:
        """The names of the engines of whole graphs."""
        return _builder.engines()

    def get_knobs_for_engine(self, engine: str) -> dict[str, list[int]]:
        """The values that each knob of an engine can have."""
        return _builder.knobs(engine)

    def get_execution_plan_count(self) -> int:
        return _builder.count(self._graph)

    def get_plan_name_at_index(self, index: int) -> str:
        """Its engine and all its knobs: "fused(position=0, rows=1, relaxed=0)"."""
        return _builder.plan_name(self._graph, index)

    def deselect_engines(self, engines: Iterable[str]) -> pygraph:
        """Engines of whole graphs ("operators") and of regions ("composed") that may not be used. Before `check_support`."""
        _builder.deselect(self._graph, list(engines))
        return self

    def deselect_workspace_greater_than(self, nbytes: int) -> pygraph:
        """Plans that need more may not be used. Before `check_support`."""
        _builder.deselect_workspace(self._graph, nbytes)
        return self

    def get_workspace_size(self) -> int:
        """In bytes, of the plan that runs. Workspaces are aligned to 64."""
        return _builder.workspace_size(self._graph, None)

    def get_workspace_size_plan_at_index(self, index: int) -> int:
        return _builder.workspace_size(self._graph, index)

    def get_autotune_workspace_size(self) -> int:
        """In bytes, of the plan that is built and needs most."""
        return _builder.autotune_workspace_size(self._graph)

    def autotune(
        self, variant_pack: Mapping[Any, Any], workspace: Any = None, handle: Handle | None = None, budget_ms: float = 200.0
    ) -> list[dict[str, Any]]:
        """Times all plans that are built, and the best one again with its regions tuned, for `budget_ms` milliseconds at most; the
        fastest runs from now on, and the plans are sorted by time. No output of the pack is written. Plans that
        compute something else, or need more workspace than there is, are not taken. Returns a dict for each: its "name",
        "microseconds" (0: not timed), and "reason" (why it was not taken)."""
        if not 0 <= budget_ms < math.inf or budget_ms is True:
            raise ValueError(f"autotune: budget_ms must be a number of milliseconds, got {budget_ms!r}")
        pack, workspace = self._pack(variant_pack), self._workspace(workspace)
        timed = _builder.autotune(self._graph, pack, workspace, float(budget_ms), self._place(handle))
        return [{"name": name, "microseconds": ns / 1000, "reason": reason} for name, ns, reason in timed]

    def key(self) -> str:
        """32 digits, the same for every graph, built or recorded, that computes the same."""
        return _builder.key(self._graph)

    def serialize(self) -> bytes:
        """The plan that runs, with what is known of its tensors: no machine code."""
        return _builder.serialize(self._graph)

    def deserialize(self, data: bytes) -> None:
        """Takes a plan of `serialize`, without planning anything: an empty graph is built then, and tensors are named by their
        UIDs; one whose operations are built must be the same. `data` is bytes, or has the buffer protocol. Raises ValueError for
        bytes that are no such plan here."""
        _find_onednn()
        _builder.deserialize(self._graph, data)

    def allocating_steps(self) -> list[str]:
        """The steps of the plan that may allocate memory when they run; all others do not."""
        return _builder.allocating(self._graph)

    # Running

    def _value_for(self, uid: int) -> str:
        """What is passed for a tensor, in a message."""
        name = _builder.name_of(self._graph, uid)
        return f"execute: the value for UID {uid}" + (f" ({name!r})" if name else "")

    def _pack(self, variant_pack: Mapping[Any, Any]) -> dict[int, Any]:
        if not isinstance(variant_pack, Mapping):
            raise TypeError(f"execute: a variant pack maps tensors of the graph or UIDs, and is no {type(variant_pack).__name__}")
        pack: dict[int, Any] = {}
        for key, value in variant_pack.items():
            uid = key.get_uid() if isinstance(key, Tensor) else _uid(key, "execute: a key of a variant pack is a tensor of the graph or its UID")
            if type(value) is not _C.Tensor:
                value = _as_memory(value, functools.partial(self._value_for, uid))
            pack[uid] = value
        if len(pack) != len(variant_pack):
            raise ValueError("execute: a UID is passed twice, as a tensor of the graph and by itself")
        return pack

    def execute(self, variant_pack: Mapping[Any, Any], workspace: Any = None, handle: Handle | None = None) -> None:
        """Runs the plan. Keys are tensors of the graph or UIDs; values are tensors of any library that speaks DLPack, arrays, or
        addresses. `workspace` has `get_workspace_size()` bytes, aligned to 64, and is used by one call at a time. On a device the
        call queues its work on the stream of `handle`, or else of the graph's handle."""
        _builder.execute(self._graph, self._pack(variant_pack), self._workspace(workspace), None, self._place(handle))

    def execute_plan_at_index(self, variant_pack: Mapping[Any, Any], workspace: Any, index: int, handle: Handle | None = None) -> None:
        """The same with a plan that `build_plan_at_index` has built."""
        _builder.execute(self._graph, self._pack(variant_pack), self._workspace(workspace), index, self._place(handle))

    def _place(self, handle: Handle | None) -> tuple[_C.device, int | None] | None:
        """The device and the stream of a call's handle, or of the graph's; None: the host."""
        handle = handle or self._handle
        return handle._place if handle else None

    @staticmethod
    def _workspace(workspace: Any) -> Any:
        return None if workspace is None else _as_memory(workspace, lambda: "execute: the workspace")

    def _get_variant_pack_uids_sorted(self) -> list[int]:
        return _builder.uids(self._graph)

    def _execute_with_ptrs(self, ptrs: Sequence[int], workspace: Any = None, handle: Handle | None = None) -> None:
        """Addresses in the order of `_get_variant_pack_uids_sorted`; the memory there is not checked."""
        place = None if handle is None and self._handle is None else self._place(handle)
        _builder.execute_ptrs(self._graph, ptrs, workspace, place)

    def __str__(self) -> str:
        """The operators of the graph; before they are built, what is missing."""
        try:
            return _builder.text(self._graph)
        except RuntimeError as missing:
            return f"<{missing}>"


def _method(kind: str, inputs: str, attributes: str, outputs: str) -> Callable[..., Any]:
    """The method of pygraph for one kind of node, from the row that the library has of it."""
    listed = inputs.endswith("*")
    names = [name.rstrip("#!?*") for name in inputs.split()]
    numbers = [name.rstrip("#?") for name in inputs.split() if "#" in name]
    optional = {name.rstrip("#?") for name in inputs.split() if name.endswith("?")}
    own = [name.rstrip("!") for name in attributes.split()]
    keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    # A phase comes first, as in cuDNN's norms.
    required = [name for name in own if name == "norm_forward_phase"] + [name for name in names if name not in optional]
    required += [name.rstrip("!") for name in attributes.split() if name.endswith("!")]
    later = [name for name in names if name in optional] + [name for name in own if name not in required]
    parameters += [inspect.Parameter(name, keyword) for name in required]
    parameters += [inspect.Parameter(name, keyword, default=None) for name in later]
    parameters += [inspect.Parameter("name", keyword, default=""), inspect.Parameter("compute_data_type", keyword, default=None)]
    signature = inspect.Signature(parameters)
    single = len(outputs.split()) == 1

    def method(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{kind}: {e}") from None
        bound.apply_defaults()
        given = bound.arguments
        tensors = given[names[0]] if listed else [given[name] for name in names]
        values = {name: given[name] for name in own}
        for name in numbers:
            if isinstance(given[name], (int, float)):
                tensors[names.index(name)], values[name] = None, given[name]
        made = given["self"]._node(kind, tensors, values, given["name"], given["compute_data_type"])
        return made[0] if single else made

    method.__name__ = kind
    method.__qualname__ = f"pygraph.{kind}"
    method.__signature__ = signature  # type: ignore[attr-defined]
    method.__doc__ = f"Node `{kind}`: {inputs.replace('#', '').replace('!', '')} -> {outputs}." + (f" Attributes: {attributes}." if attributes else "")
    return method


for _row in _builder.kinds():
    if not hasattr(pygraph, _row[0]):
        setattr(pygraph, _row[0], _method(*_row))


_check_module(globals())
