"""Operators and small programs on Tenon and on PyTorch, in one process on one pinned core; see compare.py --operators.

Each row runs the same statement on both, in alternated rounds, of which the fastest counts. A row has a bound: how many
times PyTorch's time it may take; where NumPy and SciPy are peers too, that of the fastest. A bound of `ns` is for an element,
because PyTorch's own maths differs between processors.
"""

import gc
import sys
import time
from dataclasses import dataclass, field

SETUP = """
F = t.nn.functional
x, y = t.randn(1024, 1024), t.randn(1024, 1024)
"""


@dataclass
class Row:
    name: str
    bound: float
    statement: str
    setup: str = ""
    elements: int = 0  # where the bound is in ns an element
    arrays: dict[str, str] = field(default_factory=dict)  # statements of NumPy and SciPy, of arrays in place of tensors
    judges: tuple = ()  # the peers that the bound is by; all where there are none


def rows():
    yield from _small()
    yield from _pointwise()
    yield from _layouts()
    yield from _dtypes()
    yield from _maths()
    yield from _row_operators()
    yield from _indexed()
    yield from _sort()
    yield from _windows()
    yield from _transforms()
    yield from _linear_algebra()
    yield from _special()
    yield from _statistics()
    yield from _recurrent()
    yield from _programs()


def _small():
    one = "a, b = t.ones(1), t.ones(1)"
    yield Row("add, one element", 0.15, "t.add(a, b)", one)
    yield Row("add_, one element", 0.15, "a.add_(b)", one)
    yield Row("transpose view", 0.15, "x.transpose(0, 1)")
    yield Row("x[1:3]", 0.15, "x[1:3]")
    yield Row("item", 1.0, "a.item()", one)
    yield Row("relu 64x64", 0.30, "t.relu(a)", "a = t.randn(64, 64)")
    yield Row("sum 64x64", 0.25, "a.sum()", "a = t.randn(64, 64)")
    yield Row("matmul 8x8", 0.15, "a @ a", "a = t.randn(8, 8)")
    yield Row("matmul 64x64", 0.75, "a @ a", "a = t.randn(64, 64)")


def _pointwise():
    yield Row("x + y", 1.0, "x + y")
    yield Row("x * y", 1.0, "x * y")
    yield Row("where", 1.0, "t.where(c, x, y)", "c = x > 0")
    yield Row("x > y", 1.0, "x > y")
    yield Row("clamp", 1.0, "x.clamp(-1, 1)")
    yield Row("fill_ 4M", 1.0, "a.fill_(2.0)", "a = t.empty(1 << 22)")
    for size in (4, 16):
        setup = f"a, b, o = (t.randn({size} << 20) for _ in range(3))"
        yield Row(f"add out= {size}M", 1.0, "t.add(a, b, out=o)", setup)
    yield Row("x + y 16M", 0.75, "a + b", "a, b = t.randn(1 << 24), t.randn(1 << 24)")
    yield Row("zeros 16M", 0.75, "t.zeros(1 << 24)")


def _layouts():
    yield Row("x + column", 1.0, "x + c", "c = t.randn(1024, 1)")
    yield Row("row * column", 1.0, "r * c", "r, c = t.randn(1, 1024), t.randn(1024, 1)")
    yield Row("bias of images", 1.0, "a + b", "a, b = t.randn(8, 64, 28, 28), t.randn(1, 64, 1, 1)")
    yield Row("x[:, ::2] + y", 1.0, "x[:, ::2] + b", "b = t.randn(1024, 512)")
    yield Row("flip, copied", 1.0, "x.flip(1).contiguous()")
    for size in (1000, 1024):
        a = f"a = t.randn({size}, {size})"
        yield Row(f"t().contiguous() {size}", 1.0, "a.t().contiguous()", a)
        yield Row(f"x.t() + x {size}", 1.0, "a.t() + a", a)
    yield Row("int32 t().contiguous()", 1.0, "a.t().contiguous()", "a = t.ones(1024, 1024, dtype=t.int32)")


def _dtypes():
    for dtype in ("bfloat16", "float16"):
        yield Row(f"{dtype} add", 1.1, "a + b", f"a, b = x.to(t.{dtype}), y.to(t.{dtype})")
    for dtype in ("bfloat16", "float16", "int32"):
        for dim in (0, 1):
            yield Row(f"{dtype} sum({dim})", 1.1, f"a.sum({dim})", f"a = (100 * x).to(t.{dtype})")
    yield Row("complex64 add", 1.1, "a + b", "a, b = t.complex(x, y), t.complex(y, x)")
    yield Row("complex64 mul", 1.1, "a * b", "a, b = t.complex(x, y), t.complex(y, x)")
    yield Row("complex64 sum", 1.1, "a.sum()", "a = t.complex(x, y)")
    names = ("bool", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
    for source in names:
        for target in names:
            if source != target:
                yield Row(f"{source} to {target}", 1.1, f"a.to(t.{target})", f"a = (10 * x).abs().to(t.{source})")


def _maths():
    for name, bound in (("exp", 0.6), ("log", 0.6), ("log1p", 0.6), ("sin", 0.9), ("sigmoid", 1.2), ("tanh", 1.2),
                        ("erf", 1.2)):  # fmt: skip
        yield Row(name, bound, f"t.{name}(a)", "a = x.abs()", 1 << 20)
    for name in ("gelu", "silu"):
        yield Row(name, 1.2, f"F.{name}(x)", elements=1 << 20)
    yield Row("pow", 1.9, "t.pow(a, y)", "a = x.abs()", 1 << 20)
    yield Row("x**2", 1.0, "x ** 2")
    yield Row("x**0.5", 1.0, "a ** 0.5", "a = x.abs()")
    yield Row("fmod", 1.0, "t.fmod(x, y)")
    yield Row("remainder", 1.0, "t.remainder(x, y)")


def _row_operators():
    yield Row("softmax(1)", 0.9, "t.softmax(x, 1)")
    yield Row("softmax(0)", 0.9, "t.softmax(x, 0)")
    yield Row("log_softmax(1)", 0.9, "t.log_softmax(x, 1)")
    backward = "a = x.clone().requires_grad_()\nz = t.{}(a, 1)"
    yield Row("softmax backward", 0.9, "t.autograd.grad(z, a, y, retain_graph=True)", backward.format("softmax"))
    yield Row("log_softmax backward", 0.9, "t.autograd.grad(z, a, y, retain_graph=True)", backward.format("log_softmax"))
    yield Row("softmax [65536, 16]", 0.9, "t.softmax(a, 1)", "a = t.randn(65536, 16)")
    labels = "a = x.clone().requires_grad_()\nlabels = t.randint(0, 1024, (1024,))"
    yield Row("cross_entropy step", 0.9, "F.cross_entropy(a, labels).backward()", labels)
    for name in ("var", "std"):
        yield Row(f"{name}(1)", 0.9, f"x.{name}(1)")
        yield Row(f"{name}()", 0.9, f"x.{name}()")
    weights = "w, b = t.randn(1024), t.randn(1024)"
    yield Row("layer_norm", 0.9, "F.layer_norm(x, (1024,), w, b)", weights)
    yield Row("rms_norm", 0.9, "F.rms_norm(x, (1024,), w)", weights)
    images = "a, w, b = t.randn(8, 64, 28, 28), t.randn(64), t.randn(64)"
    yield Row("batch_norm", 0.9, "F.batch_norm(a, None, None, w, b, True)", images)
    yield Row("group_norm", 0.9, "F.group_norm(a, 8, w, b)", images)
    yield Row("amax(1)", 0.9, "x.amax(1)")
    yield Row("sum(1) of [262144, 4]", 0.9, "a.sum(1)", "a = t.randn(262144, 4)")
    yield Row("sum of a flip", 0.9, "a.sum(1)", "a = x.flip(1)")


def _indexed():
    rows_ = "i = t.randint(0, 1024, (1024,))"
    yield Row("gather", 0.8, "x.gather(1, i)", "i = t.randint(0, 1024, (1024, 1024))")
    backward = "a = x.clone().requires_grad_()\nz = a.gather(1, t.randint(0, 1024, (1024, 1024)))"
    yield Row("gather backward", 0.8, "t.autograd.grad(z, a, y, retain_graph=True)", backward)
    yield Row("index_select(1)", 0.8, "x.index_select(1, i)", rows_)
    yield Row("x[i]", 0.8, "x[i]", rows_)
    yield Row("embedding rows", 0.8, "F.embedding(i, w)", "w = t.randn(50000, 64)\ni = t.randint(0, 50000, (8192,))")
    yield Row("index_add", 0.8, "x.index_add(0, i, y)", rows_)
    yield Row("x[i] = y", 0.8, "a[i] = y", rows_ + "\na = x.clone()")
    yield Row("x[mask]", 0.6, "x[m]", "m = x > 0")
    yield Row("x[mask] = 0", 0.6, "a[m] = 0", "m = x > 0\na = x.clone()")
    yield Row("nonzero", 0.8, "t.nonzero(m)", "m = x > 0")


def _sort():
    yield Row("sort rows of 1024", 0.6, "x.sort(1)")
    yield Row("sort 1M", 0.6, "a.sort()", "a = t.randn(1 << 20)")
    for shape in ("(-1, 16)", "(-1, 128)"):
        yield Row(f"sort rows, reshaped {shape}", 0.6, "a.sort(1)", f"a = x.reshape{shape}")
    yield Row("sort columns", 0.6, "x.sort(0)")
    for dtype in ("int64", "float64", "bfloat16"):
        yield Row(f"sort rows, {dtype}", 0.6, "a.sort(1)", f"a = (100 * x).to(t.{dtype})")
    yield Row("topk 10", 0.6, "x.topk(10)")
    yield Row("topk 10 of 1M", 0.6, "a.topk(10)", "a = t.randn(1 << 20)")
    yield Row("cumsum(0)", 0.8, "x.cumsum(0)")
    yield Row("cat(1)", 0.8, "t.cat((x, y), 1)")
    backward = "a = x.clone().requires_grad_()\nz = t.cat((a, a), 1)\ng = t.randn(1024, 2048)"
    yield Row("cat backward", 0.8, "t.autograd.grad(z, a, g, retain_graph=True)", backward)


def _windows():
    images = "a = t.randn(8, 32, 28, 28)\n"
    conv = "w, b = t.randn({}), t.randn({})"
    yield Row("conv2d 3x3", 0.9, "F.conv2d(a, w, b, padding=1)", images + conv.format("64, 32, 3, 3", 64))
    yield Row(
        "conv2d depthwise", 0.9, "F.conv2d(a, w, b, padding=1, groups=32)", images + conv.format("32, 1, 3, 3", 32)
    )
    yield Row("conv2d 1x1", 0.9, "F.conv2d(a, w, b)", images + conv.format("64, 32, 1, 1", 64))
    first = "a = t.randn(1, 3, 224, 224)\n" + conv.format("64, 3, 7, 7", 64)
    yield Row("conv2d 7x7, stride 2", 0.9, "F.conv2d(a, w, b, stride=2, padding=3)", first)
    transposed = images + conv.format("32, 64, 2, 2", 64)
    yield Row("conv_transpose2d", 0.9, "F.conv_transpose2d(a, w, b, stride=2)", transposed)
    yield Row("conv_transpose2d 3x3", 0.9, "F.conv_transpose2d(a, w, b, padding=1)", images + conv.format("32, 64, 3, 3", 64))
    yield Row("conv2d 64x56x56 3x3", 0.9, "F.conv2d(a, w, b, padding=1)", "a = t.randn(1, 64, 56, 56)\n" + conv.format("64, 64, 3, 3", 64))
    yield Row("conv2d 512x7x7 3x3", 0.9, "F.conv2d(a, w, b, padding=1)", "a = t.randn(1, 512, 7, 7)\n" + conv.format("512, 512, 3, 3", 512))
    last = "a = a.contiguous(memory_format=t.channels_last)\n"
    yield Row("conv2d 3x3, channels-last", 0.9, "F.conv2d(a, w, b, padding=1)", images + last + conv.format("64, 32, 3, 3", 64))
    yield Row("conv2d depthwise, channels-last", 0.9, "F.conv2d(a, w, b, padding=1, groups=32)", images + last + conv.format("32, 1, 3, 3", 32))
    yield Row("conv2d 1x1, channels-last", 0.9, "F.conv2d(a, w, b)", images + last + conv.format("64, 32, 1, 1", 64))
    yield from _convolution_gradients()
    signal = "a = t.randn(8, 32, 512)\n" + conv.format("64, 32, 3", 64)
    yield Row("conv1d", 0.9, "F.conv1d(a, w, b, padding=1)", signal)
    pooled = "a = t.randn(8, 64, 56, 56)\n"
    for kind, setup in (("", pooled), (", channels-last", pooled + last)):
        yield Row(f"max_pool2d 3, stride 2{kind}", 0.9, "F.max_pool2d(a, 3, 2)", setup)
        yield Row(f"max_pool2d 2{kind}", 0.9, "F.max_pool2d(a, 2)", setup)
        yield Row(f"avg_pool2d 2{kind}", 0.9, "F.avg_pool2d(a, 2)", setup)
        yield Row(f"avg_pool2d 3, stride 1{kind}", 0.9, "F.avg_pool2d(a, 3, 1)", setup)
        yield Row(f"adaptive_avg_pool2d 1{kind}", 0.9, "F.adaptive_avg_pool2d(a, 1)", setup)
        for mode in ("bilinear", "nearest"):
            yield Row(f"interpolate {mode} to 112{kind}", 0.9, f"F.interpolate(a, scale_factor=2, mode='{mode}')", setup)
    yield Row("max_pool2d", 0.9, "F.max_pool2d(a, 2)", "a = t.randn(8, 64, 28, 28)")
    yield Row("avg_pool2d", 0.9, "F.avg_pool2d(a, 2)", "a = t.randn(8, 64, 28, 28)")
    yield Row("interpolate bilinear", 0.9, "F.interpolate(a, scale_factor=2, mode='bilinear')", images)
    attention = "q, k, v = (t.randn(1, 8, 512, 64) for _ in range(3))"
    yield Row("attention", 0.9, "F.scaled_dot_product_attention(q, k, v, is_causal=True)", attention)


def _convolution_gradients():
    """By the input and by the weight, with the numbers that models have."""
    shapes = (
        ("3x3", "8, 32, 28, 28", "64, 32, 3, 3", 1, 1, 1),
        ("depthwise", "8, 32, 28, 28", "32, 1, 3, 3", 1, 1, 32),
        ("256x14x14 stride 2", "1, 256, 14, 14", "512, 256, 3, 3", 2, 1, 1),
        ("512x7x7 3x3", "1, 512, 7, 7", "512, 512, 3, 3", 1, 1, 1),
    )
    for name, x, w, stride, padding, groups in shapes:
        setup = (
            f"a, w = t.randn({x}), t.randn({w})\n"
            f"g = t.randn(*F.conv2d(a, w, None, {stride}, {padding}, 1, {groups}).shape)"
        )
        numbers = f"[{stride}] * 2, [{padding}] * 2, [1, 1], False, [0, 0], {groups}"
        for part, mask in (("input", [True, False, False]), ("weight", [False, True, False])):
            call = f"t.ops.aten.convolution_backward(g, a, w, None, {numbers}, {mask})"
            yield Row(f"conv2d {name}, gradient of {part}", 0.9, call, setup)


def _transforms():
    def row(name, bound, call, setup):
        module, _, rest = call.partition(".")
        return Row(name, bound, f"t.{call}", setup, arrays={"numpy": f"np.{call}", "scipy": f"scipy.{module}.{rest}"})

    for n in (16, 256, 1024, 4096, 1000, 1009, 65536, 1 << 20):
        yield row(f"fft {n}", 0.7 if n <= 4096 and n % 16 == 0 else 1.0, "fft.fft(a)", f"a = t.randn({n}, dtype=t.complex64)")
    yield row("rfft 256x1024", 1.0, "fft.rfft(a)", "a = t.randn(256, 1024)")
    yield row("fft2 512x512", 1.0, "fft.fft2(a)", "a = t.randn(512, 512, dtype=t.complex64)")
    signal = "a, w = t.randn(16000), t.hann_window(400)"
    yield Row("stft of 1 s, 400/160", 1.0, "t.stft(a, 400, 160, window=w, return_complex=True)", signal)


def _linear_algebra():
    """From order 512 on, and for spectra from 64 on, the bound is by NumPy: the factor to PyTorch's MKL is the ratio that is printed."""
    calls = {"solve": "linalg.solve(a, b)", "cholesky": "linalg.cholesky(p)", "inv": "linalg.inv(a)", "det": "linalg.det(a)", "qr": "linalg.qr(a)",
             "eigh": "linalg.eigh(p)", "svd": "linalg.svd(a)"}  # fmt: skip
    sizes = (("4", "4, 4", 0.3), ("1000 of 4", "1000, 4, 4", 0.3), ("1000 of 16", "1000, 16, 16", 0.3), ("64", "64, 64", 0.8), ("512", "512, 512", 1.0),
             ("1024", "1024, 1024", 1.0))  # fmt: skip
    for label, shape, bound in sizes:
        for name, call in calls.items():
            spectrum = name in ("eigh", "svd")
            setup = f"a = t.randn({shape})\nb = t.randn({shape.rsplit(',', 1)[0]}, 4)\np = a @ a.mT + t.eye(a.shape[-1])"
            judges = ("numpy",) if bound == 1.0 or (spectrum and label == "64") else ()
            yield Row(f"{name}, {label}", 1.0 if judges else bound, f"t.{call}", setup, arrays={"numpy": f"np.{call}"}, judges=judges)


#: Special functions, as PyTorch and SciPy call them, with the numbers that they are asked for.
_SPECIAL = (
    ("lgamma(a)", "gammaln(a)"), ("digamma(a)", "digamma(a)"), ("polygamma(1, a)", "polygamma(1, a)"), ("special.multigammaln(a + 2, 3)", ""),
    ("special.gammainc(a, b)", "gammainc(a, b)"), ("special.gammaincc(a, b)", "gammaincc(a, b)"), ("erf(a)", "erf(a)"), ("erfc(a)", "erfc(a)"),
    ("erfinv(u)", "erfinv(u)"), ("special.erfcx(a)", "erfcx(a)"), ("special.ndtr(a)", "ndtr(a)"), ("special.ndtri(u)", "ndtri(u)"),
    ("special.log_ndtr(a)", "log_ndtr(a)"), ("i0(a)", "i0(a)"), ("special.i0e(a)", "i0e(a)"), ("special.i1(a)", "i1(a)"), ("special.i1e(a)", "i1e(a)"),
    ("special.bessel_j0(a)", "j0(a)"), ("special.bessel_j1(a)", "j1(a)"), ("special.bessel_y0(a)", "y0(a)"), ("special.bessel_y1(a)", "y1(a)"),
    ("special.modified_bessel_k0(a)", "k0(a)"), ("special.modified_bessel_k1(a)", "k1(a)"), ("special.scaled_modified_bessel_k0(a)", "k0e(a)"),
    ("special.scaled_modified_bessel_k1(a)", "k1e(a)"), ("special.airy_ai(a)", ""), ("special.spherical_bessel_j0(a)", "spherical_jn(0, a)"),
    ("special.zeta(b + 1, a)", "zeta(b + 1, a)"), ("special.xlog1py(a, b)", "xlog1py(a, b)"), ("xlogy(a, b)", "xlogy(a, b)"), ("special.entr(a)", "entr(a)"),
    ("logit(u)", "logit(u)"), ("sinc(a)", ""),
)  # fmt: skip


def _special():
    setup = "a, b, u = t.rand(1 << 14) * 6 + 0.01, t.rand(1 << 14) * 6 + 0.01, t.rand(1 << 14) * 0.98 + 0.01"
    for call, scipy in _SPECIAL:
        arrays = {"scipy": f"scipy.special.{scipy}"} if scipy else {}
        yield Row(f"special: {call.removeprefix('special.')}", 0.8, f"t.{call}", setup, arrays=arrays)


def _statistics():
    """Of a million numbers, or of a matrix of as many."""
    setup = "a, k = t.randn(1 << 20), t.randint(0, 1000, (1 << 20,))\nedges, p, q = t.sort(t.randn(1024))[0], t.randn(1024, 8), t.randn(1024, 8)"
    for name, call, numpy in (
        ("unique", "unique(a)", "unique(a)"), ("unique of integers", "unique(k)", "unique(k)"), ("median", "median(a)", ""),
        ("median of rows", "median(x, 1)", ""), ("quantile", "quantile(a, 0.3)", "quantile(a, 0.3)"), ("histc", "histc(a, 100, -4, 4)", ""),
        ("searchsorted", "searchsorted(edges, a)", "searchsorted(edges, a)"), ("cdist 1024x1024", "cdist(p, q)", ""),
    ):  # fmt: skip
        yield Row(name, 0.7, f"t.{call}", setup, arrays={"numpy": f"np.{numpy}"} if numpy else {})
    yield Row("sort of values alone", 1.0, "t.msort(a)", setup, arrays={"numpy": "np.sort(a)"})
    yield Row("msort of columns", 1.0, "t.msort(x)", setup, arrays={"numpy": "np.sort(x, 0)"})


def _recurrent():
    for layer in ("LSTM", "GRU"):
        for name, bound, shape in (("one step", 0.3, (1, 1)), ("100 steps", 0.65, (100, 1)), ("100 steps, batch 32", 0.8, (100, 32))):
            setup = f"m, a = t.nn.{layer}(128, 128), t.randn(*{shape}, 128)\ndef step():\n    with t.no_grad():\n        m(a)"
            yield Row(f"{layer}, {name}", bound, "step()", setup)
        setup = f"m, a = t.nn.{layer}(128, 128), t.randn(100, 1, 128)\ndef step():\n    m.zero_grad()\n    m(a)[0].sum().backward()"
        yield Row(f"{layer}, 100 steps with backward", 0.65, "step()", setup)


_MODELS = """
import pathlib
sys.path.insert(0, str(pathlib.Path({tests!r})))
from programs import load
def trainer(model, loss, lr=0.01):
    optimizer = t.optim.SGD(model.parameters(), lr=lr)
    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    return step
"""


def _programs():
    import pathlib

    common = _MODELS.format(tests=str(pathlib.Path(__file__).parents[1] / "tests" / "programs"))

    def program(name, bound, setup, statement="step()"):
        return Row(name, bound, statement, common + setup)

    for batch, bound in ((1, 0.07), (64, 0.4)):
        yield program(
            f"MLP 64-128-128-10 step, batch {batch}",
            bound,
            "model = t.nn.Sequential(t.nn.Linear(64, 128), t.nn.ReLU(), t.nn.Linear(128, 128), t.nn.ReLU(),"
            f" t.nn.Linear(128, 10))\na, labels = t.randn({batch}, 64), t.randint(0, 10, ({batch},))\n"
            "step = trainer(model, lambda: F.cross_entropy(model(a), labels))",
        )
    yield program(
        "convnet step, batch 32",
        0.9,
        "model = load('convnet', t).ConvNet()\na, labels = t.randn(32, 1, 8, 8), t.randint(0, 10, (32,))\n"
        "step = trainer(model, lambda: F.cross_entropy(model(a), labels))",
    )
    yield program(
        "transformer block 1x32x64",
        0.9,
        "model = t.nn.TransformerEncoderLayer(64, 4, 256, 0.0, batch_first=True)\na = t.randn(1, 32, 64)",
        "model(a)",
    )
    yield program(
        "ResNet-18 forward and backward",
        0.9,
        "model = load('resnet', t).ResNet()\na, labels = t.randn(1, 3, 224, 224), t.tensor([3])",
        "F.cross_entropy(model(a), labels).backward()",
    )
    yield program(
        "mixture of experts step",
        0.9,
        "m = load('moe', t)\nmodel = m.Regressor()\na, b = m.points(256)\n"
        "step = trainer(model, lambda: m.loss_of(model, a, b))",
    )
    yield program(
        "GPT training step",
        0.9,
        "m = load('gpt', t)\nmodel = m.GPT()\ntokens = t.randint(0, 27, (64, 24))\n"
        "step = trainer(model, lambda: m.loss_of(model, tokens))",
    )
    yield program(
        "GPT sampled token",
        0.3,
        "m = load('gpt', t)\nmodel = m.GPT()\ntoken = t.tensor([[1]])\n"
        "def sample():\n    caches = model.new_caches(1)\n    with t.inference_mode():\n        for _ in range(20):\n"
        "            next = t.multinomial(model(token, caches)[:, -1].softmax(-1), 1)",
        "sample()",
    )


def prepare(row, framework):
    """A function that runs the row's statement `n` times; raises what the framework raises for it."""
    scope = {"t": framework, "sys": sys}
    framework.manual_seed(0)
    exec(SETUP + row.setup, scope)
    exec(f"def run(n):\n    for _ in range(n):\n        {row.statement}", scope)
    scope["run"](1)
    return scope["run"]


def prepare_arrays(row, framework, peer):
    """The same for NumPy or SciPy: tensors of the setup are arrays."""
    import numpy as np

    scope = {"t": framework, "sys": sys, "np": np}
    if peer == "scipy":
        import scipy
        import scipy.fft
        import scipy.special

        scope["scipy"] = scipy
    framework.manual_seed(0)
    exec(SETUP + row.setup, scope)
    scope.update({k: v.numpy() for k, v in scope.items() if isinstance(v, framework.Tensor)})
    exec(f"def run(n):\n    for _ in range(n):\n        {row.arrays[peer]}", scope)
    scope["run"](1)
    return scope["run"]


def once(run, seconds):
    """The fewest nanoseconds of one call, from as many calls as fit into `seconds`, two at least."""
    count, best, end = 1, float("inf"), time.perf_counter() + seconds
    for _ in range(100_000):
        start = time.perf_counter_ns()
        run(count)
        elapsed = time.perf_counter_ns() - start
        best = min(best, elapsed / count)
        if time.perf_counter() > end:
            break
        if elapsed < 1e5:
            count *= 4
    return best


def compare(pattern, rounds, frameworks):
    """Prints each row that matches; returns them as dictionaries."""
    names = [*frameworks, *dict.fromkeys(peer for row in rows() if pattern.search(row.name) for peer in row.arrays)]
    print(f"{'':36}{'bound':>8}" + "".join(f"{n + ' us':>13}" for n in names) + f"{'ratio':>8}")
    table = []
    for row in rows():
        if not pattern.search(row.name):
            continue
        best, problem = {}, ""
        runs = {}
        for name, framework in frameworks.items():
            try:
                runs[name] = prepare(row, framework)
            except (AttributeError, ImportError, NotImplementedError, RuntimeError, TypeError) as error:
                problem = f"  {name}: {type(error).__name__}: {str(error).splitlines()[0][:70]}"
        for peer in row.arrays:
            try:
                runs[peer] = prepare_arrays(row, frameworks["tenon"], peer)
            except ImportError as error:
                problem = f"  {peer}: {error}"
        gc.collect()
        for _ in range(rounds):
            for name, run in runs.items():
                best[name] = min(best.get(name, float("inf")), once(run, 0.04))
        peers = [best[name] for name in best if name != "tenon"]
        ratio = best["tenon"] / min(peers) if "tenon" in best and peers else None
        result = {"row": row.name, "bound": row.bound, "elements": row.elements, "ratio": ratio, **best}
        if "tenon" in best:
            judges = [best[name] for name in row.judges if name in best]
            measured = best["tenon"] / row.elements if row.elements else best["tenon"] / min(judges) if judges else ratio
            result["within"] = None if measured is None else measured <= row.bound
        table.append(result)
        unit = "ns" if row.elements else ""
        cells = "".join(f"{best[n] / 1e3:>13,.2f}" if n in best else f"{'-':>13}" for n in names)
        mark = {True: "", False: "  above", None: ""}[result.get("within")]
        print(
            f"{row.name:36}{f'{row.bound:.2f}{unit}':>8}{cells}"
            + (f"{ratio:>8.2f}" if ratio is not None else f"{'-':>8}")
            + mark + problem,
            flush=True,
        )
    judged = [r for r in table if r.get("within") is not None]
    within = sum(r["within"] for r in judged)
    print(f"{within} of {len(judged)} rows within their bound; {len(table) - len(judged)} without one or not run")
    return table
