"""examples/ocr.py: lines of made-up letters, found and read by made-up networks, and written ones by the networks of
rapidocr-onnxruntime, where that package is found."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tenon

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))
import ocr  # noqa: E402

sys.path.remove(str(EXAMPLES))

#: A letter is a square of one grey, 48 places wide; paper is white.
GREYS = {"a": 0, "b": 60, "c": 120}
SIZE = 48


def write(path, nodes, weights, shape, output, metadata=None):
    port = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in (("x", shape), ("y", output))]
    graph = helper.make_graph(nodes, "made up", port[:1], port[1:], [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if metadata:
        helper.set_model_props(model, metadata)
    onnx.save(model, path)
    return path


@pytest.fixture
def networks(tmp_path):
    """A detector of what is darker than paper, and a recogniser by the darkest grey of 8 columns."""
    nodes = [helper.make_node("ReduceMean", ["x"], ["g"], axes=[1]), helper.make_node("Sub", ["half", "g"], ["d"]), helper.make_node("Mul", ["d", "steep"], ["m"]), helper.make_node("Sigmoid", ["m"], ["y"])]
    find = write(tmp_path / "find.onnx", nodes, {"half": np.float32(0.6), "steep": np.float32(30)}, ["n", 3, "h", "w"], ["n", 1, "h", "w"])
    # The nearest of the greys, paper first: -(g - level)^2, without what all have alike.
    levels = np.float32([1] + [grey / 127.5 - 1 for grey in GREYS.values()] + [9])
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["g"], axes=[1]),
        helper.make_node("Neg", ["g"], ["n"]),
        helper.make_node("MaxPool", ["n"], ["p"], kernel_shape=[48, 8], strides=[48, 8]),
        helper.make_node("Squeeze", ["p", "one"], ["q"]),
        helper.make_node("Transpose", ["q"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["t", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["s"]),
        helper.make_node("Softmax", ["s"], ["y"], axis=-1),
    ]
    weights = {"one": np.int64([1]), "w": -200 * levels[None], "b": -100 * levels**2}
    read = write(tmp_path / "read.onnx", nodes, weights, ["n", 3, 48, "w"], ["n", "t", len(levels)], {"character": "\n".join(GREYS)})
    return find, read


def picture(lines, height=192, width=640):
    """Lines of letters at (column, row), with white between them."""
    image = np.full((height, width, 3), 255, np.uint8)
    for (left, top), text in lines.items():
        for i, letter in enumerate(text):
            image[top : top + SIZE, left + i * (SIZE + 2) : left + i * (SIZE + 2) + SIZE] = GREYS[letter]
    return image


def save(path, image):
    path.write_bytes(b"P6 # made up\n%d %d\n255\n" % (image.shape[1], image.shape[0]) + image.tobytes())
    return path


LINES = {(64, 24): "abcab", (320, 120): "cbab"}


def test_lines_are_found_and_read(networks, tmp_path, monkeypatch):
    monkeypatch.setattr(ocr, "SHORT", 192)
    letters = {(64, 24): "a", (260, 24): "b", (456, 24): "c", (320, 120): "c", (520, 120): "a"}
    reader = ocr.Reader(*networks, ocr.characters_of(networks[1]))
    found = reader(ocr.read_image(save(tmp_path / "picture.ppm", picture(letters))))
    assert [text for _, text, _ in found] == list(letters.values())
    for (box, _, sure), (left, top) in zip(found, letters):
        more = SIZE * ocr.LARGER / 4
        wanted = np.array([left - more, top - more, left + SIZE + more, top + SIZE + more])
        assert np.abs(np.array(box) - wanted).max() <= 1
        assert sure > 0.9


def test_a_line_is_read_by_its_columns(networks):
    reader = ocr.Reader(*networks, ocr.characters_of(networks[1]))
    image = tenon.tensor(picture(LINES)).permute(2, 0, 1)
    assert reader.read(image[:, 24:72, 64:312])[0] == "abcab"
    assert reader.read(image[:, 120:168, 320:518])[0] == "cbab"


def test_the_program_prints_what_it_reads(networks, tmp_path):
    path = save(tmp_path / "picture.ppm", picture({(64, 96): "b"}, 736, 736))
    (tmp_path / "characters").write_text("A\nB\nC\n")
    arguments = ["--detector", networks[0], "--recogniser", networks[1], "--characters", tmp_path / "characters"]
    done = subprocess.run([sys.executable, EXAMPLES / "ocr.py", path, *arguments], capture_output=True, text=True, check=True)
    assert re.fullmatch(r" +45 +77 +131 +163  (0\.9\d|1\.00)  B\n", done.stdout), done.stdout


def test_components_join_what_touches():
    rows = ["##..#.", "..#.#.", "....#.", ".#....", "#.....", "##...#"]
    boxes = ocr.components([[c == "#" for c in row] for row in rows])
    assert sorted(boxes) == [(0, 0, 3, 2), (0, 3, 2, 6), (4, 0, 5, 3), (5, 5, 6, 6)]


def test_grey_pictures_and_wrong_files(networks, tmp_path):
    (tmp_path / "grey.pgm").write_bytes(b"P5\n2 1\n255\n\x01\x02")
    assert ocr.read_image(tmp_path / "grey.pgm").tolist() == [[[1, 2]]] * 3
    (tmp_path / "short.ppm").write_bytes(b"P6 2 2 255\n123")
    with pytest.raises(ValueError, match="expected one byte for each of 2 x 2 places"):
        ocr.read_image(tmp_path / "short.ppm")
    with pytest.raises(ValueError, match="does not say what its classes are"):
        ocr.characters_of(networks[0])
    with pytest.raises(ValueError, match="the recogniser has 5 classes, and there are 1 characters"):
        ocr.Reader(*networks, ["a"]).read(tenon.zeros(3, 48, 48, dtype=tenon.uint8))


def test_written_lines():
    """Latin letters and digits in a font of matplotlib."""
    if importlib.util.find_spec("rapidocr_onnxruntime") is None:
        pytest.skip("the package rapidocr-onnxruntime is not installed")
    pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), dpi=100)
    canvas = FigureCanvasAgg(figure)
    lines = ["Tenon reads this line", "2026 and 12,345.67", "ONNX files as modules"]
    for i, line in enumerate(lines):
        figure.text(0.08, 0.75 - 0.25 * i, line, fontsize=26)
    canvas.draw()
    image = tenon.tensor(np.asarray(canvas.buffer_rgba())[..., :3].copy()).permute(2, 0, 1)
    detector, recogniser = ocr.networks()
    found = ocr.Reader(detector, recogniser, ocr.characters_of(recogniser))(image)
    assert [text.replace(" ", "") for _, text, _ in found] == [line.replace(" ", "") for line in lines]
