"""MKL, which Tenon does not have."""


def is_available() -> bool:
    """Whether there is MKL: no."""
    return False
