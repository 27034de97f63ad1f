"""examples/voice: built against the installation, and run on networks with made-up weights, which NumPy computes too."""

import importlib.util
import pathlib
import re
import struct
import subprocess
import wave
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/voice"
CHUNK, CONTEXT, RATE = 512, 64, 16000


def run(*command, code=0):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout


@pytest.fixture(scope="module", autouse=True)
def built():
    run("cmake", "-S", ROOT / "examples/voice", "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_PREFIX_PATH={ROOT / 'build/install'}")
    run("cmake", "--build", BUILD)


def speech(*arguments, **keywords):
    return run(BUILD / "speech", *arguments, **keywords)


def probabilities(printed):
    return np.array([float(line) for line in printed.splitlines() if re.fullmatch(r"[-\d.e]+", line)])


def segments(printed):
    return [tuple(round(float(second) * RATE) for second in found) for found in re.findall(r"speech from ([\d.]+) s to ([\d.]+) s", printed)]


def write_wav(path, samples, rate=RATE, channels=1, width=2):
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", ""))
        file.writeframes(np.round(np.asarray(samples) * 32767).astype(f"<i{width}").tobytes())
    return path


def read_wav(path):
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768


def port(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def save(path, nodes, weights, state_dim=128):
    """A detector whose `nodes` are what it does at 16 kHz; at other rates its probability is 0."""
    otherwise = [helper.make_node("Constant", [], ["none"], value=numpy_helper.from_array(np.zeros((1, 1), np.float32))), helper.make_node("Identity", ["state"], ["same"])]
    ends = [port("p", TensorProto.FLOAT, None), port("s", TensorProto.FLOAT, None)], [port("none", TensorProto.FLOAT, None), port("same", TensorProto.FLOAT, None)]
    branches = {"then_branch": helper.make_graph(nodes, "then", [], ends[0]), "else_branch": helper.make_graph(otherwise, "else", [], ends[1])}
    graph = helper.make_graph(
        [helper.make_node("Equal", ["sr", "rate"], ["is_known"]), helper.make_node("If", ["is_known"], ["output", "stateN"], **branches)],
        "detector",
        [port("input", TensorProto.FLOAT, ["n", "samples"]), port("state", TensorProto.FLOAT, [2, "n", state_dim]), port("sr", TensorProto.INT64, [])],
        [port("output", TensorProto.FLOAT, ["n", 1]), port("stateN", TensorProto.FLOAT, [2, "n", state_dim])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in {"rate": np.int64(RATE), **weights}.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def nodes(*lines):
    """From "op inputs -> outputs", with attributes as a dict after it."""
    made = []
    for line in lines:
        text, attributes = line if isinstance(line, tuple) else (line, {})
        op, inputs, outputs = re.fullmatch(r"(\w+) (.*) -> (.*)", text).groups()
        made.append(helper.make_node(op, inputs.split(), outputs.split(), **attributes))
    return made


INDEX = {"zero": np.int64(0), "one": np.int64(1), "first": np.array([0]), "second": np.array([1])}
RECURRENT = nodes(
    "Unsqueeze input second -> channel", ("Conv channel filters -> filtered", {"strides": [64]}), "Abs filtered -> sizes",
    ("ReduceMean sizes -> f", {"axes": [2], "keepdims": 0}), "Gather state zero -> h", "Gather state one -> c",
    "MatMul f a -> fa", "MatMul h b -> hb", "Add fa hb -> sum", "Tanh sum -> hn", "Mul c keep -> kept", "Mul hn add -> added", "Add kept added -> cn",
    "MatMul cn v -> cv", "Add cv bias -> logit", "Sigmoid logit -> p", "Unsqueeze hn first -> hs", "Unsqueeze cn first -> cs",
    ("Concat hs cs -> s", {"axis": 0}),
)  # fmt: skip


@pytest.fixture(scope="module")
def weights():
    draw = np.random.default_rng(7).standard_normal
    made = {"filters": draw((24, 1, 64)), "a": draw((24, 128)) / 3, "b": draw((128, 128)) / 30, "keep": np.array(0.8), "add": np.array(0.2), "v": draw((128, 1)), "bias": np.array([-1])}
    return {name: value.astype(np.float32) for name, value in made.items()}


@pytest.fixture(scope="module")
def detector(weights, tmp_path_factory):
    return save(tmp_path_factory.mktemp("detector") / "made_up.onnx", RECURRENT, {**INDEX, **weights})


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Noise that grows and falls; its last chunk is not whole."""
    random, t = np.random.default_rng(3), np.arange(40 * CHUNK + 100)
    return write_wav(tmp_path_factory.mktemp("recording") / "noise.wav", random.uniform(-0.9, 0.9, t.size) * np.sin(t / 4000) ** 2)


def computed(weights, samples):
    """What RECURRENT computes of a recording, in float64."""
    w = {name: np.asarray(value, np.float64) for name, value in weights.items()}
    padded = np.concatenate([np.zeros(CONTEXT), samples, np.zeros(-len(samples) % CHUNK)])
    h = c = np.zeros(128)
    found = []
    for at in range(0, len(padded) - CONTEXT, CHUNK):
        frames = padded[at : at + CONTEXT + CHUNK].reshape(9, 64)
        h = np.tanh(np.abs(frames @ w["filters"][:, 0].T).mean(0) @ w["a"] + h @ w["b"])
        c = w["keep"] * c + w["add"] * h
        found.append(1 / (1 + np.exp(-(c @ w["v"] + w["bias"]))))
    return np.concatenate(found)


def test_probabilities_are_those_of_the_network(detector, recording, weights):
    given = probabilities(speech(detector, recording, "--probabilities"))
    expected = computed(weights, read_wav(recording))
    assert len(given) == 41 and np.ptp(expected) > 0.1
    np.testing.assert_allclose(given, expected, atol=1e-5)


def test_the_programs_need_no_library_of_tenon():
    for program in ("speech", "fine_tune"):
        needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", BUILD / program))
        assert needed and not any("tenon" in name for name in needed)


@pytest.fixture(scope="module")
def echo(tmp_path_factory):
    """A detector whose probability is the mean of the new samples: a recording says what it will be."""
    steps = nodes("Slice input begin end second -> new", ("ReduceMean new -> p", {"axes": [1], "keepdims": 1}), "Identity state -> s")
    return save(tmp_path_factory.mktemp("echo") / "echo.onnx", steps, {**INDEX, "begin": np.array([CONTEXT]), "end": np.array([CONTEXT + CHUNK])})


def expected_segments(levels, length):
    """By a regular expression over the chunks: S speech, s silence, m neither. Silence of 0.1 s is four chunks and the one that shows it."""
    text = "".join("S" if level >= 0.5 else "s" if level < 0.35 else "m" for level in levels)
    found = [(m.start() * CHUNK, min(m.end() * CHUNK, length)) for m in re.finditer(r"S.*?(?=s[ms]{3,}s|$)", text)]
    found = [(begin, end) for begin, end in found if end - begin > RATE // 4]
    gaps = [after[0] - before[1] for before, after in zip(found, found[1:], strict=False)]
    pads = [min(gap // 2, 480) for gap in gaps]
    first, last = min(480, found[0][0]), min(480, length - found[-1][1])
    return [(begin - left, end + right) for (begin, end), left, right in zip(found, [first, *pads], [*pads, last], strict=True)]


@pytest.mark.parametrize("seed", range(6))
def test_segments_follow_the_rules(seed, echo, tmp_path):
    random = np.random.default_rng(seed)
    levels = np.concatenate([random.choice(kind, size) for kind, size in ((choices, random.integers(1, 14)) for _ in range(30) for choices in ([0.9, 0.6, 0.4, 0.2], [0.1, 0.3, 0.4], [0.7, 0.45]))])
    wav = write_wav(tmp_path / "levels.wav", np.repeat(levels, CHUNK)[: -int(random.integers(0, 100)) or None])
    printed = speech(echo, wav, "--probabilities")
    length = len(read_wav(wav))
    expected = expected_segments(probabilities(printed), length)
    assert len(expected) > 3 and np.abs(np.subtract(segments(printed), expected)).max() <= 8  # milliseconds are printed


def test_silence_has_no_segments(echo, tmp_path):
    assert speech(echo, write_wav(tmp_path / "silence.wav", np.zeros(5000))) == "no speech\n"


@pytest.mark.parametrize("chunks", [60, 2500])
def test_the_picture_shows_probabilities_and_segments(chunks, echo, tmp_path):
    levels = 0.5 + 0.4 * np.sin(np.arange(chunks) / 9)
    wav = write_wav(tmp_path / "waves.wav", np.repeat(levels, CHUNK))
    printed = speech(echo, wav, "--picture", tmp_path / "picture.svg")
    picture = ElementTree.parse(tmp_path / "picture.svg").getroot()
    name = "{http://www.w3.org/2000/svg}"
    assert len(picture.findall(f"{name}rect")) == len(segments(printed)) > 0
    points = np.array([[float(v) for v in pair.split(",")] for pair in picture.find(f"{name}polyline").get("points").split()])
    each = chunks // 1000 + 1
    highest = [levels[i : i + each].max() for i in range(0, chunks, each)]
    np.testing.assert_allclose((160 - points[:, 1]) / 120, highest, atol=1e-3)
    assert (np.diff(points[:, 0]) > 0).all()


def test_the_time_of_a_chunk_is_printed(detector, recording):
    assert re.search(r"a chunk of 512 samples: [\d.]+ us, at best [\d.]+ us\n", speech(detector, recording, "--time"))


def test_training_further(detector, weights, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    trained, wav = tmp_path / "trained.safetensors", tmp_path / "made.wav"
    printed = run(BUILD / "fine_tune", detector, trained, "--steps", 3, "--rate", 0.0003, "--recording", wav)
    before, after = (float(found) for found in re.findall(r"loss \w+: +([\d.]+)", printed))
    assert after < before and "loaded again: the same loss" in printed
    state = safetensors.load_file(trained)
    assert set(state) == {name for name, value in weights.items() if value.ndim > 0}  # numbers are constants
    assert any((state[name] != weights[name]).any() for name in state)
    given = probabilities(speech(detector, wav, "--weights", trained, "--probabilities"))
    np.testing.assert_allclose(given, computed({**weights, **state}, read_wav(wav)), atol=1e-4)


def test_other_recordings_are_refused(echo, tmp_path):
    def message(wav):
        return speech(echo, wav, code=1)

    for keywords, what in (
        ({"channels": 2}, "channels 2, expected 1"), ({"rate": 44100}, "samples a second 44100, expected 16000"), ({"width": 1}, "bits a sample 8, expected 16"),
    ):  # fmt: skip
        assert f"other.wav: {what}: convert it to 16-bit PCM, mono, 16000 Hz" in message(write_wav(tmp_path / "other.wav", np.zeros(800), **keywords))
    good = write_wav(tmp_path / "good.wav", np.zeros(800)).read_bytes()
    wav = tmp_path / "bad.wav"
    for content, what in (
        (b"", "is no WAV file"), (b"text", "is no WAV file"), (good[:8] + b"WAVX" + good[12:], "is no WAV file"),
        (good[:20] + struct.pack("<H", 3) + good[22:], "encoding 3, expected 1"), (good[:12], "has no samples"), (good[:44], "has no samples"),
        (good[:12] + good[36:], "has samples before their format"), (good[:20], "encoding 0, expected 1"),
    ):  # fmt: skip
        wav.write_bytes(content)
        assert f"bad.wav: {what}" in message(wav)
    assert "nowhere.wav: cannot be opened" in message(tmp_path / "nowhere.wav")


def test_parts_of_a_file_that_are_no_samples_are_passed_over(echo, tmp_path):
    good = write_wav(tmp_path / "good.wav", np.full(CHUNK, 0.25)).read_bytes()
    extensible = struct.pack("<4sIHHIIHHHHI", b"fmt ", 40, 0xFFFE, 1, RATE, 2 * RATE, 2, 16, 22, 16, 4) + b"\1\0" + bytes(14)
    (tmp_path / "more.wav").write_bytes(good[:12] + b"LIST\5\0\0\0abcde\0" + extensible + good[36:] + b"\0")
    np.testing.assert_allclose(probabilities(speech(echo, tmp_path / "more.wav", "--probabilities"))[0], 0.25, atol=1e-4)


def test_other_models_and_options_are_refused(detector, recording, tmp_path):
    graph = helper.make_graph(nodes("Relu x -> y"), "g", [port("x", TensorProto.FLOAT, [1])], [port("y", TensorProto.FLOAT, [1])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "relu.onnx")
    assert "the model takes 'x', expected 'input', 'state' and 'sr'" in speech(tmp_path / "relu.onnx", recording, code=1)
    only = nodes("Identity state -> s", "Identity input -> p")
    assert "expected a probability [N, 1] and a state [2, N, 128]" in speech(save(tmp_path / "only.onnx", only, INDEX), recording, code=1)
    assert "--weights needs the name of a file; usage: speech" in speech(detector, recording, "--weights", code=1)
    assert "unknown option --louder; usage: speech" in speech(detector, recording, "--louder", code=1)
    assert "usage: speech" in speech(detector, code=1)
    assert "nowhere/picture.svg: cannot be written" in speech(detector, recording, "--picture", tmp_path / "nowhere/picture.svg", code=1)
    tune = BUILD / "fine_tune"
    assert "--steps needs a number that is not negative, got 'x'" in run(tune, detector, tmp_path / "w", "--steps", "x", code=1)
    assert "unknown option --louder; usage: fine_tune" in run(tune, detector, tmp_path / "w", "--louder", code=1)
    assert "usage: fine_tune" in run(tune, detector, code=1)
    assert "made.wav: cannot be written" in run(tune, detector, tmp_path / "w", "--steps", 0, "--recording", tmp_path / "nowhere/made.wav", code=1)


@pytest.mark.parametrize("name", ["silero_vad.onnx", "silero_vad_op18_ifless.onnx"])
def test_silero_vad(name, tmp_path):
    """Of the package, where it is installed: the probabilities that onnx's own evaluator computes, and speech where the made-up voice is."""
    package = importlib.util.find_spec("silero_vad")
    if package is None:
        pytest.skip("the package silero-vad is not installed")
    model, wav = pathlib.Path(package.origin).parent / "data" / name, tmp_path / "made.wav"
    run(BUILD / "fine_tune", model, tmp_path / "state.safetensors", "--steps", 0, "--recording", wav)
    printed = speech(model, wav, "--probabilities")
    given, found = probabilities(printed), segments(printed)
    assert len(found) > 2

    from onnx.reference import ReferenceEvaluator

    evaluator, samples = ReferenceEvaluator(str(model)), read_wav(wav).astype(np.float32)
    padded, state = np.concatenate([np.zeros(CONTEXT, np.float32), samples]), np.zeros((2, 1, 128), np.float32)
    for i in range(30):
        chunk = padded[None, i * CHUNK : i * CHUNK + CONTEXT + CHUNK]
        expected, state = evaluator.run(None, {"input": chunk, "state": state, "sr": np.array(RATE, np.int64)})
        np.testing.assert_allclose(given[i], expected[0, 0], atol=1e-4)
