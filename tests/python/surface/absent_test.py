"""Names of PyTorch's that are not in Tenon: an AttributeError says so and where the list is. No CUDA, truthfully."""

import abc
import difflib
import importlib
import inspect
import subprocess
import sys

import pytest

import tenon
from tenon._names import instead
from tenon._names.absent import pytorch_names


@pytest.mark.parametrize(
    ("ask", "name"),
    [
        (lambda: tenon.vmap, "torch.vmap"),
        (lambda: tenon.nn.SyncBatchNorm, "torch.nn.SyncBatchNorm"),
        (lambda: tenon.nn.functional.scaled_mm, "torch.nn.functional.scaled_mm"),
        (lambda: tenon.optim.LBFGS, "torch.optim.LBFGS"),
        (lambda: tenon.utils.data.DistributedSampler, "torch.utils.data.DistributedSampler"),
        (lambda: tenon.sparse, "torch.sparse"),
        (lambda: tenon.cuda.Stream, "torch.cuda.Stream"),
        (lambda: tenon.ones(2).coalesce(), "torch.Tensor.coalesce"),
        (lambda: tenon.Tensor.coalesce, "torch.Tensor.coalesce"),
        (lambda: tenon.autograd.functional.jacobian, "torch.autograd.functional"),
        (lambda: tenon.autograd.forward_ad, "torch.autograd.forward_ad"),
        (lambda: tenon.autograd.profiler, "torch.autograd.profiler"),
        (lambda: tenon.nn.attention.sdpa_kernel, "torch.nn.attention.sdpa_kernel"),
        (lambda: tenon.nn.attention.flex_attention, "torch.nn.attention.flex_attention"),
        (lambda: tenon.library.triton_op, "torch.library.triton_op"),
        (lambda: tenon.nn.parallel.DistributedDataParallel, "torch.nn.parallel.DistributedDataParallel"),
        (lambda: tenon.nn.utils.prune, "torch.nn.utils.prune"),
        (lambda: tenon.overrides.wrap_torch_function, "torch.overrides"),
        (lambda: tenon.cpu.stream, "torch.cpu.stream"),
        (lambda: tenon.nn.Module.cuda, "torch.nn.Module.cuda"),
        (lambda: tenon.nn.Linear(1, 1).cuda(), "torch.nn.Module.cuda"),
    ],
)
def test_an_absent_name_says_so(ask, name):
    with pytest.raises(AttributeError, match=rf"has no attribute '\w+': {name} of PyTorch is not in Tenon yet; docs/coverage.md lists"):
        ask()


def test_the_way_out_is_that_of_the_name():
    with pytest.raises(AttributeError, match="batch dimension in front for vmap; there is no functional_call$"):
        tenon.func.functional_call
    with pytest.raises(AttributeError, match=r"^'Linear' object has .* Write x\.to\(\"cuda\"\), where a plug-in offers"):
        tenon.nn.Linear(1, 1).cuda


def test_absent_names_leave_modules_as_they_are():
    class Own(tenon.nn.Module):
        def __init__(self):
            super().__init__()
            self.ipu = 3

        def cuda(self):
            return self

    class Abstract(tenon.nn.Module, abc.ABC):
        pass

    own = Own()
    assert own.cuda() is own and own.ipu == 3 and not hasattr(own, "share_memory")
    assert "cuda" not in dir(tenon.nn.Module) and "cuda" not in dir(tenon.nn.Linear(1, 1)) and "ipu" in dir(own)
    assert type(tenon.nn.Module) is type and isinstance(Abstract(), tenon.nn.Module)


@pytest.mark.parametrize("name", ["tenon.cuda.amp.autocast", "tenon.cpu.amp.autocast", "tenon.types.Number"])
def test_modules_load_when_they_are_asked_for(name):
    module = name.rpartition(".")[0]
    program = f"import sys, tenon; assert {module!r} not in sys.modules; {name}; assert {module!r} in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


def test_other_names_are_plain_errors():
    for ask in (lambda: tenon.nonsense, lambda: tenon.nn.nonsense, lambda: tenon.ones(1).nonsense):
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'$"):
            ask()
    assert not hasattr(tenon.Tensor, "coalesce") and not hasattr(tenon.ones(1), "coalesce") and not hasattr(tenon, "coalesce")


@pytest.mark.parametrize(
    ("ask", "near"),
    [
        (lambda: tenon.soft_max, "'softmax'"),
        (lambda: tenon.nn.Lineer, "'Linear'"),
        (lambda: tenon.nn.functional.cross_entropie, "'cross_entropy'"),
        (lambda: tenon.optim.Adamw, "'AdamW'"),
        (lambda: tenon.nn.modules.con, "'conv'"),
    ],
)
def test_names_like_one_that_is_asked_for(ask, near):
    with pytest.raises(AttributeError, match=rf"has no attribute '\w+'; did you mean .*{near}.*\?$"):
        ask()


def test_what_to_write_instead_is_in_the_message():
    with pytest.raises(AttributeError) as error:
        tenon.profiler
    assert str(error.value).endswith(f"docs/coverage.md lists what is. Write {instead.INSTEAD['profiler']}")


def test_a_sentence_is_for_a_name_that_is_absent_somewhere():
    owners = {"torch": tenon, "torch.Tensor": tenon.Tensor, "torch.nn.functional": tenon.nn.functional, "torch.special": None}
    for name in instead.INSTEAD:
        assert [path for path, owner in owners.items() if name in pytorch_names()[path] and not hasattr(owner, name)], name


@pytest.mark.parametrize(
    ("line", "kind", "name"),
    [
        ("import tenon.sparse", ModuleNotFoundError, "torch.sparse"),
        ("from tenon import sparse", ModuleNotFoundError, "torch.sparse"),
        ("import tenon.masked.maskedtensor", ModuleNotFoundError, "torch.masked"),
        ("from tenon.nested import nested_tensor", ModuleNotFoundError, "torch.nested"),
        ("import tenon.nn.utils.stateless as stateless", ModuleNotFoundError, "torch.nn.utils.stateless"),
        ("from tenon.nn.utils.stateless import functional_call", ModuleNotFoundError, "torch.nn.utils.stateless"),
        ("from tenon import vmap", ImportError, "torch.vmap"),
        ("from tenon.nn import Linear, SyncBatchNorm", ImportError, "torch.nn.SyncBatchNorm"),
        ("from tenon.nn.functional import scaled_mm", ImportError, "torch.nn.functional.scaled_mm"),
        ("from tenon.nn.parallel import DistributedDataParallel", ImportError, "torch.nn.parallel.DistributedDataParallel"),
        ("from tenon.autograd.functional import jacobian", ModuleNotFoundError, "torch.autograd.functional"),
        ("from tenon.autograd import forward_ad", ModuleNotFoundError, "torch.autograd.forward_ad"),
        ("from tenon.nn.attention import sdpa_kernel", ImportError, "torch.nn.attention.sdpa_kernel"),
        ("from tenon.nn.attention.flex_attention import flex_attention", ModuleNotFoundError, "torch.nn.attention.flex_attention"),
        ("from tenon.library import triton_op", ImportError, "torch.library.triton_op"),
        ("from tenon.nn.utils import prune", ModuleNotFoundError, "torch.nn.utils.prune"),
        ("from tenon.overrides import wrap_torch_function", ModuleNotFoundError, "torch.overrides"),
        ("from tenon.distributed import nn as dist_nn", ModuleNotFoundError, "torch.distributed.nn"),
        ("from tenon.utils._pytree import tree_map", ModuleNotFoundError, "torch.utils._pytree"),
    ],
)
def test_imports_of_what_is_absent_say_so(line, kind, name):
    with pytest.raises(kind) as error:
        exec(line, {})
    assert type(error.value) is kind
    assert f"{name} of PyTorch is not in Tenon yet; docs/coverage.md lists what is" in str(error.value)


def test_imports_of_what_nobody_has_are_plain_errors():
    for line in ("import tenon.nonsense", "from tenon.nonsense import x", "import tenon.nn.nonsense"):
        with pytest.raises(ModuleNotFoundError, match=r"No module named 'tenon(\.nn)?\.nonsense'$"):
            exec(line, {})
    for module in ("tenon", "tenon.nn.functional", "tenon.library"):
        with pytest.raises(ImportError, match=f"cannot import name 'nonsense' from '{module}'"):
            exec(f"from {module} import nonsense", {})


MODULES = [
    "accelerator", "amp", "autograd", "library", "nn.attention", "types", "backends", "backends.cuda", "backends.mps", "cpu", "cuda", "cuda.amp", "cpu.amp", "compiler", "distributed", "futures", "linalg", "mps", "nn",
    "nn.functional", "nn.init", "nn.modules", "nn.modules.conv", "nn.modules.rnn", "nn.modules.utils", "nn.parallel", "nn.rnn", "nn.utils", "nn.utils.rnn", "ops",
    "optim", "optim.lr_scheduler", "plans", "random", "return_types", "storage", "mtia", "utils", "utils.checkpoint", "utils.data", "version", "xpu",
]  # fmt: skip


@pytest.mark.parametrize("name", ["", *MODULES])
def test_dir_of_a_module_lists_what_is_there(name):
    module = importlib.import_module(f"tenon.{name}".rstrip("."))
    assert [n for n in dir(module) if not hasattr(module, n)] == []


def test_dir_of_classes_lists_what_is_there():
    """An instance may refuse some, as real tensors refuse `imag`."""

    class Own(tenon.Tensor):
        pass

    for cls in (tenon.Tensor, tenon.nn.Parameter, Own, tenon.nn.Module, tenon.optim.Optimizer, tenon.optim.Adam, tenon.Generator):
        assert [n for n in dir(cls) if not hasattr(cls, n)] == []
    assert {"sum", "is_xpu", "__add__"} <= {*dir(tenon.Tensor)} and {"sum", "__add__"} <= {*dir(tenon.ones(1))}
    assert "coalesce" not in dir(tenon.Tensor) and "coalesce" not in dir(tenon.ones(1)) and "cuda" in dir(tenon)
    assert dict(inspect.getmembers(tenon.Tensor)).keys() == {*dir(tenon.Tensor)}


def test_an_absent_name_may_be_given():
    def coalesce(self):
        return "own"

    tenon.Tensor.coalesce = coalesce
    try:
        assert tenon.ones(1).coalesce() == "own" and "coalesce" in dir(tenon.Tensor)
    finally:
        del tenon.Tensor.coalesce
    assert not hasattr(tenon.Tensor, "coalesce")


def test_asking_whether_a_name_is_there_makes_no_sentence(monkeypatch):
    """Programs do so often; similar names are looked for when the text is read."""
    monkeypatch.setattr(difflib, "get_close_matches", lambda *args, **kwargs: 1 / 0)
    assert not hasattr(tenon, "soft_max") and not hasattr(tenon.nn, "Lineer")
    with pytest.raises(AttributeError) as error:
        tenon.soft_max
    with pytest.raises(ZeroDivisionError):
        str(error.value)


def test_names_that_load_later_are_found_once():
    """The second look-up is that of any other name: the module has it."""
    program = """
import tenon
names = ["set_stream", "create_handle", "pygraph", "cached_plan", "FloatTensor", "DispatchKey", "autocast", "GradScaler"]
later = [n for n in dir(tenon) if n not in vars(tenon)]
assert {*names, "utils", "graph"} <= {*later}
for name in later:
    getattr(tenon, name)
print([name for name in later if name not in vars(tenon)])
found = vars(tenon)["set_stream"]
import tenon.graph
assert found is tenon.graph.set_stream
for module, lazy in ((tenon.nn, ("Transformer", "parallel", "modules")), (tenon.optim, ("lr_scheduler",)), (tenon.utils, ("checkpoint",))):
    for name in lazy:
        getattr(module, name)
        assert name in vars(module), name
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stdout == "[]\n", done.stderr


def test_there_is_no_cuda():
    assert tenon.cuda.is_available() is False and tenon.cuda.device_count() == 0
    tenon.cuda.manual_seed_all(1)
    for call in (tenon.cuda.current_device, lambda: tenon.cuda.set_device(0)):
        with pytest.raises(RuntimeError, match="there is no"):
            call()
    from tenon.backends import cudnn

    cudnn.benchmark = True
    cudnn.benchmark = False
    assert not cudnn.is_available() and not tenon.backends.mps.is_available() and not tenon.backends.cuda.is_built()
    assert tenon.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512") and tenon.backends.openmp.is_available()
    assert tenon.random.initial_seed() == tenon.initial_seed()
