#include "tenon/graph/ir/lowering.h"

#include <array>
#include <optional>

#include "tenon/core/error.h"
#include "tenon/core/tensor_header.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/iter/overlap.h"
#include "tenon/iter/pointwise_device.h"
#include "tenon/ops/forms/rows.h"

namespace tenon::graph {
namespace {

/// The header of a tensor that has no bytes.
class Header : public TensorHeader {
 public:
  Header(const Geometry& g, Device device) : TensorHeader(g.sizes, g.strides, g.dtype, device) {
    wrapped_number_ = g.wrapped_number;
  }
};

/// The kind of an attribute that a pointwise operator takes as a number; none for others.
std::optional<Scalar::Kind> kind_of(const Stack& stack, size_t i) {
  switch (stack.tag(i)) {
    case CellTag::Bool:
      return Scalar::Kind::Bool;
    case CellTag::Int:
      return Scalar::Kind::Int;
    case CellTag::Float:
      return Scalar::Kind::Float;
    case CellTag::Scalar:
      return stack.at<Scalar>(i).kind();
    default:
      return std::nullopt;
  }
}

class CallLowering {
 public:
  CallLowering(const Graph& graph, const Node& node)
      : g_(graph),
        uses_(graph.uses(node)),
        defs_(graph.defs(node)),
        arguments_(graph.arguments(node)),
        node_(node) {}

  std::shared_ptr<const LoweredCall> lower() {
    if (defs_.empty() || !on_one_device()) return nullptr;
    const Device device = g_.device(node_);
    if (!detail::pointwise_serves(nullptr, device.backend)) return nullptr;
    const EqualsTrait& equals = node_.op.traits().equals;
    // What writes its result elsewhere is called by itself.
    const bool has_out = std::ranges::any_of(node_.op.schema().arguments, &schema::Argument::is_out);
    if (equals.kind != EqualsTrait::Kind::None && !has_out) return move(equals);
    try {
      if (const PointwiseInfo* info = pointwise_info_of(node_.op.entry(), device.backend))
        return pointwise(*info);
      // Devices take expressions over elements alone.
      if (!device.is_cpu()) return nullptr;
      if (const RowsInfo* info = ops::rows_info_of(node_.op.entry())) return rows(*info);
    } catch (const Error&) {
      // The call itself says why.
    }
    return nullptr;
  }

 private:
  bool on_one_device() const {
    const Device device = g_.device(node_);
    const auto there = [&](ValueId value) {
      return value == kNone || g_.storages[g_.values[value].storage].device == device;
    };
    return std::ranges::all_of(defs_, there, &Def::value) && std::ranges::all_of(uses_, there, &Use::value);
  }

  std::shared_ptr<const LoweredCall> move(const EqualsTrait& equals) {
    const DType to = g_.geometry(defs_[0].geometry).dtype;
    std::optional<Lowered> lowered;
    std::vector<LoweredArgument> numbers;
    uint32_t source = 0;  // its place among the uses
    if (equals.kind == EqualsTrait::Kind::Tensor) {
      const auto& arguments = node_.op.schema().arguments;
      source = static_cast<uint32_t>(std::count_if(arguments.begin(), arguments.begin() + equals.argument,
                                                   [](const auto& a) { return a.type.is_tensor(); }));
      lowered = lower_copy(g_.geometry(uses_[source].geometry).dtype, to);
    } else {
      lowered = lower_fill(to);
    }
    if (!lowered) return nullptr;
    for (const LoweredNumber& rule : lowered->numbers) {
      if (equals.kind == EqualsTrait::Kind::Number)
        numbers.push_back({equals.argument, rule});
      else
        numbers.push_back({kNone, rule, Scalar(int64_t{equals.constant})});
    }
    return finish(std::move(*lowered), std::array{source}, std::move(numbers));
  }

  std::shared_ptr<const LoweredCall> pointwise(const PointwiseInfo& info) {
    if (!gather(info)) return nullptr;
    std::optional<Lowered> lowered = lower_pointwise(special(info), tensors_, kinds_, outs_, in_place_);
    if (!lowered) return nullptr;
    std::vector<LoweredArgument> numbers;
    for (const LoweredNumber& rule : lowered->numbers) numbers.push_back({number_places_[rule.scalar], rule});
    return finish(std::move(*lowered), tensor_places_, std::move(numbers));
  }

  /// The operator that computes the same at less cost, where a number of the call is known that allows it:
  /// recorders make such numbers attributes.
  const PointwiseInfo& special(const PointwiseInfo& info) const {
    const bool complex = std::ranges::any_of(
        tensors_, [](const HeaderRef& t) { return t.defined() && is_complex(t.dtype()); });
    for (const PointwiseSpecial& s : info.special) {
      const Argument& argument = arguments_[number_places_[static_cast<size_t>(s.scalar)]];
      if (complex || argument.kind != Argument::Kind::Attribute) continue;
      const Stack& attributes = g_.attributes();
      const size_t at = argument.range.first;
      if (attributes.tag(at) != CellTag::Scalar) continue;
      const Scalar& number = attributes.at<Scalar>(at);
      if (!number.is_complex() && number.to_double() == s.value) return *s.info;
    }
    return info;
  }

  /// The tensors and numbers of a call, in order.
  bool gather(const PointwiseInfo& info) {
    const schema::FunctionSchema& schema = node_.op.schema();
    headers_.reserve(PointwiseInfo::kMaxTensors);
    uint32_t use = 0;
    for (uint32_t i = 0; i < arguments_.size(); ++i) {
      const Argument& argument = arguments_[i];
      const schema::Argument& declared = schema.arguments[i];
      if (declared.type.base == schema::BaseType::Tensor) {
        if (declared.type.list) return false;
        const bool there = argument.kind == Argument::Kind::Use;
        const Geometry* g = there ? &g_.geometry(uses_[use].geometry) : nullptr;
        if (declared.is_out) {
          if (!g) return false;
          outs_.push_back(g->dtype);
        } else {
          if (headers_.size() == PointwiseInfo::kMaxTensors) return false;
          in_place_ |= declared.is_write() && info.outputs.empty();
          tensor_places_.push_back(use);
          if (g)
            tensors_.push_back(HeaderRef(headers_.emplace_back(*g, kCPU)));
          else
            tensors_.push_back(HeaderRef());
        }
        use += there;
        continue;
      }
      if (!add_number(i)) return false;
    }
    return true;
  }
  bool add_number(uint32_t i) {
    const Argument& argument = arguments_[i];
    std::optional<Scalar::Kind> kind;
    if (argument.kind == Argument::Kind::Number)
      kind = g_.numbers[g_.numbers_of(argument)[0]];
    else if (argument.kind == Argument::Kind::Attribute)
      kind = kind_of(g_.attributes(), argument.range.first);
    if (!kind && argument.kind != Argument::Kind::None) return false;
    number_places_.push_back(i);
    kinds_.push_back(kind);
    return true;
  }

  // Rows

  std::shared_ptr<const LoweredCall> rows(const RowsInfo& info) {
    if (info.roles.size() != arguments_.size()) return nullptr;
    ops::RowsArguments call;
    Dims dims;
    std::vector<std::optional<Scalar>> values;
    headers_.reserve(RowsInfo::kMaxTensors);
    uint32_t use = 0;
    for (uint32_t i = 0; i < arguments_.size(); ++i) {
      if (info.roles[i] == RowsInfo::Role::Tensor) {
        tensor_places_.push_back(use);
        if (arguments_[i].kind == Argument::Kind::Use)
          tensors_.push_back(HeaderRef(headers_.emplace_back(g_.geometry(uses_[use++].geometry), kCPU)));
        else
          tensors_.push_back(HeaderRef());
      } else if (info.roles[i] == RowsInfo::Role::Number) {
        if (!add_number(i)) return nullptr;
        values.push_back(kinds_.back() ? std::optional<Scalar>(0) : std::nullopt);
      } else if (!add_setting(info.roles[i], arguments_[i], call, dims)) {
        return nullptr;
      }
    }
    call.tensors = tensors_;
    call.numbers = values;
    std::optional<ops::LoweredRows> lowered = ops::lower_rows(info, call, kinds_);
    if (!lowered || lowered->sizes.empty()) return nullptr;
    std::vector<LoweredArgument> numbers;
    for (const LoweredNumber& rule : lowered->numbers) numbers.push_back({number_places_[rule.scalar], rule});
    const Dims sizes = lowered->sizes, over = lowered->over;
    return finish(std::move(*lowered), tensor_places_, std::move(numbers), &sizes, &over);
  }

  /// What says how a row operator runs. False for a value that none has.
  bool add_setting(RowsInfo::Role role, const Argument& argument, ops::RowsArguments& call,
                   Dims& dims) const {
    if (role == RowsInfo::Role::Other || argument.kind == Argument::Kind::None) return true;
    if (argument.kind != Argument::Kind::Attribute) return false;
    const Stack& stack = g_.attributes();
    const size_t at = argument.range.first;
    switch (stack.tag(at)) {
      case CellTag::Int:
        dims = {stack.at<int64_t>(at)};
        break;
      case CellTag::IntList:
        dims = Dims(stack.at<CellList<int64_t>>(at).span());
        break;
      case CellTag::Bool:
        if (role == RowsInfo::Role::KeepDim)
          call.keepdim = stack.at<bool>(at);
        else if (stack.at<bool>(at))
          call.dtype = DType::Float32;
        return role == RowsInfo::Role::KeepDim || role == RowsInfo::Role::Float32When;
      case CellTag::DType:
        call.dtype = stack.at<DType>(at);
        return role == RowsInfo::Role::DType;
      default:
        return false;
    }
    call.dims = IntArrayRef(dims);
    return role == RowsInfo::Role::Dims;
  }

  /// `places`: of each tensor of the expression, the place among the uses.
  std::shared_ptr<const LoweredCall> finish(Lowered lowered, std::span<const uint32_t> places,
                                            std::vector<LoweredArgument> numbers, const Dims* sizes = nullptr,
                                            const Dims* over = nullptr) const {
    auto call = std::make_shared<LoweredCall>();
    for (const expr::Slot& slot : lowered.expression->inputs()) {
      // Of a copy, the one tensor is tensor 0.
      const uint32_t place = places[std::min<size_t>(slot.operand, places.size() - 1)];
      if (uses_[place].value == kNone || g_.geometry(uses_[place].geometry).dtype != slot.dtype)
        return nullptr;
      call->inputs.push_back(place);
    }
    for (const expr::Slot& slot : lowered.expression->outputs()) {
      // Another default dtype than when the call was recorded.
      if (slot.operand >= defs_.size() || g_.geometry(defs_[slot.operand].geometry).dtype != slot.dtype)
        return nullptr;
      call->outputs.push_back(slot.operand);
    }
    // Every def is stored, at the same places.
    for (uint32_t i = 0; i < defs_.size(); ++i) {
      if (std::find(call->outputs.begin(), call->outputs.end(), i) == call->outputs.end()) return nullptr;
      const bool same = g_.geometry(defs_[i].geometry).sizes == g_.geometry(defs_[0].geometry).sizes;
      if (!over && !same) return nullptr;
    }
    if (over) {
      call->sizes = *sizes;
      call->over = *over;
    }
    call->expression = std::move(lowered.expression);
    call->numbers = std::move(numbers);
    return call;
  }

  const Graph& g_;
  const std::span<const Use> uses_;
  const std::span<const Def> defs_;
  const std::span<const Argument> arguments_;
  const Node& node_;
  std::vector<Header> headers_;
  std::vector<HeaderRef> tensors_;
  std::vector<uint32_t> tensor_places_, number_places_;
  std::vector<std::optional<Scalar::Kind>> kinds_;
  std::vector<std::optional<DType>> outs_;
  bool in_place_ = false;
};

}  // namespace

std::shared_ptr<const LoweredCall> lower_call(const Graph& graph, const Node& node) {
  // Fills may write an element several times; what reads such a view in the same loop would see it too early.
  for (const Def& d : graph.defs(node)) {
    const Geometry& g = graph.geometry(d.geometry);
    if (overlaps_itself(g.sizes, g.strides)) return nullptr;
  }
  return CallLowering(graph, node).lower();
}

}  // namespace tenon::graph
