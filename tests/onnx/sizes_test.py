"""Attributes and shapes that no memory has room for, or that would divide by zero, are refused by name."""

import numpy as np
import pytest

from onnx_networks import run

HUGE = 1 << 62
image = np.ones((1, 8, 3, 3), np.float32)


@pytest.mark.parametrize("op, inputs, attributes, words", [
    ("DepthToSpace", [image], {"blocksize": HUGE}, "DepthToSpace: 8 channels in blocks of 4611686018427387904"),
    ("Split", [image], {"num_outputs": HUGE, "axis": 1}, "Split: attribute `num_outputs` is 4611686018427387904, of 1 outputs"),
    ("Range", [np.float32(0), np.float32(1), np.float32(0)], {}, "Range: from 0 to 1 in steps of 0"),
    ("Range", [np.float32(0), np.float32("nan"), np.float32(1)], {}, "Range: from 0 to nan in steps of 1"),
    ("DeformConv", [image[:, :1], np.ones((1, 1, 2, 2), np.float32), np.ones((1, 8, 2, 0), np.float32)], {}, r"DeformConv: .*offsets \[1, 8, 2, 0\]"),
    ("MaxPool", [image], {"kernel_shape": [2, 2], "pads": [0, 0, 0, HUGE]}, "MaxPool: attribute `pads` has the number 4611686018427387904"),
    ("MaxPool", [image], {"kernel_shape": [HUGE, 2]}, "MaxPool: a kernel of 4611686018427387904 elements"),
    ("ConvInteger", [np.ones((1, 1, 4, 4), np.uint8), np.ones((1, 1, 2, 2), np.uint8)], {"dilations": [HUGE, 1]}, "ConvInteger: attribute `strides` or"),
    ("RNN", [image[0, :, :2], np.ones((1, 5, 3), np.float32), np.ones((1, 5, 5), np.float32), np.ones((1, 1, 10), np.float32)], {},
     r"RNN: weights \[1, 5, 3\] and a bias \[1, 1, 10\]"),
    ("Pad", [image, np.array([0, 0, 0, 0, 0, 0, 0, HUGE])], {"mode": "edge"}, "Pad: pads of 0 and 4611686018427387904 elements"),
    ("Pad", [image, np.array([0, 0, 0, 0, 0, 0, 0, 1 << 47])], {"mode": "edge"}, "more bytes|not to be had"),
    ("CenterCropPad", [image, np.array([1, 8, -HUGE, 3])], {}, "CenterCropPad: its shape has the size -4611686018427387904"),
    ("RoiAlign", [image, np.ones((3, 4), np.float32), np.zeros(3, np.int64)], {"output_height": HUGE, "sampling_ratio": 2}, "RoiAlign: an output of 4611686018427387904 by 1 of 2 samples"),
])  # fmt: skip
def test_absurd_sizes_are_refused(op, inputs, attributes, words):
    with pytest.raises((ValueError, MemoryError, RuntimeError), match=words.replace("(onnx", r"\(onnx")):
        run(op, *inputs, **attributes)
