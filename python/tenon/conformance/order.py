"""The order of work on a device: streams, and memory that goes back while work that was given is still to run.

A device that holds its work back (openreg with mode=lazy) shows each fault every time; another one may hide them.
"""

from functools import cache

import tenon

from . import check
from .comparison import Difference, bits, outcome


def settled(call, device):
    """Whether the difference is gone where the device has nothing to do before and after the call."""

    def around(make):
        wait_for(device)
        made = make()
        wait_for(device)
        return made

    return call.compare(*call.on(device, around)) is None


def wait_for(device):
    tenon._C._devices.synchronize(tenon.device(device))


#: Operators that move elements from one place to another, and so from one device to another.
COPIES = {"mm", "copy_", "clone", "_to_copy", "cat"}


def second_of(device):
    """The plug-in's second device, where `device` is its first one and there are more."""
    name, _, index = device.partition(":")
    module = tenon.devices.module_if_there(name)
    return f"{name}:1" if int(index or 0) == 0 and module is not None and module.device_count() > 1 else None


def on_device(call, device):
    """The same on another device than the current one, whose memory and streams are its own."""
    there, args, kwargs = call.on(device)
    if found := call.compare(there, args, kwargs):
        return None if found.kind == "bits" else Difference("index", f"on {device}, which is not the current device: {found.text}")
    return None


def addresses(tensors):
    return {t.untyped_storage().data_ptr() for t in tensors}


def results_of(call, there, args, kwargs):
    """(result, what the CPU has) of those that have memory of their own."""
    if isinstance(there, Exception) or call.refused or call.layout or call.op.form != "functional":
        return []
    given = addresses(check.tensors_of([*args, *kwargs.values()]))
    pairs = [(got, want) for got, want in zip(there, call.here) if isinstance(want, tenon.Tensor)]
    return [(got, want) for got, want in pairs if got.numel() and got.untyped_storage().data_ptr() not in given]


def memory_given_back(call, device):
    """The arguments die right after the call and their memory is written again: the results stay as they are."""
    args, kwargs = call.arguments(device)
    held = [t.untyped_storage().nbytes() for t in check.tensors_of([*args, *kwargs.values()])]
    there = outcome(call.function, args, kwargs)
    pairs = results_of(call, there, args, kwargs)
    del args, kwargs, there
    junk = [tenon.full([max(n // 4, 1)], 77, dtype=tenon.int32, device=device) for n in held]
    for got, want in pairs:
        if call.elements and (found := call.compare_tensor(got, want)) and found.kind != "bits":
            return Difference("lifetime", f"memory of an argument was written again, and then: {found.text}")
    del junk
    return None


@cache
def streams_of(device):
    """Two streams other than the default one, for all calls."""
    return tenon.devices.Stream(device), tenon.devices.Stream(device)


def on_a_stream(call, device):
    """On another stream than the default one, which waits for what made the arguments and for nothing else."""
    default, stream = tenon.devices.Stream(device, 0), streams_of(device)[0]
    module = tenon.devices.module_if_there(device.partition(":")[0])
    args, kwargs = call.arguments(device)
    stream.wait_stream(default)
    with module.stream(stream):
        pairs = results_of(call, outcome(call.function, args, kwargs), args, kwargs)
        found = None
        for got, want in pairs:
            if call.elements and not found and (found := call.compare_tensor(got, want)):
                found = None if found.kind == "bits" else Difference("order", f"on a stream of its own: {found.text}")
    wait_for(device)
    return found


def alike(s, other):
    """Whether two samples differ in values alone."""
    shapes = [[(x.dtype, x.shape, x.strides, x.offset) for x in each.specs()] for each in (s, other)]
    return shapes[0] == shapes[1] and s.map(lambda x: None) == other.map(lambda x: None)


def called_again(call, other, device):
    """The same tensors with the values of another call: what the first one computed is of no use."""
    if call.refused or other.refused or not call.elements:
        return None
    args, kwargs = call.arguments(device)
    before = [bits(got) for got, _ in results_of(call, outcome(call.function, args, kwargs), args, kwargs)]
    new_args, new_kwargs = other.arguments(device)
    for t, new in zip(check.tensors_of([*args, *kwargs.values()]), check.tensors_of([*new_args, *new_kwargs.values()])):
        t.copy_(new)
    after = results_of(other, outcome(call.function, args, kwargs), args, kwargs)
    for first, (got, want) in zip(before, after):
        if bits(got) == first != bits(want) and (found := other.compare_tensor(got, want)):
            return Difference("remembered", f"called again with other values in the same tensors: {found.text}")
    return None


#: How often each of two streams is given a call.
TURNS = 2


def on_two_streams(calls, device):
    """Two calls on a stream each, in turns, which nothing orders: none of them may see what the other one computes."""
    if any(call.refused for call in calls):
        return None
    default, streams = tenon.devices.Stream(device, 0), streams_of(device)
    module = tenon.devices.module_if_there(device.partition(":")[0])
    given = [[call.arguments(device) for _ in range(TURNS)] for call in calls]
    for stream in streams:
        stream.wait_stream(default)
    there = [[], []]
    for turn in range(TURNS):
        for k, stream in enumerate(streams):
            with module.stream(stream):
                there[k].append(outcome(calls[k].function, *given[k][turn]))
    wait_for(device)
    for k, call in enumerate(calls):
        for results, (args, kwargs) in zip(there[k], given[k]):
            for got, want in results_of(call, results, args, kwargs):
                if call.elements and (found := call.compare_tensor(got, want)) and found.kind != "bits":
                    return Difference("streams", f"while another stream runs the same operator: {found.text}")
    return None
