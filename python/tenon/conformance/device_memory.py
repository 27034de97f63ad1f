"""What no operator shows of a device's memory: figures, errors, what goes back, mapping, pinned memory, other libraries' tensors."""

import ctypes
import os
from contextlib import contextmanager
from itertools import permutations

import tenon

from .device_bench import BLOCK, ELEMENTS, TRIES, NotOffered

#: The largest block that is taken and given back, and how often at most.
LARGEST, ROUNDS = 1 << 30, 128


def memory_info(b):
    """Figures are sound, and follow what is allocated on the device that they are of."""
    devices = [f"{b.module._name}:{i}" for i in range(b.module.device_count())]
    for device in devices:
        held = tenon.zeros(BLOCK // 4, device=device)  # of a device that is all free, both figures are one
        free, total = b.module.mem_get_info(device)
        del held
        assert 0 <= free <= total, f"memory_info says that {free} bytes of {total} are free on {device}"
    less = {device: missing(b, device, devices[:2]) for device in devices[:2]}
    for device, other in permutations(less, 2):
        if less[device][other] >= BLOCK and less[device][device] <= 0:
            raise AssertionError(f"raw_alloc, memory_info: {BLOCK} bytes for {device} are missing on {other}, not there")
        if less[device][other] >= BLOCK and less[other][other] <= 0:
            raise AssertionError(f"memory_info: what is free on {other} follows what {device} takes, and not what {other} does")
    b.module.empty_cache()


def missing(b, device, devices):
    """How much less is free on each of the devices while one of them has a block more."""
    b.module.synchronize(device)
    b.module.empty_cache()
    before = {d: b.module.mem_get_info(d)[0] for d in devices}
    block = tenon.zeros(BLOCK // 4, device=device)
    b.module.synchronize(device)
    less = {d: before[d] - b.module.mem_get_info(d)[0] for d in devices}
    del block
    return less


def out_of_memory(b):
    """A request that is too large raises OutOfMemoryError, and the device goes on."""
    total = b.module.mem_get_info(b.device)[1] or b.module.get_device_properties(b.device).total_memory
    for nbytes in (total + BLOCK if total else 0, 2**55):
        if not nbytes:
            continue
        try:
            kept = tenon.empty([nbytes], dtype=tenon.uint8, device=b.device)
        except tenon.OutOfMemoryError:
            continue
        except Exception as e:
            raise AssertionError(f"raw_alloc of {nbytes} bytes fails with {type(e).__name__}, not as out of memory: {e}") from e
        del kept
    assert tenon.ones(5, device=b.device).cpu().tolist() == [1] * 5, "after an allocation that failed nothing goes on"


def host_alloc(b):
    """Pinned memory takes part in copies that the host does not wait for."""
    try:
        here = tenon.arange(ELEMENTS, dtype=tenon.float32).pin_memory()
    except (NotImplementedError, RuntimeError) as e:
        raise NotOffered(str(e)) from None
    there = here.to(b.device, non_blocking=True)
    back = tenon.zeros(ELEMENTS).pin_memory()
    back.copy_(there, non_blocking=True)
    b.module.synchronize(b.device)
    assert back.equal(tenon.arange(ELEMENTS, dtype=tenon.float32)), "host_alloc, copy: pinned memory has not what was copied to it"


def raw_free(b):
    """Memory that went back is there again."""
    balance(b, "raw_free")


def balance(b, function):
    """Takes blocks and gives them back, until the device would be full if they had stayed."""
    for _ in range(TRIES):  # others may take memory meanwhile
        lost = lost_by_figures(b)
        if lost < BLOCK:
            break
    assert lost < BLOCK, f"{function}, memory_info: {lost} bytes are missing on {b.device} after {BLOCK} were taken and given back"
    total = b.module.mem_get_info(b.device)[1] or b.properties.total_memory
    block, taken = min(max(total // 8, BLOCK), LARGEST), 0
    for _ in range(ROUNDS):
        if taken > total:
            return
        try:
            kept = tenon.empty([block], dtype=tenon.uint8, device=b.device)
        except tenon.OutOfMemoryError as e:
            if taken == 0 and block > BLOCK:
                block //= 2
                continue
            raise AssertionError(f"{function}: blocks of {block} bytes were taken and given back, {taken} bytes in all, and then there "
                                 f"is none: {e}") from None  # fmt: skip
        del kept
        b.module.synchronize(b.device)
        b.module.empty_cache()
        taken += block


def lost_by_figures(b):
    """How much less is free when a block was taken and has gone back."""
    b.module.synchronize(b.device)
    b.module.empty_cache()
    before = b.module.mem_get_info(b.device)[0]
    block = tenon.zeros(BLOCK // 4, device=b.device)
    b.module.synchronize(b.device)
    del block
    b.module.empty_cache()
    b.module.synchronize(b.device)
    return before - b.module.mem_get_info(b.device)[0]


@contextmanager
def expandable_segments(b):
    """New memory is mapped."""
    b.module.set_allocator_settings("expandable_segments:True")
    try:
        yield
    finally:
        b.module.set_allocator_settings(f"expandable_segments:{os.environ.get('TENON_EXPANDABLE_SEGMENTS') == '1'}")


def mapping(b):
    """Memory that is mapped keeps what it has while its neighbours are unmapped, and is there again when it was unmapped."""
    if b.properties.map_granularity == 0:
        raise NotOffered("its properties have no map_granularity")
    with expandable_segments(b):
        balance(b, "reserve, map, unmap, unreserve")
        blocks = [tenon.full((BLOCK // 4,), v, dtype=tenon.int32, device=b.device) for v in (3, 5, 7)]
        b.module.synchronize(b.device)
        blocks[1] = None
        b.module.empty_cache()  # takes memory away between the others
        blocks[1] = tenon.full((BLOCK // 4,), 9, dtype=tenon.int32, device=b.device)
        for block, v in zip(blocks, (3, 9, 7)):
            assert bool((block.cpu() == v).all()), "map, unmap: memory has lost its values while other memory was unmapped and mapped"
        del block, blocks
        b.module.synchronize(b.device)
        b.module.empty_cache()


#: Where a DLManagedTensor has its deleter.
DELETER = 56
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_foreign = {}


def as_foreign(tensor):
    """What DLPack says of a tensor, as if another library had made it: with another deleter."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = tensor.__dlpack__()
    place = ctypes.c_void_p.from_address(pointer_of(capsule, b"dltensor") + DELETER)
    own = place.value

    def delete(managed):
        _foreign.pop(managed)
        place.value = own
        _Deleter(own)(managed)

    callback = _foreign[pointer_of(capsule, b"dltensor")] = _Deleter(delete)
    place.value = ctypes.cast(callback, ctypes.c_void_p).value
    return capsule


def exchange(b):
    """A tensor that goes out by DLPack and comes in again shares the memory, and holds it."""
    whole = tenon.arange(24.0, device=b.device)
    part = whole[7:19].view(3, 4)
    try:
        capsule = as_foreign(part)
    except BufferError as e:
        raise NotOffered(str(e)) from None
    what = "memory_export, memory_import, dlpack_type: a tensor that went out and came in again by DLPack"
    back = tenon.from_dlpack(capsule, device=b.device)
    del capsule
    assert back.cpu().tolist() == part.cpu().tolist(), f"{what} is {back.cpu().tolist()}, expected {part.cpu().tolist()}"
    whole.fill_(5)
    b.module.synchronize(b.device)
    assert bool((back.cpu() == 5).all()), f"{what} does not show what is written to the first"
    back.fill_(9)
    b.module.synchronize(b.device)
    want = [5.0] * 7 + [9.0] * 12 + [5.0] * 5
    assert whole.cpu().tolist() == want, f"{what} was filled with 9, and the first is {whole.cpu().tolist()}"
    del whole, part
    others = [tenon.full((24,), 1.0, device=b.device) for _ in range(4)]
    b.module.synchronize(b.device)
    assert bool((back.cpu() == 9).all()), f"{what} loses its memory to other tensors"
    del others


CHECKS = (memory_info, out_of_memory, raw_free, mapping, host_alloc, exchange)
