// Schemas that cover the language, for the tests of tests/schema. Each prints back as the very same text.
#pragma once

namespace tenon::schema {

inline constexpr const char* kGolden[] = {
    // Core ATen operators, as PyTorch prints them.
    "aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
    "aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
    "aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
    "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int "
    "padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
    "aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
    "aten::_local_scalar_dense(Tensor self) -> Scalar",
    "aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
    "Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    "aten::_pdist_forward(Tensor self, float p=2.) -> Tensor",
    "aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
    "aten::abs(Tensor self) -> Tensor",
    "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    "aten::alias(Tensor(a) self) -> Tensor(a)",
    "aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
    "aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    "aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? "
    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
    "Tensor(a)",
    "aten::atan2.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    "aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool "
    "ceil_mode=False, bool count_include_pad=True) -> Tensor",
    "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
    "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
    "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    "aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
    "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
    "aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, "
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt "
    "groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    "aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
    "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, "
    "bool sparse=False) -> Tensor",
    "aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
    "aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
    "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    "aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    "aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int "
    "group, float eps) -> (Tensor, Tensor, Tensor)",
    "aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    "aten::randperm(SymInt n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor",
    "aten::resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    "aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
    "include_self=True) -> Tensor",
    "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
    "Tensor(a)",
    "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
    "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
    "Tensor",
    "aten::sym_is_contiguous(Tensor self, MemoryFormat memory_format=0) -> SymBool",
    "aten::sym_numel(Tensor self) -> SymInt",
    "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, "
    "Tensor indices)",
    "aten::upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
    "scale_factors) -> Tensor",
    "aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
    "Tensor",
    // Forms of native_functions.yaml that the core set lacks.
    R"(chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[])",
    R"(_foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ())",
    R"(split.out(Tensor self, int n, *, Tensor(a!)[] out) -> ())",
    R"(max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices))",
    R"(mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor)",
    R"(randint_like(Tensor self, SymInt high, *, ScalarType dtype=long, MemoryFormat memory_format=contiguous_format) -> Tensor)",
    R"(batch_norm(Tensor input, Tensor? running_mean=None, float momentum=0.1, float eps=1e-05) -> Tensor)",
    R"(norm_inf(Tensor self, float p=inf, float q=-inf, Scalar r=-1.5) -> Tensor)",
    R"(roll(Tensor self, int[1] shifts, int[1] dims=[], int[2] both=[0, 1], int[] tight=[0,1]) -> Tensor)",
    R"(layout_of(Layout layout=strided, Device device=cpu, Device other=cuda:1) -> Layout)",
    R"(words(str a="none", str? b=None, str c="with \"quotes\" and \\", str d='single') -> str)",
    R"(_foreach_norm(Tensor[] self, Scalar[] scalars, float[] weights=[0.5, 1.], bool[3] mask=[True, False, True]) -> Tensor[])",
    R"(optional_elements(Tensor?[] a, int?[] b, Tensor?[]? c=None, SymInt[2]? d=None) -> (Tensor?, int[], Scalar))",
    R"(any_view(Tensor(a|b) x, Tensor(c! -> c|d) y) -> (Tensor(a|b), Tensor(c!)))",
    R"(set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!))",
    R"(normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!))",
    R"(maybe_written(Tensor(a!)? state=None) -> ())",
    R"(one_named(Tensor self) -> (Tensor values))",
    R"(my_ns::Op9.Overload_1() -> ())",
};

}  // namespace tenon::schema
