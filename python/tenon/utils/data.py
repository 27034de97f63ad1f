"""TensorDataset and DataLoader: rows of tensors in batches."""

from .. import _C


class TensorDataset:
    """Rows of several tensors of the same length: item i is a tuple of row i of each."""

    def __init__(self, *tensors):
        if not tensors or any(len(t) != len(tensors[0]) for t in tensors):
            raise ValueError("TensorDataset takes tensors of the same length")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __len__(self):
        return len(self.tensors[0])


class DataLoader:
    """Batches of a TensorDataset, in order or shuffled anew for each pass."""

    def __init__(self, dataset, batch_size=1, shuffle=False, drop_last=False, generator=None):
        if batch_size < 1:
            raise ValueError(f"DataLoader: batch_size must be positive, got {batch_size}")
        self.dataset, self.batch_size, self.shuffle = dataset, batch_size, shuffle
        self.drop_last, self.generator = drop_last, generator

    def __len__(self):
        full, rest = divmod(len(self.dataset), self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def __iter__(self):
        n = len(self.dataset)
        order = _C.randperm(n, generator=self.generator) if self.shuffle else None
        for first in range(0, len(self) * self.batch_size, self.batch_size):
            rows = slice(first, min(first + self.batch_size, n))
            yield self.dataset[rows if order is None else order[rows]]
