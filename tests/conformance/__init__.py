"""Conformance: every operator of the dispatcher, on samples made from a row of data, against independent references.

    table.py     the operators, as the built package describes them
    families/    one row for each operator: samples, reference, what is refused; mirrors tenon/ops/yaml
    rows.py      what a row is, and the defaults for common signatures
    samples.py   random tensors of every dtype, stride and kind of values
    check.py     runs one sample and compares
    matrix.py    what was tested, what is absent and why
"""
