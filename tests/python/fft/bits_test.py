"""One bit pattern for every length: on each instruction set, with one thread and two, alone and in a batch."""

import os
import pathlib
import subprocess
import sys

import tenon

PROGRAM = """
import hashlib
import tenon

def digest(t):
    t = tenon.view_as_real(t) if t.is_complex() else t
    return hashlib.md5(t.contiguous().numpy().tobytes(), usedforsecurity=False).hexdigest()

tenon.manual_seed(0)
for real, whole in ((tenon.float32, tenon.complex64), (tenon.float64, tenon.complex128)):
    for n in [*range(1, 68), *range(70, 131, 7), 200, 256, 400, 509, 512, 720, 1000, 1009, 1024, 4096, 65536, 65537, 1 << 17]:
        rows = 19 if n < 5000 else 2
        z, x = tenon.randn(rows, n, dtype=whole), tenon.randn(rows, n, dtype=real)
        half = tenon.fft.rfft(x)
        calls = (tenon.fft.fft, tenon.fft.ifft), (tenon.fft.rfft,), (lambda t: tenon.fft.irfft(t, n),)
        for t, fs in zip((z, x, half), calls):
            for f in fs:
                found = set()
                for threads in (1, 2):
                    tenon.set_num_threads(threads)
                    found.add(digest(f(t)))
                found.add(digest(tenon.stack([f(row) for row in t])))
                columns = t.t().contiguous().t()
                found.add(digest(f(columns)))
                assert len(found) == 1, (n, t.dtype)
                print(n, t.dtype, *found)
print(tenon.cpu_target_name())
"""


def test_every_length_has_one_bit_pattern():
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    needs = {"SSE4": (), "AVX2": ("avx2",), "AVX3": ("avx512f", "avx512vl", "avx512dq", "avx512bw")}
    if tenon.cpu_target_name() == "SSE4":
        needs = {"SSE4": ()}
    package = pathlib.Path(tenon._C.__file__).resolve().parent.parent
    runs = {}
    for target in [t for t, names in needs.items() if all(f" {name} " in flags for name in names)]:
        environment = {**os.environ, "TENON_CPU_TARGET": target, "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive", "PYTHONPATH": str(package)}
        runs[target] = subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found = {}
    for target, run in runs.items():
        out, errors = run.communicate()
        assert run.returncode == 0, errors[-2000:]
        *found[target], name = out.splitlines()
        assert name == target
    first, *others = found.values()
    assert len(first) > 600 and all(lines == first for lines in others)
