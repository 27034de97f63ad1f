"""ONNX: networks that other programs wrote, as modules that run, train and are saved.

    model = tenon.onnx.load("classifier.onnx")
    scores = model(image)                      # inputs in the file's order, or by name
    model.state_dict()                         # weights under the names that they have in the file
    tenon.onnx.save(model, "other.onnx", image)

What the operators compute is what the standard says (onnx.ai, "Operators"). docs/models.md goes from a file to a program.
"""

from __future__ import annotations

from .._names.absent import module_getattr as _module_getattr
from .contents import Contents, Operator, contents
from .model import Model, Port, load
from .save import save

__all__ = ["Contents", "Model", "Operator", "Port", "contents", "load", "save"]

__getattr__ = _module_getattr(__name__)
