"""Convolutions beside what defines their bits, Tenon's own matrix product of the unfolded input; their memory, copies and
errors. Values, strides, dtypes and derivatives are in tests/conformance."""

import subprocess
import sys
from itertools import product

import numpy as np
import pytest

import tenon
import tenon.nn.functional as F


@pytest.fixture(autouse=True)
def strict():
    """mm by Tenon's own kernel."""
    tenon.set_strict(True)
    yield
    tenon.set_strict(False)


def unfolded(x, kernel, stride, padding, dilation):
    """[N, C, *] -> [C * taps, N * outputs], and the outputs' shape: channel, then tap; batch entry, then output."""
    padded = tenon.zeros([*x.shape[:2], *(n + 2 * p for n, p in zip(x.shape[2:], padding))], dtype=x.dtype)
    padded[(slice(None), slice(None), *(slice(p, p + n) for n, p in zip(x.shape[2:], padding)))] = x
    sizes = [
        (n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(padded.shape[2:], kernel, stride, dilation)
    ]
    taps = []
    for tap in product(*map(range, kernel)):
        window = tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, s, n in zip(tap, dilation, stride, sizes))
        taps.append(padded[(slice(None), slice(None), *window)])
    rows = tenon.stack(taps, 2)  # N, C, taps, *
    order = [1, 2, 0, *range(3, rows.dim())]
    return rows.permute(order).reshape(x.shape[1] * len(taps), -1), sizes


def by_products(x, w, bias, stride, padding, dilation, groups):
    """What convolution is defined to be."""
    outs, ins = w.shape[0] // groups, w.shape[1]
    results = []
    for g in range(groups):
        rows, sizes = unfolded(x[:, g * ins : (g + 1) * ins], w.shape[2:], stride, padding, dilation)
        out = tenon.mm(w[g * outs : (g + 1) * outs].reshape(outs, -1), rows)
        results.append(out.reshape(outs, x.shape[0], *sizes).transpose(0, 1))
    out = tenon.cat(results, 1)
    return out if bias is None else out + bias.reshape(-1, *[1] * len(sizes))


#: (batch, in, out, groups, size, kernel, stride, padding, dilation)
CASES = [
    (2, 3, 4, 1, [9], [3], [1], [1], [1]),
    (1, 2, 3, 1, [1000], [5], [3], [2], [2]),
    (2, 40, 7, 1, [8, 9], [3, 3], [1, 1], [1, 1], [1, 1]),  # more than one block of sums
    (3, 8, 70, 1, [5, 7], [3, 2], [2, 1], [1, 0], [1, 2]),
    (1, 3, 8, 1, [33, 31], [7, 7], [2, 2], [3, 3], [1, 1]),
    (2, 6, 4, 2, [6, 6], [1, 1], [2, 2], [0, 0], [1, 1]),
    (2, 5, 10, 5, [9, 20], [3, 3], [1, 1], [1, 1], [1, 1]),  # each channel by itself
    (1, 5, 5, 5, [20, 20], [17, 17], [1, 1], [8, 8], [1, 1]),
    (2, 3, 3, 3, [21, 19], [3, 3], [1, 1], [2, 0], [1, 1]),
    (2, 3, 3, 3, [21, 39], [3, 3], [2, 2], [1, 1], [1, 1]),
    (1, 3, 6, 3, [13, 9], [3, 3], [1, 1], [2, 2], [2, 2]),
    (1, 2, 3, 1, [700], [600], [1], [0], [1]),
    (1, 2, 3, 1, [4, 5, 6], [2, 3, 2], [1, 2, 1], [1, 1, 0], [1, 1, 2]),
    (1, 1, 1, 1, [3, 3], [2, 2], [1, 1], [100, 100], [150, 150]),  # mostly padding
    # Vectors of rows: past whole ones, several blocks of sums, lines of any length.
    (2, 40, 30, 1, [8, 9], [3, 3], [1, 1], [1, 1], [1, 1]),
    (1, 70, 48, 1, [3, 64], [3, 2], [1, 2], [1, 0], [1, 1]),
    (2, 6, 64, 2, [200], [5], [1], [2], [1]),
    (1, 2, 16, 1, [3, 6, 7], [2, 3, 2], [1, 1, 1], [1, 1, 0], [1, 1, 2]),
]


@pytest.mark.parametrize("dtype", [tenon.float32, tenon.float64, tenon.int64])
@pytest.mark.parametrize("case", CASES)
def test_the_bits_are_those_of_a_product_with_the_unfolded_input(case, dtype):
    n, ins, outs, groups, size, kernel, stride, padding, dilation = case
    tenon.manual_seed(3)
    integral = dtype is tenon.int64
    make = (lambda *s: tenon.randint(-9, 9, s)) if integral else (lambda *s: tenon.randn(*s, dtype=dtype))
    x, w, b = make(n, ins, *size), make(outs, ins // groups, *kernel), make(outs)
    got = tenon.convolution(x, w, b, stride, padding, dilation, False, [0], groups)
    wanted = by_products(x, w, b, stride, padding, dilation, groups)
    assert got.shape == wanted.shape
    assert tenon.equal(got, wanted)


@pytest.mark.parametrize("case", CASES)
def test_the_weight_s_gradient_has_the_bits_of_a_product_over_positions(case):
    n, ins, outs, groups, size, kernel, stride, padding, dilation = case
    tenon.manual_seed(4)
    x, w = tenon.randn(n, ins, *size), tenon.randn(outs, ins // groups, *kernel, requires_grad=True)
    out = tenon.convolution(x, w, None, stride, padding, dilation, False, [0], groups)
    grad = tenon.randn(*out.shape)
    out.backward(grad)
    step, each = ins // groups, outs // groups
    for g in range(groups):
        rows, _ = unfolded(x[:, g * step : (g + 1) * step], kernel, stride, padding, dilation)
        grads = grad[:, g * each : (g + 1) * each].transpose(0, 1).reshape(each, -1)
        wanted = tenon.mm(grads, rows.t()).reshape(each, step, *kernel)
        assert tenon.equal(w.grad[g * each : (g + 1) * each], wanted)


@pytest.mark.parametrize("outs", [6, 31])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_a_transposed_one_sums_the_taps_that_meet_an_input(stride, outs):
    """Every `stride`-th result is an ordinary convolution with every `stride`-th tap, in the taps' order."""
    tenon.manual_seed(5)
    x, w = tenon.randn(2, 40, 13), tenon.randn(40, outs, 7)
    got = tenon.conv_transpose1d(x, w, stride=stride)
    size = got.shape[-1]
    wanted = tenon.zeros(2, outs, size)
    for first in range(stride):
        count = (size - first + stride - 1) // stride
        taps = list(range(first, 7, stride))
        rows = []
        for t in taps:
            row = tenon.zeros(2, 40, count)
            for o in range(count):
                i = (first + o * stride - t) // stride
                if 0 <= i < 13:
                    row[:, :, o] = x[:, :, i]
            rows.append(row)
        unfold = tenon.stack(rows, 2).permute(1, 2, 0, 3).reshape(40 * len(taps), -1)
        weight = tenon.stack([w[:, :, t] for t in taps], 1).permute(2, 0, 1).reshape(outs, -1)
        wanted[:, :, first::stride] = tenon.mm(weight, unfold).reshape(outs, 2, count).transpose(0, 1)
    assert tenon.equal(got, wanted)


@pytest.mark.parametrize("outs", [5, 32])
@pytest.mark.parametrize("dtype", [tenon.float16, tenon.bfloat16])
def test_half_types_round_once(dtype, outs):
    tenon.manual_seed(6)
    x, w, b = (tenon.randn(*s).to(dtype) for s in ([2, 40, 6, 6], [outs, 40, 3, 3], [outs]))
    got = tenon.conv2d(x, w, b, padding=1)
    assert tenon.equal(got, tenon.conv2d(x.float(), w.float(), b.float(), padding=1).to(dtype))


@pytest.mark.parametrize(
    "transposed, channels, weight, numbers",
    [
        (False, 16, (24, 16, 3, 3), ([1, 1], [1, 1], [1, 1], 1)),
        (False, 16, (24, 16, 1, 1), ([1, 1], [0, 0], [1, 1], 1)),
        (False, 16, (47, 16, 3, 3), ([1, 1], [1, 1], [1, 1], 1)),  # vectors of rows
        (True, 36, (36, 30, 3, 3), ([1, 1], [1, 1], [1, 1], 1)),
        (True, 36, (36, 32, 3, 3), ([2, 2], [1, 1], [1, 1], 1)),
        (False, 32, (20, 16, 1, 1), ([1, 1], [0, 0], [1, 1], 2)),
        (False, 21, (21, 1, 3, 3), ([1, 1], [1, 1], [1, 1], 21)),  # each channel by itself, past whole vectors
        (False, 16, (16, 1, 5, 4), ([2, 3], [4, 2], [3, 1], 16)),
        (False, 32, (32, 1, 3, 3), ([1, 1], [2, 2], [1, 1], 32)),  # neighbours share the inputs they read
        (False, 32, (32, 1, 5, 5), ([1, 1], [0, 1], [2, 1], 32)),
        (False, 32, (32, 1, 3, 3), ([1, 1], [1, 7], [1, 1], 32)),  # and do not where whole runs are padding
        (True, 16, (16, 10, 2, 2), ([2, 2], [0, 0], [1, 1], 1)),
        (True, 16, (16, 1, 3, 3), ([2, 1], [1, 1], [1, 2], 16)),
        (True, 16, (16, 1, 3, 3), ([1, 1], [1, 0], [1, 1], 16)),
        (True, 16, (16, 10, 1, 1), ([3, 3], [0, 0], [1, 1], 1)),  # most results are the bias
    ],
)
def test_threads_and_strides_do_not_show(transposed, channels, weight, numbers):
    tenon.manual_seed(7)
    x, w = tenon.randn(3, channels, 20, 22), tenon.randn(*weight)
    stride, padding, dilation, groups = numbers
    bias = tenon.randn(weight[1] * groups if transposed else weight[0])
    threads = tenon.get_num_threads()
    try:
        results = []
        for n in (1, 2, 5):
            tenon.set_num_threads(n)
            for operand in (x, x.contiguous(memory_format=tenon.channels_last), x.transpose(2, 3).contiguous().transpose(2, 3)):
                out = tenon.convolution(operand, w, bias, stride, padding, dilation, transposed, [0, 0], groups)
                results.append(out.contiguous())
    finally:
        tenon.set_num_threads(threads)
    assert all(tenon.equal(r, results[0]) for r in results)


def test_a_channels_last_input_gives_a_channels_last_result():
    x = tenon.randn(2, 3, 5, 6).contiguous(memory_format=tenon.channels_last)
    out = tenon.conv2d(x, tenon.randn(4, 3, 3, 3))
    assert out.is_contiguous(memory_format=tenon.channels_last)
    assert tenon.conv2d(x.contiguous(), tenon.randn(4, 3, 3, 3)).is_contiguous()


MEMORY = """
import tenon
tenon.set_num_threads(2)
def peak():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
def reset():
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")
small = tenon.conv2d(tenon.zeros(1, 2, 3, 3), tenon.zeros(2, 2, 3, 3))
del small
CALL
"""


LAST = "tenon.ones(4, 112, 112, 64).permute(0, 3, 1, 2)"
SAME, HALF = "[1, 1], [1, 1], [1, 1], False, [0, 0]", "[2, 2], [1, 1], [1, 1], False, [0, 0]"
DOUBLE = "[2, 2], [0, 0], [1, 1], True, [0, 0]"
IMAGES, WIDE = "tenon.ones(4, 64, 112, 112)", "tenon.ones(1, 512, 28, 28)"
#: Gradient, input, weight, numbers, groups, and how many elements the gradients of input and weight have.
GRADIENTS = [
    (IMAGES, IMAGES, "tenon.ones(64, 64, 3, 3)", SAME, 1, (4 * 64 * 112 * 112, 64 * 64 * 9)),
    (IMAGES, IMAGES, "tenon.ones(64, 16, 3, 3)", SAME, 4, (4 * 64 * 112 * 112, 64 * 16 * 9)),
    (LAST, LAST, "tenon.ones(64, 64, 3, 3)", SAME, 1, (4 * 64 * 112 * 112, 64 * 64 * 9)),
    (WIDE, WIDE, "tenon.ones(512, 512, 3, 3)", SAME, 1, (512 * 28 * 28, 512 * 512 * 9)),
    ("tenon.ones(1, 512, 14, 14)", WIDE, "tenon.ones(512, 512, 3, 3)", HALF, 1, (512 * 28 * 28, 512 * 512 * 9)),
    ("tenon.ones(4, 32, 224, 224)", IMAGES, "tenon.ones(64, 32, 2, 2)", DOUBLE, 1, (4 * 64 * 112 * 112, 64 * 32 * 4)),
]


@pytest.mark.parametrize(
    "call, output",
    [
        ("tenon.conv2d(tenon.ones(4, 64, 112, 112), tenon.ones(64, 64, 3, 3), padding=1)", 4 * 64 * 112 * 112),
        ("tenon.conv2d(tenon.ones(1, 16, 512, 512).half(), tenon.ones(16, 16, 5, 5).half(), padding=2)", 8 * 512 * 512),
        ("tenon.conv1d(tenon.ones(1, 8, 1000000), tenon.ones(8, 8, 25), padding=12)", 8 * 1000000),
        ("tenon.conv_transpose2d(tenon.ones(2, 64, 56, 56), tenon.ones(64, 64, 4, 4), stride=2)", 2 * 64 * 114 * 114),
        ("tenon.conv2d(tenon.ones(4, 64, 112, 112), tenon.ones(64, 16, 3, 3), padding=1, groups=4)", 4 * 64 * 112 * 112),
        ("tenon.conv2d(tenon.ones(4, 64, 112, 112), tenon.ones(64, 1, 3, 3), padding=1, groups=64)", 4 * 64 * 112 * 112),
        (f"tenon.conv2d({LAST}, tenon.ones(64, 64, 3, 3), padding=1)", 4 * 64 * 112 * 112),
        (f"tenon.conv2d({LAST}, tenon.ones(64, 64, 1, 1))", 4 * 64 * 112 * 112),
        (f"tenon.conv2d({LAST}, tenon.ones(64, 1, 3, 3), padding=1, groups=64)", 4 * 64 * 112 * 112),
        (f"tenon.conv_transpose2d({LAST}, tenon.ones(64, 32, 2, 2), stride=2)", 4 * 32 * 224 * 224),
        ("tenon.conv2d(tenon.ones(1, 512, 28, 28), tenon.ones(3, 3, 512, 512).permute(2, 3, 0, 1), padding=1)", 512 * 28 * 28),
    ]
    + [
        (f"tenon.ops.aten.convolution_backward({grad}, {x}, {w}, None, {numbers}, {groups}, {mask})", output)
        for grad, x, w, numbers, groups, size in GRADIENTS
        for mask, output in (([True, False, False], size[0]), ([False, True, False], size[1]))
    ],
)
def test_memory_is_input_and_output_and_no_more_than_8_mb(call, output):
    operands, rest = call.split("(", 1)
    text = f"""
def run(f, *operands, **options):
    reset()
    before = peak()
    out = f(*operands, **options)
    print(peak() - before)
run({operands}, {rest}
"""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY.replace("CALL", text)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) * 1024 <= output * 4 + (8 << 20)


def test_copies_of_the_weight_are_counted_and_others_are_not_made():
    x, w = tenon.randn(2, 4, 9, 9), tenon.randn(6, 4, 3, 3)
    before = tenon.hidden_copies()
    tenon.conv2d(x, w)
    tenon.conv2d(x.contiguous(memory_format=tenon.channels_last), w)
    tenon.conv2d(x.transpose(2, 3), w, stride=2, padding=1)
    assert tenon.hidden_copies() == before
    tenon.conv2d(x, w.transpose(2, 3))
    tenon.conv_transpose2d(x, w.transpose(0, 1))  # its channels lie as the products add them
    assert tenon.hidden_copies() == before + 1
    tenon.conv_transpose2d(x, w.transpose(0, 1).contiguous())
    assert tenon.hidden_copies() == before + 2


ERRORS = [
    (lambda x, w: tenon.conv2d(x, w, groups=4), "conv2d: .*`weight` .* divisible by groups=4"),
    (lambda x, w: tenon.conv2d(x, w, groups=3), "conv2d: for groups=3 .* 12 channels, got 4"),
    (lambda x, w: tenon.conv2d(x, w, groups=0), "conv2d: `groups` must be positive"),
    (lambda x, w: tenon.conv2d(x[:, :3], w), "conv2d: .*expected `input` .* to have 4 channels, got 3"),
    (lambda x, w: tenon.conv2d(x[:, :, :2], w), "conv2d: the kernel must not be larger than the padded `input`"),
    (lambda x, w: tenon.conv2d(x, w, stride=0), "conv2d: `stride` must be positive"),
    (lambda x, w: tenon.conv2d(x, w, padding=-1), "conv2d: `padding` must be non-negative"),
    (lambda x, w: tenon.conv2d(x, w, dilation=0), "conv2d: `dilation` must be positive"),
    (lambda x, w: tenon.conv2d(x, w, stride=[1, 2, 3]), "conv2d: expected `stride` to be one number or 2"),
    (lambda x, w: tenon.conv2d(x, w, padding="same", stride=2), 'conv2d: `padding` "same" is not defined for strides'),
    (lambda x, w: tenon.conv2d(x, w, padding="full"), 'conv2d: `padding` must be "same", "valid"'),
    (lambda x, w: tenon.conv2d(x, w, tenon.zeros(5)), "conv2d: .*expected `bias` to be 1-dimensional with 6 elements"),
    (lambda x, w: tenon.conv2d(x[0, 0], w), r"conv2d: expected 3D \(unbatched\) or 4D \(batched\) `input`"),
    (lambda x, w: tenon.conv2d(x, w[0]), "conv2d: expected `weight` of 4 dimensions"),
    (lambda x, w: tenon.conv2d(x, w.double()), "conv2d: `weight` is float64, `input` is float32"),
    (lambda x, w: tenon.conv2d(x, w, tenon.zeros(6).double()), "conv2d: `bias` is float64, `input` is float32"),
    (lambda x, w: tenon.conv2d(x.bool(), w.bool()), "conv2d: not implemented for bool"),
    (lambda x, w: tenon.conv2d(x, w, padding=2**62), "conv2d: sizes overflow"),
    (lambda x, w: tenon.conv2d(x, w, dilation=2**62), "conv2d: sizes overflow"),
    (lambda x, w: tenon.conv2d(x, w.to("meta")), "conv2d: .*`weight`"),
    (lambda x, w: tenon.conv_transpose2d(x, w.transpose(0, 1), output_padding=1), "conv_transpose2d: `output_padding` must be smaller"),
    (lambda x, w: tenon.conv_transpose2d(x, w), "conv_transpose2d: .*expected `input` .* to have 6 channels"),
    (lambda x, w: tenon.conv_transpose2d(x, w.transpose(0, 1), padding=9), "conv_transpose2d: .*no elements left"),
    (lambda x, w: tenon.conv_transpose2d(x, w.transpose(0, 1), stride=2**62), "conv_transpose2d: sizes overflow"),
]  # fmt: skip


@pytest.mark.parametrize("call, message", ERRORS)
def test_an_error_names_the_operator_and_the_argument(call, message):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        call(tenon.zeros(2, 4, 5, 5), tenon.zeros(6, 4, 3, 3))


def test_the_backward_operator_computes_what_is_asked_for():
    tenon.manual_seed(8)
    x, w = tenon.randn(2, 4, 5, 5, requires_grad=True), tenon.randn(6, 4, 3, 3, requires_grad=True)
    out = tenon.conv2d(x, w, padding=1)
    grad = tenon.randn(*out.shape)
    out.backward(grad)
    numbers = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    backward = tenon.ops.aten.convolution_backward
    by_input, by_weight, by_bias = backward(grad, x.detach(), w.detach(), [6], *numbers, [True, False, True])
    assert tenon.equal(by_input, x.grad) and by_weight is None
    assert tenon.allclose(by_bias, grad.sum((0, 2, 3)))
    with pytest.raises(ValueError, match="convolution_backward: expected `output_mask` of 3 truth values, got 2"):
        tenon._C.convolution_backward(grad, x, w, [6], *numbers, [True, False])
    with pytest.raises((ValueError, RuntimeError), match="convolution_backward: expected `grad_output` of shape"):
        backward(grad[:, :, 1:], x, w, [6], *numbers, [True, False, True])


@pytest.mark.parametrize(
    "options",
    [
        {"stride": 2**40, "padding": 2**39, "dilation": 2**39},
        {"padding": 2**31, "dilation": 2**31},
        {"stride": 2**40},
    ],
)
def test_numbers_far_beyond_the_input(options):
    x, w = tenon.randn(1, 2, 5, 5), tenon.randn(3, 2, 3, 3)
    out = tenon.conv2d(x, w, **options)
    assert out.isfinite().all() if hasattr(out, "isfinite") else (out == out).all()
    if "dilation" in options:  # all taps but the middle one lie beside the input
        middle = options["padding"] - options["dilation"]
        rows = [o * options.get("stride", 1) - middle for o in range(out.shape[-1])]
        inside = [(o, i) for o, i in enumerate(rows) if 0 <= i < 5]
        for o, i in inside:
            assert tenon.allclose(out[0, :, o, o], (w[:, :, 1, 1] * x[0, :, i, i]).sum(1), atol=1e-5)


def test_no_batch_and_no_channels():
    assert tenon.conv2d(tenon.zeros(0, 4, 5, 5), tenon.zeros(6, 4, 3, 3)).shape == (0, 6, 3, 3)
    assert tenon.conv2d(tenon.zeros(2, 0, 5, 5), tenon.zeros(6, 0, 3, 3), tenon.ones(6)).sum() == 2 * 6 * 9


@pytest.mark.parametrize("dtype", [tenon.float8_e5m2, tenon.float8_e4m3fn])
@pytest.mark.parametrize("call", [
    lambda x: F.conv2d(x, x[:, :, :2, :2]),
    lambda x: F.conv_transpose2d(x, x[:, :, :2, :2]),
    lambda x: F.avg_pool2d(x, 2),
    lambda x: F.adaptive_avg_pool2d(x, 2),
    lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    lambda x: F.fold(x.reshape(1, 4, 4), (3, 3), 2),
], ids=["conv2d", "conv_transpose2d", "avg_pool2d", "adaptive_avg_pool2d", "interpolate", "fold"])  # fmt: skip
def test_dtypes_without_arithmetic_are_refused(call, dtype):
    with pytest.raises(NotImplementedError, match="not implemented for float8"):
        call(tenon.zeros(16, dtype=tenon.uint8).view(dtype).reshape(1, 1, 4, 4))


@pytest.mark.parametrize("seed", range(40))
def test_few_results_have_the_bits_that_they_have_among_many(seed):
    """A few places of a convolution are computed in another way than many, and cut out of many they are the same."""
    rng = np.random.default_rng(seed)
    dims, groups, step, hole = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 3)), int(rng.integers(1, 3))
    taps = [int(n) for n in rng.integers(1, 4, dims)]
    channels, rows = groups * int(rng.integers(1, 70)), groups * int(rng.integers(1, 40))
    dtype = tenon.float64 if seed % 5 == 0 else tenon.float32
    few = [1] * (dims - 1) + [int(rng.integers(1, 5))]
    sizes = [(n - 1) * step + (k - 1) * hole + 1 for n, k in zip(few, taps)]
    many = tenon.randn(1, channels, *[n + 40 * step for n in sizes], dtype=dtype)
    weight = tenon.randn(rows, channels // groups, *taps, dtype=dtype)
    bias = tenon.randn(rows, dtype=dtype) if seed % 2 else None
    conv = [F.conv1d, F.conv2d, F.conv3d][dims - 1]
    cut = tuple(slice(0, n) for n in sizes)
    x = many[(slice(None), slice(None), *cut)]
    got = conv(x.contiguous() if seed % 3 else x, weight, bias, step, 0, hole, groups)
    wanted = conv(many, weight, bias, step, 0, hole, groups)[(slice(None), slice(None), *[slice(0, n) for n in few])]
    assert tenon.equal(got, wanted)
    # The same with zeros around it.
    padded = conv(x, weight, bias, step, [(k - 1) * hole for k in taps], hole, groups)
    around = [p for k in reversed(taps) for p in ((k - 1) * hole, (k - 1) * hole)]
    assert tenon.equal(padded, conv(F.pad(x, around), weight, bias, step, 0, hole, groups))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_few_results_of_each_phase_of_a_transposed_convolution(count):
    """Its weights are in order in memory that the few results must not use."""
    x = tenon.arange(1.0, count + 1)
    whole = np.zeros(2 * count + 1)
    for i in range(count):
        whole[2 * i : 2 * i + 3] += np.array([1, 10, 100]) * (i + 1)
    got = F.conv_transpose1d(x.reshape(1, 1, count), tenon.tensor([[[1.0, 10, 100]]]), stride=2)
    assert got.reshape(-1).tolist() == whole.tolist()
