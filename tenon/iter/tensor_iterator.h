// TensorIterator: a loop over several tensors of different shapes, strides and dtypes, and its configuration.
// Used by pointwise operators, copies and users' kernels (cpu_kernel.h). Independent of what the loop
// computes.
//
//   auto iter = TensorIteratorConfig().add_output(out).add_input(a).add_input(b).build();
//   iter.for_each([](char* const* ptrs, const int64_t* strides, int64_t n) { ... });
#pragma once

#include <memory>
#include <span>
#include <string>

#include "tenon/core/parallel.h"
#include "tenon/core/tensor.h"

namespace tenon {

class TensorIterator;

/// The most operands that an iterator may have.
inline constexpr int kMaxOperands = 16;

/// Describes the loop. Outputs come first; an undefined output is allocated. Names and defaults are
/// PyTorch's: operands must have one dtype unless promotion is asked for.
class TensorIteratorConfig {
 public:
  TensorIteratorConfig() = default;
  TensorIteratorConfig(const TensorIteratorConfig&) = delete;
  TensorIteratorConfig& operator=(const TensorIteratorConfig&) = delete;

  TensorIteratorConfig& add_output(const Tensor& t) { return add(t, true, true); }
  TensorIteratorConfig& add_input(const Tensor& t) { return add(t, false, true); }
  TensorIteratorConfig& add_const_input(const Tensor& t) { return add(t, false, true); }
  /// The caller keeps the tensor alive as long as the iterator.
  TensorIteratorConfig& add_borrowed_output(const Tensor& t) { return add(t, true, false); }
  TensorIteratorConfig& add_borrowed_input(const Tensor& t) { return add(t, false, false); }

  /// The operator that error messages name.
  TensorIteratorConfig& set_op_name(const char* name) {
    op_ = name;
    return *this;
  }
  /// The names of operands in error messages; without, they are "output 0", "input 0".
  TensorIteratorConfig& set_names(std::span<const char* const> outputs, std::span<const char* const> inputs) {
    output_names_ = outputs;
    input_names_ = inputs;
    return *this;
  }
  /// Whether to compute in the common dtype of the inputs; cpu_kernel then converts operands of other dtypes.
  TensorIteratorConfig& promote_inputs_to_common_dtype(bool on) {
    promote_ = on;
    if (on) check_same_dtype_ = false;
    return *this;
  }
  /// Whether integers and bool promote to the default float dtype.
  TensorIteratorConfig& promote_integer_inputs_to_float(bool on) {
    promote_to_float_ = on;
    return *this;
  }
  /// Whether to refuse an output whose dtype cannot hold the category of the common dtype.
  TensorIteratorConfig& enforce_safe_casting_to_output(bool on) {
    safe_cast_ = on;
    return *this;
  }
  TensorIteratorConfig& check_all_same_dtype(bool on) {
    check_same_dtype_ = on;
    return *this;
  }
  TensorIteratorConfig& check_all_same_device(bool on) {
    check_device_ = on;
    return *this;
  }
  /// Whether a 0-dim host tensor may be used with tensors of another device.
  TensorIteratorConfig& allow_cpu_scalars(bool on) {
    cpu_scalars_ = on;
    return *this;
  }
  /// Whether to refuse outputs that overlap themselves, each other, or an input (other than as the same
  /// view).
  TensorIteratorConfig& set_check_mem_overlap(bool on) {
    check_overlap_ = on;
    return *this;
  }
  /// Whether outputs without elements are resized to the broadcast shape; other outputs must have it.
  TensorIteratorConfig& resize_outputs(bool on) {
    resize_ = on;
    return *this;
  }
  /// Sets the dtype of allocated outputs, which otherwise have the common dtype.
  TensorIteratorConfig& declare_static_dtype(DType t) {
    output_dtype_ = t;
    return *this;
  }
  /// The same for each output, allocated or not; `t` lives until the iterator is built.
  TensorIteratorConfig& declare_static_dtypes(std::span<const DType> t) {
    output_dtypes_ = t;
    return *this;
  }
  /// Sets the device of allocated outputs when there are no inputs.
  TensorIteratorConfig& declare_static_device(Device d) {
    output_device_ = d;
    return *this;
  }

  /// Checks the operands and makes the iterator. Throws Error{Shape}, Error{Type}, Error{Device} or
  /// Error{Runtime} (overlap), and then has written nothing.
  TensorIterator build();

 private:
  friend class TensorIterator;
  static constexpr int kInlineOwned = 4;
  TensorIteratorConfig& add(const Tensor& t, bool output, bool own);
  Tensor& owned(int i) noexcept { return i < kInlineOwned ? owned_[i] : more_owned_[static_cast<size_t>(i)]; }

  const Tensor* borrowed_[kMaxOperands];  // null for an operand that is owned
  Tensor owned_[kInlineOwned];
  std::unique_ptr<Tensor[]> more_owned_;
  int count_ = 0;
  int outputs_ = 0;
  const char* op_ = "TensorIterator";
  std::span<const char*const> output_names_, input_names_;
  bool promote_ = false;
  bool promote_to_float_ = false;
  bool safe_cast_ = false;
  bool check_same_dtype_ = true;
  bool check_device_ = true;
  bool cpu_scalars_ = true;
  bool check_overlap_ = true;
  bool resize_ = true;
  std::optional<DType> output_dtype_;
  std::span<const DType> output_dtypes_;
  std::optional<Device> output_device_;
};

/// A loop with fewer elements runs on the calling thread alone.
inline constexpr int64_t kGrainSize = 32768;

/// The loop: operands with strides in bytes over the loop's dimensions, which are the tensors' dimensions
/// ordered by stride (innermost first), reversed where all operands run backwards, and merged where two can
/// be walked with one stride.
class TensorIterator {
 public:
  TensorIterator(const TensorIterator&) = delete;
  TensorIterator& operator=(const TensorIterator&) = delete;

  int ntensors() const noexcept { return count_; }
  int ninputs() const noexcept { return count_ - outputs_; }
  int noutputs() const noexcept { return outputs_; }
  /// Outputs first, then inputs, in the order in which they were added.
  const Tensor& tensor(int i) const noexcept { return *operands_[i].tensor; }
  const Tensor& output(int i = 0) const noexcept { return tensor(i); }
  const Tensor& input(int i = 0) const noexcept { return tensor(outputs_ + i); }
  DType dtype(int i = 0) const noexcept { return operands_[i].dtype; }
  /// The common dtype of the inputs; set only if promotion was asked for or all inputs have the same dtype.
  DType common_dtype() const noexcept { return common_dtype_; }
  bool promotes() const noexcept { return promotes_; }
  /// Sets the dtype to compute in, where the caller decides it: the common dtype of operands that promote.
  void promote_to(DType computed) noexcept {
    common_dtype_ = computed;
    promotes_ = true;
  }
  Device device() const noexcept { return device_; }
  const char* op_name() const noexcept { return op_; }

  /// The broadcast shape as the caller sees it.
  IntArrayRef result_shape() const noexcept { return result_shape_; }
  /// The sizes of the loop, innermost first; at least one entry.
  IntArrayRef shape() const noexcept { return shape_; }
  int ndim() const noexcept { return static_cast<int>(shape_.size()); }
  /// Strides of operand i in bytes, over `shape()`.
  Dims strides(int i) const;
  /// Strides of all operands over loop dimension d.
  const int64_t* dim_strides(int d) const noexcept {
    return strides_.data() + static_cast<size_t>(d * count_);
  }
  int64_t numel() const noexcept { return numel_; }
  /// Whether the loop has one dimension, in which every operand is dense.
  bool is_contiguous() const noexcept;
  /// The operand's element at which the loop starts (not always [0, ..., 0]: dimensions may be reversed).
  char* data_ptr(int i) const noexcept { return operands_[i].data; }

  /// Calls f(ptrs, byte_strides, n) for one-dimensional runs that cover the loop, from several threads when
  /// there are more than `grain` elements.
  template <class F>
  void for_each(F&& f, int64_t grain = kGrainSize) const {
    for_each_2d(
        [&](char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1) {
          if (n1 == 1) return static_cast<void>(f(ptrs, strides, n0));
          char* row[kMaxOperands];
          for (int64_t j = 0; j < n1; ++j) {
            for (int i = 0; i < count_; ++i) row[i] = ptrs[i] + j * strides[count_ + i];
            f(static_cast<char* const*>(row), strides, n0);
          }
        },
        grain);
  }
  /// As for_each, over blocks of n1 rows of n0 elements: strides[i] is operand i's stride within a row,
  /// strides[ntensors() + i] its stride from row to row.
  template <class F>
  void for_each_2d(F&& f, int64_t grain = kGrainSize) const {
    const auto call = [](void* context, char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1) {
      (*static_cast<std::remove_reference_t<F>*>(context))(ptrs, strides, n0, n1);
    };
    run(call, const_cast<void*>(static_cast<const void*>(&f)), grain);
  }

  /// Describes the loop: the order of dimensions, which were reversed, which pairs merged, and which operand
  /// kept a pair from merging.
  std::string explain() const;

 private:
  friend class TensorIteratorConfig;
  static constexpr int kInlineOperands = 4;
  using BlockFunction = void (*)(void* context, char* const* ptrs, const int64_t* strides, int64_t n0,
                                 int64_t n1);

  struct Operand {
    Tensor owned;
    const Tensor* tensor = nullptr;
    char* data = nullptr;
    DType dtype = DType::Float32;
    bool allocate = false;
    bool resize = false;
  };

  explicit TensorIterator(TensorIteratorConfig& config);

  void compute_device(const TensorIteratorConfig& config);
  void compute_shape(const TensorIteratorConfig& config);
  void compute_dtypes(const TensorIteratorConfig& config);
  void check_overlaps() const;
  bool try_contiguous();
  void set_strides();
  void sort_dimensions();
  void allocate_outputs();
  void reverse_dimensions();
  void merge_dimensions(std::string* log);
  void bind_addresses();
  bool has_strides(int i) const noexcept { return !operands_[i].allocate && !operands_[i].resize; }
  std::string operand_label(int i) const;

  void run(BlockFunction f, void* context, int64_t grain) const;
  void run_range(BlockFunction f, void* context, int64_t begin, int64_t end) const;

  int64_t& stride(int d, int i) noexcept { return strides_[static_cast<size_t>(d * count_ + i)]; }
  int64_t stride(int d, int i) const noexcept { return strides_[static_cast<size_t>(d * count_ + i)]; }

  int count_ = 0;
  int outputs_ = 0;
  Operand inline_operands_[kInlineOperands];
  std::unique_ptr<Operand[]> more_operands_;
  Operand* operands_ = inline_operands_;
  const char* op_;
  std::span<const char*const> output_names_, input_names_;
  Device device_;
  DType common_dtype_ = DType::Float32;
  bool promotes_ = false;
  int64_t numel_ = 0;
  Dims result_shape_;
  Dims shape_;
  SmallVector<int64_t, 24> strides_;  // [dimension][operand], in bytes
  SmallVector<uint8_t, 8> order_;     // the tensors' dimension of each loop dimension, until they merge
};

}  // namespace tenon
