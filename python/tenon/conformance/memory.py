"""Memory that calls of operators leak on a device: what is held after their arguments and results have gone."""

import gc

import tenon

from . import order
from .comparison import Difference, outcome

#: How often a call is repeated; what it leaks each time is kept, and no cache.
TIMES = 4


def held(device):
    """The bytes of tensors on a device."""
    return tenon.devices.module_if_there(device.partition(":")[0]).memory_allocated(device)


def kept(call, device):
    """Whether each of some calls leaks memory, also when the interpreter has collected what only cycles hold."""
    if not grows(call, device, lambda: None):
        return None
    if more := grows(call, device, gc.collect):
        return Difference("memory", f"each call leaks {more} bytes after its arguments and results are gone")
    return None


def grows(call, device, settle):
    """By how much most of some calls let the memory grow that is held; 0 where they do not. One of them may free what is older."""
    found = []
    for _ in range(TIMES):
        before = held(device)
        outcome(call.function, *call.arguments(device))
        order.wait_for(device)
        settle()
        found.append(held(device) - before)
    return max(found) if sum(more > 0 for more in found) >= TIMES - 1 else 0
