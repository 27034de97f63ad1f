"""A program of a user with types of its own everywhere: tensors, nn, optim, data, autograd, library, compile."""

import pathlib
import tempfile

import tenon
import tenon.nn.functional as F
from tenon import nn
from tenon.types import Device
from tenon.utils.data import DataLoader, Dataset, TensorDataset


class Net(nn.Module):
    def __init__(self, hidden: int, device: Device = None) -> None:
        super().__init__()
        self.fc1 = nn.Linear(8, hidden, device=device)
        self.fc2 = nn.Linear(hidden, 2, bias=False)
        self.norm, self.drop = nn.LayerNorm(hidden), nn.Dropout(0.1)
        self.blocks = nn.ModuleList([nn.Linear(hidden, hidden) for _ in range(2)])
        self.scale = nn.Parameter(tenon.ones(hidden))
        self.register_buffer("count", tenon.zeros(1))

    def forward(self, x: tenon.Tensor) -> tenon.Tensor:
        h = F.relu(self.fc1(x)) * self.scale
        for block in self.blocks:
            h = self.norm(h + block(h))
        return self.fc2(self.drop(h))


class Squares(Dataset[tuple[tenon.Tensor, int]]):
    def __getitem__(self, index: int) -> tuple[tenon.Tensor, int]:
        return tenon.full((2,), float(index)), index * index

    def __len__(self) -> int:
        return 4


def train(model: nn.Module, data: Dataset[tuple[tenon.Tensor, ...]]) -> list[float]:
    optimizer = tenon.optim.AdamW(model.parameters(), lr=0.1, betas=(0.9, 0.99))
    schedule = tenon.optim.lr_scheduler.StepLR(optimizer, 3)
    losses: list[float] = []
    for x, y in DataLoader(data, batch_size=4, shuffle=True):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if norm.isfinite().all():
            optimizer.step()
        losses.append(loss.item())
        schedule.step()
    return losses


@tenon.no_grad()
def evaluate(model: nn.Module, x: tenon.Tensor) -> float:
    return float(model(x).mean())


class Square(tenon.autograd.Function):
    @staticmethod
    def forward(ctx: tenon.autograd.function.FunctionCtx, x: tenon.Tensor) -> tenon.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: tenon.autograd.function.FunctionCtx, grad: tenon.Tensor) -> tenon.Tensor:
        (x,) = ctx.saved_tensors
        assert x is not None
        return grad * 2 * x


@tenon.library.custom_op("typed::twice", mutates_args=())
def twice(x: tenon.Tensor) -> tenon.Tensor:
    return x * 2


@twice.register_fake
def _(x: tenon.Tensor) -> tenon.Tensor:
    return tenon.empty_like(x)


def twice_backward(ctx: tenon.autograd.function.FunctionCtx, grad: tenon.Tensor) -> tenon.Tensor:
    return grad * 2


twice.register_autograd(twice_backward)


@tenon.compile
def gated(x: tenon.Tensor, a: tenon.Tensor) -> tenon.Tensor:
    return F.silu(x * a) + 1


def tensors() -> tuple[tenon.Tensor, int, str]:
    x = tenon.arange(6, dtype=tenon.float32).view(2, 3)
    y: tenon.Tensor = 1 - x / 2 ** x + x.t().sum(0, keepdim=True)[..., :3].sum() - (-x).abs()
    values, indices = y.max(dim=1)
    rows, columns = x.shape
    kind: tenon.dtype = x.dtype if x.is_floating_point() else tenon.float64
    back = tenon.cat([x, y], dim=0).reshape(-1).to("cpu", kind).numpy()
    mask = (x > 1) & ~(y == 0)
    x[mask] = 0
    x[0] += 1
    top = x.topk(1).values
    tenon.einsum("ij,kj->ik", x, x)
    tenon.add(x, 1, out=y)
    tenon.linalg.vector_norm(x)
    print(back.shape, tenon.where(mask, x, 0.0), tenon.split(x, [1, 1]), values, top, rows + columns)
    return indices, x.numel(), repr(tenon.finfo(tenon.float32))


def main() -> None:
    tenon.manual_seed(0)
    model = nn.Sequential(Net(4), nn.ReLU())
    data = TensorDataset(tenon.randn(16, 8), tenon.randint(0, 2, (16,)))
    print(train(model, data), evaluate(model, tenon.zeros(1, 8)), Squares()[2], tensors())
    x = tenon.randn(3, requires_grad=True)
    (gradient,) = tenon.autograd.grad(Square.apply(x).sum() + twice(x).sum(), [x])
    print(gradient, gated(x, gradient), gated.explain())
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "state"
        tenon.save(model.state_dict(), path)
        print(model.load_state_dict(tenon.load(path)))
    handle = model.register_forward_hook(lambda module, args, result: None)
    handle.remove()
    generator = tenon.Generator().manual_seed(1)
    print(tenon.rand(2, generator=generator), tenon.device("cpu").type, tenon.get_default_dtype())


if __name__ == "__main__":
    main()
