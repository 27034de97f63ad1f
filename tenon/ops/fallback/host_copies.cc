// How host copies are grouped, fetched and put back.
#include "tenon/dispatch/host_copies.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/core/capture.h"
#include "tenon/core/fallback_report.h"
#include "tenon/iter/geometry.h"
#include "tenon/iter/result_shape.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/elements/device_copy.h"

namespace tenon {
namespace {

/// A range of bytes that is this many times what a tensor needs of it is not copied where packing pays.
constexpr int64_t kSparse = 4;
/// Copies begin at multiples of it, so that tensors of every dtype are whole elements away from the start.
constexpr int64_t kAlignment = 16;

Tensor host_tensor(const Storage& bytes, const Tensor& like, int64_t offset) {
  Tensor host(TensorImpl::make(bytes, like.dtype(), like.sizes(), like.strides(), offset));
  host.impl()->set_wrapped_number(like.impl()->is_wrapped_number());
  return host;
}

}  // namespace

void HostCopies::add(Tensor& place, Access access) {
  if (!place.defined()) return;
  if (place.device().is_cpu()) {
    of_host_.push_back(place);
    return;
  }
  TENON_CHECK(place.layout() == Layout::Strided, NotImplemented,
              fmt::format("{}: a {} tensor of {} cannot be copied to the host; the device needs a kernel of "
                          "its own",
                          name_, tenon::name(place.layout()), to_string(place.device())));
  TENON_CHECK(same_device(place.device(), device_), Device,
              fmt::format("{}: a tensor is on {}, the others on {}; move one with .to()", name_,
                          to_string(place.device()), to_string(device_)));
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!entries_[i].original.is_same(place)) continue;
    entries_[i].access = entries_[i].access | access;
    places_.emplace_back(&place, i);
    return;
  }
  Entry e{.original = place, .host = {}, .access = access};
  if (place.numel() > 0) {
    const ops::ByteRange bytes = ops::bytes_of(place);
    e.first = bytes.first;
    e.last = bytes.last;
  }
  places_.emplace_back(&place, entries_.size());
  entries_.push_back(std::move(e));
}

/// Groups entries whose bytes overlap: sorted by storage and place, each joins the group before it or begins
/// another.
void HostCopies::find_groups() {
  std::vector<size_t> order;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].original.numel() > 0) order.push_back(i);
  }
  const auto key = [&](size_t i) {
    return std::pair(entries_[i].original.storage().operator->(), entries_[i].first);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  for (const size_t i : order) {
    Entry& e = entries_[i];
    if (groups_.empty() || groups_.back().storage != e.original.storage() || groups_.back().last <= e.first) {
      groups_.push_back({e.original.storage(), {}, e.first / kAlignment * kAlignment, e.last});
    }
    groups_.back().last = std::max(groups_.back().last, e.last);
    e.group = groups_.size() - 1;
  }
}

bool HostCopies::is_packed(const Entry& e, size_t members) const {
  return members == 1 && !has(e.access, Access::KeepStrides) &&
         e.last - e.first > kSparse * static_cast<int64_t>(e.original.nbytes()) &&
         ops::packs_on_device(device_.backend);
}

void HostCopies::fetch() {
  refuse_captured(current_stream(device_), name_);
  find_groups();
  std::vector<size_t> members(groups_.size(), 0);
  for (const Entry& e : entries_) {
    if (e.group != kNone) ++members[e.group];
  }
  bool waits = false;
  std::vector<bool> fetched(groups_.size(), false);
  std::vector<Tensor> packed;  // until the stream has passed their copies
  ops::WaitOnError guard(current_stream(device_));
  for (Entry& e : entries_) {
    const Tensor& t = e.original;
    if (e.group == kNone) {
      e.host = host_tensor(Storage::allocate(0), t, 0);
      continue;
    }
    if (is_packed(e, members[e.group])) {
      const Dims strides = preserved_strides(t.sizes(), t.strides());
      packed.push_back(make_empty_strided(t.sizes(), strides, t.dtype(), t.device()));
      ops::copy_stub(t.device(), packed.back(), t, true);
      e.group = kNone;
      e.host = make_empty_strided(t.sizes(), strides, t.dtype());
      e.host.impl()->set_wrapped_number(t.impl()->is_wrapped_number());
      guard.hold(e.host.storage());
      ops::copy_range(e.host.storage(), 0, packed.back().storage(), 0, static_cast<int64_t>(t.nbytes()),
                      true);
      nbytes_ += t.nbytes();
      waits = true;
      continue;
    }
    Group& g = groups_[e.group];
    if (!g.host) g.host = Storage::allocate(static_cast<size_t>(g.last - g.first));
    // What is only written, and wholly, is not read.
    const bool fresh = members[e.group] == 1 && !has(e.access, Access::Read) && ops::fills_its_range(t);
    if (!fetched[e.group] && !fresh) {
      guard.hold(g.host);
      ops::copy_range(g.host, 0, g.storage, g.first, g.last - g.first, true);
      nbytes_ += static_cast<size_t>(g.last - g.first);
      fetched[e.group] = waits = true;
    }
    e.host = host_tensor(g.host, t, t.storage_offset() - g.first / static_cast<int64_t>(t.itemsize()));
  }
  if (waits) current_stream(device_).synchronize();
  for (const auto& [place, entry] : places_) *place = entries_[entry].host;
}

void HostCopies::name_devices(Error& e) const {
  e.append(fmt::format("; so says cpu, where it ran because {} has no kernel for it", to_string(device_)));
}

void HostCopies::upload(const Storage& to, int64_t at, const Storage& from, int64_t from_at, int64_t nbytes) {
  ops::copy_range(to, at, from, from_at, nbytes, false);
  nbytes_ += static_cast<size_t>(nbytes);
}

void HostCopies::put_back() {
  for (Entry& e : entries_) {
    if (!has(e.access, Access::Write)) continue;
    const bool resized = e.host.sizes() != e.original.sizes();
    if (resized) resize_output(e.original, e.host.sizes(), e.host.strides());
    if (e.original.numel() == 0) continue;
    const bool in_group = e.group != kNone && !resized && e.host.storage() == groups_[e.group].host &&
                          e.host.strides() == e.original.strides();
    if (in_group) {
      const Group& g = groups_[e.group];
      upload(e.original.storage(), e.first, g.host, e.first - g.first, e.last - e.first);
    } else {
      ops::copy_stub(device_, e.original, e.host, false);
      nbytes_ += e.host.nbytes();
    }
  }
}

void HostCopies::move(Tensor& result) {
  if (!result.defined() || !result.device().is_cpu()) return;
  for (const Entry& e : entries_) {
    if (result.is_same(e.host)) {
      result = e.original;
      return;
    }
  }
  for (const Tensor& t : of_host_) {
    if (result.is_same(t)) return;
  }
  TENON_CHECK(result.layout() == Layout::Strided, NotImplemented,
              fmt::format("{}: the host's result is {}, which cannot be copied to {}", name_,
                          tenon::name(result.layout()), to_string(device_)));
  Tensor moved;
  if (result.numel() == 0) {
    moved = make_empty_strided(result.sizes(), result.strides(), result.dtype(), device_);
  } else {
    const ops::ByteRange bytes = ops::bytes_of(result);
    Storage storage = Storage::allocate(static_cast<size_t>(bytes.size()), device_);
    upload(storage, 0, result.storage(), bytes.first, bytes.size());
    moved = Tensor(
        TensorImpl::make(std::move(storage), result.dtype(), result.sizes(), result.strides(),
                         result.storage_offset() - bytes.first / static_cast<int64_t>(result.itemsize())));
  }
  moved.impl()->set_wrapped_number(result.impl()->is_wrapped_number());
  result = std::move(moved);
}

void HostCopies::report() const { report_fallback({name_, device_, nbytes_}); }

}  // namespace tenon
