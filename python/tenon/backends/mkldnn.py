"""oneDNN, which Tenon does not have."""


def is_available() -> bool:
    """Whether there is oneDNN: no."""
    return False
