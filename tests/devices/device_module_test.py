"""Modules that move to a device: parameters stay the objects that optimizers and hooks know."""

import pytest

import tenon
from tenon import nn


@pytest.mark.parametrize("optim", [tenon.optim.SGD, tenon.optim.Adam, tenon.optim.RMSprop])
def test_an_optimizer_made_before_the_move_trains(device, optim):
    tenon.manual_seed(3)
    there, here = nn.Linear(3, 2), nn.Linear(3, 2)
    here.load_state_dict(there.state_dict())
    weight, seen = there.weight, []
    steps = optim(there.parameters(), lr=0.1), optim(here.parameters(), lr=0.1)
    weight.register_hook(seen.append)
    assert there.to(device) is there
    assert there.weight is weight and weight.device.type == device and weight.is_leaf and weight.requires_grad
    x = tenon.randn(4, 3)
    for _ in range(3):
        for model, step, input in (there, steps[0], x.to(device)), (here, steps[1], x):
            step.zero_grad()
            (model(input) ** 2).sum().backward()
            step.step()
    assert len(seen) == 3 and seen[0].device == weight.device == weight.grad.device
    assert there.weight.cpu().equal(here.weight) and there.bias.cpu().equal(here.bias)


def test_tied_weights_gradients_and_buffers_move_once(device):
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2))
    model[2].weight = model[0].weight
    model(tenon.randn(3, 2)).sum().backward()
    weight, grad = model[0].weight, model[0].weight.grad.clone()
    mean = model[1].running_mean
    model.to(device)
    assert model[2].weight is model[0].weight is weight and model[1].running_mean is mean
    assert weight.grad.device.type == mean.device.type == device and weight.grad.cpu().equal(grad)
    model.to("cpu")
    assert weight.device.type == "cpu" and weight.grad.equal(grad)
    model(tenon.randn(3, 2)).sum().backward()


def test_data_of_another_device(device):
    x = tenon.arange(3.0)
    x.data = tenon.arange(4.0, device=device)
    assert x.device.type == device and (x + 1).tolist() == [1, 2, 3, 4]
    view = tenon.arange(6.0)[2:4]
    with pytest.raises(RuntimeError, match=f"the new elements are on {device}:0; those of a view must be on its base's"):
        view.data = tenon.arange(2.0, device=device)


def test_the_same_elements_beside_leading_dimensions_of_one(device):
    for where in "cpu", device:
        x = tenon.ones(1, 1, device=where)
        assert x.add_(x[-1]).item() == 2 and x.add_(x.reshape(-1)).item() == 4
        y = tenon.arange(3.0, device=where)
        y[None].mul_(y)
        assert y.tolist() == [0, 1, 4]
