"""Apple's Metal, which Tenon does not have."""


def is_available() -> bool:
    """Whether there is Apple's Metal: no."""
    return False


def is_built() -> bool:
    """Whether Tenon was built with Metal: no."""
    return False
