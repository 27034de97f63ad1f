"""A softmax over many classes when few of them are frequent: Grave et al. (2017), arXiv:1609.04309."""

from __future__ import annotations

from typing import NamedTuple

from .. import _C
from ..arguments import check_module as _check_module
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._C import Tensor
    from ..types import Device, DType, Positions


class ASMoutput(NamedTuple):
    """The log-likelihood of each target, and the loss, their negative mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-likelihoods of classes that are sorted by frequency: the first ones in the head, the others in clusters that begin at
    `cutoffs`, each with in_features / div_value ** number features. The head has one more output for each cluster."""

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Positions,
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__()
        limits = [int(limit) for limit in cutoffs]
        rising = all(a < b for a, b in zip(limits, limits[1:]))
        if not limits or not rising or any(int(c) != c or not 0 < c < n_classes for c in limits):
            raise ValueError(
                f"AdaptiveLogSoftmaxWithLoss: cutoffs must be ascending ints between 1 and n_classes - 1 = {n_classes - 1}, got {limits}"
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*limits, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size = limits[0]
        self.n_clusters = len(limits)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for number in range(self.n_clusters):
            hidden = int(in_features // div_value ** (number + 1))
            classes = self.cutoffs[number + 1] - self.cutoffs[number]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, device=device, dtype=dtype),
                    Linear(hidden, classes, bias=False, device=device, dtype=dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Draws new weights."""
        self.head.reset_parameters()
        for projection in self.tail:
            for layer in projection:  # type: ignore[attr-defined]
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> ASMoutput:
        """input_ [N, in_features] and target_ [N], or one row and a 0-dim target."""
        rows = target_.dim() == 1
        if not rows and target_.dim() != 0:
            raise RuntimeError(f"AdaptiveLogSoftmaxWithLoss: target_ must have 0 or 1 dimensions, got {list(target_.shape)}")
        if input_.dim() != (2 if rows else 1) or (rows and input_.shape[0] != target_.shape[0]):
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: expected input_ [N, {self.in_features}] and target_ [N], or one row, got {list(input_.shape)} "
                f"and {list(target_.shape)}"
            )
        input, target = (input_, target_) if rows else (input_.unsqueeze(0), target_.unsqueeze(0))
        if target.numel() and (int(target.min()) < 0 or int(target.max()) >= self.n_classes):
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: target_ must be from 0 to {self.n_classes - 1}, got {int(target.min())} to {int(target.max())}"
            )
        head = _C.log_softmax(self.head(input), 1)
        at = target
        output = input.new_zeros(target.shape[0])
        for number in range(self.n_clusters):
            low, high = self.cutoffs[number], self.cutoffs[number + 1]
            of_cluster = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if of_cluster.numel() == 0:
                continue
            within = _C.log_softmax(self.tail[number](input.index_select(0, of_cluster)), 1)
            place = (target.index_select(0, of_cluster) - low).unsqueeze(1)
            output = output.index_copy(0, of_cluster, within.gather(1, place).squeeze(1))
            at = at.index_fill(0, of_cluster, self.shortlist_size + number)
        output = output + head.gather(1, at.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return ASMoutput(output if rows else output.squeeze(0), loss)

    def _all(self, input: Tensor, head: Tensor) -> Tensor:
        """The log-likelihoods of all classes, of the head's outputs."""
        likely = _C.log_softmax(head, 1)
        parts = [likely[:, : self.shortlist_size]]
        for number in range(self.n_clusters):
            of_cluster = likely[:, self.shortlist_size + number].unsqueeze(1)
            parts.append(_C.log_softmax(self.tail[number](input), 1) + of_cluster)
        return _C.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-likelihoods of all classes: [N, in_features] -> [N, n_classes]."""
        return self._all(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each row: [N, in_features] -> [N]. Clusters are computed where the head says so."""
        head = self.head(input)
        found = head.argmax(1)
        beyond = (found >= self.shortlist_size).nonzero().squeeze(1)
        if beyond.numel() == 0:
            return found
        full = self._all(input.index_select(0, beyond), head.index_select(0, beyond)).argmax(1)
        return found.index_copy(0, beyond, full)


_check_module(globals())
