"""Special functions, with PyTorch's names: the gamma function's kin, Bessel functions, those of probability."""

from __future__ import annotations

from ._C import (
    digamma,
    digamma as psi,
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    i0,
    igamma as gammainc,
    igammac as gammaincc,
    lgamma as gammaln,
    log1p,
    log_softmax,
    logit,
    logsumexp,
    mvlgamma as multigammaln,
    polygamma,
    round,
    sigmoid as expit,
    sinc,
    softmax,
    special_airy_ai as airy_ai,
    special_bessel_j0 as bessel_j0,
    special_bessel_j1 as bessel_j1,
    special_bessel_y0 as bessel_y0,
    special_bessel_y1 as bessel_y1,
    special_entr as entr,
    special_erfcx as erfcx,
    special_i0e as i0e,
    special_i1 as i1,
    special_i1e as i1e,
    special_log_ndtr as log_ndtr,
    special_modified_bessel_k0 as modified_bessel_k0,
    special_modified_bessel_k1 as modified_bessel_k1,
    special_ndtr as ndtr,
    special_ndtri as ndtri,
    special_scaled_modified_bessel_k0 as scaled_modified_bessel_k0,
    special_scaled_modified_bessel_k1 as scaled_modified_bessel_k1,
    special_spherical_bessel_j0 as spherical_bessel_j0,
    special_xlog1py as xlog1py,
    special_zeta as zeta,
    xlogy,
)
from ._C import i0 as modified_bessel_i0, special_i1 as modified_bessel_i1
from ._names.absent import add_module_getattr
from ._polynomials import (
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
    "chebyshev_polynomial_w", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc", "gammaln",
    "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e", "i1", "i1e", "laguerre_polynomial_l", "legendre_polynomial_p", "log1p",
    "log_ndtr", "log_softmax", "logit", "logsumexp", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
    "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w",
    "sinc", "softmax", "spherical_bessel_j0", "xlog1py", "xlogy", "zeta",
]  # fmt: skip

add_module_getattr(__name__)
