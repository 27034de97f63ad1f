// The C++17 side of tenon_abi.h, for plug-ins: errors as exceptions, tensors that release themselves, kernels
// with C++ types, and PyTorch's registration macros. Header-only; includes nothing else of Tenon. A
// plug-in calls `set_host` first thing in tenon_plugin_v1.
#pragma once

#if defined(TENON_LIBRARY)
#error \
    "tenon/abi/plugin.h is for plug-ins and tenon/dispatch/library.h for code that links Tenon: a file includes one of them"
#endif
#define TENON_ABI_PLUGIN_H

#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tenon/abi/tenon_abi.h"

namespace tenon::abi {

/// The host's functions. One pointer serves all instances of a plug-in, because there is one host.
[[gnu::visibility("hidden")]] inline const TenonHost* g_host = nullptr;
inline const TenonHost& host() noexcept { return *g_host; }
/// First thing in tenon_plugin_v1. Other instances may be in use by then: nothing is written twice.
inline void set_host(const TenonHost* host) noexcept {
  if (!g_host) g_host = host;
}

/// Whether the host has a function that came after version 1.0 of the interface.
template <class F>
bool has(F TenonHost::*function) noexcept {
  const auto end = reinterpret_cast<uintptr_t>(&(host().*function)) + sizeof(F);
  return end <= reinterpret_cast<uintptr_t>(&host()) + host().struct_size && host().*function != nullptr;
}

/// What crosses the border as a status.
class Error : public std::runtime_error {
 public:
  Error(TenonErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  TenonErrorKind kind() const noexcept { return kind_; }

 private:
  TenonErrorKind kind_;
};

/// Thrown by a kernel that does not serve a call, before it has written anything: Tenon runs it on host
/// copies.
struct Declined {};

/// Throws what a function of the host returned. A status of a failure is freed.
inline void check(TenonStatus* status) {
  if (!status) return;
  if (status == TENON_DECLINED) throw Declined();
  const Error error(host().status_kind(status), host().status_message(status));
  host().status_free(status);
  throw error;
}

/// Runs `f`, which may throw, as the body of a function of the plug-in's tables.
template <class F>
TenonStatus* guarded(F&& f) noexcept {
  const auto failed = [](TenonErrorKind kind, const char* message) {
    return host().status_new(kind, message);
  };
  try {
    f();
    return nullptr;
  } catch (const Declined&) {
    return TENON_DECLINED;
  } catch (const Error& e) {
    return failed(e.kind(), e.what());
  } catch (const std::bad_alloc& e) {
    return failed(TENON_ERROR_OUT_OF_MEMORY, e.what());
  } catch (const std::invalid_argument& e) {
    return failed(TENON_ERROR_VALUE, e.what());
  } catch (const std::exception& e) {
    return failed(TENON_ERROR_RUNTIME, e.what());
  } catch (...) {
    return failed(TENON_ERROR_INTERNAL, "the plug-in threw an object that is no std::exception");
  }
}

/// One reference to a tensor of the host's.
class Tensor {
 public:
  Tensor() = default;
  /// Shares a tensor of a call's arguments.
  static Tensor share(TenonTensor* tensor) noexcept {
    return Tensor(tensor ? host().tensor_retain(tensor) : nullptr);
  }
  /// Takes over a reference.
  static Tensor adopt(TenonTensor* tensor) noexcept { return Tensor(tensor); }
  Tensor(const Tensor& other) noexcept : Tensor(share(other.tensor_)) {}
  Tensor(Tensor&& other) noexcept : tensor_(std::exchange(other.tensor_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~Tensor() {
    if (tensor_) host().tensor_release(tensor_);
  }

  bool defined() const noexcept { return tensor_ != nullptr; }
  TenonTensor* get() const noexcept { return tensor_; }
  TenonTensor* release() noexcept { return std::exchange(tensor_, nullptr); }

  /// The tensor as it is now; the lists of sizes and strides live until it is given others.
  TenonTensorView view() const {
    TenonTensorView v{};
    v.struct_size = sizeof v;
    check(host().tensor_view(tensor_, &v));
    return v;
  }

 private:
  explicit Tensor(TenonTensor* tensor) noexcept : tensor_(tensor) {}
  TenonTensor* tensor_ = nullptr;
};

/// A contiguous tensor without values.
inline Tensor empty(const std::vector<int64_t>& sizes, TenonDType dtype, TenonDevice device) {
  TenonTensor* out = nullptr;
  check(host().tensor_empty(sizes.data(), nullptr, sizes.size(), dtype, device, &out));
  return Tensor::adopt(out);
}

/// The strides of what an operator on elements gives back for such a tensor: dense, and the dimensions in the
/// order of its own strides.
inline std::vector<int64_t> result_strides(const TenonTensorView& v) {
  std::vector<uint64_t> order(v.ndim);  // innermost first
  for (uint64_t i = 0; i < v.ndim; ++i) order[i] = v.ndim - 1 - i;
  // 1: dimension a belongs outside of b; -1: inside; 0: nothing tells, and the order stays.
  const auto compare = [&](uint64_t a, uint64_t b) {
    const int64_t sa = v.strides[a] < 0 ? -v.strides[a] : v.strides[a];
    const int64_t sb = v.strides[b] < 0 ? -v.strides[b] : v.strides[b];
    if (sa == 0 || sb == 0) return 0;
    if (sa != sb) return sa < sb ? -1 : 1;
    return v.sizes[a] > v.sizes[b] ? 1 : 0;
  };
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t before = i; before-- > 0;) {
      const int c = compare(order[before], order[at]);
      if (c < 0) break;
      if (c == 0) continue;
      std::swap(order[before], order[at]);
      at = before;
    }
  }
  std::vector<int64_t> strides(v.ndim);
  int64_t step = 1;
  for (const uint64_t d : order) {
    strides[d] = step;
    if (v.sizes[d] > 1) step *= v.sizes[d];
  }
  return strides;
}

/// A tensor of the sizes, dtype and device of `like`, with `result_strides`.
inline Tensor empty_like(const Tensor& like) {
  const TenonTensorView v = like.view();
  TenonTensor* out = nullptr;
  check(host().tensor_empty(v.sizes, result_strides(v).data(), v.ndim, v.dtype, v.device, &out));
  return Tensor::adopt(out);
}

/// The options of load_device(..., options={...}); each must be asked for.
class Options {
 public:
  explicit Options(const TenonOptions* options) {
    for (uint32_t i = 0; options && i < options->num_options; ++i)
      values_.emplace_back(options->options[i].name, options->options[i].value);
  }
  /// The value of an option, or `otherwise`.
  std::string text(const std::string& name, const std::string& otherwise) {
    known_ += known_.empty() ? name : ", " + name;
    for (auto& [option, value] : values_) {
      if (option == name) {
        option.clear();
        return value;
      }
    }
    return otherwise;
  }
  uint64_t number(const std::string& name, uint64_t otherwise) {
    const std::string value = text(name, "");
    if (value.empty()) return otherwise;
    size_t end = 0;
    unsigned long long parsed = 0;
    if (value[0] >= '0' && value[0] <= '9') {
      try {
        parsed = std::stoull(value, &end);
      } catch (const std::out_of_range&) {
        end = 0;
      }
    }
    if (end != value.size())
      throw Error(TENON_ERROR_VALUE, "option " + name + "=" + value + ": expected a whole number");
    return parsed;
  }
  /// Throws for an option that was not asked for.
  void finish() const {
    for (const auto& [option, value] : values_) {
      if (!option.empty())
        throw Error(TENON_ERROR_VALUE, "there is no option '" + option + "'; there are " + known_);
    }
  }

 private:
  std::vector<std::pair<std::string, std::string>> values_;
  std::string known_;
};

}  // namespace tenon::abi
