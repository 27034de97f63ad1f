#include "tenon/ops/elements/device_copy.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "tenon/core/capture.h"
#include "tenon/core/copy_report.h"
#include "tenon/core/device_runtime.h"
#include "tenon/dispatch/host_copies.h"
#include "tenon/expr/type.h"
#include "tenon/iter/geometry.h"
#include "tenon/iter/overlap.h"
#include "tenon/iter/pointwise.h"
#include "tenon/iter/pointwise_device.h"
#include "tenon/iter/tensor_iterator.h"
#include "tenon/ops/device_stubs.h"

namespace tenon::ops {
namespace {

/// A copy of more runs of bytes than this goes another way.
constexpr int64_t kMaxRuns = 32;
/// What a copy is called that waits, or that replays could not repeat.
constexpr const char* kUnpinnedCopy =
    "a copy from or to memory of the host, unless it is pinned and non_blocking";
/// A range of more than so many times its elements is packed on the device before it moves.
constexpr int64_t kSparse = 4;

Place place_of(Device device) noexcept { return device.is_cpu() ? Place::Host : Place::Device; }
Device device_side(const Tensor& a, const Tensor& b) noexcept {
  return a.device().is_cpu() ? b.device() : a.device();
}
int64_t item_of(const Tensor& t) noexcept { return static_cast<int64_t>(t.itemsize()); }

/// Whether the device's stream may read or write the host side of a copy after the call. If so, its memory is
/// kept until the stream has passed what is about to be queued, even if the tensor goes before.
bool stays_for(const Tensor& host, Stream stream) {
  Allocator* const allocator = host.storage()->allocator();
  if (!is_pinned(allocator)) return false;
  if (is_capturing(stream))
    keep_for_capture(stream, host.storage());
  else
    allocator->record_stream(host.storage().address(), kCPU, stream);
  return true;
}

/// Two tensors as runs of bytes: `nbytes` at a time, contiguous on both sides.
struct Runs {
  int64_t count, nbytes;
  size_t outer;  // dimensions that the runs are apart along, in front of those within a run
};
Runs runs_of(const Tensor& dst, const Tensor& src) {
  Runs runs{1, item_of(dst), static_cast<size_t>(dst.dim())};
  int64_t next = 1;
  for (; runs.outer > 0; --runs.outer) {
    const size_t d = runs.outer - 1;
    const int64_t size = dst.sizes()[d];
    if (size != 1 && (dst.strides()[d] != next || src.strides()[d] != next)) break;
    next *= size;
  }
  runs.nbytes *= next;
  for (size_t d = 0; d < runs.outer; ++d) runs.count *= dst.sizes()[d];
  return runs;
}

/// Whether every element is at the same place of both ranges.
bool lie_alike(const Tensor& a, const Tensor& b) {
  for (size_t d = 0; d < a.sizes().size(); ++d) {
    if (a.sizes()[d] > 1 && a.strides()[d] != b.strides()[d]) return false;
  }
  return fills_its_range(a);
}

struct BytesCopy {
  Stream stream;
  Place to, from;
  uint32_t flags;

  void operator()(Address dst, Address src, int64_t nbytes) const {
    if (to == Place::Device && from == Place::Device)
      allocator_for(stream.device).copy(dst, src, static_cast<size_t>(nbytes), stream);
    else
      device_runtime(stream.device.backend)
          ->copy_bytes(stream, dst, to, src, from, static_cast<size_t>(nbytes), flags);
  }
};

/// Copies runs of bytes, if both sides have one dtype and either one layout or a few runs. The host waits
/// for what it is to read, once.
bool copy_runs(const Tensor& dst, const Tensor& src, bool non_blocking) {
  if (dst.dtype() != src.dtype()) return false;
  const Stream stream = current_stream(device_side(dst, src));
  const bool to_host = dst.device().is_cpu(), with_host = to_host || src.device().is_cpu();
  const bool stays = non_blocking && with_host && stays_for(to_host ? dst : src, stream);
  if (with_host && !stays) refuse_captured(stream, kUnpinnedCopy);
  BytesCopy copy{stream, place_of(dst.device()), place_of(src.device()), stays ? kCopyHostStays : 0};
  if (lie_alike(dst, src)) {
    const ByteRange to = bytes_of(dst), from = bytes_of(src);
    copy(dst.storage().address() + static_cast<Address>(to.first),
         src.storage().address() + static_cast<Address>(from.first), to.size());
    return true;
  }
  const Runs runs = runs_of(dst, src);
  if (runs.count > kMaxRuns) return false;
  if (to_host) copy.flags = kCopyHostStays;
  WaitOnError guard(copy.stream);
  if (to_host) guard.hold(dst.storage());
  const int64_t item = item_of(dst);
  Dims at(runs.outer, 0);
  for (int64_t i = 0; i < runs.count; ++i) {
    int64_t to = 0, from = 0;
    for (size_t d = 0; d < runs.outer; ++d) {
      to += at[d] * dst.strides()[d] * item;
      from += at[d] * src.strides()[d] * item;
    }
    copy(dst.impl()->address() + static_cast<Address>(to), src.impl()->address() + static_cast<Address>(from),
         runs.nbytes);
    for (size_t d = runs.outer; d-- > 0 && ++at[d] == dst.sizes()[d];) at[d] = 0;
  }
  if (to_host && !stays) copy.stream.synchronize();
  return true;
}

/// Elements of equal dtypes as integers of their size, so that no bit depends on what they mean: of 16 bytes
/// as pairs.
Tensor as_integers(const Tensor& t) {
  constexpr DType kOfSize[] = {DType::Int8, DType::Int16, DType::Int32, DType::Int64};
  size_t log = 0;
  while ((size_t{1} << log) < t.itemsize()) ++log;
  if (log < 4)
    return Tensor(TensorImpl::make(t.storage(), kOfSize[log], t.sizes(), t.strides(), t.storage_offset()));
  Dims sizes = t.sizes().to_dims(), strides;
  for (const int64_t s : t.strides()) strides.push_back(2 * s);
  sizes.push_back(2);
  strides.push_back(1);
  return Tensor(TensorImpl::make(t.storage(), DType::Int64, sizes, strides, 2 * t.storage_offset()));
}

/// dst = src by the device's pointwise function; `src` may be a 0-dim host tensor. False if the device has
/// none or declines.
bool copy_by_launch(const Tensor& to, const Tensor& from) {
  const Device device = to.device();
  if (!detail::pointwise_serves(nullptr, device.backend)) return false;
  const bool bits = to.dtype() == from.dtype();
  // A launch reads parts of complex numbers as they are computed with; these here are only stored.
  if (!bits && is_complex(from.dtype())) return false;
  const Tensor dst = bits ? as_integers(to) : to, src = bits ? as_integers(from) : from;
  const auto type = expr::compute_type(src.dtype());
  // Numbers of 16 bytes are no 0-dim tensor of integers.
  if (!type || !expr::compute_type(dst.dtype()) || (from.device().is_cpu() && src.dim() > 0)) return false;
  static const PointwiseInfo& identity = [&]() -> const PointwiseInfo& {
    static constexpr std::string_view kNames[] = {"x"};
    return make_pointwise("x", kNames, {}, ComputeRule::Same, ResultRule::Compute);
  }();
  const TensorIterator iter = TensorIteratorConfig()
                                  .set_op_name("copy_")
                                  .check_all_same_dtype(false)
                                  .resize_outputs(false)
                                  .add_borrowed_output(dst)
                                  .add_borrowed_input(src)
                                  .build();
  const DType results[] = {src.dtype()};
  return detail::launch_on_device(
      {.info = identity, .instance = nullptr, .type = *type, .results = results, .scalars = nullptr}, iter);
}

/// A host tensor over a copy of the bytes that a device's tensor reaches.
class HostImage {
 public:
  explicit HostImage(const Tensor& t) : of_(t), range_(bytes_of(t)) {
    Storage bytes = Storage::allocate(static_cast<size_t>(range_.size()));
    host = Tensor(TensorImpl::make(std::move(bytes), t.dtype(), t.sizes(), t.strides(),
                                   t.storage_offset() - range_.first / item_of(t)));
  }
  /// The bytes are there when the device's stream has passed this.
  void enqueue_download() {
    guard_.emplace(current_stream(of_.device())).hold(host.storage());
    copy_range(host.storage(), 0, of_.storage(), range_.first, range_.size(), true);
  }
  void upload() { copy_range(of_.storage(), range_.first, host.storage(), 0, range_.size(), false); }

  Tensor host;

 private:
  const Tensor& of_;
  ByteRange range_;
  std::optional<WaitOnError> guard_;
};

bool is_sparse(const Tensor& t) { return bytes_of(t).size() > kSparse * static_cast<int64_t>(t.nbytes()); }

void copy_to_host(const Tensor& dst, const Tensor& src) {
  if (is_sparse(src) && packs_on_device(src.device().backend)) {
    const Tensor packed = make_empty_strided(src.sizes(), preserved_strides(src.sizes(), src.strides()),
                                             src.dtype(), src.device());
    copy_stub(src.device(), packed, src, false);
    return copy_to_host(dst, packed);
  }
  HostImage image(src);
  image.enqueue_download();
  current_stream(src.device()).synchronize();
  copy_stub(kCPU, dst, image.host, false);
}

void copy_from_host(const Tensor& dst, const Tensor& src) {
  if (fills_its_range(dst)) {
    HostImage image(dst);
    copy_stub(kCPU, image.host, src, false);
    return image.upload();
  }
  if (packs_on_device(dst.device().backend)) {
    const Tensor packed = make_empty_strided(dst.sizes(), preserved_strides(dst.sizes(), dst.strides()),
                                             dst.dtype(), dst.device());
    copy_from_host(packed, src);
    return copy_stub(dst.device(), dst, packed, false);
  }
  HostImage image(dst);
  image.enqueue_download();
  current_stream(dst.device()).synchronize();
  copy_stub(kCPU, image.host, src, false);
  image.upload();
}

void copy_by_way_of_host(const Tensor& dst, const Tensor& src) {
  report_copy("copy_", "src",
              fmt::format("{} copies bytes only: other strides or another dtype go through the host",
                          backend_name(dst.device().backend))
                  .c_str(),
              src.nbytes());
  HostImage from(src), to(dst);
  from.enqueue_download();
  if (!fills_its_range(dst)) to.enqueue_download();
  current_stream(dst.device()).synchronize();
  copy_stub(kCPU, to.host, from.host, false);
  to.upload();
}

/// Sets every byte of a dense tensor by one block from the host, which the device repeats.
void fill_dense(const Tensor& dst, const Scalar& value) {
  constexpr int64_t kBlock = 1 << 14;  // elements
  const int64_t item = item_of(dst), first = std::min(dst.numel(), kBlock) * item, total = dst.numel() * item;
  const Tensor block = make_empty({first / item}, dst.dtype());
  fill_stub(kCPU, block, value);
  const int64_t begin = bytes_of(dst).first;
  copy_range(dst.storage(), begin, block.storage(), 0, first, false);
  const Stream stream = current_stream(dst.device());
  const Address address = dst.storage().address() + static_cast<Address>(begin);
  for (int64_t done = first; done < total;) {
    const int64_t n = std::min(done, total - done);
    allocator_for(dst.device())
        .copy(address + static_cast<Address>(done), address, static_cast<size_t>(n), stream);
    done += n;
  }
}

}  // namespace

bool copies_bytes(Backend backend) noexcept {
  DeviceRuntime* runtime = device_runtime(backend);
  return runtime && runtime->copies_bytes();
}

bool packs_on_device(Backend backend) noexcept {
  return copy_stub.has_own(backend) || detail::pointwise_serves(nullptr, backend);
}

void WaitOnError::hold(const Storage& host) {
  if (!held_) held_ = std::make_unique<Held>();
  held_->storages.push_back(host);
}

WaitOnError::~WaitOnError() {
  if (std::uncaught_exceptions() == exceptions_) return;
  try {
    stream_.synchronize();
  } catch (...) {  // the first error is the one to tell
    if (!held_) return;
    // A device that has failed may still write there, at any time.
    static constinit std::atomic<Held*> lost{nullptr};
    Held* const held = held_.release();
    held->next = lost.load(std::memory_order_relaxed);
    while (!lost.compare_exchange_weak(held->next, held, std::memory_order_release)) {
    }
  }
}

ByteRange bytes_of(const Tensor& t) {
  const Extent e = extent(t.sizes(), t.strides(), "copy_");
  return {(t.storage_offset() + e.low) * item_of(t), (t.storage_offset() + e.high) * item_of(t)};
}

bool fills_its_range(const Tensor& t) {
  return t.is_contiguous() ||
         (bytes_of(t).size() == static_cast<int64_t>(t.nbytes()) && !overlaps_itself(t.sizes(), t.strides()));
}

void copy_range(const Storage& to, int64_t to_at, const Storage& from, int64_t from_at, int64_t nbytes,
                bool host_stays) {
  const Device device = to->device().is_cpu() ? from->device() : to->device();
  if (!host_stays) refuse_captured(current_stream(device), kUnpinnedCopy);
  if (copies_bytes(device.backend)) {
    device_runtime(device.backend)
        ->copy_bytes(current_stream(device), to.address() + static_cast<Address>(to_at),
                     place_of(to->device()), from.address() + static_cast<Address>(from_at),
                     place_of(from->device()), static_cast<size_t>(nbytes), host_stays ? kCopyHostStays : 0);
    return;
  }
  const auto bytes = [nbytes](const Storage& s, int64_t at) {
    return Tensor(TensorImpl::make(s, DType::UInt8, {nbytes}, {1}, at));
  };
  copy_stub(device, bytes(to, to_at), bytes(from, from_at), host_stays);
}

void copy_by_bytes(const Tensor& dst, const Tensor& src, bool non_blocking) {
  if (dst.numel() == 0) return;
  if (copy_runs(dst, src, non_blocking)) return;
  if (dst.device().is_cpu()) return copy_to_host(dst, src);
  if (src.device().is_cpu()) return copy_from_host(dst, src);
  if (!copy_by_launch(dst, src)) copy_by_way_of_host(dst, src);
}

void fill_by_bytes(const Tensor& dst, const Scalar& value) {
  if (dst.numel() == 0) return;
  const Tensor one = make_empty({}, dst.dtype());
  HostCopies(dst.device(), "fill").run([&] { fill_stub(kCPU, one, value); });
  if (!overlaps_itself(dst.sizes(), dst.strides()) && copy_by_launch(dst, one)) return;
  if (fills_its_range(dst)) return fill_dense(dst, value);
  HostImage image(dst);
  image.enqueue_download();
  current_stream(dst.device()).synchronize();
  fill_stub(kCPU, image.host, value);
  image.upload();
}

void copy_between_devices(const Tensor& dst, const Tensor& src, const char* op, bool non_blocking) {
  report_copy(op, "src",
              fmt::format("from {} to {} there is no way but through the host", to_string(src.device()),
                          to_string(dst.device()))
                  .c_str(),
              src.nbytes());
  // The caller's order is that of the destination's stream, which may have waited for what wrote the source.
  const Stream reads = current_stream(src.device()), writes = current_stream(dst.device());
  if (src.device().backend == dst.device().backend && device_runtime(src.device().backend)) {
    Event so_far(writes.device);
    so_far.record(writes);
    so_far.wait(reads);
  } else {
    writes.synchronize();
  }
  const Tensor host =
      make_empty_strided(src.sizes(), preserved_strides(src.sizes(), src.strides()), src.dtype());
  copy_stub(src.device(), host, src, false);
  copy_stub(dst.device(), dst, host, non_blocking);
}

namespace {

const struct Defaults {
  Defaults() noexcept {
    copy_stub.set_otherwise(&copy_by_bytes, &copies_bytes);
    fill_stub.set_otherwise(&fill_by_bytes, &copies_bytes);
  }
} defaults;

}  // namespace
}  // namespace tenon::ops
