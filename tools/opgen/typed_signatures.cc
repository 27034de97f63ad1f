#include "tools/opgen/typed_signatures.h"

#include <algorithm>

namespace tenon::opgen {
namespace {

// A signature is here for one of two reasons: three operators or more share it, so that what it costs is
// shared as well; or a step of training or inference (linear layers, activations, a loss, an optimizer) calls
// it, so that the 100 ns or so of a call over cells would be paid again and again. All others are called over
// cells.
constexpr const char* kTyped[] = {
    // Elementwise, with their in-place and out forms.
    "Tensor(const Tensor&)",
    "Tensor&(Tensor&)",
    "Tensor&(const Tensor&, Tensor&)",
    "Tensor(const Tensor&, const Tensor&)",
    "Tensor&(Tensor&, const Tensor&)",
    "Tensor&(const Tensor&, const Tensor&, Tensor&)",
    "Tensor(const Tensor&, const Scalar&)",
    "Tensor&(Tensor&, const Scalar&)",
    "Tensor&(const Tensor&, const Scalar&, Tensor&)",
    "Tensor(const Tensor&, const Scalar&, const Scalar&)",
    "Tensor&(const Tensor&, const Scalar&, const Scalar&, Tensor&)",
    "Tensor(const Tensor&, const Tensor&, const Scalar&)",
    "Tensor&(Tensor&, const Tensor&, const Scalar&)",  // add_, sub_: optimizers
    "Tensor&(const Tensor&, const Tensor&, const Scalar&, Tensor&)",
    "Tensor(const Tensor&, const Tensor&, const Tensor&)",
    // Reductions and what goes along a dimension.
    "Tensor(const Tensor&, std::optional<DType>)",
    "Tensor(const Tensor&, int64_t, bool)",
    "Tensor(const Tensor&, int64_t, std::optional<DType>)",
    "Tensor&(const Tensor&, int64_t, std::optional<DType>, Tensor&)",
    "Tensor(const Tensor&, IntArrayRef, bool)",
    "Tensor&(const Tensor&, IntArrayRef, bool, Tensor&)",
    "Tensor(const Tensor&, std::optional<int64_t>, bool)",                            // argmax
    "Tensor(const Tensor&, std::optional<IntArrayRef>, bool, std::optional<DType>)",  // sum, mean
    // Views and indexing.
    "Tensor(const Tensor&, int64_t)",
    "Tensor(const Tensor&, int64_t, int64_t)",
    "Tensor(const Tensor&, int64_t, int64_t, int64_t)",
    "Tensor(const Tensor&, IntArrayRef)",
    "Tensor(const Tensor&, TensorList)",                     // x[batch]
    "std::vector<Tensor>(const Tensor&, int64_t, int64_t)",  // split
    // Factories and conversions.
    "Tensor(IntArrayRef, std::optional<DType>, std::optional<Layout>, std::optional<Device>, "
    "std::optional<bool>)",
    "Tensor(IntArrayRef, std::optional<DType>, std::optional<Layout>, std::optional<Device>, "
    "std::optional<bool>, "
    "std::optional<MemoryFormat>)",
    "Tensor(const Tensor&, std::optional<DType>, std::optional<Layout>, std::optional<Device>, "
    "std::optional<bool>, "
    "std::optional<MemoryFormat>)",
    "Tensor(const Tensor&, IntArrayRef, std::optional<DType>, std::optional<Layout>, std::optional<Device>, "
    "std::optional<bool>)",
    "Tensor(const Tensor&, std::optional<MemoryFormat>)",  // clone
    "Scalar(const Tensor&)",                               // item
    // Products, losses and their gradients.
    "Tensor(const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&)",  // addmm
    "Tensor(const Tensor&, const Tensor&, int64_t, DType)",  // log_softmax's gradient
    "Tensor(const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t, double)",  // cross_entropy_loss
    "std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t)",
    "Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t, const Tensor&)",
};

// A function that calls on costs some 14 instructions more, because g++ does not jump where a result is
// returned in memory: 2 to 4 % of the shortest operators, whose forms are here, with those that a training
// step calls.
constexpr const char* kInline[] = {
    "add",    "sub",       "mul",           "div",     "mm",        "addmm",     "linear", "relu",
    "scaled", "empty",     "empty_strided", "zeros",   "view",      "t",         "expand", "reshape",
    "select", "transpose", "slice",         "permute", "detach",    "alias",     "item",   "squeeze",
    "sum",    "copy",      "zero",          "fill",    "unsqueeze", "as_strided"};

}  // namespace

bool has_inline_call(const std::string& name) {
  const std::string plain = name.ends_with('_') ? name.substr(0, name.size() - 1) : name;
  return std::ranges::any_of(kInline, [&](const char* known) { return plain == known; });
}

bool has_typed_code(const std::string& signature) {
  return std::ranges::any_of(kTyped, [&](const char* typed) { return signature == typed; });
}

}  // namespace tenon::opgen
