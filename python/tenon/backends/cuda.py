"""CUDA, which Tenon does not have. Switches can be set, as programs do, and change nothing."""


class _Switches:
    """Options of CUDA's matrix products."""

    def __init__(self) -> None:
        self.allow_tf32 = False
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True
        self.fp32_precision = "none"


matmul = _Switches()


def is_built() -> bool:
    """Whether Tenon was built with CUDA: no."""
    return False
