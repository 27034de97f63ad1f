"""Checkpoints of PyTorch's, made here, as Tenon reads them: every kind of value, and large models with their logits."""

import sys
from pathlib import Path

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch", reason="PyTorch is not installed: see CONTRIBUTING.md for how to run beside it")
sys.path.insert(0, str(Path(__file__).parents[1] / "io"))
from checkpoints import largest_difference  # noqa: E402
from record_checkpoints import checkpoint, inputs  # noqa: E402

LARGE = {
    "resnet": ({}, {"size": 224}),
    "gpt": (
        {"vocabulary": 50257, "context": 1024, "width": 768, "layers": 12, "heads": 12},
        {"vocabulary": 50257, "length": 16},
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_resnet_18_and_gpt_2_give_the_same_logits(name, tmp_path):
    sizes, given = LARGE[name]
    path = tmp_path / "model.pth"
    torch.save(checkpoint(name, inputs(name, **given), **sizes), path)
    for mmap in False, True:
        found = tenon.load(path, mmap=mmap)
        scale = found["logits"].abs().max().item()
        difference = largest_difference(found, name, tenon, **sizes)
        print(f"{name}: {path.stat().st_size:,} bytes, mmap={mmap}, logits up to {scale:.3g}, difference {difference:.3g}")
        assert difference <= 1e-5 * max(scale, 1)


def test_every_kind_of_value(tmp_path):
    base = torch.arange(12.0).reshape(3, 4)
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([parameter])
    parameter.sum().backward()
    optimizer.step()
    value = {
        "base": base, "view": base.t()[1:, ::2], "parameter": parameter, "buffer": torch.nn.Buffer(torch.ones(3)),
        "leaf": torch.ones(2, requires_grad=True), "empty": torch.zeros(0, 3), "scalar": torch.tensor(2.5),
        "model": torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).state_dict(),
        "optimizer": optimizer.state_dict(), "size": torch.Size([1, 2]), "dtype": torch.float16, "device": torch.device("cpu"),
        "bytes": b"a\xff", "complex": 1 - 2j, "set": {1, 2}, "large": 1 << 80, "none": None, "text": "größe", "tuple": (1, [2.5]),
    }  # fmt: skip
    for protocol, zipped in [(protocol, zipped) for protocol in (2, 3, 4, 5) for zipped in (True, False)]:
        path = tmp_path / f"{protocol}.pt"
        torch.save(value, path, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
        found = tenon.load(path)
        assert list(found) == list(value)
        for name in ("bytes", "complex", "set", "large", "none", "text", "tuple"):
            assert found[name] == value[name], name
        for name in ("base", "view", "parameter", "buffer", "leaf", "empty", "scalar"):
            np.testing.assert_array_equal(found[name].detach().numpy(), value[name].detach().numpy())
            assert found[name].requires_grad == value[name].requires_grad and found[name].stride() == value[name].stride()
        assert found["view"].untyped_storage().data_ptr() == found["base"].data_ptr()
        assert isinstance(found["parameter"], tenon.nn.Parameter)
        model = tenon.nn.Sequential(tenon.nn.Linear(2, 3), tenon.nn.BatchNorm1d(3))
        assert str(model.load_state_dict(found["model"])) == "<All keys matched successfully>"
        assert found["optimizer"]["state"][0]["exp_avg"].shape == (2,)
        assert (found["size"], found["dtype"], found["device"]) == (tenon.Size((1, 2)), tenon.float16, tenon.device("cpu"))


@pytest.mark.parametrize("name", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
                                  "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"])  # fmt: skip
def test_every_dtype(tmp_path, name):
    dtype = getattr(torch, name)
    raw = torch.arange(16, dtype=torch.uint8) % 2
    for zipped in True, False:
        torch.save(raw.view(dtype), tmp_path / "x.pt", _use_new_zipfile_serialization=zipped)
        for mmap in False, True:
            found = tenon.load(tmp_path / "x.pt", mmap=mmap)
            assert found.dtype is getattr(tenon, name) and found.view(tenon.uint8).tolist() == raw.tolist()


def test_what_pytorch_saves_otherwise_is_refused_by_name(tmp_path):
    path = tmp_path / "x.pt"
    for value, options, text in [
        (torch.nn.Linear(2, 2), {"_use_new_zipfile_serialization": False}, "names torch.nn.modules.linear.Linear"),
        (torch.nn.Linear(2, 2), {}, "names torch.nn.modules.linear.Linear"),
        (torch.eye(2).to_sparse(), {}, "it holds a sparse tensor"),
        (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), {}, "it holds a quantized tensor"),
        (torch.ones(2, device="meta"), {}, "it holds a tensor on the meta device"),
        (torch.strided, {}, "it holds a layout"),
        (np.float64(1), {}, "names numpy"),
        (torch.ones(2, dtype=torch.complex32), {}, "torch.complex32, a dtype that Tenon does not have"),
    ]:
        torch.save(value, path, **options)
        with pytest.raises(ValueError, match=text):
            tenon.load(path)
    torch.jit.script(torch.nn.Linear(2, 2)).save(path)
    with pytest.raises(ValueError, match="TorchScript"):
        tenon.load(path)


def test_sums_that_were_not_computed(tmp_path):
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"w": torch.ones(3)}, tmp_path / "x.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    assert tenon.load(tmp_path / "x.pt")["w"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("version", [None, 1, 2])
def test_states_of_batch_norms_without_a_count(tmp_path, version):
    """As PyTorch wrote them before 0.4.1: version 2 has the count."""
    state = torch.nn.BatchNorm2d(3).state_dict()
    del state["num_batches_tracked"]
    state._metadata = {} if version is None else {"": {"version": version}}
    torch.save(state, tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    found = []
    for library in torch, tenon:
        try:
            found.append(str(library.nn.BatchNorm2d(3).load_state_dict(library.load(tmp_path / "x.pt"))))
        except RuntimeError as error:
            found.append("".join(str(error).split()))
    assert found[0] == found[1] and ("Missing" in found[0]) == (version == 2)
