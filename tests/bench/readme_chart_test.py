"""The picture of bench/readme_chart.py: positions are logarithmic, every line has a label, and labels keep their distance."""

import pathlib
import sys
import xml.etree.ElementTree

import pytest

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def chart(monkeypatch):
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
    for module in ("readme_chart", "compare_compile", "compile_rows"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    import readme_chart

    return readme_chart


def corners(line):
    return [tuple(float(c) for c in corner.split(",")) for corner in line.get("points").split()]


def test_both_axes_are_logarithmic(chart):
    root = xml.etree.ElementTree.fromstring(chart.drawn({"eager": {16: 20.0, 64: 200.0, 256: 2000.0}}, "a machine & more"))
    (line,) = root.iter(SVG + "polyline")
    (x0, y0), (x1, y1), (x2, y2) = corners(line)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2) and x1 > x0
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2) and y1 < y0
    assert "a machine & more" in [text.text for text in root.iter(SVG + "text")]


def test_lines_that_end_together_have_labels_apart(chart):
    points = {name: {16: 10.0, 1024: 1000.0 + i} for i, name in enumerate(["compiled", "eager", "torch", "jax"])}
    root = xml.etree.ElementTree.fromstring(chart.drawn(points, ""))
    colours = {line.get("stroke") for line in root.iter(SVG + "polyline")}
    labels = {text.text: float(text.get("y")) for text in root.iter(SVG + "text") if text.get("fill") in colours}
    assert set(labels) == {"Tenon, compiled", "Tenon", "PyTorch", "JAX, jit"}
    heights = sorted(labels.values())
    assert all(after - before >= 13 for before, after in zip(heights, heights[1:]))
    assert all(0 < height <= float(root.get("height")) for height in heights)


def test_a_point_is_the_median_of_the_rounds(chart):
    class Column:
        name, figures = "eager", iter([5e3, 1e3, 3e3])

        def measure(self, row, seconds):
            assert row == "MLP step of width 32, batch 32, SGD"
            return next(self.figures)

    assert chart.measure([Column()], [32], 3, 0.01) == {"eager": {32: 3.0}}
