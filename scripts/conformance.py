"""Writes docs/conformance.md: what the conformance kit says of the devices that are built with the tests.

    PYTHONPATH=build/release/python python scripts/conformance.py          # writes docs/conformance.md
    PYTHONPATH=build/release/python python scripts/conformance.py --check  # says what has changed; exit code 1
"""

import difflib
import os
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor

import tenon
from tenon.conformance import report, runner
from tenon.conformance.cells import QUICK

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "conformance.md"
BACKENDS = pathlib.Path(tenon._C.__file__).parents[2] / "backends"
# PoCL keeps compiled kernels from one run to the next.
os.environ.setdefault("POCL_CACHE_DIR", str(BACKENDS.parent / "pocl_cache"))
OPENREG = BACKENDS / "openreg/openreg.so"

#: (name, library, options, what it is) of each device. Two of them are the same file.
DEVICES = [
    ("openreg", OPENREG, {"mode": "thread"}, "a thread for each stream"),
    ("lazyreg", OPENREG, {"mode": "lazy"}, "work runs only when something waits"),
    ("opencl", BACKENDS / "opencl/opencl.so", {}, "the first device of OpenCL"),
]
LETTERS = {"native": "n", "fallback": "f", "unsupported": "u", "wrong": "W", "refused": "r", "skipped": "-"}


def run_all(devices):
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(runner.run, name, library, options, quick=True, jobs=2) for name, library, options, _ in devices]
        return [run.result() for run in runs]


def letters(cells):
    by_dtype = {c.dtype: c for c in cells}
    return "".join(LETTERS[by_dtype[d].state] if d in by_dtype else "W" for d in QUICK.dtypes)


def shares(reports, devices):
    """A row of figures for each device."""
    yield "| device | operators | rows | native | fallback | unsupported | wrong | refused | skipped | the CPU's bits | second derivatives |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for found, (name, _, _, what) in zip(reports, devices):
        states = found.states()
        computed = [c for c in found.cells if c.state in ("native", "fallback", "wrong")]
        same = sum(c.same_bits for c in computed)
        figures = [len(report.by_operator(found.cells)), len(found.cells), *(states[s] for s in report.STATES)]
        yield f"| {name}: {what} | " + " | ".join(map(str, figures)) + f" | {same} of {len(computed)} | {sum(c.second for c in found.cells)} |"


def claims(reports):
    yield "| device | claimed | served as claimed | served beyond claims | kernels of its own | stubs |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for found in reports:
        own = ", ".join(f"`{k}`" for k in found.kernels) or "none"
        yield f"| {found.device} | " + " | ".join(map(str, report.claims_of(found))) + f" | {own} | {', '.join(found.stubs) or 'none'} |"


def skips(reports):
    """Reasons, which are the same for all devices."""
    counts = reports[0].skips()
    yield "| kinds of samples | reason |"
    yield "| --- | --- |"
    for reason, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield f"| {n} | {reason or 'NONE'} |"


def operators(reports):
    names = [found.device for found in reports]
    tables = [{o: letters(cells) for o, cells in report.by_operator(found.cells).items()} for found in reports]
    yield "| operator | " + " | ".join(names) + " |"
    yield "| --- |" + " --- |" * len(names)
    for operator in sorted(tables[0]):
        yield f"| {operator} | " + " | ".join(f"`{t[operator]}`" for t in tables) + " |"


OWN_OPERATORS = """
## Operators of your own

The kit tries operators that a plug-in or a module declares when they have samples; the others it lists as not tried. Samples are
made by `tenon.conformance.declare` in a module, which `-i` imports as soon as the device is loaded, so that it may speak of the
plug-in's operators. Where these have no kernel for the CPU, it gives them one to compare with, and derivatives if there are any:

```python
# extending.py
from tenon.conformance import declare, unary_samples
from tenon.library import register_autograd, register_kernel

register_kernel("openreg::custom_abs", "cpu", lambda x: x.abs())
register_autograd("openreg::custom_abs", lambda ctx, grad: grad * ctx.saved_tensors[0].sign(),
                  setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
declare("openreg::custom_abs", unary_samples())
```

```sh
python -m tenon conformance openreg --plugin openreg.so -i extending --ops 'openreg::*'
```

`unary_samples(2.0)` is a tensor and a number; `binary_samples()` two tensors that broadcast; any other signature is a function
of a `Maker`, which gives tensors of the dtype and strides in question. `ulps=` says how far results may be from the CPU's.
""".strip()


def page():
    reports = run_all(DEVICES)
    wrong = [line for found in reports for line in report.text(found).splitlines() if line.startswith("WRONG")]
    yield "# What the conformance kit says of the devices in this repository"
    yield ""
    yield "`python scripts/conformance.py` writes this page by running `tenon conformance DEVICE --quick` on each device, and the"
    yield "tests compare it with the build. Every operator and its forms are called on the device and on the CPU, with arguments of every"
    yield "stride, with and without `out=`, and differentiated for incoming gradients of every stride, and once more for one of"
    yield "them where the derivative has one of its own (*second derivatives*: samples for which it has); see"
    yield "[backends.md](backends.md#the-conformance-kit) for the command, and [tutorial-device.md](tutorial-device.md) for a device of"
    yield "your own."
    yield ""
    yield from shares(reports, DEVICES)
    yield ""
    yield "A row is an operator in one dtype. *Native*: no call of it ran on host copies; *fallback*: some did. *Refused*: by the"
    yield "CPU, too. *Skipped*: the row has no samples, for one of the reasons below. *The CPU's bits*: rows all of whose results are"
    yield "the CPU's to the bit, of those that computed something. \"141 of 143 rows\" means that two rows had a result that is near"
    yield "enough to the CPU's in float64 and not equal to the CPU's. That is no fault where the device has a function of its own for the"
    yield "operator, which may round as it likes; the kit names the first call that did, and with `-v` such rows are marked with a"
    yield "tilde, `native~`. Of programs the bits are promised, and other ones are wrong."
    yield ""
    yield "## What devices claim, and serve"
    yield ""
    yield "A device claims operators that are pointwise programs by the operations that it runs, in the dtypes that it lists; a call is"
    yield "covered if all its arguments and results have such dtypes. By a kernel and a list of dtypes it claims the operator in those"
    yield "dtypes that the kernel takes; there must be one. A claim that is not kept is a wrong row."
    yield ""
    yield from claims(reports)
    yield ""
    yield from OWN_OPERATORS.splitlines()
    yield ""
    yield "## What was skipped, and why"
    yield ""
    yield from skips(reports)
    yield ""
    yield "## By operator"
    yield ""
    yield "Letters are the results in " + ", ".join(QUICK.dtypes) + ": n native, f fallback, u unsupported, W wrong, r refused by the"
    yield "CPU, too, - skipped."
    yield ""
    yield from operators(reports)
    if wrong:
        yield ""
        yield from (f"- {line}" for line in wrong)


def main():
    missing = [name for name, library, _, _ in DEVICES if not library.exists()]
    if missing:
        print(f"not built, so that the page is neither written nor compared: {', '.join(missing)}")
        return 0 if "--check" in sys.argv[1:] else 1
    text = "\n".join(page()) + "\n"
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    changed = list(difflib.unified_diff(old.splitlines(), text.splitlines(), "docs/conformance.md", "the build", lineterm="", n=0))
    print("\n".join(changed[:60]))
    bad = [line for line in text.splitlines() if line.startswith("- WRONG") or "| NONE |" in line]
    return 1 if changed or bad else 0


if __name__ == "__main__":
    sys.exit(main())
