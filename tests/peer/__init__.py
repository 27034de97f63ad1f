"""The conformance samples beside PyTorch, where it is installed: values, dtypes, shapes, strides, errors."""
