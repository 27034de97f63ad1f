#include "tenon/iter/fused_rows.h"

#include <fmt/core.h>

#include "tenon/core/error.h"

namespace tenon::detail {

namespace {

bool is_row(const expr::Slot& s) { return !varies_along(s.rank); }

}  // namespace

RowsLoop::RowsLoop(const FusedKernel& region, std::span<const FusedOperand> outputs,
                   std::span<const FusedOperand> inputs)
    : region_(region), sizes_(region.over().size(), 1) {
  const expr::Expression& e = region.expression();
  find_sizes(inputs, e.inputs());
  find_sizes(outputs, e.outputs());
  strides_.resize((size_t{e.num_inputs} + e.num_outputs) * sizes_.size());
  add_slots(inputs, e.inputs(), outputs.size());
  add_slots(outputs, e.outputs(), 0);
  const std::span<const RowsOperand> all(operands_);
  prepared_ = kHost.prepare_rows({.name = region.name(),
                                  .expression = e,
                                  .made = region.made(),
                                  .sizes = sizes_,
                                  .over = region.over(),
                                  .inputs = all.first(e.num_inputs),
                                  .outputs = all.subspan(e.num_inputs),
                                  .numbers = nullptr});
}

int64_t RowsLoop::numel() const noexcept {
  int64_t n = 1;
  for (const int64_t s : sizes_) n *= s;
  return n;
}

// Elements are broadcast to one shape, that of the loop.
void RowsLoop::find_sizes(std::span<const FusedOperand> operands, std::span<const expr::Slot> slots) {
  for (const expr::Slot& s : slots) {
    const IntArrayRef own = operands[s.operand].sizes;
    if (is_row(s)) continue;
    TENON_CHECK(own.size() <= sizes_.size(), Shape,
                fmt::format("region: an operand of shape {} in a loop of {} dimensions", to_string(own),
                            sizes_.size()));
    const size_t lead = sizes_.size() - own.size();
    for (size_t d = 0; d < own.size(); ++d) {
      if (own[d] == 1) continue;
      int64_t& size = sizes_[lead + d];
      TENON_CHECK(size == 1 || size == own[d], Shape,
                  fmt::format("region: an operand of shape {} does not broadcast to {}", to_string(own),
                              to_string(sizes_)));
      size = own[d];
    }
  }
}

// Whether `sizes` are the rows', with the dimensions of a row or without them.
bool RowsLoop::stands_for_rows(IntArrayRef sizes, bool kept) const {
  const Dims& over = region_.over();
  size_t next = 0;
  for (size_t d = 0; d < sizes_.size(); ++d) {
    if (over[d] && !kept) continue;
    if (next == sizes.size() || sizes[next++] != (over[d] ? 1 : sizes_[d])) return false;
  }
  return next == sizes.size();
}

void RowsLoop::add_slots(std::span<const FusedOperand> operands, std::span<const expr::Slot> slots,
                         size_t before) {
  const size_t ndim = sizes_.size();
  for (const expr::Slot& s : slots) {
    const FusedOperand& o = operands[s.operand];
    TENON_CHECK(o.dtype == s.dtype, Type,
                fmt::format("region: operand {} is {}, expected {}", before + s.operand, name(o.dtype),
                            name(s.dtype)));
    const DType part = real_dtype(o.dtype);
    int64_t* const strides = strides_.data() + operands_.size() * ndim;
    places_.push_back({.operand = static_cast<uint16_t>(before + s.operand),
                       .offset = s.part == expr::Part::Im ? static_cast<int64_t>(item_size(part)) : 0,
                       .of_row = is_row(s)});
    operands_.push_back({nullptr, part, strides});
    const auto item = static_cast<int64_t>(item_size(o.dtype));
    const bool kept = !is_row(s) || stands_for_rows(o.sizes, true);
    TENON_CHECK(kept || stands_for_rows(o.sizes, false), Shape,
                fmt::format("region: operand {} of shape {} is no value of rows of {}", before + s.operand,
                            to_string(o.sizes), to_string(sizes_)));
    for (size_t d = 0, next = 0; d < ndim; ++d) {
      const size_t lead = ndim - o.sizes.size();
      if (kept && d >= lead && o.sizes[d - lead] != 1) strides[d] = o.strides[d - lead] * item;
      if (!kept && !region_.over()[d]) strides[d] = o.strides[next++] * item;
    }
  }
}

void RowsLoop::run(char* const* addresses, const uint64_t* numbers) const {
  SmallVector<char*, 8> data;
  for (const Place& place : places_) {
    // A tensor without elements may have no memory.
    char* const address = addresses[place.operand];
    data.push_back(address ? address + place.offset : nullptr);
  }
  const size_t inputs = region_.expression().num_inputs;
  // A value of a row is stored when it is known, and its operands may be read again later.
  for (size_t i = inputs; i < data.size(); ++i) {
    for (size_t k = 0; k < inputs && places_[i].of_row; ++k)
      TENON_CHECK(!data[k] || data[k] != data[i], Internal,
                  "region: a value of rows is stored where an input lies");
  }
  prepared_->run(data.data(), numbers);
}

}  // namespace tenon::detail
