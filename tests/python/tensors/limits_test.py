"""At the end of int64: a shape that no number counts is refused with a clear error, and never wraps. How many threads."""

import os
import subprocess
import sys

import pytest

import tenon

END = 2**63 - 1


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize(
    ("shape", "dimension", "size", "step"),
    [
        ((2**62,), 0, 2**31, 1), ((END,), 0, 2, 1), ((END,), 0, END // 2, 2), ((1, 2**40), 1, 2**30, 1), ((3, 2**61), 1, 4, 1),
    ],
)  # fmt: skip
def test_unfold_counts_its_elements(device, shape, dimension, size, step):
    x = tenon.ones(1, device=device).expand(*shape)
    with pytest.raises(tenon.ShapeError, match="^unfold: "):
        x.unfold(dimension, size, step)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_unfold_counts_its_windows(device):
    with pytest.raises(tenon.ShapeError, match="^unfold: the windows"):
        tenon.empty(END, 0, device=device).unfold(0, 0, 1)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_unfold_of_what_fits_is_as_ever(device):
    x = tenon.ones(1, device=device).expand(2**40)
    assert x.unfold(0, 2**20, 2**20).shape == (2**20, 2**20)
    assert x.unfold(0, 2**40, END).shape == (1, 2**40)
    assert tenon.arange(7).unfold(0, 3, 2).tolist() == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]


@pytest.mark.parametrize("n", [0, -1, 1025, 65536, 2**40])
def test_threads_are_as_many_as_a_system_gives(n):
    before = tenon.get_num_threads()
    with pytest.raises(ValueError, match=f"set_num_threads: `n` must be from 1 to 1024, got {n}"):
        tenon.set_num_threads(n)
    assert tenon.get_num_threads() == before


def test_nbytes_is_exact():
    x = tenon.ones(1).expand(2**31, 2**31)
    assert x.nbytes == 2**64 and x.numel() == 2**62
    assert tenon.ones(2, 3).nbytes == 24


@pytest.mark.parametrize("make", [tenon.empty, tenon.zeros, tenon.ones, tenon.rand, tenon.randn])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_factories_count_elements_and_bytes(make, device):
    for shape in ((2**32, 2**31), (2, END), (END, END), (2**62, 2**62, 2)):
        with pytest.raises((tenon.ShapeError, MemoryError)):
            make(*shape, device=device)
    assert make(END, 0, device=device).numel() == 0


def test_expansion_joining_and_products_count():
    x = tenon.ones(1, device="meta").expand(2**62)
    for refused in (
        lambda: x.expand(4, 2**62),
        lambda: tenon.cat([x, x]),
        lambda: tenon.stack([x, x]),
        lambda: x.unsqueeze(1) * x,
        lambda: x.as_strided((2**62, 2), (0, 0)),
        lambda: tenon.arange(-END, END, device="meta"),
        lambda: tenon.eye(2**32, device="meta"),
    ):
        with pytest.raises((tenon.ShapeError, MemoryError)):
            refused()


@pytest.mark.parametrize("environment, threads", [({}, 1), ({"OMP_NUM_THREADS": "3"}, 3)])
def test_threads_are_as_many_as_the_process_may_use_processors(environment, threads):
    inherited = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    program = "import os; os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1]); import tenon; print(tenon.get_num_threads())"
    run = subprocess.run([sys.executable, "-c", program], env=inherited | environment, capture_output=True, text=True)
    assert (run.stdout, run.stderr) == (f"{threads}\n", "")


#: What needs more memory than is there, or counts more than it can.
ENDLESS = """
x.norm() | x.norm(3) | tenon.linalg.vector_norm(x) | x.var() | x.std() | tenon.std_mean(x) | tenon.var_mean(x) | x.aminmax()
x.logsumexp((0, 1)) | x.logsumexp(0) | x.softmax(1) | x.log_softmax(0) | x.sort() | x.argsort() | x.cumsum(0) | x.cumprod(1)
x.topk(3) | x.nonzero() | tenon.count_nonzero(x) | x.clone() | x + 1 | x.tolist() | x.T @ x | x.T @ x[:, :1] | tenon.cat([x, x])
F.layer_norm(x, x.shape) | F.normalize(x) | F.cross_entropy(x, x) | F.kl_div(x, x) | F.batch_norm(x, None, None, training=True)
tenon.allclose(x, x) | x.masked_select(x > 0) | x.unfold(0, 2, 1).norm() | x.repeat(2, 2) | x.multinomial(1) | x.pow(2).var()
F.mse_loss(x, x) | F.max_pool1d(x, 3) | F.dropout(x) | x.tril() | x.roll(1) | x.contiguous() | tenon.stack([x, x]) | x.to("meta")
"""
REFUSED = """
import re, resource
import tenon
import tenon.nn.functional as F

resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))  # for what the system would promise and not keep
x = tenon.ones(1, 1, dtype=tenon.{dtype}).expand(2**31, 2**31)
for call in {calls!r}:
    try:
        eval(call)
    except (tenon.ShapeError, MemoryError) as error:
        assert re.match(r"[\\w.]+: .", str(error)), (call, str(error))
    else:
        raise AssertionError(call + " was not refused")
"""


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_tensor_of_more_elements_than_any_memory_is_refused_by_name(dtype):
    calls = [call.strip() for line in ENDLESS.split("\n") for call in line.split("|") if call.strip()]
    program = REFUSED.format(dtype=dtype, calls=calls)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_rows_of_such_a_tensor_are_tensors_like_others():
    x = tenon.ones(1, 1).expand(2**31, 2**31)
    assert x.reshape(-1).shape == (2**62,) and x[5, :9].norm().item() == 3


@pytest.mark.parametrize("numel", [2**49, 2**61, 2**63 - 1])
@pytest.mark.parametrize("dtype", [tenon.float16, tenon.float64])
def test_a_row_longer_than_can_be_counted_in_bytes_is_refused(numel, dtype):
    x = tenon.ones(1, dtype=dtype).expand(numel)
    for call in (x.var, x.std, x.norm, x.aminmax, lambda: x.logsumexp(0)):
        with pytest.raises(tenon.ShapeError, match=r"^\w+: sizes \[\d+\] have more elements than"):
            call()
