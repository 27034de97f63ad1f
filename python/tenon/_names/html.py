"""A tensor as HTML, for notebooks."""

from __future__ import annotations

from .. import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: With more rows or columns than _MOST, only the first and the last _EDGE are shown.
_MOST, _EDGE = 12, 5


def html_of(tensor: _C.Tensor) -> str:
    """A line that says what the tensor is, and a table of its elements, or the text of repr() beyond two dimensions."""
    import html

    sizes = " x ".join(map(str, tensor.shape)) or "no dimensions"
    dtype = repr(tensor.dtype).removeprefix("tenon.")
    head = html.escape(f"{type(tensor).__name__}: {sizes}, {dtype}, {tensor.device}")
    if tensor.is_meta or tensor.dim() not in (1, 2) or tensor.numel() == 0:
        return f"<div>{head}</div><pre>{html.escape(repr(tensor))}</pre>"
    matrix = tensor.detach() if tensor.dim() == 2 else tensor.detach().unsqueeze(0)
    rows, columns = (_shown(n) for n in matrix.shape)
    lines = [_row("td" if r is not None else "th", (_cell(matrix, r, c) for c in columns)) for r in rows]
    return f"<div>{head}</div><table>{''.join(lines)}</table>"


def _shown(n: int) -> list[int | None]:
    """The positions that are shown of n; None for those left out."""
    return [*range(n)] if n <= _MOST else [*range(_EDGE), None, *range(n - _EDGE, n)]


def _cell(matrix: _C.Tensor, row: int | None, column: int | None) -> str:
    if row is None or column is None:
        return "&hellip;"
    value = matrix[row, column].item()
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _row(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"
