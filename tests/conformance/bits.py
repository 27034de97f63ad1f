"""The bits of every operator's results, of the same values in several layouts, with one and two threads, strict or not.

`measure()` calls one row's samples in all of these ways in this process, and says which differ from the first; bits_test.py
runs it once for each instruction set. NaNs count as one value, since the sign of a NaN says nothing.
"""

import functools
import hashlib
import json
import sys
from math import prod

import numpy as np

import tenon
from tenon.conformance import check, table
from tenon.conformance.dtypes import BY_NAME
from tenon.conformance.families import matmul, recurrent, row_of
from tenon.conformance.library import TENON
from tenon.conformance.samples import Maker, Sample, Spec, geometry, sample

LAYOUTS = ("contiguous", "transposed", "negative", "sliced", "channels_last")
#: (dtype, kind); "large" samples have more elements than one thread takes.
CELLS = (("float32", "plain"), ("float32", "special"), ("float32", "large"), ("bfloat16", "plain"), ("float64", "plain"),
         ("complex64", "plain"), ("int32", "plain"), ("int32", "large"), ("bool", "plain"), ("uint8", "plain"),
         ("uint8", "large"))  # fmt: skip
#: Operators that are left out, and why.
UNLIKE = {
    **dict.fromkeys(("as_strided", "as_strided_scatter"), "it is told the strides"),
    **dict.fromkeys(("_igamma_shape_gradient", "_special_zeta_exponent_gradient", "_standard_gamma_second_gradient"),
                    "it has no samples of its own"),
    "resize_": "it keeps elements in the order of the storage",
    **dict.fromkeys(("pin_memory", "_pin_memory"), "it copies elements to memory that a device gives"),
    **dict.fromkeys(("empty.memory_format", "empty_like", "empty_strided", "new_empty", "new_empty_strided"),
                    "its elements are not initialised"),
}  # fmt: skip
#: Views that some strides do not allow: an error, or the same bits.
VIEWS = {"_reshape_alias", "_unsafe_view", "view", "view_as_complex"}


class LargeMaker(Maker):
    """Makes samples of some 40,000 elements, as far as a row asks for shapes and sizes and does not fix them."""

    def __init__(self, *args, factor):
        super().__init__(*args)
        self.factor, self.scaled, self.elements = factor, 1, 0

    def shapes(self):
        return [(181, 199), (3, 41, 307)]

    def pairs(self):
        return [((181, 199), (181, 199)), ((3, 41, 307), (41, 1))]

    def size(self, n):
        self.scaled *= n * self.factor
        return n * self.factor

    def tensor(self, shape, *args, **kwargs):
        self.elements = max(self.elements, prod(shape))
        if self.elements > 1 << 18:
            raise OverflowError
        return super().tensor(shape, *args, **kwargs)

    def samples(self, sampler):
        found = []
        for s in sampler(self):
            if max(self.scaled, self.elements) > 1 << 18:
                raise OverflowError
            if self.elements > 1 << 15:
                found.append(s)
            self.made = self.elements = 0
            self.scaled = 1
            if len(found) == 2:
                break
        return found


def _products(*shapes):
    return lambda m: [sample(*(m.tensor(list(shape)) for shape in shapes))]


def _sizes(*args):
    """A factory's sample; "dtype" stands for the cell's."""
    return lambda m: [sample(*args, dtype=m.dtype.name)]


def _recurrence(gradients):
    """LSTM, 20 steps of 40 sequences."""

    def make(m):
        grads = [m.tensor([20, 40, 60]), m.tensor([40, 60]), m.tensor([40, 60])]
        operands = [m.tensor([40, 60]), m.tensor([40, 60]), m.tensor([240, 60]), m.tensor([240]), None, None]
        if not gradients:
            return [sample(m.tensor([20, 40, 240]), *operands, recurrent.LSTM, True, True)]
        kept = m.tensor([800, 300], dtype="float64" if m.dtype.name == "float64" else "float32")
        return [sample(*grads, *operands, m.tensor([20, 40, 60]), kept, recurrent.LSTM, True)]

    return make


def _int8_product(m):
    at = m.rng.integers(-128, 128, 300)
    packed = matmul.packed_bytes(m.rng.integers(-128, 128, (1000, 300)) - at, at)
    spec = m.tensor(packed.shape, dtype="int8", layout="contiguous")
    spec.flat[...] = packed.reshape(-1)
    return [sample(m.tensor([rows, 1000]), spec, 300, m.tensor([rows])) for rows in (40, 130)]


def _grid_gradient(m):
    grad, image, grid = m.tensor([2, 5, 90, 81]), m.tensor([2, 5, 30, 40]), m.tensor([2, 90, 81, 2], domain=(-1.3, 1.3))
    return [sample(grad, image, grid, k, k, False) for k in range(3)]


#: Large samples of rows that fix the shapes of their own.
OWN = {
    "mm": _products((200, 90), (90, 210)),
    "matmul": _products((3, 70, 60), (60, 210)),
    "bmm": _products((5, 70, 60), (5, 60, 110)),
    "addmm": _products((210,), (200, 90), (90, 210)),
    "addbmm": _products((70, 110), (5, 70, 60), (5, 60, 110)),
    "mv": _products((300, 170), (170,)),
    "addmv": _products((300,), (300, 170), (170,)),
    "dot": _products((50000,), (50000,)),
    "vdot": _products((50000,), (50000,)),
    "outer": _products((210,), (190,)),
    "addr": _products((210, 190), (210,), (190,)),
    "einsum": lambda m: [sample("bij,bkj->bik", [m.tensor([4, 100, 90]), m.tensor([4, 110, 90])])],
    "tensordot": lambda m: [sample(m.tensor([20, 30, 70]), m.tensor([70, 30, 40]), [1, 2], [1, 0])],
    "linspace": _sizes(-1, 3, 50001),
    "arange": _sizes(50000),
    "rand": _sizes([250, 200]),
    "randn": _sizes([250, 200]),
    "randint": _sizes(1000, [250, 200]),
    "randperm": _sizes(50000),
    "ones": _sizes([250, 200]),
    "full": _sizes([250, 200], 3),
    "eye": _sizes(220),
    "multinomial": lambda m: [sample(m.tensor([500, 80], domain=(0.0, 1.0)), 30)],
    "gather_backward": lambda m: [sample(m.tensor([600, 80]), [40, 80], 0, m.positions([600, 80], 40))],
    "embedding": lambda m: [sample(m.tensor([90, 70]), m.positions([30, 40], 90))],
    "embedding_dense_backward": lambda m: [sample(m.tensor([30, 40, 70]), m.positions([30, 40], 90), 90, -1, False)],
    "nll_loss_forward": lambda m: [sample(m.tensor([800, 50]), m.positions([800], 50), m.tensor([50]), 1, -100)],
    "repeat_interleave.Tensor": lambda m: [sample(m.positions([40000], 4))],
    "grid_sampler_2d": lambda m: [sample(m.tensor([2, 5, 30, 40]), m.tensor([2, 90, 81, 2], domain=(-1.3, 1.3)), k % 3, k % 2, False) for k in range(3)],
    "grid_sampler_3d": lambda m: [sample(m.tensor([1, 3, 9, 11, 12]), m.tensor([1, 20, 21, 23, 3], domain=(-1.3, 1.3)), 0, k, True) for k in range(3)],
    "_grid_sampler_input_backward": _grid_gradient,
    "_grid_sampler_slopes": _grid_gradient,
    "_packed_product": lambda m: list(matmul.packed_product_samples(m, ((5, 700, 210), (40, 300, 210)))),
    "_int8_pack": lambda m: [sample(m.tensor([1000, 300]), m.tensor([300]))],
    "_int8_product": _int8_product,
    "_recurrence": _recurrence(False),
    "_recurrence_backward": _recurrence(True),
    "sum_to_size": lambda m: [sample(m.tensor([300, 170]), [1, 170])],
    "cdist": lambda m: [sample(m.tensor([200, 30]), m.tensor([210, 30]), p, 2) for p in (1.0, 3.0)],
    "_cdist_forward": lambda m: [sample(m.tensor([200, 30]), m.tensor([210, 30]), 2.0, None)],
    "_euclidean_distances": _products((200, 30), (210, 30)),
    "combinations": lambda m: [sample(m.tensor([300]), 2, False)],
    "corrcoef": _products((60, 700)),
    "cov": _products((60, 700)),
    "diagflat": _products((250,)),
    "inner": _products((200, 90), (210, 90)),
    "kron": _products((30, 40), (6, 9)),
    "pdist": lambda m: [sample(m.tensor([300, 9]), 1.0)],
    "_pdist_forward": lambda m: [sample(m.tensor([300, 9]), 2.0)],
    "_fft_r2c": lambda m: [sample(m.tensor([60, 700]), [1], 0, True), sample(m.tensor([64, 640]), [0, 1], 1, False)],
    "fft_fft": lambda m: [sample(m.tensor([60, 709])), sample(m.tensor([2, 1 << 17]))],
    "fft_ifft": lambda m: [sample(m.tensor([90, 512]), None, 0)],
    "fft_irfft": lambda m: [sample(m.tensor([60, 700]), 1001)],
    "fft_rfft": lambda m: [sample(m.tensor([40, 1024])), sample(m.tensor([3, 30011]))],
    "stft.center": lambda m: [sample(m.tensor([4, 9000]), 400, 160, 300, m.tensor([300]), True, "reflect", False, True, True)],
}  # fmt: skip


def large_samples(op, row, dtype):
    """Samples that several threads share, of the largest factor that memory has room for."""
    own = check.maker(op, dtype, "plain", row)
    if op.full_name in OWN:
        return OWN[op.full_name](own)
    for factor in (1500, 400, 100, 30, 10):
        maker = LargeMaker(own.dtype.name, "plain", own.rng, own.domain, own.second.name, own.extremes, factor=factor)
        try:
            return maker.samples(row.samples)
        except OverflowError:
            continue
    return []


def samples_of(op, row, dtype, kind):
    if row.why_absent(dtype, "plain" if kind == "large" else kind):
        return []
    found = large_samples(op, row, dtype) if kind == "large" else check.samples_of(op, row, dtype, kind)[:6]
    return [s for s in found if not row.refuses(s)]


def laid_out(s, layout):
    """The same values in another layout; None where no tensor has it."""
    moved = []

    def relay(spec):
        if layout == "channels_last" and spec.dim not in (4, 5) or spec.dim == 0:
            return spec
        strides, offset, count = geometry(layout, spec.shape)
        moved.append(spec)
        flat = np.zeros(count, spec.flat.dtype)
        new = Spec(flat, spec.dtype, spec.shape, strides, offset)
        new.array()[...] = spec.array()
        return new

    args, kwargs = s.map(relay)
    return Sample(args, kwargs) if moved else None


def bits(values):
    """A digest of tensors: dtypes, shapes, elements in order."""
    digest = hashlib.md5(usedforsecurity=False)
    for v in values if isinstance(values, (list, tuple)) else [values]:
        if isinstance(v, (list, tuple)):
            digest.update(bits(v).encode())
        elif isinstance(v, tenon.Tensor):
            name = TENON.name_of(v.dtype)
            a = v.detach().contiguous()
            a = (a.to(tenon.float32) if name == "bfloat16" else a).numpy()
            if a.dtype.kind in "fc":
                parts = a.view(a.real.dtype) if a.dtype.kind == "c" and a.ndim else np.atleast_1d(a).view(a.real.dtype)
                a = np.where(np.isnan(parts), np.array(np.nan, parts.dtype), parts)
            digest.update(f"{name}{list(v.shape)}".encode() + np.ascontiguousarray(a).tobytes())
        else:
            digest.update(repr(v).encode())
    return digest.hexdigest()


def outcome(op, row, s):
    """The digest of what a call returns or writes, or the error's type."""
    args, kwargs = TENON.arguments(s)
    for generator in (tenon.default_generator, *(v for v in kwargs.values() if isinstance(v, tenon.Generator))):
        generator.manual_seed(3)
    try:
        got = TENON.function(op, row)(*args, **kwargs)
    except check.ERRORS as e:
        return type(e).__name__
    return bits([args[i] for i in row.writes if i < len(args)] if row.writes else got)


#: (m, k, n) of products of 512^3 multiplications and more: whole blocks, and sizes that cut every block.
PRODUCTS = ((512, 512, 512), (397, 771, 601), (33, 4099, 1021), (2053, 259, 311))


def large_products(dtype):
    """(name, call) of products whose operands are stored either way, and of one that scales what it adds to."""
    rng = np.random.default_rng(0)
    for m, k, n in PRODUCTS:
        a, b, c = (tenon.from_numpy(rng.standard_normal(shape)).to(dtype) for shape in ((m, k), (k, n), (m, n)))
        at, bt = a.t().contiguous().t(), b.t().contiguous().t()
        for name, x, y in (("AB", a, b), ("A(B^T)^T", a, bt), ("(A^T)^TB", at, b)):
            yield f"mm {dtype} {m}x{k}x{n} {name}", functools.partial(tenon.mm, x, y)
        yield f"addmm {dtype} {m}x{k}x{n}", functools.partial(tenon.addmm, c, a, b, beta=0.5, alpha=1.5)


def measure_products():
    """({case: digests with one and two threads, strict or not}), of float32, float64 and bfloat16."""
    found = {}
    for dtype in (tenon.float32, tenon.float64, tenon.bfloat16):
        for name, call in large_products(dtype):
            found[name] = []
            for threads, strict in ((1, False), (2, False), (2, True)):
                tenon.set_num_threads(threads)
                tenon.set_strict(strict)
                found[name].append(bits(call()))
    return found


def ways(s, kind):
    """(what differs, sample, threads, strict) beside the first call."""
    yield "strict", s, 1, True
    if kind == "large":
        yield "2 threads", s, 2, False
        yield "2 threads, strict", s, 2, True
    for layout in LAYOUTS[1:]:
        other = laid_out(s, layout)
        if other:
            yield layout, other, 2, False


def measure(names=None):
    """({case: digest}, [differences], {operators that "large" samples were made for})."""
    digests, wrong, large = {}, [], set()
    for name, entry in table.entries().items():
        op, row = entry.main, row_of(entry)
        if names and name not in names or name in UNLIKE or row is None or row.rebinds or TENON.function(op, row) is None:
            continue
        if not row.reference and not row.properties:
            continue
        for dtype, kind in CELLS:
            if kind == "large" and name in large:
                continue  # one dtype will do
            for i, s in enumerate(samples_of(op, row, dtype, kind)):
                tenon.set_num_threads(1)
                tenon.set_strict(False)
                first = laid_out(s, "contiguous") or s
                want = outcome(op, row, first)
                if len(want) != 32:
                    continue  # an error: other tests say whether it is right
                digests[f"{name} {dtype} {kind} {i}"] = want
                if kind == "large":
                    large.add(name)
                for what, other, threads, strict in ways(first, kind):
                    tenon.set_num_threads(threads)
                    tenon.set_strict(strict)
                    got = outcome(op, row, other)
                    if got != want and not (name in VIEWS and got == "ShapeError"):
                        wrong.append(f"{name} {dtype} {kind} ({s}): {what}{'' if len(got) == 32 else ' raises ' + got}")
    return digests, wrong, large


def main(names):
    digests, wrong, large = measure(names)
    json.dump([tenon.cpu_target_name(), digests, wrong, sorted(large), measure_products()], sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
