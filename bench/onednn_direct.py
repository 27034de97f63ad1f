"""oneDNN called directly, by ctypes: gelu(x @ w + b) as one matmul with a bias and a post-op, and a reduction for the sums
of rows; all layouts as they lie. What compile_rows.py compares the oneDNN engine with."""

import ctypes
import os
import sys

_F32, _ADD, _GELU_ERF, _SUM = 3, 0x1FFF0, 0x31, 0x2FFF4
_SOURCE, _RESULT, _WEIGHTS, _BIAS = 1, 17, 33, 41


class _Argument(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("memory", ctypes.c_void_p)]


class Direct:
    """Raises ImportError where oneDNN 3 is not installed."""

    def __init__(self):
        for file in (os.path.join(sys.prefix, "lib", "libdnnl.so.3"), "libdnnl.so.3"):
            try:
                self._library = ctypes.CDLL(file)
                break
            except OSError:
                continue
        else:
            raise ImportError("oneDNN 3 is not installed")
        self._engine = self._made("engine_create", 1, ctypes.c_size_t(0))
        self._stream = self._made("stream_create", self._engine, 0)

    def _call(self, name, *arguments):
        status = getattr(self._library, f"dnnl_{name}")(*arguments)
        if status:
            raise RuntimeError(f"dnnl_{name}: status {status}")

    def _made(self, name, *arguments):
        made = ctypes.c_void_p()
        self._call(name, ctypes.byref(made), *arguments)
        return made

    def _layout(self, *sizes):
        dims, strides = (ctypes.c_int64 * 12)(*sizes), (ctypes.c_int64 * 12)()
        step = 1
        for i in reversed(range(len(sizes))):
            strides[i], step = step, step * sizes[i]
        return self._made("memory_desc_create_with_strides", len(sizes), dims, _F32, strides)

    def _memory(self, layout, address):
        return self._made("memory_create", layout, self._engine, ctypes.c_void_p(address))

    def product(self, x, w, b, y, rows):
        """A function that computes y [M, N] and rows [M, 1] from x [M, K], w [K, N] and b [N], all Tenon tensors."""
        (m, k), n = x.shape, w.shape[1]
        layouts = [self._layout(m, k), self._layout(k, n), self._layout(1, n), self._layout(m, n)]
        post_ops = self._made("post_ops_create")
        self._call("post_ops_append_eltwise", post_ops, _GELU_ERF, ctypes.c_float(0), ctypes.c_float(0))
        attributes = self._made("primitive_attr_create")
        self._call("primitive_attr_set_post_ops", attributes, post_ops)
        matmul = self._made("primitive_create", self._made("matmul_primitive_desc_create", self._engine, *layouts, attributes))
        summed = self._layout(m, 1)
        reduction = self._made("primitive_create", self._made(
            "reduction_primitive_desc_create", self._engine, _SUM, layouts[3], summed, ctypes.c_float(0), ctypes.c_float(0), None
        ))  # fmt: skip
        memories = [self._memory(layout, t.data_ptr()) for layout, t in zip(layouts, (x, w, b, y))]
        first = (_Argument * 4)(*zip((_SOURCE, _WEIGHTS, _BIAS, _RESULT), (t.value for t in memories)))
        second = (_Argument * 2)((_SOURCE, memories[3].value), (_RESULT, self._memory(summed, rows.data_ptr()).value))
        execute, wait = self._library.dnnl_primitive_execute, self._library.dnnl_stream_wait

        def run():
            execute(matmul, self._stream, 4, first)
            execute(reduction, self._stream, 2, second)
            wait(self._stream)
            return y, rows

        return run
