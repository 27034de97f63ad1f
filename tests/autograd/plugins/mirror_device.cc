// A device for tests: host memory under another name, that has nothing of its own but byte copies. Every
// operator that moves or computes elements takes its fallback, which runs it on the host over the same
// memory.
#include <cstring>

#include "tenon/autograd/autograd.h"
#include "tenon/dispatch/library.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/factory/from_data.h"
#include "tests/core/host_memory.h"

namespace {

using namespace tenon;

/// The same elements as a host tensor, in the same memory.
Tensor on_host(const Tensor& t) {
  auto* kept = new Tensor(t);
  Storage storage = Storage::from_foreign(
      t.storage().address(), t.storage().nbytes(), kCPU,
      +[](void* tensor) noexcept { delete static_cast<Tensor*>(tensor); }, kept);
  Tensor host(TensorImpl::make(std::move(storage), t.dtype(), t.sizes(), t.strides(), t.storage_offset()));
  host.impl()->set_wrapped_number(t.impl()->is_wrapped_number());
  return host;
}

void copy(const Tensor& dst, const Tensor& src, bool) {
  const auto host = [](const Tensor& t) { return t.device().is_cpu() ? t : on_host(t); };
  const ExcludeDispatchKeyGuard below(kAutogradKeys);
  host(dst).copy_(host(src));
}

Backend mirror() {
  static const Backend backend = [] {
    const Backend b = register_backend("mirror", "Mirror");
    static testing::HostMemory memory("mirror");
    set_allocator(b, &memory);
    static testing::ImmediateRuntime runtime(1);
    set_device_runtime(b, &runtime);
    ops::copy_stub.set(b, &copy);
    return b;
  }();
  return backend;
}

/// A result of the host's, moved to the device with its strides.
Tensor on_mirror(const Tensor& t) {
  Storage storage = Storage::allocate(t.storage().nbytes(), Device(mirror()));
  std::memcpy(reinterpret_cast<void*>(storage.address()), reinterpret_cast<void*>(t.storage().address()),
              t.storage().nbytes());
  return Tensor(TensorImpl::make(std::move(storage), t.dtype(), t.sizes(), t.strides(), t.storage_offset()));
}

class Moved {
 public:
  Tensor to_host(const Tensor& t) {
    if (!t.defined() || t.device().backend != mirror()) return t;
    pairs_.emplace_back(on_host(t), t);
    return pairs_.back().first;
  }
  /// Back to the tensor that it was, or to a new one.
  Tensor to_mirror(const Tensor& t) const {
    if (!t.defined() || !t.device().is_cpu()) return t;
    for (const auto& [host, original] : pairs_) {
      if (t.is_same(host)) return original;
    }
    return on_mirror(t);
  }

 private:
  std::vector<std::pair<Tensor, Tensor>> pairs_;
};

template <class F>
void each_tensor(Stack& stack, size_t i, F&& f) {
  if (stack.tag(i) == CellTag::Tensor) {
    Tensor& t = stack.at<Tensor>(i);
    t = f(t);
  } else if (stack.tag(i) == CellTag::TensorList) {
    for (Tensor& t : stack.at<std::vector<Tensor>>(i)) t = f(t);
  }
}

void run_on_host(const OperatorHandle& op, DispatchKeySet, Stack& stack) {
  const schema::FunctionSchema& schema = op.schema();
  const size_t first = stack.size() - schema.arguments.size();
  Moved moved;
  bool stays = false;  // what is written on the host, or asked for there
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    each_tensor(stack, first + i, [&](const Tensor& t) {
      stays |= schema.arguments[i].is_write() && t.defined() && t.device().is_cpu();
      return moved.to_host(t);
    });
    if (stack.tag(first + i) == CellTag::Device) {
      stays |= stack.at<Device>(first + i).is_cpu();
      stack.at<Device>(first + i) = kCPU;
    }
  }
  op.redispatch_boxed(DispatchKeySet(Functionality::Dense, kCpuBackend), stack);
  if (stays) return;
  for (size_t i = stack.size() - schema.returns.size(); i < stack.size(); ++i) {
    each_tensor(stack, i, [&](const Tensor& t) { return moved.to_mirror(t); });
  }
}

[[maybe_unused]] const Backend registered = mirror();
TENON_LIBRARY_IMPL(_, Mirror, m) { m.fallback(CppFunction::make_from_boxed_function<&run_on_host>()); }

}  // namespace
