"""Sequences of several lengths in one tensor: packed, as recurrent layers take them, and padded.

A packed sequence has the first elements of all sequences, longest first, then the second ones, and so on.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import _C
from ..._names.absent import add_module_getattr
from ...arguments import check_module as _check_module, describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any
    from typing_extensions import Self

    from ..._C import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Packed sequences: their elements, and how many sequences have each step, int64 on the CPU.

    Made by pack_padded_sequence and pack_sequence. `sorted_indices` has the numbers of the sequences in the order in which they
    are packed, `unsorted_indices` the way back; both are None where the sequences came in that order.
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if batch_sizes is None:
            if not isinstance(data, (tuple, list)) or len(data) != 2:
                raise TypeError(f"PackedSequence: without batch_sizes, data must be a pair of both, got {describe(data)}")
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(f"PackedSequence: batch_sizes must be on the CPU, got it on {batch_sizes.device}; move it with .cpu()")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The same with `data.to(...)`; the indices follow to its device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = [None if i is None else i.to(data.device) for i in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *indices)

    def cpu(self) -> Self:
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Self:
        return self.to("cuda" if device is None else device)

    def double(self) -> Self:
        return self.to(_C.float64)

    def float(self) -> Self:
        return self.to(_C.float32)

    def half(self) -> Self:
        return self.to(_C.float16)

    def long(self) -> Self:
        return self.to(_C.int64)

    def int(self) -> Self:
        return self.to(_C.int32)

    def short(self) -> Self:
        return self.to(_C.int16)

    def char(self) -> Self:
        return self.to(_C.int8)

    def byte(self) -> Self:
        return self.to(_C.uint8)

    def pin_memory(self) -> Self:
        pinned = [None if t is None else t.pin_memory() for t in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(self.data.pin_memory(), self.batch_sizes, *pinned)

    def is_pinned(self) -> bool:
        return self.data.is_pinned()

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another one."""
    if permutation is None:
        return None
    places = _C.arange(permutation.numel(), device=permutation.device, dtype=permutation.dtype)
    return _C.empty_like(permutation).scatter_(0, permutation, places)


def _is_present(batch_sizes_or_lengths: Tensor, longest: int, by_step: bool) -> Tensor:
    """bool [steps, batch]: whether a sequence has a step; from lengths, or from the number of sequences of each step."""
    steps = _C.arange(longest)
    if by_step:
        sequences = _C.arange(int(batch_sizes_or_lengths[0]))
        return sequences < batch_sizes_or_lengths.unsqueeze(1)
    return steps.unsqueeze(1) < batch_sizes_or_lengths


def _lengths(name: str, lengths: Any) -> Tensor:
    if isinstance(lengths, _C.Tensor):
        if lengths.device.type != "cpu":
            raise RuntimeError(f"{name}: `lengths` must be on the CPU, got it on {lengths.device}; move it with .cpu()")
        return lengths.detach().to(_C.int64)
    return _C.tensor(list(lengths), dtype=_C.int64)


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs the first lengths[i] elements of each sequence i of input [steps, batch, ...], or [batch, steps, ...].

    The sequences must come longest first; with enforce_sorted=False they are sorted here.
    """
    name = "pack_padded_sequence"
    if not isinstance(input, _C.Tensor):
        raise TypeError(f"{name}: `input` must be a Tensor, got {describe(input)}")
    if input.dim() < 2:
        raise RuntimeError(f"{name}: expected `input` with at least 2 dimensions, got {list(input.shape)}")
    lengths = _lengths(name, lengths)
    order = None
    if not enforce_sorted:
        lengths, order = _C.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    steps, batch = input.shape[:2]
    if lengths.dim() != 1 or lengths.shape[0] != batch:
        raise RuntimeError(f"{name}: expected `lengths` of the batch's {batch} sequences, got {list(lengths.shape)}")
    listed = lengths.tolist()
    if not listed or min(listed) <= 0:
        raise RuntimeError(f"{name}: expected `lengths` of all sequences to be greater than 0, got {listed}")
    if listed != sorted(listed, reverse=True):
        raise RuntimeError(
            f"{name}: `lengths` must be in decreasing order where enforce_sorted is True, got {listed}; sequences in another "
            "order need enforce_sorted=False"
        )
    if listed[0] > steps:
        raise RuntimeError(f"{name}: expected `lengths` of at most the {steps} steps of `input` {list(input.shape)}, got {listed[0]}")
    present = _is_present(lengths, listed[0], False)
    rows = present.flatten().nonzero().squeeze(1).to(input.device)
    data = input[: listed[0]].flatten(0, 1).index_select(0, rows)
    return PackedSequence(data, present.sum(1), order, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """[steps, batch, ...], or [batch, steps, ...], with padding_value after the end of each sequence, and their lengths."""
    name = "pad_packed_sequence"
    if not isinstance(sequence, PackedSequence):
        raise TypeError(f"{name}: `sequence` must be a PackedSequence, got {describe(sequence)}")
    data, batch_sizes, _, order = sequence
    steps = batch_sizes.shape[0]
    if total_length is not None and total_length < steps:
        raise ValueError(
            f"{name}: Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {steps}"
        )
    present = _is_present(batch_sizes, steps, True)
    steps = steps if total_length is None else total_length
    batch, rest = present.shape[1], data.shape[1:]
    rows = present.flatten().nonzero().squeeze(1).to(data.device)
    padded = _C.full((steps * batch, *rest), padding_value, dtype=data.dtype, device=data.device)
    padded = padded.index_copy(0, rows, data).unflatten(0, (steps, batch))
    lengths = present.sum(0)
    if batch_first:
        padded = padded.transpose(0, 1)
    if order is not None:
        return padded.index_select(0 if batch_first else 1, order), lengths.index_select(0, order.cpu())
    return padded, lengths


def pad_sequence(
    sequences: Tensor | Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Stacks sequences [length, ...] to [longest, batch, ...], or [batch, longest, ...], with padding_value on one side."""
    if padding_side not in ("right", "left"):
        raise RuntimeError(f"pad_sequence: padding_side must be 'right' or 'left', got {padding_side!r}")
    try:
        listed = list(sequences)
    except TypeError:
        raise RuntimeError(f"pad_sequence: `sequences` must be an iterable of Tensors, got {describe(sequences)}") from None
    if not listed:
        raise RuntimeError("pad_sequence: expected at least one sequence, got an empty list")
    for s in listed:
        if not isinstance(s, _C.Tensor) or s.dim() == 0:
            raise RuntimeError(f"pad_sequence: `sequences` must be Tensors [length, ...], got {describe(s)}")
        if s.shape[1:] != listed[0].shape[1:]:
            raise RuntimeError(
                f"pad_sequence: expected all sequences [length, {', '.join(map(str, listed[0].shape[1:]))}], got {list(s.shape)}"
            )
    longest = max(s.shape[0] for s in listed)
    rows = []
    for s in listed:
        missing = longest - s.shape[0]
        if missing:
            padding = _C.full((missing, *s.shape[1:]), padding_value, dtype=s.dtype, device=s.device)
            s = _C.cat([s, padding] if padding_side == "right" else [padding, s])
        rows.append(s)
    return _C.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The first lengths[i] elements of each sequence i of [steps, batch, ...], or [batch, steps, ...]."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    counts = lengths.tolist()
    if len(counts) != padded_sequences.shape[0]:
        raise ValueError(f"unpad_sequence: expected `lengths` of {padded_sequences.shape[0]} sequences, got {len(counts)}")
    return [sequence[:count] for sequence, count in zip(padded_sequences.unbind(0), counts)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences [length, ...]: pack_padded_sequence of pad_sequence."""
    return pack_padded_sequence(pad_sequence(sequences), [s.shape[0] for s in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences [length, ...] that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


_check_module(globals())
add_module_getattr(__name__)
