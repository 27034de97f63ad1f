#include "tenon/builder/tracer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tenon/core/error.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/convolution/operators.h"
#include "tenon/generated/copy/functions.h"
#include "tenon/generated/copy/operators.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/matmul/operators.h"
#include "tenon/generated/norm/operators.h"
#include "tenon/generated/recurrent/operators.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/generated/window/functions.h"
#include "tenon/ops/matmul/panels.h"
#include "tenon/record/recorder_parts.h"

namespace tenon::builder {
namespace {

using record::each_tensor;
using tenon::Tensor;

bool is_whole(const Tensor& t) {
  return t.is_contiguous() && t.storage_offset() == 0 && t.nbytes() == t.storage().nbytes();
}

/// What does not stay in the second cache is read at the speed of memory by few rows, in any order.
constexpr size_t kNearBytes = size_t{2} << 20;

/// In place of a call's arguments.
void set_result(Stack& stack, size_t first, Tensor result) {
  stack.drop(stack.size() - first);
  stack.push(std::move(result));
}

[[noreturn]] void refuse_draws(const graph::OperatorInfo& info) {
  throw_error(ErrorKind::Value,
              fmt::format("inference: {} draws random numbers; call eval() on the module first",
                          info.op.full_name()));
}

}  // namespace

void Tracer::enter(const graph::OperatorInfo& info, const Stack& stack) {
  const auto& arguments = info.schema->arguments;
  bool draws = info.op.traits().tags.has(Tag::nondeterministic_seeded);
  for (const auto& argument : arguments) draws |= argument.type.base == schema::BaseType::Generator;
  if (!draws) return;
  const size_t first = stack.size() - arguments.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i].name;
    if (name == "train" && stack.tag(first + i) == CellTag::Bool && !stack.at<bool>(first + i)) return;
    if ((name == "p" || name == "dropout_p") && stack.tag(first + i) == CellTag::Float &&
        stack.at<double>(first + i) == 0)
      return;
  }
  refuse_draws(info);
}

void Tracer::call(const graph::OperatorInfo& info, Stack& stack) {
  const size_t first = stack.size() - info.schema->arguments.size();
  const StreamTrait& stream = info.op.traits().stream;
  const bool draws =
      stream.is_given() &&
      (stream.unless_zero < 0 || stack.at<double>(first + static_cast<size_t>(stream.unless_zero)) != 0);
  if (draws) refuse_draws(info);
  bool traced = false;
  std::vector<Tensor> written;
  each_tensor(stack, first, [&](const Tensor& t, size_t i) {
    traced |= is_traced(t);
    if (((info.written >> i) & 1u) == 0 || !t.defined()) return;
    forget(*t.storage());
    if (is_traced(t)) return written.push_back(t);
    TENON_CHECK(
        made_.contains(&*t.storage()), Value,
        fmt::format("inference: {} writes a tensor that was there before, as a module in training does; call "
                    "eval() on it first",
                    info.op.full_name()));
    written.push_back(t);
  });
  // What the program has read already must not change by a call that is computed now.
  for (const Tensor& t : written) traced |= known_.contains(&*t.storage());
  if (!traced) return run_at_once(info, stack, first);
  for (const Tensor& t : written)
    if (!is_traced(t) || is_input(t)) take_over(t);
  if (!exact_ && fold_norm(info, stack, first)) return;
  const bool is_layer =
      info.op == operators::convolution || info.op == operators::mm || info.op == operators::addmm;
  Layer layer{info.op, {}, {}};
  if (is_layer)
    for (size_t i = first; i < stack.size(); ++i) layer.arguments.push_copy(stack, i);
  if (exact_ || (!take_rows(info, stack, first) && !pack_right(info, stack, first))) {
    if (!exact_) turn_weight(info, stack, first);
    keep_constants(stack, first);
    GraphWriter::call(info, stack);
  }
  if (!is_layer) return;
  const Tensor& result = stack.at<Tensor>(first);
  layer.sizes = Dims(result.sizes());
  layers_.insert_or_assign(&*result.storage(), std::move(layer));
}

// Layers whose result is not what was made any more, or that would read something else if they ran again; and
// what was made of a weight that is another one now.
void Tracer::forget(const StorageImpl& written) {
  row_products_.forget(written);
  std::erase_if(copies_, [&](const Copy& c) { return &*c.weight.storage() == &written; });
  std::erase_if(layers_, [&](const auto& entry) {
    bool reads = entry.first == &written;
    each_tensor(entry.second.arguments, 0,
                [&](const Tensor& t, size_t) { reads |= t.defined() && &*t.storage() == &written; });
    return reads;
  });
}

bool Tracer::is_input(const Tensor& t) const {
  const graph::StorageId id = storage_of(t);
  return is_traced(t) && id != graph::kNone && program.storages[id].is_input;
}

void Tracer::run_at_once(const graph::OperatorInfo& info, Stack& stack, size_t first) {
  // What an input's device was asked for is made on the host.
  for (size_t i = first; i < stack.size(); ++i)
    if (stack.tag(i) == CellTag::Device && stack.at<Device>(i).backend == kMetaBackend)
      stack.at<Device>(i) = Device(kCPU);
  {
    const ThreadStateGuard<&ThreadState::included> nothing_more{DispatchKeySet()};
    const ThreadStateGuard<&ThreadState::excluded> below{DispatchKeySet(Functionality::Record) |
                                                         kAutogradKeys};
    info.op.call_boxed(stack);
  }
  each_tensor(stack, first, [&](const Tensor& t, size_t) {
    if (t.defined() && made_.insert(&*t.storage()).second) kept_.push_back(t.storage());
  });
}

void Tracer::keep_constants(const Stack& stack, size_t first) {
  each_tensor(stack, first, [&](const Tensor& t, size_t) {
    if (!t.defined() || is_traced(t)) return;
    TENON_CHECK(t.device().is_cpu(), NotImplemented,
                fmt::format("inference: a tensor is on {}; programs run on the host", to_string(t.device())));
    if (known_.insert(&*t.storage()).second) constants.emplace_back(add_constant(t), t.storage());
  });
}

// A tensor that the function has made without its inputs, and that now depends on them, or an input that it
// writes: the program copies the bytes, and from here on the tensor is that copy.
void Tracer::take_over(const Tensor& t) {
  const auto count = static_cast<int64_t>(t.storage().nbytes() / item_size(t.dtype()));
  Stack stack;
  stack.push(Tensor(TensorImpl::make(t.storage(), t.dtype(), Dims{count})));
  stack.push_none();
  if (!is_traced(t)) keep_constants(stack, 0);
  GraphWriter::call(graph::operator_info(operators::clone), stack);
  replace_storage(stack.at<Tensor>(0), t.storage());
  taken_over_.insert(&*t.storage());
}

// A copy of the weight that no run needs to pack. Turned: with its first dimension last in memory; of a
// product's right matrix [k, n], whose columns a layer has, rows are then contiguous. Panels: what
// _packed_product takes in place of a right matrix.
Tensor Tracer::laid_out(const Tensor& weight, Layout layout) {
  for (const auto& [known, copy, its_layout] : copies_) {
    if (layout == its_layout && is_same_view(known, weight)) return copy;
  }
  Tensor copy;
  if (layout == Layout::Turned) {
    Dims there, back;
    const auto count = static_cast<int64_t>(weight.sizes().size());
    for (int64_t i = 0; i < count; ++i) {
      there.push_back((i + 1) % count);
      back.push_back((i + count - 1) % count);
    }
    copy = permute(permute(weight, there).contiguous(), back);
  } else {
    const int64_t k = weight.sizes()[0], width = ops::panel_width(weight.dtype()),
                  panels = ops::panel_count(weight.sizes()[1], weight.dtype());
    const Tensor filled = constant_pad_nd(weight, {0, panels * width - weight.sizes()[1]});
    copy = permute(filled.reshape({k, panels, width}), {1, 0, 2}).contiguous();
  }
  copies_.push_back({weight, copy, layout});
  return copy;
}

namespace {

/// mm, or addmm of a row and a product as they are.
struct PlainProduct {
  const Tensor &matrix, &right;
  Tensor bias;  // [n]; undefined: none
};

std::optional<PlainProduct> plain_product(const graph::OperatorInfo& info, const Stack& stack, size_t first) {
  const bool adds = info.op == operators::addmm;
  if (!adds && info.op != operators::mm) return std::nullopt;
  const size_t left = first + info.op.traits().anchor.left;
  PlainProduct product{stack.at<Tensor>(left), stack.at<Tensor>(left + 1), {}};
  if (!adds) return product;
  const auto is_one = [&](size_t i) { return stack.at<Scalar>(i).to_complex() == 1.0; };
  product.bias = stack.at<Tensor>(first);
  const bool is_row = product.bias.sizes() == IntArrayRef{product.right.sizes()[1]};
  return is_row && is_one(first + 3) && is_one(first + 4) ? std::optional(product) : std::nullopt;
}

}  // namespace

bool Tracer::take_rows(const graph::OperatorInfo& info, Stack& stack, size_t first) {
  const auto product = plain_product(info, stack, first);
  if (!product || is_traced(product->right) || (product->bias.defined() && is_traced(product->bias)) ||
      !(is_made(product->matrix) || is_input(product->matrix)))
    return false;
  const Tensor rows =
      row_products_.take(product->matrix, product->right, product->bias, [&](const Tensor& all) {
        return product->bias.defined() ? addmm(product->bias, all, product->right) : mm(all, product->right);
      });
  if (!rows.defined()) return false;
  // A tensor of its own, as a product's result is: others may share its rows, and be written.
  set_result(stack, first, clone(rows, MemoryFormat::Contiguous));
  return true;
}

// mm and addmm of a constant on the right as a product of packed panels, with the same bits.
bool Tracer::pack_right(const graph::OperatorInfo& info, Stack& stack, size_t first) {
  constexpr int64_t kFewRows = 4;
  const auto product = plain_product(info, stack, first);
  if (!product) return false;
  const auto& [matrix, right, bias] = *product;
  if (is_traced(right) || !ops::has_panels(right.dtype()) || right.numel() == 0 ||
      (matrix.sizes()[0] <= kFewRows && right.nbytes() > kNearBytes))
    return false;
  const int64_t n = right.sizes()[1];
  // Zeros of the last panel are read, too.
  if (ops::panel_count(n, right.dtype()) * ops::panel_width(right.dtype()) > n + n / 4) return false;
  set_result(stack, first, _packed_product(matrix, laid_out(right, Layout::Panels), n, bias));
  return true;
}

void Tracer::turn_weight(const graph::OperatorInfo& info, Stack& stack, size_t first) {
  constexpr int64_t kFewResults = 4;
  const auto fits = [&](const Tensor& t) {
    return !is_traced(t) && is_floating_point(t.dtype()) && item_size(t.dtype()) >= 4 &&
           t.nbytes() <= kNearBytes;
  };
  const AnchorTrait& anchor = info.op.traits().anchor;
  if (anchor.kind == AnchorTrait::Kind::Matmul) {
    Tensor& right = stack.at<Tensor>(first + anchor.left + 1);
    if (right.sizes().size() != 2 || !fits(right) || right.strides()[0] != 1 || right.strides()[1] <= 1)
      return;
    right = t(laid_out(t(right), Layout::Turned));
  } else if (info.op == operators::_recurrence) {
    Tensor& weight = stack.at<Tensor>(first + 3);
    const bool reads_once = stack.at<Tensor>(first).sizes()[0] == 1 && !fits(weight);
    if (!is_traced(weight) && weight.dim() == 2 && ops::has_panels(weight.dtype()) && !reads_once)
      weight = laid_out(t(weight), Layout::Panels);
  } else if (info.op == operators::convolution) {
    // Of a few results, which are a product of few rows.
    Tensor& weight = stack.at<Tensor>(first + 1);
    const auto in = stack.at<Tensor>(first).sizes();
    const auto &step = stack.at<std::vector<int64_t>>(first + 3),
               &padding = stack.at<std::vector<int64_t>>(first + 4),
               &hole = stack.at<std::vector<int64_t>>(first + 5);
    if (!fits(weight) || !weight.is_contiguous() || stack.at<bool>(first + 6)) return;
    // What does not fit together is the operator's to refuse.
    const auto is_of_axes = [&](const auto& list) {
      return list.size() == 1 || list.size() + 2 == in.size();
    };
    if (in.size() < 3 || in.size() != weight.sizes().size() || !is_of_axes(step) || !is_of_axes(padding) ||
        !is_of_axes(hole) || std::ranges::min(step) <= 0)
      return;
    int64_t results = in[0];
    for (size_t i = 2; i < in.size(); ++i) {
      const auto at = [&](const auto& list) { return list[list.size() == 1 ? 0 : i - 2]; };
      results *= (in[i] + 2 * at(padding) - at(hole) * (weight.sizes()[i] - 1) - 1) / at(step) + 1;
    }
    if (results > 0 && results <= kFewResults) weight = laid_out(weight, Layout::Turned);
  }
}

// A batch norm of a layer's columns is a layer whose weight and bias are scaled.
bool Tracer::fold_norm(const graph::OperatorInfo& info, Stack& stack, size_t first) {
  if (info.op != operators::_batch_norm_inference) return false;
  const Tensor &x = stack.at<Tensor>(first), &gain = stack.at<Tensor>(first + 1),
               &bias = stack.at<Tensor>(first + 2), &mean = stack.at<Tensor>(first + 3),
               &var = stack.at<Tensor>(first + 4);
  const auto found = layers_.find(&*x.storage());
  if (found == layers_.end() || !is_whole(x) || x.sizes() != IntArrayRef(found->second.sizes) ||
      !is_fixed({gain, bias, mean, var}, x.dtype()))
    return false;

  Affine norm{mean, rsqrt(tenon::add(var, Scalar(stack.at<double>(first + 5)))), bias};
  if (gain.defined()) norm.scale = mul(norm.scale, gain);
  const Layer& layer = found->second;
  const bool is_convolution = layer.op == operators::convolution;
  Stack call;
  if (is_convolution ? !fold_into_convolution(layer.arguments, norm, call)
                     : x.dim() != 2 || !fold_into_product(layer, norm, call))
    return false;
  (is_convolution ? layer.op : OperatorHandle(operators::addmm)).call_boxed(call);
  set_result(stack, first, call.at<Tensor>(0));
  return true;
}

Tensor Tracer::Affine::of(const Tensor& y) const {
  const Tensor scaled = mul(y.defined() ? tenon::sub(y, mean) : neg(mean), scale);
  return shift.defined() ? tenon::add(scaled, shift) : scaled;
}

// Whether they follow from nothing that a run brings, and have the dtype; absent ones do.
bool Tracer::is_fixed(std::initializer_list<Tensor> weights, DType dtype) const {
  return std::ranges::all_of(
      weights, [&](const Tensor& t) { return !t.defined() || (!is_traced(t) && t.dtype() == dtype); });
}

bool Tracer::fold_into_convolution(const Stack& arguments, const Affine& norm, Stack& call) const {
  constexpr size_t kWeight = 1, kBias = 2, kTransposed = 6, kGroups = 8;
  const Tensor &weight = arguments.at<Tensor>(kWeight), &bias = arguments.at<Tensor>(kBias);
  if (!is_fixed({weight, bias}, norm.scale.dtype())) return false;
  // As [groups, .., columns of a group, ..]: a transposed one reads along the dimension before its columns.
  const auto sizes = weight.sizes();
  const int64_t groups = arguments.at<int64_t>(kGroups), columns = norm.scale.numel() / groups;
  const Tensor grouped =
      arguments.at<bool>(kTransposed)
          ? mul(weight.reshape({groups, sizes[0] / groups, columns, -1}),
                norm.scale.reshape({groups, 1, columns, 1}))
          : mul(weight.reshape({groups, columns, -1}), norm.scale.reshape({groups, columns, 1}));
  for (size_t i = 0; i < arguments.size(); ++i) call.push_copy(arguments, i);
  call.at<Tensor>(kWeight) = grouped.reshape(sizes);
  call.at<Tensor>(kBias) = norm.of(bias);
  return true;
}

// mm(x, w) and addmm(bias, x, w).
bool Tracer::fold_into_product(const Layer& layer, const Affine& norm, Stack& call) const {
  const bool adds = layer.op == operators::addmm;
  const size_t left = layer.op.traits().anchor.left;
  const Tensor& weight = layer.arguments.at<Tensor>(left + 1);
  const Tensor bias = adds ? layer.arguments.at<Tensor>(0) : Tensor();
  if (!is_fixed({weight, bias}, norm.scale.dtype())) return false;
  const auto is_one = [&](size_t i) { return layer.arguments.at<Scalar>(i).to_double() == 1; };
  if (adds && (!is_one(3) || !is_one(4))) return false;
  call.push(norm.of(bias));
  call.push_copy(layer.arguments, left);
  call.push(mul(weight, norm.scale));
  call.push(Scalar(1));
  call.push(Scalar(1));
  return true;
}

}  // namespace tenon::builder
