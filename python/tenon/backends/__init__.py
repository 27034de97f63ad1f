"""What this build has, with the names of torch.backends: no CUDA, no cuDNN, no MKL, no MPS; OpenMP and the CPU's own kernels."""

from .._names.absent import module_getattr
from . import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp

TYPE_CHECKING = False

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]

if not TYPE_CHECKING:
    __getattr__ = module_getattr(__name__)
