"""Text in pictures, by two networks in ONNX files: one finds lines (Liao et al., "Real-time scene text detection with differentiable
binarization", 2020), the other reads each (Du et al., "PP-OCR", 2020).

    pip install pillow; pip install --no-deps rapidocr-onnxruntime     (only its networks are read)
    python examples/ocr.py picture.png
    python examples/ocr.py picture.ppm --detector find.onnx --recogniser read.onnx --characters characters.txt
"""

from __future__ import annotations

import argparse
import importlib.util
import math
from pathlib import Path
from typing import Any, NamedTuple

import tenon
import tenon.nn.functional as F
import tenon.onnx

#: A place is text from this probability on; a line, from this mean probability on.
TEXT, LINE = 0.3, 0.5
#: The detector marks the middle of a line; lines are this much larger, as area over perimeter.
LARGER = 1.6
#: The shorter side that pictures are enlarged to for the detector, the longer one that they are reduced to, and what sizes divide by.
SHORT, LONG, STEP = 736, 1504, 32
HEIGHT = 48  # of lines for the recogniser


class Box(NamedTuple):
    """Columns from `left` on and before `right`, rows from `top` on and before `bottom`."""

    left: int
    top: int
    right: int
    bottom: int


def read_image(path: str | Path) -> tenon.Tensor:
    """A picture as bytes [3, height, width]: red, green, blue. PPM and PGM files in binary form need no other package."""
    data = Path(path).read_bytes()
    if data[:2] in (b"P5", b"P6"):
        fields: list[bytes] = []
        at = 2
        while len(fields) < 3:
            line = data[at:].split(None, 1)[0]
            at = data.index(line, at) + len(line)
            if line.startswith(b"#"):
                at = data.index(b"\n", at)
            else:
                fields.append(line)
        width, height, most = map(int, fields)
        if most != 255 or len(data) - at - 1 < width * height * (3 if data[:2] == b"P6" else 1):
            raise ValueError(f"{path}: expected one byte for each of {height} x {width} places")
        pixels = tenon.frombuffer(bytearray(data[at + 1 :]), dtype=tenon.uint8)
        if data[:2] == b"P5":
            return pixels[: width * height].reshape(1, height, width).repeat(3, 1, 1)
        return pixels[: 3 * width * height].reshape(height, width, 3).permute(2, 0, 1)
    if importlib.util.find_spec("PIL") is None:
        raise ValueError(f"{path}: it is no PPM or PGM file, and others are read by the package pillow")
    import numpy
    from PIL import Image

    return tenon.tensor(numpy.array(Image.open(path).convert("RGB"))).permute(2, 0, 1)


def resized(image: tenon.Tensor, height: int, width: int) -> tenon.Tensor:
    """Bytes [3, h, w] to floats [1, 3, height, width] between -1 and 1, blue first, as the networks were trained."""
    pixels = image.flip(0).float().unsqueeze(0)
    scaled: tenon.Tensor = F.interpolate(pixels, size=(height, width), mode="bilinear")
    return scaled / 127.5 - 1


def components(is_text: list[list[bool]]) -> list[Box]:
    """The boxes of places that touch each other, by runs in rows that overlap runs of the row before."""
    boxes: list[Box] = []
    parents: list[int] = []

    def root(i: int) -> int:
        while parents[i] != i:
            i = parents[i]
        return i

    before: list[tuple[int, int, int]] = []
    for y, row in enumerate(is_text):
        runs: list[tuple[int, int, int]] = []
        x = 0
        while x < len(row):
            if not row[x]:
                x += 1
                continue
            start = x
            while x < len(row) and row[x]:
                x += 1
            own = len(boxes)
            boxes.append(Box(start, y, x, y + 1))
            parents.append(own)
            for left, right, other in before:
                if left <= x and right >= start:  # corners touch, too
                    parents[root(other)] = root(own)
            runs.append((start, x, own))
        before = runs
    found: dict[int, Box] = {}
    for i, box in enumerate(boxes):
        known = found.get(root(i), box)
        found[root(i)] = Box(*map(min, known[:2], box[:2]), *map(max, known[2:], box[2:]))
    return list(found.values())


def detector_size(height: int, width: int) -> tuple[int, int]:
    scale = min(max(1.0, SHORT / min(height, width)), LONG / max(height, width))
    rows, columns = (max(STEP, round(size * scale / STEP) * STEP) for size in (height, width))
    return rows, columns


class Reader:
    """Finds and reads lines. `characters` are those of the recogniser's classes, without the first, which is none."""

    def __init__(self, detector: str | Path, recogniser: str | Path, characters: list[str]) -> None:
        # Each size of a picture and of a line gets a plan, which is kept.
        self.detect = tenon.inference(tenon.onnx.load(detector))
        self.recognise = tenon.inference(tenon.onnx.load(recogniser))
        self.characters = ["", *characters, " "]

    def lines(self, image: tenon.Tensor) -> list[Box]:
        """Boxes of lines in a picture [3, height, width], from the top."""
        _, height, width = image.shape
        rows, columns = detector_size(height, width)
        probability: tenon.Tensor = self.detect(resized(image, rows, columns))[0, 0]
        found = []
        for box in components((probability > TEXT).tolist()):
            wide, high = box.right - box.left, box.bottom - box.top
            if min(wide, high) < 3 or probability[box.top : box.bottom, box.left : box.right].mean().item() < LINE:
                continue
            more = wide * high * LARGER / (2 * (wide + high))
            left, right = ((x * width / columns) for x in (box.left - more, box.right + more))
            top, bottom = ((y * height / rows) for y in (box.top - more, box.bottom + more))
            found.append(Box(max(0, round(left)), max(0, round(top)), min(width, round(right)), min(height, round(bottom))))
        return sorted(found, key=lambda box: (box.top, box.left))

    def read(self, image: tenon.Tensor) -> tuple[str, float]:
        """The text of a line [3, height, width], and how sure it is."""
        _, height, width = image.shape
        scores: tenon.Tensor = self.recognise(resized(image, HEIGHT, max(1, math.ceil(HEIGHT * width / height))))[0]
        if scores.shape[1] not in (len(self.characters), len(self.characters) - 1):
            raise ValueError(f"the recogniser has {scores.shape[1]} classes, and there are {len(self.characters) - 2} characters")
        best = scores.max(1)
        text, sure, last = "", [], 0
        for place, (value, probability) in enumerate(zip(best.indices.tolist(), best.values.tolist(), strict=True)):
            if value not in (0, last if place else 0):  # none, or the one before once more
                text += self.characters[value]
                sure.append(probability)
            last = value
        return text, sum(sure) / max(len(sure), 1)

    def __call__(self, image: tenon.Tensor) -> list[tuple[Box, str, float]]:
        boxes = self.lines(image)
        return [(box, *self.read(image[:, box.top : box.bottom, box.left : box.right])) for box in boxes]


def characters_of(recogniser: str | Path, file: str | Path | None = None) -> list[str]:
    """One character a line, from a file or from the metadata of the network."""
    if file is not None:
        return Path(file).read_text("utf-8").splitlines()
    metadata: dict[str, Any] = tenon.onnx.contents(recogniser).metadata
    if "character" not in metadata:
        raise ValueError(f"{recogniser}: the file does not say what its classes are; give a file of characters")
    return str(metadata["character"]).split("\n")


def networks() -> tuple[Path, Path]:
    """Those of the package rapidocr-onnxruntime."""
    package = importlib.util.find_spec("rapidocr_onnxruntime")
    if package is None or package.origin is None:
        raise SystemExit("ocr: give --detector and --recogniser, or pip install --no-deps rapidocr-onnxruntime")
    folder = Path(package.origin).parent / "models"
    return next(folder.glob("*det_infer.onnx")), next(folder.glob("*rec_infer.onnx"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture")
    parser.add_argument("--detector")
    parser.add_argument("--recogniser")
    parser.add_argument("--characters", help="a file with a character a line; by default what the recogniser's file says")
    options = parser.parse_args()
    detector, recogniser = options.detector, options.recogniser
    if detector is None or recogniser is None:
        detector, recogniser = networks()
    reader = Reader(detector, recogniser, characters_of(recogniser, options.characters))
    for box, text, sure in reader(read_image(options.picture)):
        print(f"{box.left:5} {box.top:5} {box.right:5} {box.bottom:5}  {sure:.2f}  {text}")


if __name__ == "__main__":
    main()
