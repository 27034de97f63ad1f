"""Signal processing: window functions, in `tenon.signal.windows`. Transforms of signals are `tenon.fft`, `tenon.stft` and `tenon.istft`."""

from . import windows as windows

__all__ = ["windows"]
