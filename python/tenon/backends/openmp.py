"""OpenMP."""


def is_available() -> bool:
    """Whether operators may use several threads: yes. Tenon's are its own."""
    return True
