"""DLPack between opencl and others: a cl_mem and a byte of it (S32). The other library is OpenCL's own, by ctypes."""

import ctypes
import gc

import numpy as np
import pytest

import tenon
from tests.devices.opencl_programs import run, same

KDL_OPENCL = 4
CL_MEM_SIZE, CL_MEM_CONTEXT, CL_MEM_REFERENCE_COUNT = 0x1102, 0x1106, 0x1105
CL_MEM_READ_WRITE, CL_TRUE = 1, 1


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class OpenCl:
    """The context of a device of Tenon's, as another library in the process would have it."""

    def __init__(self, of):
        self.cl = ctypes.CDLL("libOpenCL.so.1")
        for name in ("clCreateBuffer", "clCreateContext", "clCreateCommandQueue"):
            getattr(self.cl, name).restype = ctypes.c_void_p
        capsule = of.__dlpack__()
        self.context = self.ask(Managed.from_address(pointer_of(capsule, b"dltensor")).tensor.data, CL_MEM_CONTEXT)
        device = ctypes.c_void_p()
        self.check(self.cl.clGetContextInfo(ctypes.c_void_p(self.context), 0x1081, ctypes.c_size_t(8), ctypes.byref(device), None))
        self.device = device.value
        code = ctypes.c_int32()
        self.queue = self.cl.clCreateCommandQueue(ctypes.c_void_p(self.context), device, ctypes.c_uint64(0), ctypes.byref(code))
        self.check(code.value)

    @staticmethod
    def check(code):
        assert code == 0, f"OpenCL's error {code}"

    def ask(self, memory, what):
        value = ctypes.c_size_t(0)
        size = 4 if what == CL_MEM_REFERENCE_COUNT else 8
        self.check(self.cl.clGetMemObjectInfo(ctypes.c_void_p(memory), what, ctypes.c_size_t(size), ctypes.byref(value), None))
        return value.value

    def buffer(self, elements, context=None):
        """A new buffer with the bytes of an array."""
        code = ctypes.c_int32()
        flags = CL_MEM_READ_WRITE | 1 << 5  # CL_MEM_COPY_HOST_PTR
        memory = self.cl.clCreateBuffer(
            ctypes.c_void_p(context or self.context), ctypes.c_uint64(flags), ctypes.c_size_t(elements.nbytes),
            elements.ctypes.data_as(ctypes.c_void_p), ctypes.byref(code),
        )  # fmt: skip
        self.check(code.value)
        return memory

    def other_context(self):
        code = ctypes.c_int32()
        device = ctypes.c_void_p(self.device)
        context = self.cl.clCreateContext(None, 1, ctypes.byref(device), None, None, ctypes.byref(code))
        self.check(code.value)
        return context

    def read(self, memory, offset, count):
        """float32 elements of a buffer, read on a queue that is not Tenon's."""
        elements = np.empty(count, np.float32)
        self.check(self.cl.clEnqueueReadBuffer(
            ctypes.c_void_p(self.queue), ctypes.c_void_p(memory), CL_TRUE, ctypes.c_size_t(offset), ctypes.c_size_t(elements.nbytes),
            elements.ctypes.data_as(ctypes.c_void_p), 0, None, None))  # fmt: skip
        return elements


class Foreign:
    """A producer of float32 elements in a buffer of OpenCL's."""

    kept = []  #: What consumers have.

    def __init__(self, memory, shape, strides=None, offset=0, device=(KDL_OPENCL, 0)):
        self.memory, self.shape, self.strides, self.offset, self.device = memory, shape, strides, offset, device
        self.asked, self.freed = [], 0

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **asked):
        self.asked.append(asked)
        lists = [(ctypes.c_int64 * len(self.shape))(*v) if v is not None else None for v in (self.shape, self.strides)]

        @Deleter
        def free(_):
            self.freed += 1

        tensor = DLTensor(self.memory, *self.device, len(self.shape), 2, 32, 1, lists[0], lists[1], self.offset)
        managed = Managed(tensor, None, free)
        Foreign.kept.append((managed, lists, free))
        return new_capsule(ctypes.addressof(managed), b"dltensor", None)


@pytest.fixture
def cl(opencl):
    return OpenCl(tenon.ones(1, device="opencl"))


def test_a_tensor_goes_out_as_its_buffer(opencl, cl):
    whole = tenon.arange(24.0, device="opencl").view(4, 6) * 1
    x = whole[1:, ::2]
    assert x.__dlpack_device__() == (KDL_OPENCL, 0)
    waits = tenon.ops.opencl.num_waits(x)
    capsule = x.__dlpack__()
    assert tenon.ops.opencl.num_waits(x) == waits + 1, "another library's queue knows nothing of ours: what was queued has run"
    tensor = Managed.from_address(pointer_of(capsule, b"dltensor")).tensor
    assert (tensor.device_type, tensor.device_id, tensor.bits, tensor.ndim) == (KDL_OPENCL, 0, 32, 2)
    assert tensor.shape[:2] == [3, 3] and tensor.strides[:2] == [6, 2]
    assert cl.ask(tensor.data, CL_MEM_SIZE) >= tensor.byte_offset + 18 * 4
    assert cl.read(tensor.data, tensor.byte_offset, 6).tolist() == [6, 7, 8, 9, 10, 11]
    later = tenon.ones(3, device="opencl")  # further on in the same buffer
    other = Managed.from_address(pointer_of(later.__dlpack__(), b"dltensor"))
    del whole, x
    assert cl.read(tensor.data, tensor.byte_offset, 6)[0] == 6, "memory lives as long as the capsule"
    assert other.tensor.data


def test_tensors_of_opencl_share_memory(opencl):
    x = tenon.arange(24.0, device="opencl").view(4, 6)[1:, ::2]
    waits = tenon.ops.opencl.num_waits(x)
    y = tenon.from_dlpack(x)
    assert tenon.ops.opencl.num_waits(x) == waits, "the stream orders it"
    assert y.device == x.device and y.data_ptr() == x.data_ptr() and y.stride() == x.stride() and y.equal(x)
    for capsule in (x.__dlpack__(), x.__dlpack__(max_version=(1, 0)), x.__dlpack__(dl_device=(KDL_OPENCL, 0), copy=False, stream=-1)):
        z = tenon.from_dlpack(capsule)
        assert z.data_ptr() == x.data_ptr()
        with pytest.raises(ValueError, match="used already"):
            tenon.from_dlpack(capsule)
    y.add_(1)
    assert x[0].tolist() == [7, 9, 11], "one memory"
    s = opencl.Stream()
    with opencl.stream(s):
        w = x * 2
        u = tenon.from_dlpack(w.__dlpack__(stream=0))
    assert u.add(1)[0].tolist() == [15, 19, 23]
    copied = tenon.from_dlpack(x, copy=True)
    assert copied.data_ptr() != x.data_ptr() and copied.equal(x)
    assert tenon.from_dlpack(x, device="cpu").tolist() == x.tolist()
    assert np.from_dlpack(tenon.from_dlpack(x.__dlpack__(dl_device=(1, 0)))).tolist() == x.tolist()
    empty = tenon.empty(0, 3, device="opencl")
    assert tenon.from_dlpack(empty.__dlpack__()).shape == (0, 3)


def test_another_librarys_buffer_is_computed_with(opencl, cl):
    elements = np.arange(40, dtype=np.float32)
    memory = cl.buffer(elements)
    theirs = Foreign(memory, (3, 4), (8, 2), offset=20)
    x = tenon.from_dlpack(theirs)
    (asked,) = theirs.asked
    assert asked == {"max_version": (1, 0)}, "it knows no streams of ours"
    assert x.device == tenon.device("opencl:0") and x.shape == (3, 4) and x.stride() == (8, 2)
    want = tenon.from_numpy(elements[5:].copy()).as_strided((3, 4), (8, 2))
    same(x, want)
    same(x.t().exp() + x.t(), want.t().exp() + want.t())
    same(x[1:, 1:].flip(0).to(tenon.int16), want[1:, 1:].flip(0).to(tenon.int16))
    same(x @ x.t(), want @ want.t())
    x[1].mul_(-1)
    opencl.synchronize()
    assert cl.read(memory, 20 + 32, 8).tolist() == [-13, 14, -15, 16, -17, 18, -19, 20], "one memory"
    # The same buffer once more: one memory, which copies see to.
    y = tenon.from_dlpack(Foreign(memory, (40,)))
    flat = tenon.from_dlpack(Foreign(memory, (39,), offset=4))
    flat.copy_(y[:39])
    opencl.synchronize()
    assert cl.read(memory, 0, 8).tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
    again = tenon.from_dlpack(x.__dlpack__())
    del x, want
    gc.collect()
    assert theirs.freed == 0 and again[0, 0].item() == 4
    del again
    assert theirs.freed == 1


def test_memory_that_has_gone_is_not_taken_for_new(opencl, cl):
    """Drivers give a new buffer the handle of one that was released."""
    for i in range(20):
        memory = cl.buffer(np.full(16, i, np.float32))
        x = tenon.from_dlpack(Foreign(memory, (16,)))
        assert cl.ask(memory, CL_MEM_REFERENCE_COUNT) >= 2
        cl.check(cl.cl.clReleaseMemObject(ctypes.c_void_p(memory)))  # the tensor has a reference of its own
        assert (x + 1).tolist() == [i + 1] * 16
        del x


def test_what_is_refused(opencl, cl):
    memory = cl.buffer(np.zeros(10, np.float32))
    for theirs, match in (
        (Foreign(memory, (11,)), "the buffer has 40 bytes; the tensor needs 44 from byte 0 on"),
        (Foreign(memory, (3,), (4,), offset=8), "the buffer has 40 bytes; the tensor needs 36 from byte 8 on"),
        (Foreign(memory, (1,), offset=1 << 50), "the buffer has 40 bytes"),
        (Foreign(None, (1,)), "the data is no cl_mem"),
        (Foreign(cl.buffer(np.zeros(4, np.float32), cl.other_context()), (4,)), "belongs to another OpenCL context"),
        (Foreign(memory, (1,), device=(KDL_OPENCL, 7)), "opencl has no device 7"),
        (Foreign(memory, (1,), device=(2, 0)), "no loaded device has DLPack's type 2"),
    ):  # fmt: skip
        with pytest.raises(BufferError, match=match):
            tenon.from_dlpack(theirs)
        assert theirs.freed == 0, "it is the producer's still"
    with pytest.raises(ValueError, match="aligned"):
        tenon.from_dlpack(Foreign(memory, (1,), offset=2))
    x = tenon.ones(3, device="opencl")
    with pytest.raises(BufferError, match="requires grad"):
        tenon.ones(2, device="opencl", requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="negative strides"):
        tenon.arange(3.0, device="opencl").flip(0).__dlpack__()
    with pytest.raises(BufferError, match="on opencl:0, and copy=False forbids"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="on opencl:0; move it"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="has no stream -5"):
        x.__dlpack__(stream=-5)
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(x)
    assert (x + 1).tolist() == [2, 2, 2]


def test_two_instances_have_contexts_of_their_own():
    out = run("""
first = tenon.load_device(path)
second = tenon.load_device(path, name="second")
x = tenon.arange(4., device="opencl")
print(tenon.from_dlpack(x.__dlpack__()).device, tenon.from_dlpack(x, device="second").tolist())
y = tenon.from_dlpack(tenon.ones(2, device="second"))
print(y.device, y.tolist())
del x, y
tenon.unload_device("opencl")
tenon.unload_device("second")
""")
    assert out == "opencl:0 [0.0, 1.0, 2.0, 3.0]\nsecond:0 [1.0, 1.0]\n"
