"""What a run of the kit found, as text, as CSV, and as the table of docs/conformance.md."""

import csv
from collections import defaultdict

from .faults import KINDS, faults_of

#: What the parts of device_checks.py are.
PARTS = {"table": "functions of the table", "regions": "programs of several operators"}
STATES = ("native", "fallback", "unsupported", "wrong", "refused", "skipped")


def by_operator(cells):
    found = defaultdict(list)
    for c in cells:
        found[c.operator].append(c)
    return found


def faults(report):
    """{operator: (faults in words, {kind: dtypes})} of what is wrong."""
    found = {}
    for operator, cells in by_operator(report.wrong()).items():
        kinds = defaultdict(list)
        for c in cells:
            for kind in c.differences:
                kinds[kind].append(c.dtype)
        found[operator] = faults_of(kinds), dict(kinds)
    return found


def claims_of(report):
    """(claimed, of these served as claimed, served beyond claims)."""
    tried = [c for c in report.cells if c.native + c.fallback + c.unsupported or "claim" in c.differences]
    claimed = [c for c in tried if c.claimed]
    kept = [c for c in claimed if "claim" not in c.differences]
    beyond = [c for c in tried if not c.claimed and c.native and not c.fallback]
    return len(claimed), len(kept), len(beyond)


def summary(report):
    """The lines that are always printed."""
    states, skips = report.states(), report.skips()
    claimed, kept, beyond = claims_of(report)
    native = [c for c in report.cells if c.state in ("native", "fallback")]
    same = sum(c.same_bits for c in native)
    lines = [
        f"{report.device}: {report.described}",
        f"{len(by_operator(report.cells))} operators, {len(report.cells)} rows of operator and dtype: "
        + ", ".join(f"{states[s]} {s}" for s in STATES),
        f"{sum(c.native + c.fallback for c in report.cells)} calls, {sum(c.native for c in report.cells)} of them ran on the "
        f"device alone; {sum(c.gradients for c in report.cells)} incoming gradients, {sum(c.second for c in report.cells)} differentiated again",
        f"the CPU's bits: {same} of {len(native)} rows" + first_lost(native),
        f"claimed: {claimed} rows, served as claimed: {kept}, served beyond claims: {beyond}",
        f"kernels of its own: {', '.join(report.kernels) or 'none'}; stubs: {', '.join(report.stubs) or 'none'}",
        f"skipped: {sum(skips.values())} kinds of samples, for {len(skips)} reasons, {skips['']} without one",
    ]
    for part, checks in report.checks.items():
        for state in ("kept", "not offered", "not seen"):
            if names := [name for name, found in checks.items() if found == state]:
                lines.append(f"{PARTS[part]}, {state}{', nor promised' * (state == 'not seen')}: {', '.join(names)}")
    by_reason = defaultdict(list)
    for name, reason in report.absent.items():
        by_reason[reason].append(name)
    for reason, names in by_reason.items():
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        lines.append(f"not tried: {', '.join(names[:8])}{more} ({reason})")
    return lines


def first_lost(cells):
    """The first call whose result is near the CPU's and has not its bits."""
    lost = next((c for c in cells if not c.same_bits), None)
    return f"; the first without: {lost.operator} of {lost.lost[:300]}" if lost else ""


def text(report, verbose=False):
    lines = summary(report)
    for operator, (said, kinds) in faults(report).items():
        lines.append(f"WRONG {operator}: {'; '.join(said)}")
        cells = [c for c in report.wrong() if c.operator == operator]
        for kind, dtypes in kinds.items():
            example = next(c.differences[kind] for c in cells if kind in c.differences)
            lines.append(f"    {kind} ({KINDS[kind]}) in {', '.join(dtypes)}: {example[:400]}")
    for c in report.cells:
        if c.state == "unsupported":
            lines.append(f"unsupported {c.operator} {c.dtype}")
    if verbose:
        lines += ["", "skipped, by reason:"]
        lines += [f"  {n:6} {reason or 'WITHOUT A REASON'}" for reason, n in report.skips().most_common()]
        lines += [""] + [row_of_text(operator, cells) for operator, cells in by_operator(report.cells).items()]
    return "\n".join(lines)


def row_of_text(operator, cells):
    return f"{operator:44} " + " ".join(f"{c.dtype}:{c.state}{'' if c.same_bits else '~'}" for c in cells)


def write_csv(report, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("operator", "dtype", "state", "native", "fallback", "unsupported", "refused", "gradients", "second",
                       "same_bits", "claimed", "differences", "skipped"))  # fmt: skip
        for c in report.cells:
            rows.writerow((c.operator, c.dtype, c.state, c.native, c.fallback, c.unsupported, c.refused, c.gradients,
                           c.second, c.same_bits, c.claimed, "; ".join(f"{k}: {v}" for k, v in c.differences.items()),
                           "; ".join(c.skipped)))  # fmt: skip
