"""The version of Tenon, and those of the libraries for devices that PyTorch is built with, which Tenon does without."""

from __future__ import annotations

import sys

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

__version__: str = vars(sys.modules["tenon"])["__version__"]
debug: bool = False
git_version: str | None = None
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
