#include "tenon/ops/indexing/indexed.h"

#include <fmt/core.h>

#include "tenon/iter/geometry.h"
#include "tenon/ops/device_stubs.h"

namespace tenon::ops {
namespace {

/// `t` on `device`.
Tensor moved(const Tensor& t, Device device) {
  if (t.device() == device) return t;
  Tensor there = make_empty(t.sizes(), t.dtype(), device);
  copy_elements(there, t, "index");
  return there;
}

/// What a loop of `sizes` reads of `t`, in memory of its own: `strides` become those of the copy.
Tensor copied(const Tensor& t, IntArrayRef sizes, Dims& strides) {
  const Tensor copy = contiguous_copy(make_view(t, sizes, strides, t.storage_offset()));
  strides = copy.strides().to_dims();
  return copy;
}

Dims vector_sizes(IntArrayRef sizes) { return sizes.empty() ? Dims{1} : sizes.to_dims(); }
Dims vector_strides(const Tensor& t) { return t.dim() == 0 ? Dims{1} : t.strides().to_dims(); }

}  // namespace

bool is_fresh(const Tensor& out) { return out.use_count() == 1; }

Tensor on_device_of(const Tensor& t, const Tensor& index) { return moved(index, t.device()); }

void throw_out_of_range(const IndexedCall& call, const IndexedBy& by, int64_t position) {
  int64_t size = 1;
  for (const int64_t s : by.sizes) size *= s;
  const std::string of = by.dim >= 0 ? fmt::format("dimension {} with size {}", by.dim, size)
                                     : fmt::format("a tensor of {} elements", size);
  throw_error(ErrorKind::Index, fmt::format("{}: `{}`: index {} is out of bounds for {}", call.op,
                                            call.argument, position, of));
}

IndexedSide every_element(const Tensor& t, IntArrayRef sizes) {
  IndexedSide side{t, Dims(sizes.size(), 0), {}};
  const size_t missing = sizes.size() - t.sizes().size();
  for (size_t d = 0; d < t.sizes().size(); ++d) {
    if (t.sizes()[d] != 1) side.strides[missing + d] = t.strides()[d];
  }
  return side;
}

IndexedSide along(const Tensor& t, int64_t dim, const Tensor& index) {
  const size_t d = at(dim);
  IndexedSide side{t, vector_strides(t), {}};
  const Tensor positions = on_device_of(t, index);
  side.by.push_back(
      {positions, vector_strides(positions), Dims{vector_sizes(t.sizes())[d]}, Dims{side.strides[d]}, dim});
  side.strides[d] = 0;
  return side;
}

Dims sliced_sizes(IntArrayRef sizes, int64_t dim, int64_t count) {
  Dims result = vector_sizes(sizes);
  result[at(dim)] = count;
  return result;
}

IndexedSide slices(const Tensor& t, int64_t dim, const Tensor& index) {
  const size_t d = at(dim);
  IndexedSide side{t, vector_strides(t), {}};
  const Tensor positions = on_device_of(t, index);
  Dims strides(side.strides.size(), 0);
  strides[d] = vector_strides(positions)[0];
  side.by.push_back(
      {positions, std::move(strides), Dims{vector_sizes(t.sizes())[d]}, Dims{side.strides[d]}, dim});
  side.strides[d] = 0;
  return side;
}

IndexedSide flattened(const Tensor& t, const Tensor& index) {
  IndexedSide side{t, Dims(index.sizes().size(), 0), {}};
  const Tensor positions = on_device_of(t, index);
  IndexedBy by{positions, positions.strides().to_dims(), {}, {}, -1};
  if (t.is_contiguous()) {
    by.sizes = {t.numel()};
    by.steps = {1};
  } else {
    by.sizes = t.sizes().to_dims();
    by.steps = t.strides().to_dims();
  }
  side.by.push_back(std::move(by));
  return side;
}

void run_indexed(IndexedCall&& call) {
  const Tensor& to = call.to.tensor;
  const Device device = to.device();
  if (device.is_meta()) return;
  Tensor& from = call.from.tensor;
  if (from.device() != device || (from.storage() == to.storage() && !call.fresh)) {
    if (call.from.by.empty()) from = copied(from, call.sizes, call.from.strides);
    from = moved(from, device);
  }
  for (IndexedSide* side : {&call.to, &call.from}) {
    for (IndexedBy& by : side->by) {
      if (by.positions.storage() == to.storage()) by.positions = copied(by.positions, call.sizes, by.strides);
    }
  }
  indexed_stub(device, call);
}

}  // namespace tenon::ops

namespace tenon::detail {

HostArgument<const ops::IndexedCall&>::HostArgument(const ops::IndexedCall& call)
    : value(std::make_shared<ops::IndexedCall>(call)) {}

void HostArgument<const ops::IndexedCall&>::add(HostCopies& copies, Access) {
  // The call stores the strides of its tensors separately.
  copies.add(value->to.tensor, Access::ReadWrite | Access::KeepStrides);
  copies.add(value->from.tensor, Access::Read | Access::KeepStrides);
  for (ops::IndexedSide* side : {&value->to, &value->from}) {
    for (ops::IndexedBy& by : side->by) copies.add(by.positions, Access::Read | Access::KeepStrides);
  }
}

void StubArg<const ops::IndexedCall&>::push(Stack& s, const ops::IndexedCall& call) {
  s.push(std::string(call.op));
  s.push(std::string(call.argument));
  s.push(call.sizes);
  s.push(static_cast<int64_t>(call.combine));
  s.push(call.alpha);
  s.push(call.wraps);
  s.push(call.fresh);
  for (const ops::IndexedSide* side : {&call.to, &call.from}) {
    std::vector<Tensor> positions;
    Dims numbers;
    for (const ops::IndexedBy& by : side->by) {
      positions.push_back(by.positions);
      numbers.push_back(by.dim);
      numbers.push_back(static_cast<int64_t>(by.sizes.size()));
      for (const Dims* list : {&by.sizes, &by.steps, &by.strides}) {
        for (const int64_t n : *list) numbers.push_back(n);
      }
    }
    s.push(side->tensor);
    s.push(side->strides);
    s.push(std::move(positions));
    s.push(std::move(numbers));
  }
}

}  // namespace tenon::detail
