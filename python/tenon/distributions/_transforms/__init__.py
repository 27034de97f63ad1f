"""The parts of `tenon.distributions.transforms`, which has their names."""
