"""What was tested: operator x dtype x kind. Cells are tested, refused (an error that is checked), failed, or absent with a
reason; none is left out in silence."""

from collections import Counter, defaultdict

from .dtypes import BY_NAME
from .samples import KINDS

COLUMNS = (*KINDS, "meta", "errors", "grad", "gradgrad")
_MARKS = {"tested": "+", "refused": "r", "failed": "F", "absent": "."}
_RANK = ("failed", "tested", "refused", "absent")


class Matrix:
    def __init__(self):
        self.cells = {}  # (operator, dtype, kind): state
        self.reasons = {}  # the same, of absent cells: why
        self.samples = Counter()  # kind: how many
        self.layouts = Counter()  # strides of incoming gradients: how many
        self.strides = Counter()  # (operator, dtype, grad or gradgrad, layout): how many incoming gradients had it
        self.ranks = Counter()  # (operator, dtype, grad or gradgrad): most dimensions of a result
        self.peer = Counter()  # what the comparison with PyTorch did
        self.failures = []

    def note(self, operator, dtype, kind, state, reason="", count=1):
        key = (operator, dtype, kind)
        if state != "absent":
            self.samples[kind] += count
        old = self.cells.get(key)
        said = old == state and not self.reasons[key]
        if old is None or said or _RANK.index(state) < _RANK.index(old):
            self.cells[key] = state
            self.reasons[key] = reason
        if state == "failed":
            self.failures.append((*key, reason))

    def silent(self, operators, dtypes):
        """The cells of these operators that nothing was said about, or that are absent without a reason."""
        cells = [(o, d, k) for o in operators for d in dtypes for k in COLUMNS]
        return [c for c in cells if c not in self.cells or (self.cells[c] == "absent" and not self.reasons[c])]

    def saw(self, operator, dtype, level, layout):
        """How many gradients of a layout an operator was given, or why there can be none; "" where one is missing."""
        n = self.strides[operator, dtype, level, layout]
        if n:
            return str(n)
        rank = self.ranks[operator, dtype, level]
        if rank == 0:
            return "its results have one element, which has no strides"
        return "its results have one dimension" if rank == 1 and layout == "transposed" else ""

    def counts(self):
        return Counter(self.cells.values())

    def absent_by_reason(self):
        found = defaultdict(list)
        for key, state in self.cells.items():
            if state == "absent":
                found[self.reasons[key]].append(key)
        return sorted(found.items(), key=lambda item: -len(item[1]))

    def lacking(self):
        """{column: {reason: operators}} of the operators that no dtype is tested or refused for."""
        seen, reasons = defaultdict(set), defaultdict(dict)
        for (operator, _, column), state in self.cells.items():
            if state != "absent":
                seen[column].add(operator)
        for (operator, dtype, column), state in self.cells.items():
            if state == "absent" and operator not in seen[column]:
                reasons[column].setdefault(operator, self.reasons[operator, dtype, column])
        found = {}
        for column in COLUMNS:
            by_reason = defaultdict(list)
            for operator, reason in reasons[column].items():
                by_reason[reason].append(operator)
            found[column] = {r: sorted(o) for r, o in sorted(by_reason.items(), key=lambda item: -len(item[1]))}
        return found

    def summary(self):
        counts = self.counts()
        lines = [
            f"{len({o for o, _, _ in self.cells})} operators; cells of operator x dtype x kind: "
            f"{counts['tested']} tested, {counts['refused']} refused as they should be, {counts['failed']} failed, "
            f"{counts['absent']} absent",
            "samples by kind: " + ", ".join(f"{k} {self.samples[k]}" for k in COLUMNS if self.samples[k]),
        ]
        if self.layouts:
            lines.append("incoming gradients: " + ", ".join(f"{k} {n}" for k, n in sorted(self.layouts.items())))
        lacking = Counter()
        for operator, dtype, level in self.ranks:
            for layout in ("contiguous", "transposed", "expanded", "negative", "sliced"):
                if not self.strides[operator, dtype, level, layout]:
                    lacking[layout, self.saw(operator, dtype, level, layout) or "missing"] += 1
        if lacking:
            said = "; ".join(f"{n} {layout}: {why}" for (layout, why), n in sorted(lacking.items()))
            lines.append(f"of {len(self.ranks)} derivatives, without a layout: {said}")
        if self.peer:
            lines.append("compared with PyTorch: " + ", ".join(f"{k} {n}" for k, n in sorted(self.peer.items())))
        return lines

    def text(self):
        lines = [*self.summary(), "", "absent, by reason:"]
        for reason, keys in self.absent_by_reason():
            names = sorted({o for o, _, _ in keys})
            shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
            lines.append(f"  {len(keys):6} {reason}: {shown}")
        lines += ["", "operators that lack a column in all dtypes, by reason:"]
        for column, by_reason in self.lacking().items():
            for reason, names in by_reason.items():
                shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
                lines.append(f"  {column}: {len(names)} {reason}: {shown}")
        lines += ["", "failed:"] + [f"  {o} {d} {k}: {r}" for o, d, k, r in self.failures] if self.failures else []
        lines += ["", "+ tested   r refused with a clear error   F failed   . absent", ""]
        head = " ".join(f"{c[:5]:5}" for c in COLUMNS)
        rows = defaultdict(dict)
        for (operator, dtype, kind), state in self.cells.items():
            rows[operator, dtype][kind] = _MARKS[state]
        order = [*BY_NAME, "any"]
        last = None
        for operator, dtype in sorted(rows, key=lambda r: (r[0], order.index(r[1]))):
            if operator != last:
                lines += ["", f"{operator:40} {head}"]
            last = operator
            marks = " ".join(f"{rows[operator, dtype].get(c, ' '):5}" for c in COLUMNS)
            lines.append(f"    {dtype:36} {marks}".rstrip())
        return "\n".join(lines) + "\n"
