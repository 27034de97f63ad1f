"""Writes python/tenon/_names/pytorch_names.txt from an installed PyTorch: its public names by module, and the core ATen schemas.

    python scripts/pytorch_names.py > python/tenon/_names/pytorch_names.txt

Public are the names that do not begin with an underscore and are not modules of Python's or types of PyTorch's compilers.
"""

import importlib
import types

import torch

MODULES = [
    "torch",
    "torch.Tensor",
    "torch.accelerator",
    "torch.amp",
    "torch.autograd",
    "torch.backends",
    "torch.cpu",
    "torch.cpu.amp",
    "torch.cuda",
    "torch.cuda.amp",
    "torch.fft",
    "torch.jit",
    "torch.library",
    "torch.linalg",
    "torch.mps",
    "torch.nn",
    "torch.nn.Module",
    "torch.nn.attention",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.nn.modules.utils",
    "torch.nn.parallel",
    "torch.nn.utils",
    "torch.nn.utils.parametrizations",
    "torch.nn.utils.parametrize",
    "torch.optim",
    "torch.optim.Optimizer",
    "torch.optim.lr_scheduler",
    "torch.random",
    "torch.signal.windows",
    "torch.special",
    "torch.utils",
    "torch.utils.checkpoint",
    "torch.utils.data",
    "torch.xpu",
]
# Modules whose __all__ says what is public; dir() of the others.
BY_ALL = {"torch.amp", "torch.cpu.amp", "torch.cuda.amp", "torch.jit", "torch.mps", "torch.nn.modules.utils", "torch.nn.utils.parametrizations", "torch.nn.utils.parametrize", "torch.signal.windows", "torch.utils.checkpoint", "torch.xpu"}
# What torch._C has beside the classes of compilers and serialization.
OF_THE_EXTENSION = {"Event", "Generator", "OutOfMemoryError", "AcceleratorError", "Size", "Stream", "Tensor", "Tag", "DispatchKey"}


def public(module, path):
    for name in getattr(module, "__all__", dir(module)) if path in BY_ALL else dir(module):
        value = getattr(module, name, None)
        if name.startswith("_"):
            continue
        home = getattr(value, "__module__", None) or ""
        if isinstance(value, types.ModuleType):
            if not value.__name__.startswith("torch.") or value.__name__ == "torch.torch_version":
                continue
        elif path == "torch" and isinstance(value, type) and home.startswith("torch._C") and name not in OF_THE_EXTENSION:
            continue
        elif home.split(".")[0] in ("typing", "typing_extensions", "collections", "functools", "warnings", "contextlib"):
            continue
        elif home.startswith("torch._") and isinstance(value, type) and path != "torch":
            continue
        elif name in ("Any", "TYPE_CHECKING", "Optional", "Union", "T_destination", "USE_GLOBAL_DEPS", "USE_RTLD_GLOBAL_WITH_LIBTORCH", "ContextVar", "MappingProxyType", "device_types_t", "warn") or isinstance(value, (types.GenericAlias, str, dict)):
            continue
        yield name


def main():
    print(f"# PyTorch {torch.__version__.split('+')[0]}: written by scripts/pytorch_names.py")
    for path in MODULES:
        module = getattr(torch, path.split(".")[1]) if path == "torch.Tensor" else None
        if module is None:
            owner, _, last = path.rpartition(".")
            module = getattr(importlib.import_module(owner), last) if last[:1].isupper() else importlib.import_module(path)
        print(f"[{path}]")
        for name in sorted(set(public(module, path))):
            print(name)
    print("[core]")
    for name in sorted(core()):
        print(name)


def core():
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        if namespace != "aten":
            continue
        try:
            overload = getattr(getattr(torch.ops.aten, name), schema.overload_name or "default")
        except AttributeError:
            continue
        if torch.Tag.core in overload.tags:
            yield f"{name}.{schema.overload_name}" if schema.overload_name else name


if __name__ == "__main__":
    main()
