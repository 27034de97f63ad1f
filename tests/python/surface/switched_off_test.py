"""What PyTorch's programs name whether or not they use it: mixed precision that is switched off, devices that are not there, flags of
tensors, the default device, versions."""

import importlib
import warnings

import numpy
import pytest

import tenon
from tenon import nn

AUTOCASTS = {
    "autocast": lambda enabled: tenon.autocast("cuda", enabled=enabled),
    "of bfloat16": lambda enabled: tenon.autocast(device_type="cpu", dtype=tenon.bfloat16, enabled=enabled, cache_enabled=False),
    "amp": lambda enabled: tenon.amp.autocast("cuda", tenon.float16, enabled),
    "cuda.amp": lambda enabled: importlib.import_module("tenon.cuda.amp").autocast(enabled=enabled),
    "cpu.amp": lambda enabled: importlib.import_module("tenon.cpu.amp").autocast(enabled, tenon.bfloat16),
}
SCALERS = {
    "amp": lambda enabled: tenon.amp.GradScaler(enabled=enabled),
    "of a device": lambda enabled: tenon.amp.GradScaler("cpu", init_scale=4.0, enabled=enabled),
    "top": lambda enabled: tenon.GradScaler("cuda", enabled=enabled),
    "cuda.amp": lambda enabled: tenon.cuda.amp.GradScaler(2.0**10, enabled=enabled),
    "cpu.amp": lambda enabled: tenon.cpu.amp.GradScaler(enabled=enabled),
}


@pytest.fixture(autouse=True)
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("form", AUTOCASTS)
def test_autocast_that_is_switched_off_changes_nothing(form):
    x = tenon.ones(2, 2)
    with AUTOCASTS[form](False) as context:
        assert (x @ x).dtype is tenon.float32 and not tenon.is_autocast_enabled() and not tenon.is_autocast_enabled("cuda")

        @AUTOCASTS[form](False)
        def product(a):
            """Documented."""
            return a @ a

        assert product(x).equal(x @ x) and product.__doc__ == "Documented."
    assert isinstance(context, tenon.autocast)
    with pytest.raises(ZeroDivisionError):
        with AUTOCASTS[form](False):
            1 / 0


@pytest.mark.parametrize("form", SCALERS)
def test_a_training_step_with_a_scaler_that_is_switched_off(form):
    def train(scaled):
        w = nn.Parameter(tenon.tensor([1.0, -2.0]))
        optimizer = tenon.optim.Adam([w], lr=0.1)
        scaler = SCALERS[form](False)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (w * w).sum()
            if not scaled:
                loss.backward()
                optimizer.step()
                continue
            assert scaler.scale(loss) is loss
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_([w], 1e9)
            assert scaler.step(optimizer) is None
            scaler.update()
        return w.tolist(), scaler

    ours, scaler = train(True)
    assert ours == train(False)[0]
    assert scaler.get_scale() == 1.0 and not scaler.is_enabled() and scaler.state_dict() == {}
    scaler.load_state_dict({"scale": 65536.0})
    assert scaler.get_scale() == 1.0 and isinstance(scaler, tenon.amp.GradScaler)
    assert SCALERS[form](False).step(tenon.optim.SGD([nn.Parameter(tenon.ones(1))]), lambda: 5.0) == 5.0


@pytest.mark.parametrize("form", ["of bfloat16", "cpu.amp"])
def test_autocast_where_it_would_make_a_difference_is_an_error(form):
    with pytest.raises(NotImplementedError, match=r"autocast: mixed precision is not in Tenon yet: give enabled=False; model.to\(tenon.bfloat16\)"):
        AUTOCASTS[form](True)


@pytest.mark.parametrize("form", ["of a device", "cpu.amp"])
def test_a_scaler_where_it_would_make_a_difference_is_an_error(form):
    with pytest.raises(NotImplementedError, match="GradScaler: mixed precision is not in Tenon yet: give enabled=False"):
        SCALERS[form](True)
    with pytest.raises(NotImplementedError, match="set_autocast_enabled: mixed precision"):
        tenon.set_autocast_enabled("cpu", True)
    tenon.set_autocast_enabled(False)


def test_a_device_that_is_not_there_switches_them_off_as_in_pytorch():
    for make in (AUTOCASTS["cuda.amp"], AUTOCASTS["autocast"], SCALERS["cuda.amp"], SCALERS["amp"]):
        with pytest.warns(UserWarning, match="is enabled, but there is no device of type 'cuda' here: it is disabled") as seen:
            make(True)
        assert seen[0].filename == __file__
    with pytest.raises(RuntimeError, match="autocast: there is no device of type 'nonsense'"):
        tenon.autocast("nonsense", enabled=False)
    with pytest.raises(TypeError, match="the type of a device, such as 'cpu', must be a str, got device"):
        tenon.autocast(tenon.device("cpu"), enabled=False)


def test_functions_of_one_s_own_for_autocast():
    from tenon.cuda.amp import custom_bwd, custom_fwd

    class Double(tenon.autograd.Function):
        @staticmethod
        @custom_fwd(cast_inputs=tenon.float32)
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @tenon.amp.custom_bwd(device_type="cuda")
        def backward(ctx, grad):
            return grad * 2

    x = tenon.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert custom_bwd(len) is len and tenon.amp.custom_fwd(len, device_type="cpu") is len
    assert tenon.get_autocast_dtype("cuda") is tenon.float16 and tenon.get_autocast_dtype("cpu") is tenon.bfloat16
    assert not tenon.amp.is_autocast_available("cpu") and not tenon.is_autocast_cpu_enabled()
    tenon.clear_autocast_cache()


@pytest.mark.parametrize("name", ["cuda", "xpu", "mps"])
def test_a_device_that_is_not_there(name):
    module = importlib.import_module(f"tenon.{name}")
    assert module is getattr(tenon, name) and module.is_available() is False and module.device_count() == 0
    module.manual_seed(1)
    module.empty_cache()
    with pytest.raises(RuntimeError, match=f"{name}.synchronize: there is no"):
        module.synchronize()
    with pytest.raises(AttributeError, match=f"module 'tenon.{name}' has no attribute 'nonsense'"):
        module.nonsense


FLAGS = (
    "is_cuda is_xpu is_mps is_mtia is_maia is_ipu is_xla is_vulkan is_sparse is_sparse_csr is_quantized is_mkldnn is_nested"
).split()


@pytest.mark.parametrize("flag", FLAGS)
def test_flags_of_tensors(flag):
    for t in (tenon.ones(2), tenon.empty(2, device="meta"), nn.Parameter(tenon.ones(1)), tenon.ones(2, dtype=tenon.complex64).conj()):
        assert getattr(t, flag) is False
        with pytest.raises(AttributeError):
            setattr(t, flag, True)
    assert tenon.ones(1).is_cpu is True and tenon.empty(1, device="meta").is_meta is True


def test_the_default_device():
    assert tenon.get_default_device() == tenon.device("cpu")
    for device in (None, "cpu", tenon.device("cpu")):
        tenon.set_default_device(device)
    with pytest.raises(NotImplementedError, match="set_default_device: tensors are made on the CPU where no device is given, not on meta"):
        tenon.set_default_device("meta")
    assert tenon.ones(1).device == tenon.get_default_device()


def test_versions():
    assert tenon.version.cuda is None and tenon.version.hip is None and tenon.version.__version__ == tenon.__version__
    assert numpy.lib.NumpyVersion(tenon.version.__version__) >= "0.1.0"


def test_questions_about_a_device_that_is_not_there():
    tenon.set_autocast_enabled(enabled=False)
    with pytest.raises(TypeError, match="set_autocast_enabled: enabled must be a bool, got None"):
        tenon.set_autocast_enabled()
    with pytest.raises(RuntimeError, match="is_autocast_enabled: there is no device of type 'xyz'"):
        tenon.is_autocast_enabled("xyz")
    with pytest.raises(TypeError, match="is_autocast_enabled: the type of a device, such as 'cpu', must be a str, got 3"):
        tenon.is_autocast_enabled(3)
