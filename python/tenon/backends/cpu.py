"""The CPU."""

from .. import _C

_NAMES = {"AVX512": "AVX512", "AVX3": "AVX512", "AVX2": "AVX2"}


def get_cpu_capability() -> str:
    """The instruction set of the kernels, with PyTorch's names: "AVX512", "AVX2" or "DEFAULT"."""
    target = _C.cpu_target_name().upper()
    return next((name for key, name in _NAMES.items() if target.startswith(key)), "DEFAULT")
