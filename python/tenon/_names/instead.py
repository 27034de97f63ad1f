"""What to write for names of PyTorch's that Tenon has not, by name: in the code, `x` and `y` are tensors. Loaded when a message
about such a name is read."""

INSTEAD = {
    # Reductions
    "pairwise_distance": "(x - y).norm(dim=-1)",
    # Elements
    "arctan2": "tenon.atan2(x, y)",
    "arctan2_": "x.atan2_(y)",
    # Shapes
    "adjoint": "x.mH",
    "H": "x.mH",
    "squeeze_": "x = x.squeeze(dim)",
    "unsqueeze_": "x = x.unsqueeze(dim)",
    "transpose_": "x = x.transpose(dim0, dim1)",
    "t_": "x = x.t()",
    "swapaxes_": "x = x.swapaxes(dim0, dim1)",
    "swapdims_": "x = x.swapdims(dim0, dim1)",
    "resize_as_": "x.resize_(y.shape)",
    "unsafe_chunk": "x.chunk(chunks, dim)",
    "unsafe_split": "x.split(size, dim)",
    "unsafe_split_with_sizes": "x.split(sizes, dim)",
    "range": "tenon.arange(start, end + step, step)",
    "logspace": "base ** tenon.linspace(start, end, steps)",
    "newaxis": "None",
    # Products
    "ger": "tenon.outer(x, y)",
    "bilinear": 'tenon.einsum("bi,oij,bj->bo", x, weight, y)',
    "cosine_similarity": "(x * y).sum(dim) / (x.norm(dim=dim) * y.norm(dim=dim)).clamp_min(1e-8)",
    # Of a tensor
    "get_device": "x.device.index",
    "is_same_size": "x.shape == y.shape",
    "cdouble": "x.to(tenon.complex128)",
    "cfloat": "x.to(tenon.complex64)",
    "new": "x.new_empty(sizes)",
    "storage_type": "x.dtype",
    "apply_": "x.copy_(tenon.tensor([f(v) for v in x.flatten().tolist()]).reshape(x.shape))",
    "cuda": 'x.to("cuda"), where a plug-in offers a device of that name; there is no CUDA in Tenon',
    # Functions and rooms
    "fx": "tenon.compile(f), whose explain() lists what was recorded",
    "export": "tenon.compile(f)",
    "compiler": "tenon.compile",
    "vmap": "a batch dimension in front: operators broadcast over it",
    "func": "tenon.autograd.grad for grad and vjp, and a batch dimension in front for vmap; there is no functional_call",
    "set_default_tensor_type": "tenon.set_default_dtype(dtype)",
    "is_warn_always_enabled": "the module warnings",
    "set_printoptions": "print(x.numpy()) and numpy.set_printoptions",
    "get_num_interop_threads": "tenon.get_num_threads()",
    "set_num_interop_threads": "tenon.set_num_threads(n)",
    "profiler": "tenon.dispatch.trace()",
}
