"""The conformance kit: every operator on samples made from a row of data; for Tenon itself against independent references,
for a device against the CPU.

    python -m tenon conformance DEVICE [--plugin FILE] [--quick] [--ops PATTERN] [--csv FILE]

    table.py      the operators, as the built package describes them
    families/     one row for each operator: samples, reference, what is refused; mirrors tenon/ops/yaml
    rows.py       what a row is, and the defaults for common signatures
    samples.py    random tensors of every dtype, stride and kind of values
    check.py      runs one sample on the CPU and compares it with its reference
    matrix.py     what was tested there, what is absent and why

    comparison.py one call on the CPU and on a device: what differs
    cells.py      one operator on a device: every dtype, form, kind of sample and stride
    gradients.py  the same of its derivatives;  order.py  of streams and of memory that is given back
    faults.py     what differences say of a device;  claims.py  what it says that it serves
    memory.py     what calls do not return;  large.py  samples of sizes that kernels treat differently
    device_checks.py  what no operator shows: device_table.py, device_memory.py, device_capture.py, regions.py
    runner.py     all operators, in processes that a device may crash;  report.py  the table

Operators of your own take part when their samples are declared:

    from tenon.conformance import declare, unary_samples
    declare("myops::scaled_abs", unary_samples(2.0))

It needs NumPy and SciPy (`pip install tenon-tensor[conformance]`), and `import tenon` does not import it.
"""

from .rows import Row, binary_samples, declare, number_samples, unary_samples
from .samples import Maker, Sample, Spec, sample

__all__ = ["Maker", "Row", "Sample", "Spec", "binary_samples", "declare", "number_samples", "sample", "unary_samples"]
