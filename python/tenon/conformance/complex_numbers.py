"""References for complex operands, in NumPy's widest precision, where its own functions do not do.

A real operand stays real: it has no imaginary zero that infinities could be multiplied by (docs/differences.md).
"""

import numpy as np


def is_complex(*operands):
    return any(np.asarray(x).dtype.kind == "c" for x in operands)


def wide(f):
    """`f` in the precision of long double for complex operands, as it is for others."""

    def g(*operands):
        if not is_complex(*operands):
            return f(*operands)
        return f(*(np.asarray(x).astype(np.clongdouble) for x in operands))

    return g


def parts(re, im):
    """re + im i, without the product of i and infinities."""
    re, im = np.broadcast_arrays(re, im)
    out = np.empty(re.shape, np.clongdouble)
    out.real, out.imag = re, im
    return out


def negative(x):
    return parts(-x.real, -x.imag) if is_complex(x) else -x


def add(a, b):
    """a + b; an operand that is real adds to the real part alone."""
    a, b = np.asarray(a), np.asarray(b)
    if not is_complex(a, b):
        return a + b
    imaginary = [x.imag for x in (a, b) if x.dtype.kind == "c"]
    return parts(a.real + b.real, sum(imaginary[1:], imaginary[0]))


def multiply(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if not is_complex(a, b):
        return a * b
    if not is_complex(a):
        return parts(a * b.real, a * b.imag)
    if not is_complex(b):
        return parts(a.real * b, a.imag * b)
    return wide(np.multiply)(a, b)


def divide(a, b):
    """By infinities 0, by zero infinite or undefined, as ISO C99 annex G has it; its algorithm adds the parts of the dividend, and
    the quotient is undefined where that overflows."""
    a, b = np.asarray(a), np.asarray(b)
    if not is_complex(a, b):
        return a / b
    if not is_complex(b):
        return parts(a.real / b, a.imag / b)
    a, b = np.broadcast_arrays(a, b)
    far = (np.isinf(b.real) | np.isinf(b.imag)) & np.isfinite(np.abs(a.real) + np.abs(a.imag))
    return np.where(far, 0, wide(np.divide)(a, b))


def power(a, b):
    """exp(b log a), where a part that is zero multiplies nothing; what is raised to 0 is 1."""
    a, b = (np.asarray(x).astype(np.clongdouble) for x in np.broadcast_arrays(a, b))
    log = np.log(a)
    re = b.real * log.real - np.where((b.imag == 0) | (log.imag == 0), 0, b.imag * log.imag)
    im = np.where(b.imag == 0, 0, b.imag * log.real) + np.where(log.imag == 0, 0, b.real * log.imag)
    result = np.exp(parts(re, im))
    result = np.where((a == 0) & (b.real > 0), 0, result)
    return np.where(b == 0, 1, np.where(b == 1, a, np.where(b == 2, a * a, result)))


def sgn(x):
    x = x.astype(np.clongdouble)
    size = np.abs(x)
    return np.where(size == 0, 0, parts(x.real / size, x.imag / size))


def sigmoid(x):
    x = x.astype(np.clongdouble)
    left = x.real < 0
    e = np.exp(np.where(left, x, negative(x)))
    return np.where(left, e, 1) / (1 + e)


def real_log1p(x):
    """0.5 log(|1 + x|^2) as a logarithm of what is near 1."""
    return 0.5 * np.log1p(x.real * (2 + x.real) + x.imag * x.imag)


def log1p(x):
    x = x.astype(np.clongdouble)
    near = (np.abs(x.real) < 0.5) & (np.abs(x.imag) < 0.5)
    far = np.log(parts(1 + x.real, x.imag))
    return parts(np.where(near, real_log1p(np.where(near, x, 0)), far.real), far.imag)
