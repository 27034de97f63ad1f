"""Small rooms with PyTorch's names: storages with a dtype, futures, what programs ask of a compiler and of several processes."""

import copy
import pickle
import threading

import pytest

import tenon
import tenon.compiler
import tenon.distributed
from tenon import futures
from tenon.storage import TypedStorage


def test_storages_have_a_dtype():
    s = tenon.FloatStorage([1, 2, 3])
    assert (len(s), s.tolist(), s.dtype, s.nbytes(), s.element_size(), s.size()) == (3, [1.0, 2.0, 3.0], tenon.float32, 12, 4, 3)
    assert s[1] == 2.0 and s[-1] == 3.0 and list(s) == [1, 2, 3] and s.type() == "tenon.FloatStorage" and s.device.type == "cpu"
    s[0] = 7
    s[1:] = 5
    assert s.tolist() == [7, 5, 5] and s.fill_(2).tolist() == [2, 2, 2] and s.copy_(tenon.FloatStorage([4, 5, 6])).tolist() == [4, 5, 6]
    assert isinstance(s.long(), tenon.LongStorage) and s.long().tolist() == [4, 5, 6] and s.float() is s and s.bool().tolist() == [True] * 3
    assert isinstance(s.type("tenon.IntStorage"), tenon.IntStorage) and isinstance(s.type(tenon.IntStorage), tenon.IntStorage)
    for other in (s.clone(), copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s))):
        assert type(other) is tenon.FloatStorage and other.tolist() == s.tolist() and other.data_ptr() != s.data_ptr() and other != s
    x = tenon.arange(3.0)
    wrapped = TypedStorage(wrap_storage=x.untyped_storage(), dtype=tenon.float32)
    wrapped[0] = 9
    assert x[0] == 9 and wrapped.untyped().data_ptr() == x.untyped_storage().data_ptr() and wrapped == TypedStorage(wrap_storage=x.untyped_storage())
    assert TypedStorage(2, dtype=tenon.int8).nbytes() == 2 and len(tenon.DoubleStorage()) == 0 and tenon.Storage is tenon.FloatStorage
    assert s.cpu() is s and s.to(device="cpu") is s and not s.is_shared() and not s.is_cuda and s.get_device() == -1 and not s.is_pinned()
    assert repr(s) == " 4.0\n 5.0\n 6.0\n[tenon.storage.TypedStorage(dtype=tenon.float32, device=cpu) of size 3]"


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda s: s[3], IndexError, "index 3 .* is not one of 3 numbers"),
        (lambda s: s[:1], RuntimeError, "slices are for assignment"),
        (lambda s: s.__setitem__(3, 1), IndexError, "not one of 3"),
        (lambda s: s.copy_([1]), RuntimeError, "source must be a TypedStorage of 3"),
        (lambda s: tenon.FloatStorage(-1), RuntimeError, "must not be negative"),
        (lambda s: tenon.FloatStorage("x"), TypeError, "expected a size or a sequence"),
        (lambda s: tenon.FloatStorage(1, 2), TypeError, "got 2 arguments"),
        (lambda s: tenon.FloatStorage(1, dtype=tenon.int8), RuntimeError, "dtype is tenon.float32, got tenon.int8"),
        (lambda s: TypedStorage(1, dtype=3), TypeError, "dtype must be a dtype"),
        (lambda s: TypedStorage(wrap_storage=3), TypeError, "must be an UntypedStorage"),
        (lambda s: TypedStorage(wrap_storage=s.untyped(), device="meta"), RuntimeError, "device must be that of wrap_storage"),
        (lambda s: s.type(3), TypeError, "type: dtype must be"),
    ],
)
def test_errors_of_storages(call, kind, text):
    with pytest.raises(kind, match=text):
        call(tenon.FloatStorage([1, 2, 3]))


def test_futures():
    first: futures.Future[int] = tenon.Future()
    seen = []
    then = first.then(lambda f: f.value() + 1)
    first.add_done_callback(lambda f: seen.append(f.value()))
    both = futures.collect_all([first, then])
    with pytest.raises(RuntimeError, match=r"value\(\) needs a value"):
        first.value()
    thread = threading.Thread(target=first.set_result, args=(4,))
    thread.start()
    assert first.wait() == 4 and then.wait() == 5 and futures.wait_all([first, then]) == [4, 5]
    thread.join()
    assert both.done() and both.value() == [first, then] and seen == [4] and futures.collect_all([]).wait() == []
    first.add_done_callback(lambda f: seen.append("late"))
    assert seen == [4, "late"]
    failing = tenon.Future()
    failing.set_exception(ValueError("own"))
    after = failing.then(lambda f: f.value())
    for future in (failing, after):
        with pytest.raises(ValueError, match="own"):
            future.wait()


def test_errors_of_futures(capsys):
    done = tenon.Future()
    done.set_result(1)
    for call, kind, text in (
        (lambda: done.set_result(2), RuntimeError, "can be set once"),
        (lambda: done.set_exception("x"), TypeError, "takes an exception"),
        (lambda: done.then(3), TypeError, "callback must be callable"),
        (lambda: done.add_done_callback(3), TypeError, "callback must be callable"),
        (lambda: futures.wait_all([3]), TypeError, "must be a list of Futures"),
        (lambda: tenon.Future(devices=["cuda"]), NotImplementedError, "devices are not supported"),
        (lambda: tenon.wait(3), TypeError, "future must be a Future"),
        (lambda: tenon.fork(3), TypeError, "func must be callable"),
    ):
        with pytest.raises(kind, match=text):
            call()
    done.add_done_callback(lambda f: 1 / 0)
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_types_of_results_are_found_by_name():
    x = tenon.eye(2) + 1
    assert type(tenon.max(x, 0)) is tenon.return_types.max and type(tenon.linalg.qr(x)) is tenon.return_types.linalg_qr
    for name in tenon.return_types.__all__:
        assert getattr(tenon.return_types, name).__name__ == name
    again = pickle.loads(pickle.dumps(tenon.max(x, 0)))
    assert type(again) is tenon.return_types.max and again.values.equal(tenon.max(x, 0).values)


def test_what_is_asked_of_a_compiler_and_of_several_processes():
    compiler = tenon.compiler
    assert not compiler.is_compiling() and not compiler.is_dynamo_compiling() and not compiler.is_exporting()
    assert compiler.disable(abs) is abs and compiler.disable()(abs) is abs and compiler.allow_in_graph([abs]) == [abs]
    assert compiler.allow_in_graph(abs) is abs and compiler.assume_constant_result(abs) is abs and compiler.list_backends() == []
    assert compiler.compile is tenon.compile and compiler.cudagraph_mark_step_begin() is None
    with pytest.raises(TypeError, match="disable: fn must be callable"):
        compiler.disable(3)
    assert not tenon.distributed.is_available() and not tenon.distributed.is_initialized()
    assert not tenon.mtia.is_available() and tenon.mtia.device_count() == 0
    assert tenon.Stream is tenon.devices.Stream and tenon.Event is tenon.devices.Event
