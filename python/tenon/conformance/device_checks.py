"""What no operator shows of a device, in parts that --ops names: the functions of its table, and programs of several operators."""

from contextlib import suppress

from . import device_capture, device_memory, device_table, regions
from .device_bench import Bench, NotOffered, NotSeen


def _name(check):
    """A function's name; with a number, where a function checks several sizes."""
    return f"{check.func.__name__}_{check.keywords['count']}" if hasattr(check, "func") else check.__name__


TABLE, REGIONS = "table", "regions"
#: {part: {its checks by name}}
PARTS = {
    TABLE: {_name(c): c for c in (*device_table.CHECKS, *device_memory.CHECKS, *device_capture.CHECKS)},
    REGIONS: {_name(c): c for c in regions.CHECKS},
}


def names(part):
    """What --ops may pick of a part."""
    return [f"{part}.{check}" for check in PARTS[part]]


def try_check(name, device):
    """("kept", "not offered", "not seen" or "wrong"; what was seen)"""
    part, _, check = name.partition(".")
    bench = Bench(device)
    try:
        PARTS[part][check](bench)
        bench.module.synchronize(bench.device)  # the next check may get the memory of this one
    except NotOffered as e:
        return "not offered", str(e)
    except NotSeen as e:
        return "not seen", str(e)
    except Exception as e:  # the device's own errors, too
        with suppress(Exception):
            bench.module.synchronize(bench.device)
        return "wrong", str(e) if isinstance(e, AssertionError) else f"{type(e).__name__}: {e}"
    return "kept", ""
