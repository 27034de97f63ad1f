"""Functions under `tenon` that are written in Python and load when first asked for, so that `import tenon` stays quick."""

#: The names of each module here.
NAMES = {
    "copies": (
        "alias_copy as_strided_copy detach_copy diagonal_copy expand_copy permute_copy select_copy slice_copy slice_inverse "
        "split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy view_copy "
        "view_as_real_copy view_as_complex_copy unsafe_chunk unsafe_split unsafe_split_with_sizes"
    ),
    "small": (
        "newaxis arctan2 ger native_channel_shuffle adjoint cross logspace range empty_permuted frobenius_norm nuclear_norm "
        "norm_except_dim is_same_size is_signed is_inference is_conj is_neg resolve_neg is_distributed is_vulkan_available "
        "cudnn_is_acceptable get_device to_dlpack gcd_ lcm_ ldexp_ logit_ clamp_max_ clamp_min_ resize_as_ as_strided_ from_file"
    ),
    "losses": (
        "cosine_similarity pairwise_distance bilinear conv_tbc cosine_embedding_loss hinge_embedding_loss margin_ranking_loss "
        "poisson_nll_loss triplet_margin_loss ctc_loss"
    ),
    "noise": "rrelu rrelu_ alpha_dropout alpha_dropout_ feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_",
    "recurrent": "rnn_tanh rnn_relu lstm gru rnn_tanh_cell rnn_relu_cell gru_cell lstm_cell",
    "lowrank": "svd_lowrank pca_lowrank lobpcg matrix_rank lstsq solve eig symeig",
    "statistics": "histogramdd segment_reduce index_reduce nonzero_static native_batch_norm",
    "batch_statistics": (
        "batch_norm_stats batch_norm_update_stats batch_norm_elemt batch_norm_gather_stats_with_counts batch_norm_gather_stats "
        "batch_norm_backward_reduce batch_norm_backward_elemt"
    ),
    "quantize": "fake_quantize_per_tensor_affine fake_quantize_per_channel_affine",
    "control": (
        "SymBool SymFloat SymInt cond fork wait while_loop sym_float sym_int sym_max sym_min sym_not sym_sqrt sym_sum sym_ite sym_fresh_size sym_constrain_range "
        "sym_constrain_range_for_size"
    ),
    "switches": (
        "set_deterministic_debug_mode get_deterministic_debug_mode set_num_interop_threads get_num_interop_threads set_warn_always "
        "is_warn_always_enabled set_flush_denormal set_printoptions set_anomaly_enabled set_default_tensor_type get_device_module "
        "compiled_with_cxx11_abi legacy_contiguous_format has_lapack has_openmp has_spectral has_mkl"
    ),
}  # fmt: skip
LATER = {name: f"_functions.{module}" for module, names in NAMES.items() for name in names.split()}
