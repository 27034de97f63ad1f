#include "python/src/replay/replay.h"

#include <algorithm>
#include <atomic>

#include "python/src/interpreter/errors.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/autograd/autograd.h"
#include "tenon/autograd/saved_hooks.h"
#include "tenon/core/error.h"
#include "tenon/core/parallel.h"
#include "tenon/dispatch/changes.h"

namespace tenon::python::replay {

Modes Modes::now() {
  return {thread_state.included.bits(),
          thread_state.excluded.bits(),
          thread_state.grad_enabled,
          thread_state.inference_mode,
          autograd::detail::are_saved_tensor_hooks_disabled(),
          tenon::default_dtype(),
          tenon::num_threads(),
          num_changed_registrations()};
}

const char* Modes::difference(const Modes& other) const noexcept {
  if (grad_enabled != other.grad_enabled) return "gradient mode";
  if (inference_mode != other.inference_mode) return "inference mode";
  if (saved_hooks_disabled != other.saved_hooks_disabled) return "whether saved-tensor hooks are disabled";
  if (default_dtype != other.default_dtype) return "the default dtype";
  if (num_threads != other.num_threads) return "the number of threads";
  if (registrations != other.registrations) return "which kernels are registered";
  return *this == other ? nullptr : "the dispatch keys that the thread adds or excludes";
}

namespace {

std::atomic<uint64_t> g_num_replays{0};
constexpr const char* kCapsule = "tenon.replay";

std::string text_of(SourceMark line) { return line ? describe_source(line) : ""; }

}  // namespace

PureReplay::PureReplay(Parts parts)
    : number_(++g_num_replays),
      thread_(&record::Recorder::current()),
      known_(thread_->trie(parts.program)),
      num_cleared_(known_->num_cleared()),
      parts_(std::move(parts)),
      slots_(parts_.replay.num_slots()) {
  call_.tensors.reserve(parts_.tensors.num_arguments());
}

bool PureReplay::matches(PyObject* const* arguments, size_t n, PyObject* names) {
  if (is_running_) return false;
  call_.clear();
  broken_ = {};
  which_ = SIZE_MAX;
  what_ = "the number or the names of the arguments";
  const size_t named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
  if (n != parts_.num_positional || n + named != parts_.arguments.items.size()) return false;
  for (size_t i = 0; i < named; ++i) {
    const auto at = static_cast<Py_ssize_t>(i);
    if (!is_same(PyTuple_GET_ITEM(names, at), PyTuple_GET_ITEM(parts_.names.get(), at))) return false;
  }
  what_ = "the value of an argument";
  for (size_t i = 0; i < n + named; ++i) {
    if (!parts_.arguments.items[i].matches(arguments[i], call_)) return false;
  }
  what_ = "which arguments are the same object";
  if (!parts_.same_tensors.hold(call_.tensors) || !parts_.same_containers.hold(call_.containers))
    return false;
  what_ = "the thread";
  if (thread_ != &record::Recorder::current() || num_cleared_ != known_->num_cleared()) return false;
  if (const Modes now = Modes::now(); now != parts_.modes) {
    what_ = now.difference(parts_.modes);
    return false;
  }
  what_ = "an optimizer's learning rate or count of steps, which is no number";
  if (!parts_.live.readable()) return false;
  broken_ = parts_.guards.broken();
  if (broken_.guard) return false;
  const char* const why = parts_.tensors.bind(call_.tensors.data(), slots_, which_);
  if (!why) {
    what_ = "";
    which_ = SIZE_MAX;
    return true;
  }
  what_ = why;
  forget_call();
  return false;
}

PureReplay::Mismatch PureReplay::mismatch() const {
  if (broken_.guard) {
    const Ref& label = broken_.entry ? broken_.entry->label : broken_.guard->label;
    const char* const name = PyUnicode_AsUTF8(label.get());
    PyErr_Clear();
    return {.what = name ? name : "a module or an optimizer", .guard = broken_};
  }
  if (which_ == SIZE_MAX) return {.what = what_};
  return {.what = what_,
          .tensor = which_,
          .was = what_ == kOtherHeader ? describe(parts_.tensors.header(which_)) : ""};
}

void PureReplay::forget_call() noexcept {
  slots_.clear();
  made_.clear();
}

PyObject* PureReplay::run() {
  struct Running {
    PureReplay* replay;
    explicit Running(PureReplay* r) : replay(r) { replay->is_running_ = true; }
    ~Running() {
      replay->is_running_ = false;
      replay->forget_call();
    }
  } const running{this};
  parts_.live.update(parts_.replay);
  parts_.tensors.prepare(slots_.storages);
  run_segment();
  parts_.tensors.set_gradients(call_.tensors.data(), slots_.storages);
  parts_.live.count();
  for (const Result& result : parts_.results) made_.push_back(make(result, made_));
  return parts_.result.build(call_, [&](size_t number) { return wrap(made_[number]); });
}

void PureReplay::run_segment() {
  if (!slots_.has_shifts) return parts_.replay.run(slots_.storages);
  // Where tensors begin later, the segment gets the memory from there on as if it were a storage.
  std::vector<Storage> storages = slots_.storages;
  for (size_t i = 0; i < storages.size(); ++i) {
    const int64_t shift = slots_.shifts[i];
    if (shift == 0) continue;
    const StorageImpl& whole = *storages[i];
    const auto address = static_cast<Address>(static_cast<int64_t>(whole.address_now()) + shift);
    const auto nbytes =
        static_cast<size_t>(std::max<int64_t>(static_cast<int64_t>(whole.nbytes()) - shift, 0));
    storages[i] = Storage::from_foreign(address, nbytes, whole.device(), nullptr, nullptr);
  }
  parts_.replay.run(storages);
  for (size_t i = 0; i < storages.size(); ++i) {
    if (slots_.shifts[i] == 0) slots_.storages[i] = std::move(storages[i]);
  }
}

void PureReplay::expect() {
  forget_call();
  parts_.live.update(parts_.replay);
}

PureReplay::Difference PureReplay::difference(const PureReplay& now) const {
  if (num_cleared_ != now.num_cleared_) return {};  // all was recorded as if for the first time
  const Parts& other = now.parts_;
  if (const auto found = parts_.replay.difference(other.replay, parts_.live.numbers()))
    return {found->what, text_of(found->line)};
  uint32_t slot = record::kNoSlot;
  if (const std::string what = parts_.tensors.difference(other.tensors, slot); !what.empty())
    return {what, text_of(other.replay.line_of(slot))};
  const auto same = [&](const Result& a, const Result& b) {
    const auto is_tensor = [&](size_t i, size_t k) {  // captured ones have other numbers in each call
      const bool captured = i != SIZE_MAX && i >= parts_.tensors.num_arguments() && k != SIZE_MAX;
      return captured ? parts_.tensors.object(i) == other.tensors.object(k) : i == k;
    };
    return is_tensor(a.noted, b.noted) && is_tensor(a.gradient_of, b.gradient_of) && a.base == b.base &&
           a.made.has_value() == b.made.has_value() && !a.history == !b.history &&
           (!a.made || (a.made->slot == b.made->slot && a.made->header == b.made->header));
  };
  if (parts_.result != other.result || !std::ranges::equal(parts_.results, other.results, same))
    return {"it returns something else", ""};
  if (const auto found = parts_.replay.difference_in_results(other.replay))
    return {found->what, text_of(found->line)};
  return {};
}

PyObject* PureReplay::noted(size_t number) const noexcept {
  return number < call_.tensors.size() ? call_.tensors[number] : parts_.tensors.object(number);
}

Tensor PureReplay::make(const Result& result, std::span<const Tensor> before) const {
  if (result.noted != SIZE_MAX) return tensor_of(noted(result.noted));
  if (result.gradient_of != SIZE_MAX) return tensor_of(noted(result.gradient_of)).grad();
  IntrusivePtr<TensorImpl> base;
  if (result.base != SIZE_MAX) base = IntrusivePtr<TensorImpl>::share(before[result.base].impl());
  Tensor t = result.made->make(slots_.storages[result.made->slot], std::move(base));
  if (result.history) autograd::set_history(t, result.history);
  return t;
}

int PureReplay::traverse(visitproc visit, void* arg) const {
  for (const auto* structure : {&parts_.arguments, &parts_.result}) {
    if (const int stop = structure->traverse(visit, arg)) return stop;
  }
  for (const auto* same : {&parts_.same_tensors, &parts_.same_containers}) {
    if (const int stop = same->traverse(visit, arg)) return stop;
  }
  if (const int stop = parts_.tensors.traverse(visit, arg)) return stop;
  if (const int stop = parts_.live.traverse(visit, arg)) return stop;
  return parts_.guards.traverse(visit, arg);
}

PyObject* wrap_replay(std::unique_ptr<PureReplay> replay) {
  const auto destroy = [](PyObject* capsule) {
    delete static_cast<PureReplay*>(PyCapsule_GetContext(capsule));
  };
  PyObject* const capsule = checked(PyCapsule_New(replay.get(), kCapsule, destroy));
  PyCapsule_SetContext(capsule, replay.release());
  return capsule;
}

std::unique_ptr<PureReplay> take_replay(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kCapsule)) throw_error(ErrorKind::Type, "a replay is expected");
  std::unique_ptr<PureReplay> taken(static_cast<PureReplay*>(PyCapsule_GetContext(capsule)));
  PyCapsule_SetContext(capsule, nullptr);
  TENON_CHECK(taken, Runtime, "the replay was taken before");
  return taken;
}

}  // namespace tenon::python::replay
