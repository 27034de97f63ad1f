"""A device whose own functions are tried, and work for it. Used by the checks of device_checks.py."""

import tenon

#: How often a task is given, so that a device with queues is still at work; and its elements.
TASKS, ELEMENTS = 64, 2**17
#: How often the host looks for what need not show, or for what others may disturb.
TRIES = 3
#: The memory that a check of figures takes: more than Tenon keeps in blocks for several tensors.
BLOCK = 32 << 20


class NotOffered(Exception):
    """The plug-in has not the function."""


class NotSeen(Exception):
    """What is no promise did not show."""


class Bench:
    """A device, and work for it."""

    def __init__(self, device):
        self.device = device if ":" in device else f"{device}:0"
        self.module = tenon.devices.module_if_there(device.partition(":")[0])
        self.properties = self.module.get_device_properties(self.device)

    def work(self, stream):
        """Gives the stream work that takes a while; returns what it writes, and what every element will be."""
        x = tenon.zeros(ELEMENTS, device=self.device)
        self.module.synchronize(self.device)
        with self.module.stream(stream):
            for _ in range(TASKS):
                x += 1
        return x

    def shown(self, x):
        """Whether the work has run, seen from another stream, which waits for nothing."""
        other = self.module.Stream(self.device)
        with self.module.stream(other):
            return bool((x.cpu() == TASKS).all())
