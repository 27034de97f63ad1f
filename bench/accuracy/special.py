"""The largest errors of special functions: of Tenon, PyTorch and SciPy at the same inputs, against mpmath.

    PYTHONPATH=build/release/python PYTHON bench/accuracy/special.py [--samples 1000] [--function NAME] [--output docs/accuracy-special.md]

PYTHON has mpmath; the columns of what it lacks of torch and scipy stay empty. Errors are in units in the last place of the exact value; of
functions with zeros in units of its scale, at least that of the number in the column "unit".
"""

import argparse
import math
import sys

import mpmath as mp
import numpy as np

mp.mp.dps = 50


def _uniform(low, high):
    return lambda rng, n: rng.uniform(low, high, n)


def _log(low, high, sign=1, offset=0.0):
    return lambda rng, n: offset + sign * np.exp(rng.uniform(math.log(low), math.log(high), n))


def _ndtri(p):
    if p > mp.mpf("0.01"):
        return mp.sqrt(2) * mp.erfinv(2 * p - 1)
    x = -mp.sqrt(-2 * mp.log(p) - mp.log(-4 * mp.pi * mp.log(p)))
    for _ in range(60):
        tail = mp.erfc(-x / mp.sqrt(2)) / 2
        step = (mp.log(tail) - mp.log(p)) * tail / mp.npdf(x)
        x -= step
        if abs(step) < mp.mpf(10) ** -45:
            break
    return x


def _log_ndtr(x):
    with mp.workdps(60 if x > -30 else 300):
        return mp.log(mp.ncdf(x)) if x < 0 else mp.log1p(-mp.ncdf(-x))


def _erfcx(x):
    if x > 1e8:
        return 1 / (x * mp.sqrt(mp.pi)) * (1 - 1 / (2 * x * x))
    with mp.workdps(60):
        return mp.exp(x * x) * mp.erfc(x)


def _zeta(s, q):
    with mp.workdps(100):
        return mp.zeta(s, q)


def _gammainc(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def _gammaincc(a, x):
    return mp.gammainc(a, x, mp.inf, regularized=True)


_POSITIVE = [_uniform(0, 8), _log(1e-20, 0.5), _log(4, 1e10), _uniform(0.9, 1.1), _uniform(1.9, 2.1)]
_BESSEL = [_uniform(-9, 9), _uniform(9, 80)]
_WAVES = [_uniform(0, 9), _uniform(9, 80), _log(80, 1e6), _log(1e-20, 1)]
_DECAYS = [_uniform(0, 3), _uniform(3, 80), _log(1e-20, 1)]
_SHAPE = (_log(1e-2, 300), None)


def _near(a, rng):
    return a * np.exp(rng.normal(0, np.minimum(1, 3 / np.sqrt(a)), len(a)))


def _ENVELOPE(x):
    """Half of what the extrema of Bessel functions around x reach."""
    return np.where(np.abs(x) > 0.8, 0.39 / np.maximum(np.abs(x), 0.8) ** 0.5, 0.0)


#: Name in tenon.special and torch.special: (mpmath's value, how inputs are drawn, unit, name in scipy.special); the unit a number or a
#: function of the input.
ONE = {
    "gammaln": (lambda x: mp.re(mp.loggamma(x)), _POSITIVE, None, "gammaln"),
    "digamma": (mp.digamma, [_uniform(0, 8), _log(1e-20, 0.5), _log(2, 1e10), _uniform(1.4, 1.5)], None, "digamma"),
    "digamma, x < 0": (mp.digamma, [_uniform(-12, 0)], 1.0, "digamma"),
    "gammaln, x < 0": (lambda x: mp.re(mp.loggamma(x)), [_uniform(-12, 0)], 1.0, "gammaln"),
    "erfinv": (mp.erfinv, [_uniform(-1, 1), _log(1e-10, 0.25, -1, 1.0)], None, "erfinv"),
    "erfcx": (_erfcx, [_uniform(-26, 5), _log(1e-5, 1e10)], None, "erfcx"),
    "ndtr": (mp.ncdf, [_uniform(-37, 8), _uniform(-1, 1)], None, "ndtr"),
    "ndtri": (_ndtri, [_uniform(0, 1), _log(1e-300, 0.2)], None, "ndtri"),
    "log_ndtr": (_log_ndtr, [_uniform(-37, 8), _uniform(-1, 1)], None, "log_ndtr"),
    "i0": (lambda x: mp.besseli(0, x), _BESSEL, None, "i0"),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), _BESSEL, None, "i0e"),
    "i1": (lambda x: mp.besseli(1, x), _BESSEL, None, "i1"),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), _BESSEL, None, "i1e"),
    "bessel_j0": (lambda x: mp.besselj(0, x), _WAVES, _ENVELOPE, "j0"),
    "bessel_j1": (lambda x: mp.besselj(1, x), _WAVES, _ENVELOPE, "j1"),
    "bessel_y0": (lambda x: mp.bessely(0, x), _WAVES, _ENVELOPE, "y0"),
    "bessel_y1": (lambda x: mp.bessely(1, x), _WAVES, _ENVELOPE, "y1"),
    "modified_bessel_k0": (lambda x: mp.besselk(0, x), _DECAYS, None, "k0"),
    "modified_bessel_k1": (lambda x: mp.besselk(1, x), _DECAYS, None, "k1"),
    "scaled_modified_bessel_k0": (lambda x: mp.besselk(0, x) * mp.exp(x), _DECAYS, None, "k0e"),
    "scaled_modified_bessel_k1": (lambda x: mp.besselk(1, x) * mp.exp(x), _DECAYS, None, "k1e"),
    "spherical_bessel_j0": (lambda x: mp.sin(x) / x, [_uniform(-3, 3)], None, "spherical_jn"),
    "airy_ai": (mp.airyai, [_uniform(-2, 80), _uniform(0, 4)], None, "airy"),
    "airy_ai, x < -2": (mp.airyai, [_uniform(-20, -2), _log(20, 1e6, -1)], lambda x: 0.39 / abs(x) ** 0.25, "airy"),
    "sinc": (lambda x: mp.sinpi(x) / (mp.pi * x), [_uniform(-6, 6)], None, "sinc"),
    "logit": (lambda p: mp.log(p / (1 - p)), [_uniform(0, 1), _log(1e-20, 0.1), _uniform(0.49, 0.51)], None, "logit"),
    "entr": (lambda x: -x * mp.log(x), [_uniform(0, 8), _log(1e-20, 0.1), _uniform(0.9, 1.1)], None, "entr"),
}
TWO = {
    "gammainc": (_gammainc, _SHAPE, "gammainc"),
    "gammaincc": (_gammaincc, _SHAPE, "gammaincc"),
    "zeta": (_zeta, (_log(1.1, 60), _log(0.05, 100)), "zeta"),
    "polygamma": (lambda n, x: mp.psi(int(n), x), (lambda rng, n: rng.integers(1, 12, n).astype(float), _log(0.05, 100)), "polygamma"),
    "xlog1py": (lambda x, y: x * mp.log1p(y), (_uniform(-4, 4), _log(1e-10, 1e10)), "xlog1py"),
}


def error(result, exact, wide, unit):
    """In units in the last place of float64 or float32."""
    if not np.isfinite(result):
        return math.inf
    scale = max(abs(exact), unit or 0)
    last = mp.mpf(2) ** (int(mp.floor(mp.log(scale, 2))) - (52 if wide else 23)) if scale else mp.mpf(2) ** -1074
    if not wide:
        last = max(last, mp.mpf(2) ** -149)
    return float(abs(mp.mpf(float(result)) - exact) / last)


def _peers():
    """Functions from a name and NumPy arrays to an array, by the name of the column."""
    import tenon

    def of(module, tensor, name, *args):
        f = getattr(module, name.partition(",")[0])
        if name == "polygamma":
            parts = [f(int(n), tensor(args[1][args[0] == n])).numpy() for n in np.unique(args[0])]
            out = np.empty_like(args[1])
            for n, part in zip(np.unique(args[0]), parts):
                out[args[0] == n] = part
            return out
        return f(*map(tensor, args)).numpy()

    found = {"Tenon": lambda name, *args: of(tenon.special, tenon.tensor, name, *args)}
    try:
        import torch
    except ImportError:
        pass
    else:
        found["PyTorch"] = lambda name, *args: of(torch.special, torch.tensor, name, *args)
    try:
        import scipy.special as ss
    except ImportError:
        pass
    else:

        def scipy_of(name, *args):
            scipy_name = (ONE.get(name) or TWO.get(name))[-1]
            f = np.sinc if scipy_name == "sinc" else getattr(ss, scipy_name)
            if scipy_name == "airy":
                return ss.airy(*args)[0]
            if scipy_name == "spherical_jn":
                return ss.spherical_jn(0, *args)
            if scipy_name == "polygamma":
                args = (args[0].astype(int), args[1])
            return f(*args)

        found["SciPy"] = scipy_of
    return found


def measure(name, samples, peers):
    """The largest errors by (column, wide)."""
    rng = np.random.default_rng(7)
    worst = {}
    if name in ONE:
        exact, draws, unit, _ = ONE[name]
        wide_args = [np.concatenate([d(rng, samples // len(draws)) for d in draws])]
    else:
        exact, (first, second), _ = TWO[name]
        unit = None
        a = first(rng, samples)
        wide_args = [a, second(rng, samples) if second else _near(a, rng)]
    for wide in (False, True):
        args = [x.astype(np.float64 if wide else np.float32) for x in wide_args]
        values = [exact(*(mp.mpf(float(v)) for v in point)) for point in zip(*args)]
        least = mp.mpf(2) ** (-1022 if wide else -126)
        most = mp.mpf(2) ** (1023 if wide else 127)
        for column, f in peers.items():
            with np.errstate(all="ignore"):
                results = f(name, *args)
            units = [float(unit(float(x))) for x in args[0]] if callable(unit) else [unit] * len(values)
            errors = [error(r, v, wide, u) for r, v, u in zip(results, values, units) if least < abs(v) < most or v == 0]
            worst[column, wide] = max(errors)
    return worst


def _floats(name, count):
    """Arrays of arguments, some `count` in all: of one argument numbers at even steps through all bit patterns, or all of them."""
    chunk = 1 << 18
    if name in ONE:
        step = max(1, (1 << 32) // count)
        for start in range(0, 1 << 32, chunk * step):
            yield [np.arange(start, min(start + chunk * step, 1 << 32), step, dtype=np.int64).astype(np.uint32).view(np.float32)]
        return
    rng = np.random.default_rng(11)
    for _ in range(-(-count // chunk)):
        first = TWO[name][1][0](rng, chunk)
        yield [x.astype(np.float32) for x in (first, TWO[name][1][1](rng, chunk) if TWO[name][1][1] else _near(first, rng))]


def _within(name, x):
    """Which numbers the row is about, where a function has another one below some number."""
    rest = next((other for other in ONE if other.startswith(f"{name}, x < ")), None)
    bound = (rest or name).partition("<")[2]
    return np.full(x.shape, True) if not bound else x > float(bound) if rest else x < float(bound)


def measure_floats(name, count):
    """The largest error of Tenon's float32 at `count` inputs, against its own float64."""
    of = _peers()["Tenon"]
    worst = 0.0
    unit = ONE[name][2] if name in ONE else None
    for args in _floats(name, count):
        with np.errstate(all="ignore"):
            narrow, wide = of(name, *args), of(name, *(x.astype(np.float64) for x in args))
            kept = (np.abs(wide) < 2.0**127) & (np.abs(wide) > 2.0**-126) & _within(name, args[0])
            if not np.array_equal(np.isnan(narrow), np.isnan(wide)) or not np.isfinite(narrow[kept]).all():
                return math.inf
            scale = np.maximum(np.abs(wide), unit(args[0].astype(np.float64)) if callable(unit) else unit or 0)
        last = np.ldexp(1.0, np.maximum(np.frexp(scale[kept])[1], -125) - 24)
        if kept.any():
            worst = max(worst, float(np.max(np.abs(narrow[kept] - wide[kept]) / last)))
    return worst


def _text(x):
    return "" if x is None else "inf" if math.isinf(x) else f"{x:.2f}" if x < 100 else f"{x:.0f}" if x < 1e6 else f"{x:.1e}"


HEAD = """# Accuracy of special functions

The largest errors, in units in the last place, of `tenon.special` and of the functions of that name in PyTorch and SciPy, at the same inputs,
against mpmath. [`bench/accuracy/special.py`](../bench/accuracy/special.py) measures them and writes this page; [`accuracy.md`](accuracy.md) has the other functions.

    PYTHONPATH=build/release/python PYTHON bench/accuracy/special.py --output docs/accuracy-special.md

Promised: at most 2 of one argument (3 of `digamma` below 0), 8 of two, where the incomplete gamma functions are above 1e-5: further out in their tails errors grow. Below 0, `gammaln` and `digamma` have a zero between each two of their poles: their error is
measured in units of 1 there, where the value is smaller.
Bessel functions of the first and second kind and `airy_ai` below -2 have a zero between each two of their extrema: the unit is that of half of the
extremum, where the value is smaller. Below -2^33 the angle of `airy_ai` is right to 2^-104 of its size,
so that digits are lost as it grows; none is left below -2^70.

"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--floats", type=int, default=10_000_000, help="inputs of the last column; 4294967296 for all numbers")
    parser.add_argument("--function")
    parser.add_argument("--output")
    options = parser.parse_args()
    peers = _peers()
    lines = ["| function | " + " | ".join(f"{c} float32 | {c} float64" for c in peers) + " | many float32 |", "| --- |" + " ---: |" * (2 * len(peers) + 1)]
    for name in [options.function] if options.function else [*ONE, *TWO]:
        found = measure(name, options.samples, peers)
        lines.append(f"| {name} | " + " | ".join(f"{_text(found.get((c, False)))} | {_text(found.get((c, True)))}" for c in peers) + f" | {_text(measure_floats(name, options.floats))} |")
        print(lines[-1], file=sys.stderr, flush=True)
    about = f"{options.samples} inputs of each function. *Many float32*: Tenon's float32 at {options.floats:,} inputs, against its own float64; of one argument at even steps through all numbers."
    text = HEAD + about + "\n\n" + "\n".join(lines) + "\n"
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
