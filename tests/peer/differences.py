"""Where Tenon and PyTorch differ on purpose, or where PyTorch says nothing to compare with. All else fails."""

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    why: str
    operators: str  # a regular expression of the name without overload and trailing underscore
    what: str  # a regular expression of what differs
    kinds: str = ".*"
    dtypes: str = ".*"
    sample: Callable = lambda s: True  # noqa: E731 whether it is about this sample


def _one_number(s):
    """Whether a tensor of one number stands beside one with dimensions."""
    dims = [spec.dim for spec in s.specs()]
    return 0 in dims and any(dims)


_COPIES = "clone|complex|copy|fill|native_dropout|polar|_to_copy|to|empty_like|full_like|ones_like|zeros_like"
_WINDOWS = (
    "_adaptive_avg_pool[23]d(_backward)?|adaptive_.*|.*_pool[23]d.*_backward|constant_pad_nd|pad|_pad_circular|channel_shuffle|roll|avg_pool3d|"
    "reflection_pad.*|replication_pad.*|_?upsample_.*_backward"
)
_LAYOUTS = f"{_WINDOWS}|binary_cross_entropy_with_logits|kl_div|.*_loss|angle|conj_physical|stack|index|masked_fill|log_sigmoid|nonzero|nonzero_numpy|pow|rsub"
# What copies `self` and writes a part of it, and what is composed of products or of cat.
_LAYOUTS += "|_?(log_)?softmax(_backward_data)?|index_fill|index_put|put|tril|triu|where|[hvd]stack|column_stack|addbmm|addr|baddbmm|einsum|gradient|logaddexp2|logcumsumexp"
# What is composed, and matrices and transforms, whose results are contiguous here.
_MATRICES = "cholesky_.*|geqrf|inverse|_?linalg_.*|l?u?_?lu_solve|orgqr|ormqr|svd|triangular_solve"
_LAYOUTS += f"|argwhere|_?fft_.*|float_power|frexp|gcd|lcm|ldexp|isreal|kron|mvlgamma|nextafter|renorm|signbit|unique_dim|isin|lu_unpack|stft|{_MATRICES}"

DIFFERENCES = (
    Difference("PyTorch has no kernel for the dtype", ".*", r'PyTorch raises NotImplementedError: .*not implemented for'),
    Difference("a dtype is refused also where there are no elements",
               f"grid_sampler.*|kthvalue|mode|bucketize|searchsorted|cummax|cummin|_pdist_forward|_fft_.*|det|matrix_power|{_MATRICES}",
               r"not implemented for|expected .*, got", "empty|meta|zero_dim"),
    Difference("matrices are float32, float64 or complex", "_?linalg_.*|matrix_exp|lu_unpack", r"of float32, float64, complex64 or complex128, got"),
    Difference("histograms are of float32 or float64", "histogram", r"must be float32 or float64, got"),
    Difference("operands of several dtypes meet in their common one", "_?cdist.*|addcdiv|dist|heaviside",
               r"PyTorch raises .*(expected scalar type|no longer supported|with a bool tensor is not supported|different dtypes)"),
    Difference("PyTorch takes 1 from a weight of uint8, which wraps", "binary_cross_entropy_with_logits", r"^element", "promotion", "uint8"),
    Difference("PyTorch rounds the logarithm to the narrower dtype first", "kl_div|binary_cross_entropy_with_logits", r"^element", "promotion", "b?float16|float32|float64"),
    Difference("truth values may be looked for", "isin", r"PyTorch raises NotImplementedError: Unsupported input type"),
    Difference("a shift of no dimensions changes nothing", "fft_i?fftshift", r"`shifts` required", "zero_dim"),
    Difference("transforms of half precision compute in float32", "stft|fft_.*", r"MKL FFT doesn't support|Unsupported dtype"),
    Difference("coordinates are no integers", "affine_grid_generator", r"not implemented for"),
    Difference("PyTorch has places between elements in half precision", "grid_sampler.*", r"^element", dtypes="b?float16"),
    Difference("PyTorch has no kernel for the dtype", "argmax|argmin|topk", r"does not support bool"),
    # docs/differences.md
    Difference("equal elements keep their order", "argsort|msort|sort|topk", r"^element",
               sample=lambda s: "stable" not in s.kwargs),
    Difference("a negative step is a view", "slice", r"PyTorch raises RuntimeError: slice step must be positive"),
    Difference("a negative step is a view", "fliplr|flipud|rot90", r"^strides"),
    Difference("which of equal elements is found is another", "kthvalue|median|nanmedian|mode", r"^element"),
    Difference("writes to elements that overlap are always refused", ".*",
               r"raises RuntimeError: .*(more than once|more than one element)", "overlapping|expanded"),
    Difference("a number that a narrow dtype cannot hold is not wrapped first", "floor_divide|fmod|remainder|linspace",
               r"element", dtypes="uint8"),
    Difference("integers divided by zero give zero", "div|floor_divide|fmod|remainder|trunc_divide", r"ZeroDivisionError"),
    Difference("the square of bool is bool", "square", r"torch.int64|result type Long", dtypes="bool"),
    Difference("results lie in memory as their operands do, or in order", _LAYOUTS, r"^strides"),
    Difference("sum_to_size changes nothing where sizes agree", "sum_to_size", r"torch.int64", "zero_dim"),
    Difference("there is no complex dtype of half precision", "dist", r"float32, PyTorch has torch.b?float16"),
    Difference("a number that a narrow dtype cannot hold is not wrapped or rounded first", ".*", r"element", "promotion",
               sample=_one_number),
    Difference("conjugates are copies", "conj", r"^strides", dtypes="complex.*"),
    Difference("there is no complex dtype of half precision", ".*", r"b?complex32"),
    Difference("there is no complex dtype of half precision", "l1_loss", r"float32, PyTorch has torch.b?float16"),
    Difference("values have the dtype of what they are put into, also at a mask", "index_put", r"`values` is", "promotion"),
    Difference("there is no complex dtype of half precision", "complex|polar|view_as_complex", r"got float16"),
    Difference("a real number beside complex ones has no imaginary zero", "add|sub|rsub|mul|div|l1_loss", r"element.*(inf|nan)",
               "special"),
    Difference("a result is channels-last where the input is", "conv.*|_convolution.*", r"^strides"),
    Difference("the sum of no channels is the bias", "conv.*", r"^shape|element", "empty", sample=lambda s: s.args[1].shape[1] == 0 or s.args[0].shape[1] == 0),
    Difference("an infinite weight meets the padding", "conv.*", r"element.*(inf|nan)", "special"),
    Difference("integers have no mean", "avg_pool.d(_backward)?", r"not implemented for int64", dtypes="int64"),
    Difference("integers are not interpolated", "_?upsample_bi.*", r"not implemented for uint8", dtypes="uint8"),
    Difference("sums of bool are not bool", "cumsum|cumprod", r"cannot be cast to `self` of bool", dtypes="bool"),
    Difference("PyTorch's mean of what has an infinity is undefined where it comes with a variance", "(var|std)_mean",
               r"element.*is -?inf, expected nan", "special"),
    Difference("PyTorch's half precision overflows on the way", "native_layer_norm_backward", r"expected -?inf",
               dtypes="float16"),
    Difference("PyTorch reads past statistics that are not contiguous", "native_layer_norm_backward", r"element",
               "expanded|overlapping|transposed|sliced|negative"),
    Difference("the gradient of an absent weight is that of ones", "native_layer_norm_backward", r"tensor does not have a device"),
    Difference("PyTorch gives a real result a complex dtype, and refuses it", "norm", r"Expected out tensor to have dtype double",
               dtypes="complex.*"),
    Difference("sums of bool are not bool", "col2im", r"not implemented for bool", dtypes="bool"),
    Difference("positions may be int32 everywhere", "index_copy|index_fill|put|take",
               r"PyTorch raises .*([Ee]xpected a long tensor|Expected dtype int64|LongTensor)"),
    Difference("copies that are written in part are contiguous", "copy|.*_scatter", r"^strides", "sliced|overlapping"),
    Difference("copies that are written in part are contiguous", "copy|.*_scatter", r"^element", "overlapping"),
    Difference("the sum of integers in einsum keeps the dtype", "einsum", r"PyTorch has torch.int64"),
    Difference("addr is a product: its operands have one dtype, and none is bool", "addr",
               r"raises TypeError: .*(expected both to have the same dtype|not implemented for bool)"),
    Difference("losses are not of complex numbers", "soft_margin_loss|binary_cross_entropy_with_logits",
               r"raises NotImplementedError: .*complex"),
    Difference("dropout needs floating numbers", "native_dropout(_backward)?", r"raises NotImplementedError: .*floating"),
    Difference("complex numbers have no norms of rows yet", "rms_norm", r"raises NotImplementedError", dtypes="complex.*"),
    # What PyTorch does otherwise without saying so, where the reference of tests/conformance agrees with Tenon.
    Difference("attention's result lies in memory with the heads inside", "scaled_dot_product_attention", r"^strides"),
    Difference("a query that sees no key gives zeros, whatever the values are", "scaled_dot_product_attention",
               r"element.*expected nan", "special"),
    Difference("PyTorch gives zeros where scores are undefined", "scaled_dot_product_attention",
               r"element.*is nan, expected 0.0", "special"),
    Difference("attention without elements broadcasts too", "scaled_dot_product_attention", r"^shape", "empty"),
    Difference("the dtype of no elements counts",
               "conv.*|.*adaptive_avg.*|.*_pad.d_backward|.*softmax.*|native_(layer|group)_norm.*|scaled_dot_product_attention|amax|amin|addmm|bmm|dot|linear|matmul|mm|mv|vdot|"
               "addbmm|addmv|baddbmm|tensordot|batch_norm|group_norm|instance_norm",
               "raises NotImplementedError", "empty"),
    Difference("copies of elements that overlap are contiguous", _COPIES + "|argsort|msort|sort", r"^strides", "overlapping"),
    Difference("PyTorch's fmod loses denormals", "fmod|remainder", r"element.*nan", "special", "float64"),
    Difference("PyTorch computes pow(-inf, 0.5) as a square root", "pow", r"is inf, expected nan",
               "special"),
    Difference("an order of factors among which are 0 and inf", "prod", r"element.*(inf|nan)", "special"),
    Difference("powers of what is infinite or undefined differ", "pow", r"element.*(inf|nan)", "special"),
    Difference("PyTorch loses the sigmoid of what lies far to the left", "sigmoid|silu", r"expected .*nan", "special",
               "complex.*"),
    Difference("which of two faults is told", "clamp", r"ShapeError, PyTorch raises NotImplementedError: clamp is not"),
    Difference("PyTorch takes a place outside of the window where all is zero", "max_pool3d_with_indices", r"element", "channels_last", "uint8"),
    Difference("PyTorch leaves the shape of no elements as it is", "pixel_unshuffle", r"^shape", "empty"),
    Difference("PyTorch flattens what is not contiguous by a view", "take_along_dim", r"PyTorch raises .*view size"),
    Difference("PyTorch leaves the shape of no elements as it is", "addmv", r"^shape", "empty"),
    Difference("PyTorch's mask of no elements has the input's dtype", "native_dropout", r"tenon.bool, PyTorch", "empty"),
    Difference("PyTorch reads statistics of no batches", "instance_norm", r"PyTorch raises IndexError: select", "empty"),
    Difference("exp overflows in float16 on its way there", "soft_margin_loss", r"expected inf", dtypes="float16"),
    Difference("PyTorch's sqrt is not always rounded correctly", "sqrt", r"element"),
    # docs/accuracy-special.md has figures of both.
    Difference("PyTorch's special functions err", "special_(bessel_[jy][01]|airy_ai)|digamma_?|polygamma|logit|sinc", r"^element", dtypes="float.*|b?float16|int.*|uint8|bool"),
    Difference("the exponential of -inf is 0 whatever the imaginary part is (C99, annex G)", "logaddexp", r"^element", "special", dtypes="complex.*"),
    Difference("slopes of integers are floating numbers", "gradient", r"raises NotImplementedError: torch.gradient does not support uint8", dtypes="uint8"),
    Difference("complex numbers have no definition of it yet", "nan_to_num",
               r"raises NotImplementedError: .*not implemented for complex"),
    Difference("truth values and integers are not made numbers silently", "addcdiv|addcmul|lerp|logaddexp|prelu|glu",
               r"raises TypeError: .*which is not supported", "promotion"),
    Difference("losses take all real dtypes", ".*loss|.*_div|binary_cross_entropy.*",
               r"PyTorch raises (NotImplementedError: (Subtraction|Negation)|RuntimeError: (result type|kl_div: Integral))"),
    Difference("losses take all real dtypes", ".*loss|.*_div|binary_cross_entropy.*", r"dtype torch|has torch"),
    Difference("operands broadcast both ways", "soft_margin_loss", r"PyTorch raises RuntimeError: output with shape"),
    Difference("operands promote", "lerp", r"PyTorch raises RuntimeError: expected dtype", "promotion"),
    Difference("PyTorch takes the diagonal of a factor to be real", "cholesky_inverse", r"^element", dtypes="complex.*"),
    Difference("the sign of a NaN says nothing", "copysign|signbit", r"element", "special", "bfloat16"),
    Difference("PyTorch loses digits of gelu and ndtr to the left of 0", "gelu|special_ndtr", r"^element"),
    Difference("infinite parts of complex numbers follow C99, annex G", "expm1|log1p|mean|reciprocal|rsqrt|sgn", r"^element", "special", "complex.*"),
    Difference("PyTorch loses denormals", "div|conv1d", r"^element .*e-3[89]", "special"),
    Difference("PyTorch rounds a quotient of half precision before it cuts or rounds down", "div", r"^element", dtypes="b?float16",
               sample=lambda s: s.kwargs.get("rounding_mode")),
    Difference("the divisor of -128 and 0 is 1 where 128 is not there", "gcd", r"^element", "special"),
    Difference("PyTorch reads past indices that are not contiguous", "adaptive_max_pool3d_backward", r"^element"),
    Difference("PyTorch forgets wraps of a matrix that is not contiguous", "fill_diagonal", r"setStorage|^element", "transposed|sliced"),
    Difference("PyTorch takes no strides", "kron|_pdist_forward", r"view size is not compatible|requires contiguous input"),
    Difference("NaN is no number on either side of 0, as in NumPy", "heaviside", r"^element .* is nan", "special"),
    Difference("rows with NaN are sorted, and NaN last", "unique_dim", r"^element", "special"),
    Difference("factors and eigenvectors have one written sign", "_?linalg_(det|eigh?|svd)|svd", r"^element"),
    Difference("PyTorch's gelu of inf is undefined", "gelu", r"is inf, expected nan", "special"),
    Difference("PyTorch multiplies -inf by the zero beside it", "hardswish", r"is -0.0, expected .*nan",
               "special"),
    Difference("copies of elements that overlap are contiguous", "nan_to_num", r"^strides", "overlapping|expanded"),
)  # fmt: skip


def on_purpose(op, s, dtype, kind, what):
    """The reason why this sample may differ, or "" when it may not."""
    for d in DIFFERENCES:
        if (
            re.fullmatch(d.operators, op.name.rstrip("_"))
            and re.search(d.what, what)
            and re.fullmatch(d.kinds, kind)
            and re.fullmatch(d.dtypes, dtype)
            and d.sample(s)
        ):
            return d.why
    return ""
