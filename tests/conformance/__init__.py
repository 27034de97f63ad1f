"""Conformance of Tenon itself: every operator of the dispatcher, by tenon.conformance, against independent references.

    values_test.py     every operator x dtype x kind of sample, in all forms
    grad_test.py       derivatives, for incoming gradients of every stride
    errors_test.py     what is refused
    bits_test.py       the same bits everywhere
    fallback_test.py   on a device that has nothing but byte copies; doors_test.py its derivatives
    matrix_test.py     what was tested, what is absent and why; coverage_test.py the harness itself
"""
