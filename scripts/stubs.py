"""Writes the lists of docs/stubs.md: every stub of the build with its signature, and what it computes.

    PYTHONPATH=build/release/python python scripts/stubs.py          # writes them
    PYTHONPATH=build/release/python python scripts/stubs.py --check  # says what has changed; exit code 1
"""

import difflib
import json
import pathlib
import sys

import tenon

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "stubs.md"
BEGIN, END = "<!-- begin: scripts/stubs.py -->", "<!-- end -->"

#: What the stubs compute that are no expression.
MEANING = {
    "copy": "`dst[...] = src[...]`: equal sizes, any strides, dtypes and devices (one side may be the host's), no shared memory. With `non_blocking` the host side may be in use after the call.",
    "fill": "Every element of `dst` becomes `value`, which its dtype can hold. Elements may share memory.",
    "arange": "Contiguous `dst[i] = start + i * step`, rounded once from float64, or exact and wrapping for integers.",
    "linspace": "Contiguous `dst[i]`, evenly spaced from `start` to `end`, symmetric about the middle.",
    "equal": "Whether two tensors of equal sizes and dtype are equal element by element. It waits.",
    "nonzero": "The positions of elements other than 0, in logical order, as int64 `[count, ndim]`. It waits.",
    "masked_select": "The elements of `self` where `mask`, bool and of the same sizes, is true: a vector in logical order. Without it `nonzero` is asked.",
    "grid_sampler_2d": "Values of images at the places of a grid; `docs/operators.md` has the operator. `out0` is contiguous.",
    "grid_sampler_3d": "The same of volumes.",
    "grid_sampler_input_backward": "Their gradient by `input`, added to `out0`, which is all zero. Elements are added up in the order of places.",
    "grid_sampler_slopes": "Their gradient by `grid`.",
    "indexed": "For each place of a loop over `sizes`: an element of `to` becomes what `combine` makes of it and one of `src` (0 set, 1 add `alpha` times, 2 multiply, 3 min, 4 max, 5 divide). Either side is `first + strides . place + where its positions point`. `..._numbers` are, for each tensor of positions: dim, how many sizes, the sizes, the steps, the positions' strides over the loop. Writes to one element are in the loop's order; positions are checked before anything is written, unless `fresh`.",
    "axes_sum": "Windows over the last dimensions, one for each axis, three at most: every output is the weighted sum of its taps, over the first axis first, ascending, then over the others; halves in float32. `accumulate` adds it to `out`.",
    "axes_max": "The largest of each output's taps, and its place among the axes of `self` as int64. NaN is larger than all; of equal values the first counts, of NaNs the last.",
    "axes_max_values": "The values of `axes_max` alone, of windows that four numbers describe. A device that lacks it gets `axes_max`.",
    "axes_copy": "The one tap of each output; `otherwise` where there is none.",
    "_sort_values": "What `sort` gives as values, without their positions.",
    "_fused_sdp_choice": "How attention is computed: 1 by `attention_forward`, 0 by operators, which keep all weights. The numbers are PyTorch's SDPBackend.",
    "attention_forward": "`softmax(query @ key.T * scale + attn_mask) @ value` by blocks of 128 keys, and the logarithm of each query's sum of exponentials. Dropout draws from the position `seed`, `offset`.",
    "attention_backward": "Its gradients by query, key and value; weights are computed again from `logsumexp`.",
    "attention_mask_backward": "Its gradient by an additive mask.",
    "recurrence": "One direction of a recurrent layer: all steps after the products with the input; `docs/operators.md` has `_recurrence`.",
    "pack_int8": "The right matrix of `multiply_int8`, in the order that `backends/cpu/gemm/int8.h` describes: the same bytes on every device.",
    "multiply_int8": "Exact sums of products of integers of 8 bits, int32, which wrap; `docs/operators.md` has `_int8_product`.",
    "int8_lstm": "One direction of an LSTM whose products with the states are those of `multiply_int8`; `docs/operators.md` has `_int8_lstm`.",
    "recurrence_backward": "Its gradients by input, states, weight, bias and projection.",
    "uniform": "Contiguous `dst`: uniform in [low, high), from the position `state` in the stream on (`TenonPhilox`).",
    "normal": "Contiguous `dst`: normal with this mean and standard deviation.",
    "randint": "Contiguous `dst`: integers from `low`, `range` many.",
    "bernoulli": "Contiguous `dst`: 1 with probability `p`, one or one for each element, float64. A probability outside [0, 1] is an error of kind VALUE before anything is written.",
    "randperm": "Contiguous `dst`: a random permutation of 0 to its size.",
    "reduce": "A reduction of one tensor over the dimensions where `over` is 1: `kind` is \"sum\", \"prod\", \"max\", \"argmax\", ...; `mean` divides a sum by its count; with `elements` argmax and argmin give the elements, too, in `second`. Results are contiguous. Without it `rows` is asked.",
    "rows": "Row expressions: sums, softmax, norms. Functions in C++ only (`tenon/iter/rows_launch.h`); without it the operator runs on host copies.",
    "mm": "`out = self @ mat2`, [m, k] and [k, n].",
    "bmm": "`out[b] = self[b] @ mat2[b]`.",
    "addmm": "`out = beta * self + alpha * (mat1 @ mat2)`; `self` broadcasts, and is not read when `beta` is 0.",
    "packed_product": "`out = matrix @ b + bias` for a matrix `b` in panels; `docs/operators.md` has `_packed_product`.",
    "mv": "`out = self @ vec`.",
    "dot": "`out`, of no dimensions, is the sum of products of two vectors.",
    "convolution": "The cross-correlation of one to three dimensions, also transposed, in groups; lists of one number mean all dimensions.",
    "convolution_weight_gradient": "Its derivative by `weight`, summed with `grad_output`.",
    "cumsum": "Running sums along `dim`, in order, in `dtype`.",
    "cumprod": "Running products along `dim`, in order.",
    "cummax": "The largest value so far along `dim`, and where it was last; NaN is the largest.",
    "cummin": "The smallest value so far along `dim`, and where it was last; a NaN stays.",
    "kthvalue": "The `k`-th smallest value along `dim`, from 1, and its position; equal values keep their order, NaN is larger than all.",
    "median_dim": "The middle value along `dim`, of an even number the lower one, and its position; the first NaN where there is one.",
    "nanmedian_dim": "The same of values that are no NaN.",
    "mode": "The value that occurs most often along `dim`, of several the smallest, and where it is last.",
    "lexsort": "The order of the rows of a matrix by their elements, the first one first, as int64; equal rows keep their order.",
    "searchsorted": "How many elements of a sorted row are smaller than each of `self`, or with `right` not larger.",
    "signbit": "Whether the sign bit is set.",
    "gcd": "The greatest common divisor, not negative; of 0 and 0 it is 0.",
    "lcm": "The least common multiple, `|self| / gcd * |other|`, which wraps; 0 where either is.",
    "nextafter": "The next number of the dtype from `self` towards `other`.",
    "frexp": "A mantissa of magnitude 0.5 to 1 and an int32 exponent of 2; 0 and what is not finite with exponent 0.",
    "philox_standard_gamma": "Draws of gamma distributions of the shapes in `self`, from a counter for each element's tries.",
    "philox_poisson": "Draws of Poisson distributions of the means in `self`, likewise.",
    "philox_binomial": "Draws of the successes among `count` trials of probability `prob`, likewise.",
    "standard_gamma_grad": "The derivative of draws `output` of gamma distributions by the shapes `self`.",
    "sort": "Values along `dim` in order, and their positions as int64; NaN is larger than all.",
    "sort_stable": "The same; with `stable` equal values keep their order.",
    "topk": "The `k` largest or smallest values along `dim`, and their positions.",
    "nll_loss_forward": "The loss of log-probabilities `[N, C, ...]` at the classes `target`, and the sum of weights that it was divided by.",
    "nll_loss_backward": "Its gradient.",
    "_householder_product": "The first columns of the product of reflections `I - tau v v^H`, whose vectors are below the diagonal of `input`.",
    "_linalg_det": "Determinants, and LU factors with row exchanges, as `linalg_lu_factor_ex`.",
    "_linalg_eig": "Complex eigenvalues, and vectors of length 1 whose largest element is real and positive.",
    "_linalg_eigh": "Ascending eigenvalues of the triangle `UPLO`, and vectors as `_linalg_eig`.",
    "_linalg_lu_solve": "X of A X = B, or X A = B, by LU factors and int32 row exchanges from 1; of A^H if `adjoint`.",
    "_linalg_solve_ex": "X of A X = B, or X A = B, the LU factors, row exchanges and the first pivot of 0.",
    "_linalg_svd": "A = U diag(S) Vh; the largest element of each column of V is real and positive.",
    "_pivots_to_permutation": "Which row each row of the factors comes from, as int64.",
    "geqrf": "R and Householder vectors in one matrix, and their scales.",
    "linalg_cholesky_ex": "The Cholesky factor of a triangle, and the order of the first minor that is not positive.",
    "linalg_inv_ex": "Inverses, and the first pivot of 0.",
    "linalg_ldl_factor_ex": "L D L^T, or L D L^H, of the lower triangle, as LAPACK's sytrf keeps it.",
    "linalg_ldl_solve": "X of A X = B by those factors.",
    "linalg_lu_factor_ex": "L and U in one matrix, int32 row exchanges from 1, and the first pivot of 0.",
    "linalg_qr": "Q and R by reflections, with LAPACK's signs.",
    "linalg_solve_triangular": "X of A X = B, or X A = B, for triangular A, whose other triangle is not read.",
    "_fft_c2c": "Discrete Fourier transforms of complex numbers along `dim`.",
    "_fft_c2r": "Those of half of a Hermitian signal, with a real result.",
    "_fft_r2c": "Those of real numbers; half of the result if `onesided`.",
}


def expressions():
    """{stub: its operator} of the stubs that are printed from expressions."""
    index = json.loads((pathlib.Path(tenon.__file__).parent / "_operators.json").read_text(encoding="utf-8"))
    found = {}
    for full, said in index.items():
        if "expr" in said.get("body", {}):
            name, _, overload = full.partition("::")[2].partition(".")
            for stub in (f"{name}_{overload}", name):
                found.setdefault(stub, []).append(full)
    return found


def lists():
    by_name, of_expression = {s.name: s for s in tenon.dispatch.stubs()}, expressions()
    own = [n for n in by_name if n in MEANING]
    pointwise = [n for n in by_name if n not in MEANING and n in of_expression]
    unknown = sorted(set(by_name) - set(own) - set(pointwise)) + sorted(set(MEANING) - set(by_name))
    assert not unknown, f"scripts/stubs.py: MEANING and the stubs of this build differ in {', '.join(unknown)}"
    yield "| stub | signature | what it does |"
    yield "| --- | --- | --- |"
    for name in sorted(own):
        yield f"| `{name}` | {f'`{by_name[name].signature}`' if by_name[name].signature else 'C++ only'} | {MEANING[name]} |"
    yield ""
    yield f"The {len(pointwise)} stubs of pointwise operators:"
    yield ""
    yield "| stub | signature |"
    yield "| --- | --- |"
    for name in sorted(pointwise):
        yield f"| `{name}` | `{by_name[name].signature}` |"


def main():
    old = PAGE.read_text(encoding="utf-8")
    head, rest = old.split(BEGIN)
    new = f"{head}{BEGIN}\n" + "\n".join(lists()) + f"\n{END}" + rest.partition(END)[2]
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(new, encoding="utf-8")
        return 0
    changed = list(difflib.unified_diff(old.splitlines(), new.splitlines(), "docs/stubs.md", "the build", lineterm="", n=0))
    print("\n".join(changed))
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
