"""Names of PyTorch's that are not in Tenon: an AttributeError says so and where the list is. No CUDA, truthfully."""

import pytest

import tenon


@pytest.mark.parametrize(
    ("ask", "name"),
    [
        (lambda: tenon.svd, "torch.svd"),
        (lambda: tenon.nn.LSTM, "torch.nn.LSTM"),
        (lambda: tenon.nn.functional.ctc_loss, "torch.nn.functional.ctc_loss"),
        (lambda: tenon.optim.LBFGS, "torch.optim.LBFGS"),
        (lambda: tenon.utils.data.DistributedSampler, "torch.utils.data.DistributedSampler"),
        (lambda: tenon.fft, "torch.fft"),
        (lambda: tenon.cuda.Stream, "torch.cuda.Stream"),
        (lambda: tenon.ones(2).svd(), "torch.Tensor.svd"),
        (lambda: tenon.Tensor.svd, "torch.Tensor.svd"),
    ],
)
def test_an_absent_name_says_so(ask, name):
    with pytest.raises(AttributeError, match=rf"has no attribute '\w+': {name} of PyTorch is not in Tenon yet; docs/coverage.md lists"):
        ask()


def test_what_serves_in_place_of_mixed_precision_is_said():
    for ask in (lambda: tenon.autocast, lambda: tenon.amp, lambda: tenon.cuda.amp):
        with pytest.raises(AttributeError, match=r"lists what is; model.to\(tenon.bfloat16\) and inputs of that dtype compute"):
            ask()


def test_other_names_are_plain_errors():
    for ask in (lambda: tenon.nonsense, lambda: tenon.nn.nonsense, lambda: tenon.ones(1).nonsense):
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'$"):
            ask()
    assert not hasattr(tenon.Tensor, "svd") and not hasattr(tenon.ones(1), "svd") and not hasattr(tenon, "svd")
    assert "svd" not in dir(tenon.ones(1)) and "sum" in dir(tenon.ones(1)) and "cuda" in dir(tenon)


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
