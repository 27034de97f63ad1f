"""What this build has, with the names of torch.backends: no CUDA, no cuDNN, no MKL, no MPS; OpenMP and the CPU's own kernels."""

from .._names.absent import add_module_getattr
from . import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]
add_module_getattr(__name__)
