"""cuDNN, which Tenon does not have. Switches can be set, as programs do, and change nothing: results have the same bits anyway."""

enabled = False
benchmark = False
deterministic = True
allow_tf32 = False
benchmark_limit = None


def is_available() -> bool:
    """Whether there is cuDNN: no."""
    return False


def version() -> None:
    """cuDNN's version: none."""
    return None
