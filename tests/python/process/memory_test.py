"""tenon.cpu: statistics with PyTorch's names, the cache of large blocks, and what happens when memory runs out."""

import os
import re
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import tenon

MIB = 1 << 20


def in_process(code):
    """Runs code in a process of its own, so that limits and caches are its own."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def empty():
    tenon.cpu.empty_cache()


def test_tensors_are_counted_while_they_live():
    before = tenon.cpu.memory_allocated()
    x = tenon.ones(1000, 1000)
    assert tenon.cpu.memory_allocated() - before == 4_000_000
    y = x.reshape(-1)[10:]
    del x
    assert tenon.cpu.memory_allocated() - before == 4_000_000, "a view holds it"
    del y
    assert tenon.cpu.memory_allocated() == before


def test_peaks_and_sums_start_again_when_reset():
    tenon.cpu.reset_peak_memory_stats()
    tenon.cpu.reset_accumulated_memory_stats()
    before = tenon.cpu.memory_allocated()
    tenon.empty(2 * MIB, dtype=tenon.uint8)
    tenon.empty(1 * MIB, dtype=tenon.uint8)
    stats = tenon.cpu.memory_stats()
    assert tenon.cpu.max_memory_allocated() == before + 2 * MIB == stats["allocated_bytes.all.peak"]
    assert stats["allocated_bytes.all.allocated"] == stats["allocated_bytes.all.freed"] == 3 * MIB
    assert stats["allocation.all.allocated"] == 2
    tenon.cpu.reset_peak_memory_stats()
    assert tenon.cpu.max_memory_allocated() == before
    tenon.cpu.reset_accumulated_memory_stats()
    assert tenon.cpu.memory_stats()["allocated_bytes.all.allocated"] == 0


def test_the_keys_are_those_of_pytorch():
    pooled = {"allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes"}
    pooled |= {"inactive_split_bytes", "requested_bytes"}
    plain = {"oversize_allocations", "oversize_segments"}
    counts = {"num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free", "max_split_size"}
    flow = ("current", "peak", "allocated", "freed")
    want = {f"{name}.{pool}.{what}" for name in pooled for pool in ("all", "small_pool", "large_pool") for what in flow}
    want |= {f"{name}.{what}" for name in plain for what in flow} | counts
    assert len(want) == 122
    stats = tenon.cpu.memory_stats("cpu")
    own = {"fragmentation.current", "fragmentation.peak", "waste.peak"}
    assert set(stats) == want | own
    assert list(stats) == sorted(stats)
    assert all(type(value) is (float if name in own else int) for name, value in stats.items())
    nested = tenon.cpu.memory_stats_as_nested_dict(tenon.device("cpu"))
    assert set(nested) == pooled | plain | counts | {"fragmentation", "waste"}
    assert "cpu" in tenon.cpu.memory_summary()
    assert nested["reserved_bytes"]["all"]["peak"] == tenon.cpu.max_memory_reserved()


def test_what_is_kept_is_reserved_until_given_back():
    before = tenon.cpu.memory_reserved()
    x = tenon.empty(3 * MIB, dtype=tenon.uint8)
    place = x.data_ptr()
    del x
    kept = tenon.cpu.memory_reserved() - before
    if tenon.cpu.cache_limit() == 0:  # builds for a sanitizer keep nothing
        assert kept == 0
        return
    assert kept == 3 * MIB
    assert tenon.empty(3 * MIB, dtype=tenon.uint8).data_ptr() == place
    tenon.cpu.empty_cache()
    assert tenon.cpu.memory_reserved() == before


def test_zeros_are_zero_in_memory_that_was_used():
    for n in (10, 40_000, 3 * MIB, 9 * MIB):
        for make in (
            lambda: tenon.zeros(n, dtype=tenon.uint8),
            lambda: tenon.zeros_like(tenon.empty(n, dtype=tenon.uint8)),
            lambda: tenon.empty(2).new_zeros(n, dtype=tenon.uint8),
            lambda: tenon.zeros_like(tenon.empty(2, n // 2, dtype=tenon.uint8).t()),
            lambda: tenon.empty(n, dtype=tenon.uint8).zero_(),
        ):
            tenon.full((n,), 255, dtype=tenon.uint8)  # leaves a block behind
            assert not make().numpy().any()


def test_a_block_may_be_freed_by_another_thread():
    box = [tenon.ones(MIB)]
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    np.testing.assert_array_equal(tenon.zeros(MIB).numpy(), np.zeros(MIB, np.float32))


def test_devices_other_than_the_cpu_are_refused():
    with pytest.raises(ValueError, match=r"memory_stats: expected a cpu device, but got meta"):
        tenon.cpu.memory_stats("meta")
    with pytest.raises(ValueError, match=r"nbytes must not be negative, got -1"):
        tenon.cpu.set_cache_limit(-1)
    with pytest.raises(TypeError, match="set_cache_limit"):
        tenon.cpu.set_cache_limit("1 GB")


def test_memory_info_is_what_the_machine_has():
    free, total = tenon.cpu.mem_get_info()
    assert 0 < free <= total
    with open("/proc/meminfo") as file:
        assert total <= int(re.search(r"MemTotal:\s+(\d+)", file.read()).group(1)) * 1024
    if tenon.cpu.cache_limit():
        assert tenon.cpu.cache_limit() <= total // 4


def test_a_failed_allocation_says_how_much_there_was():
    held = tenon.ones(MIB)
    ooms = tenon.cpu.memory_stats()["num_ooms"]
    with pytest.raises(tenon.OutOfMemoryError) as raised:
        tenon.zeros(10**12)
    text = str(raised.value)
    assert "4000000000000 bytes (3.6 TiB) are not to be had: of " in text
    assert re.search(r"of [\d.]+ GiB of memory [\d.]+ GiB are available", text)
    assert re.search(r"tensors of Tenon hold [\d.]+ [KMG]iB, and its cache is empty", text)
    assert tenon.cpu.memory_stats()["num_ooms"] == ooms + 1
    assert held.sum().item() == MIB


def test_a_full_cache_makes_room_under_a_limit_of_the_address_space():
    out = in_process(
        """
        import resource, tenon
        if tenon.cpu.cache_limit() == 0:
            print("keeps nothing")
            raise SystemExit
        def used():
            return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        tenon.cpu.set_cache_limit(1 << 40)
        resource.setrlimit(resource.RLIMIT_AS, (used() + (400 << 20), resource.RLIM_INFINITY))
        blocks = [tenon.empty(16 << 20, dtype=tenon.uint8) for _ in range(20)]
        del blocks
        assert tenon.cpu.memory_reserved() >= 320 << 20
        x = tenon.zeros(200 << 20, dtype=tenon.uint8)
        assert tenon.cpu.memory_stats()["num_alloc_retries"] == 1
        assert tenon.cpu.memory_reserved() < 220 << 20
        assert x.sum().item() == 0
        try:
            tenon.empty(400 << 20, dtype=tenon.uint8)
        except tenon.OutOfMemoryError as e:
            assert "that this process may take" in str(e), e
            assert "419430400 bytes (400.0 MiB)" in str(e), e
        else:
            raise AssertionError("no error")
        print("made room")
        """
    )
    assert out in ("made room\n", "keeps nothing\n")


def test_a_full_cache_makes_room_for_the_scratch_memory_of_a_product():
    out = in_process(
        """
        import resource, tenon
        a, b = tenon.ones(8, 4096, dtype=tenon.float16), tenon.ones(4096, 4096, dtype=tenon.float16)
        tenon.cpu.set_cache_limit(1 << 40 if tenon.cpu.cache_limit() else 0)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (400 << 20), resource.RLIM_INFINITY))
        blocks = [tenon.empty(16 << 20, dtype=tenon.uint8) for _ in range(23)]
        del blocks  # the product copies b in float32: 64 MiB, which only the cache has
        print((a @ b).float().sum().item())
        """
    )
    assert out == f"{8.0 * 4096 * 4096}\n"


def test_an_error_says_how_much_memory_there_was_whoever_asked_for_it():
    out = in_process(
        """
        import resource, tenon
        x = tenon.ones(1 << 24)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (40 << 20), resource.RLIM_INFINITY))
        for f in (lambda: x[x > 0], lambda: x.nonzero()):
            try:
                f()
            except tenon.OutOfMemoryError as e:
                assert "that this process may take" in str(e) and "tensors of Tenon hold " in str(e), e
            else:
                raise AssertionError("no error")
        """
    )
    assert out == ""


@pytest.mark.parametrize("left", [20 << 20, 100 << 20, 200 << 20])
def test_a_product_ends_where_the_address_space_is_nearly_used_up(left):
    out = in_process(
        f"""
        import resource, tenon
        a, out = tenon.ones(700, 700), tenon.empty(700, 700)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + {left}, resource.RLIM_INFINITY))
        print(tenon.mm(a, a, out=out).sum().item())
        """
    )
    assert out == f"{700.0 ** 3}\n"


def test_a_fork_with_a_full_cache_computes_and_exits():
    x = tenon.arange(MIB, dtype=tenon.float32)
    (x + 1).sum()  # leaves blocks behind
    child = os.fork()
    if child == 0:
        try:
            ok = tenon.zeros(MIB).sum().item() == 0 and (x * 2).sum().item() == 2 * x.sum().item()
            os._exit(0 if ok else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert x[5].item() == 5


def test_allocations_of_several_threads_stay_apart():
    wrong = []

    def work(number):
        for _ in range(30):
            x = tenon.full((200_000,), number)
            y = x + number
            if not (y == 2 * number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_limit_of_the_cache_is_kept():
    out = in_process(
        """
        import tenon
        if tenon.cpu.cache_limit():
            tenon.cpu.set_cache_limit(2 << 20)
            for n in (1, 1, 2, 3):
                tenon.empty(n << 20, dtype=tenon.uint8)
            blocks = [tenon.empty(1 << 20, dtype=tenon.uint8) for _ in range(5)]
            del blocks
            assert tenon.cpu.memory_reserved() - tenon.cpu.memory_allocated() <= 2 << 20
            assert tenon.cpu.cache_limit() == 2 << 20
        print("kept")
        """
    )
    assert out == "kept\n"
