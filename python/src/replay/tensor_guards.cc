#include "python/src/replay/tensor_guards.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "python/src/interpreter/errors.h"
#include "python/src/replay/guards.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/autograd/autograd.h"
#include "tenon/record/recorder.h"

namespace tenon::python::replay {
namespace {

// Tensors that begin elsewhere are alike for the recorder where as many bytes are in between.
constexpr int64_t kShiftBytes = 16;

bool has_hooks(const Tensor& t) {
  const Node* const accumulator = autograd::nodes_kept_by(*t.impl()).accumulator;
  autograd::NodeHooks* const hooks = accumulator ? accumulator->hooks() : nullptr;
  if (!hooks) return false;
  const std::lock_guard lock(hooks->mutex);
  return !(hooks->inputs.empty() && hooks->before.empty() && hooks->after.empty() && hooks->leaf.empty());
}

/// The attributes that Python has given a tensor's object; null if there are none.
PyObject* attributes_of(PyObject* o) noexcept {
  PyObject* const dict = reinterpret_cast<TensorObject*>(o)->dict;
  return dict && PyDict_GET_SIZE(dict) > 0 ? dict : nullptr;
}

bool has_same_items(PyObject* now, PyObject* expected) noexcept {
  if (PyDict_GET_SIZE(now) != PyDict_GET_SIZE(expected)) return false;
  Py_ssize_t at = 0, at_then = 0;
  PyObject *key, *value, *key_then, *value_then;
  while (PyDict_Next(now, &at, &key, &value) && PyDict_Next(expected, &at_then, &key_then, &value_then)) {
    if (!is_same(key, key_then) || !is_same(value, value_then)) return false;
  }
  return true;
}

bool has_same_bytes(const Storage& a, const Storage& b) {
  return a->nbytes() == b->nbytes() &&
         std::memcmp(reinterpret_cast<const void*>(a->address()), reinterpret_cast<const void*>(b->address()),
                     a->nbytes()) == 0;
}

bool has_attributes(PyObject* o, PyObject* expected) noexcept {
  PyObject* const now = attributes_of(o);
  return now && expected ? has_same_items(now, expected) : now == expected;
}

}  // namespace

bool is_plain(const Tensor& t) noexcept {
  auto* const o = static_cast<PyObject*>(t.impl()->binding().object);
  return !o || (Py_IS_TYPE(o, &tensor_type) && !attributes_of(o));
}

HeaderSnapshot::HeaderSnapshot(const Tensor& t)
    : dtype(t.dtype()),
      keys(t.impl()->keys()),
      wrapped_number(t.impl()->is_wrapped_number()),
      inference(t.impl()->is_inference()),
      sizes(t.sizes().to_dims()),
      strides(t.strides().to_dims()),
      offset(t.storage_offset()) {}

bool HeaderSnapshot::fits_elsewhere(const Tensor& t) const noexcept {
  const TensorImpl& impl = *t.impl();
  const size_t ndim = sizes.size();
  bool same = impl.keys() == keys && impl.dtype() == dtype && impl.sizes().size() == ndim &&
              impl.is_wrapped_number() == wrapped_number && impl.is_inference() == inference;
  // A call of memcmp for each list would cost more than all else.
  for (size_t d = 0; same && d < ndim; ++d)
    same = impl.sizes()[d] == sizes[d] && impl.strides()[d] == strides[d];
  return same;
}

std::string describe(const HeaderSnapshot& header) {
  std::string text = fmt::format("{}[{}]", name(header.dtype), fmt::join(header.sizes, ", "));
  if (header.strides != contiguous_strides(header.sizes))
    text += fmt::format(" of strides [{}]", fmt::join(header.strides, ", "));
  if (header.offset != 0) text += fmt::format(" at offset {}", header.offset);
  if (header.inference) text += " made in inference mode";
  if (header.keys.has(Functionality::Autograd)) text += " that requires grad";
  return text;
}

Tensor NewTensor::make(const Storage& storage, IntrusivePtr<TensorImpl> base) const {
  Tensor t(
      TensorImpl::make(storage, header.dtype, header.sizes, header.strides, header.offset, std::move(base)));
  t.impl()->set_inference(header.inference);
  return t;
}

TensorGuards::TensorGuards(PyObject* objects, size_t num_arguments) : num_arguments_(num_arguments) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(objects); ++i) {
    PyObject* const object = PyList_GET_ITEM(objects, i);
    const Tensor& t = tensor_of(object);
    GuardedTensor noted{.object = Ref::borrow(object),
                        .type = Py_TYPE(object),
                        .header = HeaderSnapshot(t),
                        .requires_grad = t.requires_grad(),
                        .attributes = {},
                        .storage = t.storage(),
                        .version = t.storage().version(),
                        .grad_fn = t.grad_fn(),
                        .grad = {},
                        .grad_then = t.is_leaf() ? t.grad() : Tensor(),
                        .new_grad = {}};
    if (PyObject* const attributes = attributes_of(object)) {
      noted.attributes = Ref(PyDict_Copy(attributes));
      if (!noted.attributes) throw PythonError();
    }
    if (noted.grad_then.defined()) {
      noted.grad.emplace(noted.grad_then);
      noted.grad_storage = noted.grad_then.storage();
      noted.grad_version = noted.grad_then.storage().version();
    }
    tensors_.push_back(std::move(noted));
  }
}

void TensorGuards::watch() const noexcept {
  for (const GuardedTensor& noted : tensors_) {
    noted.storage->add_recorder();
    if (noted.grad_storage) noted.grad_storage->add_recorder();
  }
}

void TensorGuards::stop_watching() const noexcept {
  for (const GuardedTensor& noted : tensors_) {
    noted.storage->remove_recorder();
    if (noted.grad_storage) noted.grad_storage->remove_recorder();
  }
}

uint32_t TensorGuards::slot_of(const record::RecordedSegment& capture,
                               const Storage& storage) const noexcept {
  const auto& slots = capture.slots();
  const auto found = std::ranges::find(slots, storage, &record::RecordedSegment::Slot::storage);
  return found == slots.end() ? record::kNoSlot : static_cast<uint32_t>(found - slots.begin());
}

std::string TensorGuards::resolve(const record::RecordedSegment& capture) {
  const auto& slots = capture.slots();
  std::vector<bool> known(slots.size());
  for (GuardedTensor& noted : tensors_) {
    const Tensor& t = tensor_of(noted.object.get());
    const bool same = noted.header.fits(t) && t.storage() == noted.storage &&
                      t.requires_grad() == noted.requires_grad && t.grad_fn() == noted.grad_fn;
    if (!same) return "it changes a tensor's shape, memory or history";
    const Tensor now = t.is_leaf() ? t.grad() : Tensor();
    noted.slot = slot_of(capture, noted.storage);
    if (noted.grad_then.defined()) noted.grad_slot = slot_of(capture, noted.grad_then.storage());
    // Gradients of parameters are what steps go by, whether or not this call used them.
    noted.is_used = static_cast<size_t>(&noted - tensors_.data()) < num_arguments_ ||
                    noted.slot != record::kNoSlot || noted.grad_slot != record::kNoSlot ||
                    !now.is_same(noted.grad_then) ||
                    (t.is_leaf() && (noted.requires_grad || noted.type != &tensor_type));
    if (!has_attributes(noted.object.get(), noted.attributes.get()))
      return "it sets an attribute of a tensor";
    if (!noted.is_used) continue;
    if (noted.grad_fn) return "a tensor that it uses has history: detach() it";
    if (noted.requires_grad && has_hooks(t)) return "a tensor has hooks of its gradient, which run Python";
    if (noted.slot != record::kNoSlot) known[noted.slot] = true;
    if (noted.grad_then.defined()) {
      if (noted.grad_slot != record::kNoSlot) known[noted.grad_slot] = true;
      if (!noted.grad->fits(noted.grad_then)) return "it changes the shape of a gradient";
      if (!is_plain(noted.grad_then)) return "a gradient has attributes";
    }
    if (now.is_same(noted.grad_then)) continue;
    noted.changes_grad = true;
    changing_gradients_.push_back(static_cast<size_t>(&noted - tensors_.data()));
    if (!now.defined()) continue;
    if (now.requires_grad()) return "a gradient has history";
    if (now.is_view() || !is_plain(now)) return "a gradient that it sets is a view, or has attributes";
    if (find(now) != SIZE_MAX || num_with_gradient(now) > 1)
      return "a gradient that it sets is another tensor's gradient too, or a tensor that it uses";
    noted.new_grad.emplace(now, slot_of(capture, now.storage()));
    if (noted.new_grad->slot == record::kNoSlot) return "a gradient is not computed by what was recorded";
  }
  for (uint32_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].is_input) continue;
    Input input{.slot = i, .is_written = slots[i].is_written, .constant = {}};
    if (!known[i]) {
      // Only the capture holds it: a tensor that the program makes of numbers, such as a scale.
      if (slots[i].is_written || slots[i].storage.use_count() > 1)
        return "it uses a tensor that is neither an argument nor found by a name: pass it as an argument";
      input.constant = slots[i].storage;
    }
    input.can_shift = known[i] && can_shift(capture, i);
    inputs_.push_back(std::move(input));
  }
  for (const GuardedTensor& noted : tensors_) {
    for (Input& input : inputs_) {
      if (input.slot == noted.slot) input.writes = noted.storage.version() - noted.version;
      if (input.slot == noted.grad_slot)
        input.writes = noted.grad_then.storage().version() - noted.grad_version;
    }
  }
  return {};
}

size_t TensorGuards::find(const Tensor& t) noexcept {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensor_of(tensors_[i].object.get()).is_same(t)) continue;
    tensors_[i].is_used = true;
    return i;
  }
  return SIZE_MAX;
}

size_t TensorGuards::num_with_gradient(const Tensor& grad) const {
  return static_cast<size_t>(std::ranges::count_if(tensors_, [&](const GuardedTensor& noted) {
    const Tensor& t = tensor_of(noted.object.get());
    return noted.grad_then.is_same(grad) || (t.is_leaf() && t.grad().is_same(grad));
  }));
}

size_t TensorGuards::first_of(uint32_t slot) const noexcept {
  return static_cast<size_t>(std::ranges::find(tensors_, slot, &GuardedTensor::slot) - tensors_.begin());
}

size_t TensorGuards::find_gradient(const Tensor& t) const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& noted = tensor_of(tensors_[i].object.get());
    if (noted.is_leaf() && noted.grad().is_same(t)) return i;
  }
  return SIZE_MAX;
}

bool TensorGuards::can_shift(const record::RecordedSegment& capture, uint32_t slot) const {
  int64_t begin = INT64_MAX, end = 0;
  for (const GuardedTensor& noted : tensors_) {
    if (noted.grad_slot == slot) return false;
    if (noted.slot != slot) continue;
    const HeaderSnapshot& header = noted.header;
    const auto size = static_cast<int64_t>(item_size(header.dtype));
    const Extent reach = extent(header.sizes, header.strides, "compile");
    begin = std::min(begin, (header.offset + reach.low) * size);
    end = std::max(end, (header.offset + reach.high) * size);
  }
  // A program that counts from the storage's begin shows it by reaching further, unless both begin there.
  return begin > 0 && capture.stays_within(slot, begin, end);
}

void TensorGuards::keep_offsets(uint32_t slot) noexcept {
  for (Input& input : inputs_) input.can_shift &= input.slot != slot;
}

void BoundSlots::clear() noexcept {
  for (Storage& storage : storages) storage = {};
  if (std::exchange(has_shifts, false)) std::ranges::fill(shifts, 0);
}

const char* TensorGuards::bind_slot(uint32_t slot, const Storage& storage, int64_t shift,
                                    BoundSlots& slots) const noexcept {
  if (slot == record::kNoSlot) return nullptr;
  if (!slots.storages[slot]) {
    slots.storages[slot] = storage;
    slots.shifts[slot] = shift;
    slots.has_shifts |= shift != 0;
    return nullptr;
  }
  if (slots.shifts[slot] != shift) return kOtherHeader;
  return slots.storages[slot] == storage ? nullptr : "shared memory with another tensor";
}

const char* TensorGuards::bind_history(const GuardedTensor& noted, const Tensor& t, BoundSlots& slots) const {
  if (t.requires_grad() != noted.requires_grad) return "differed in requires_grad";
  if (t.grad_fn()) return "had no history";
  if (noted.requires_grad && has_hooks(t)) return "had no hooks";
  const Tensor grad = t.grad();
  if (grad.defined() != noted.grad.has_value()) return noted.grad ? "had a gradient" : "had no gradient";
  if (!noted.grad) return nullptr;
  if (!noted.grad->fits(grad) || grad.requires_grad() || !is_plain(grad)) return "had another gradient";
  return bind_slot(noted.grad_slot, grad.storage(), 0, slots);
}

const char* TensorGuards::bind(PyObject* const* arguments, BoundSlots& slots, size_t& which) const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const GuardedTensor& noted = tensors_[i];
    if (!noted.is_used) continue;
    which = i;
    PyObject* const object = i < num_arguments_ ? arguments[i] : noted.object.get();
    if (Py_TYPE(object) != noted.type) return "was of another class";
    const Tensor& t = tensor_of(object);
    if (!noted.header.fits_elsewhere(t)) return kOtherHeader;
    const int64_t later = t.impl()->offset() - noted.header.offset;
    const int64_t shift = later * static_cast<int64_t>(item_size(noted.header.dtype));
    if (shift % kShiftBytes != 0 || (shift != 0 && noted.slot == record::kNoSlot)) return kOtherHeader;
    if (const char* why = bind_slot(noted.slot, t.storage(), shift, slots)) return why;
    if (!has_attributes(object, noted.attributes.get())) return "had other attributes";
    const bool is_unknown_to_autograd = !t.impl()->autograd_meta() && !t.impl()->base();
    if (is_unknown_to_autograd && !noted.requires_grad && !noted.grad) continue;
    if (const char* why = bind_history(noted, t, slots)) return why;
  }
  std::vector<Storage>& storages = slots.storages;
  for (const Input& input : inputs_) {
    if (input.constant) storages[input.slot] = input.constant;
    if (slots.has_shifts && slots.shifts[input.slot] != 0 && !input.can_shift) {
      which = first_of(input.slot);
      return kOtherHeader;
    }
  }
  for (const Input& written : inputs_) {
    if (!written.is_written) continue;
    const Storage& storage = storages[written.slot];
    for (const Input& other : inputs_) {
      if (&other != &written && storages[other.slot] == storage) {
        which = SIZE_MAX;
        return "shared no memory";
      }
    }
    if (storage->read_only()) return "could be written";
  }
  return nullptr;
}

std::string TensorGuards::difference(const TensorGuards& now, uint32_t& slot) const {
  slot = record::kNoSlot;
  const auto used = [](const TensorGuards& guards) {
    std::vector<const GuardedTensor*> all;
    for (const GuardedTensor& noted : guards.tensors_) {
      if (noted.is_used) all.push_back(&noted);
    }
    return all;
  };
  const std::vector<const GuardedTensor*> ours = used(*this), theirs = used(now);
  if (ours.size() != theirs.size()) return "it uses other tensors";
  for (size_t i = 0; i < ours.size(); ++i) {
    const GuardedTensor &a = *ours[i], &b = *theirs[i];
    slot = b.slot;
    if (a.object.get() != b.object.get() || a.slot != b.slot) return "it uses another tensor";
    const auto same = [](const auto& x, const auto& y) {
      return x.has_value() == y.has_value() && (!x || (x->slot == y->slot && x->header == y->header));
    };
    if (a.grad_slot != b.grad_slot || a.changes_grad != b.changes_grad || !same(a.new_grad, b.new_grad))
      return "it leaves another gradient";
  }
  if (inputs_.size() != now.inputs_.size()) return "it uses other tensors";
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input &a = inputs_[i], &b = now.inputs_[i];
    slot = b.slot;
    if (a.slot != b.slot || !a.constant != !b.constant) return "it uses another tensor";
    if (a.is_written != b.is_written || a.writes != b.writes)
      return "it writes a tensor another number of times";
    if (a.constant && !has_same_bytes(a.constant, b.constant)) return "it makes a tensor of other numbers";
  }
  return {};
}

void TensorGuards::prepare(const std::vector<Storage>& storages) const {
  for (const Input& input : inputs_) {
    StorageImpl& storage = *storages[input.slot];
    if (storage.is_recorded()) [[unlikely]] {
      if (input.is_written) record::Recorder::before_write(storage);
      (void)storage.address();
    }
    for (uint64_t i = 0; i < input.writes; ++i) storage.bump_version();
  }
}

void TensorGuards::set_gradients(PyObject* const* arguments, const std::vector<Storage>& storages) const {
  for (const size_t i : changing_gradients_) {
    const GuardedTensor& noted = tensors_[i];
    Tensor& t = tensor_of(i < num_arguments_ ? arguments[i] : noted.object.get());
    t.set_grad(noted.new_grad ? noted.new_grad->make(storages[noted.new_grad->slot]) : Tensor());
  }
}

void TensorGuards::add_gradients(std::vector<bool>& slots) const {
  for (const GuardedTensor& noted : tensors_) {
    if (noted.new_grad) slots[noted.new_grad->slot] = true;
  }
}

void TensorGuards::forget_arguments() noexcept {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i].storage = {};
    tensors_[i].grad_then = {};
    tensors_[i].grad_storage = {};
    if (i < num_arguments_ || !tensors_[i].is_used) tensors_[i].object = {};
  }
}

int TensorGuards::traverse(visitproc visit, void* arg) const {
  for (const GuardedTensor& noted : tensors_) {
    Py_VISIT(noted.object.get());
    Py_VISIT(noted.attributes.get());
  }
  return 0;
}

}  // namespace tenon::python::replay
