// TensorGuards: the arguments and captured tensors of a program that is to be replayed: their headers when it
// was captured, which storages of the segment they are, and what the program did to them besides writing
// elements. Used by captures and replays. Depends on Python for the objects of tensors alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "python/src/interpreter/reference.h"
#include "tenon/autograd/node.h"
#include "tenon/core/tensor.h"
#include "tenon/record/replay.h"

namespace tenon::python::replay {

/// Whether a tensor's object in Python, if it has one, is of no subclass and has no attributes.
bool is_plain(const Tensor& t) noexcept;

/// A tensor's header and place in its storage.
struct HeaderSnapshot {
  explicit HeaderSnapshot(const Tensor& t);
  bool fits(const Tensor& t) const noexcept { return fits_elsewhere(t) && t.impl()->offset() == offset; }
  /// Whether it is that of a tensor, but for where that begins in its storage.
  bool fits_elsewhere(const Tensor& t) const noexcept;
  bool operator==(const HeaderSnapshot&) const = default;

  DType dtype;
  DispatchKeySet keys;
  bool wrapped_number, inference;
  Dims sizes, strides;
  int64_t offset;
};

/// "float32[4]", with strides and offset where these are not those of a contiguous tensor at its storage's
/// begin.
std::string describe(const HeaderSnapshot& header);

/// Why tensors do not fit: another header.
inline constexpr const char* kOtherHeader = "had another shape, dtype or layout";

/// A new tensor over a storage that a replay has computed.
struct NewTensor {
  NewTensor(const Tensor& t, uint32_t slot) : header(t), slot(slot) {}
  /// `base`: the tensor that it is a view of; null if it is none.
  Tensor make(const Storage& storage, IntrusivePtr<TensorImpl> base = nullptr) const;

  HeaderSnapshot header;
  uint32_t slot;
};

/// The inputs of a replay by slots of its segment, and then the results of a run.
struct BoundSlots {
  explicit BoundSlots(size_t num_slots) : storages(num_slots), shifts(num_slots) {}
  void clear() noexcept;

  std::vector<Storage> storages;
  std::vector<int64_t> shifts;  ///< How many bytes later than in the captured call tensors begin in an input.
  bool has_shifts = false;
};

class TensorGuards {
 public:
  /// Notes `objects`, tensors, as they are before the program runs: arguments, which are
  /// `num_arguments`, and then those that it has captured.
  TensorGuards(PyObject* objects, size_t num_arguments);

  /// While the program is captured: the recorder hears of each address that is asked for.
  void watch() const noexcept;
  void stop_watching() const noexcept;
  /// Of the captured program: finds the storages of the segment among the tensors. Returns why it cannot be
  /// replayed; empty if it can.
  std::string resolve(const record::RecordedSegment& capture);
  /// The number of a tensor, which the program then uses; SIZE_MAX if it is none of these.
  size_t find(const Tensor& t) noexcept;
  /// The number of the tensor whose gradient `t` is after the program; SIZE_MAX if there is none.
  size_t find_gradient(const Tensor& t) const;

  /// Of a slot with a result that is a view: tensors over it may not begin elsewhere.
  void keep_offsets(uint32_t slot) noexcept;

  /// Fills in the inputs of a replay. `arguments` are tensors. Null if all is as it was, else what is not;
  /// `which` is the number of the tensor then.
  const char* bind(PyObject* const* arguments, BoundSlots& slots, size_t& which) const;
  /// What the program did to its tensors in another call, from which these come; empty if it did the same.
  /// `slot` is the storage of the segment that it is about, kNoSlot if it is about none.
  std::string difference(const TensorGuards& now, uint32_t& slot) const;
  /// To be called before elements are computed: what is written counts as written, and is computed first if
  /// another program still has to.
  void prepare(const std::vector<Storage>& storages) const;
  /// Gives the tensors the gradients that they have after the program.
  void set_gradients(PyObject* const* arguments, const std::vector<Storage>& storages) const;

  /// Adds the slots of the gradients that the program sets.
  void add_gradients(std::vector<bool>& slots) const;

  size_t num_arguments() const noexcept { return num_arguments_; }
  PyObject* object(size_t i) const noexcept { return tensors_[i].object.get(); }
  const HeaderSnapshot& header(size_t i) const noexcept { return tensors_[i].header; }
  /// Drops the arguments, which each call brings, and what the program did not use.
  void forget_arguments() noexcept;
  int traverse(visitproc visit, void* arg) const;

 private:
  struct GuardedTensor {
    Ref object;  ///< Null for arguments, which each call brings, and for what is not used.
    PyTypeObject* type;
    HeaderSnapshot header;
    bool requires_grad;
    Ref attributes;   ///< A dict; null if there are none.
    Storage storage;  ///< Until the capture is resolved.
    uint64_t version;
    IntrusivePtr<Node> grad_fn;
    uint32_t slot = record::kNoSlot;
    std::optional<HeaderSnapshot> grad;
    Tensor grad_then;
    Storage grad_storage = {};  ///< Its own reference, which counts as the recorder's while it watches.
    uint64_t grad_version = 0;
    uint32_t grad_slot = record::kNoSlot;
    std::optional<NewTensor> new_grad;  ///< That the program sets.
    bool changes_grad = false;          ///< The program sets or clears its gradient.
    bool is_used = true;                ///< Else it is not compared: it was only in reach.
  };
  /// A storage of the segment that had bytes before.
  struct Input {
    uint32_t slot;
    bool is_written;
    uint64_t writes = 0;     ///< By which its version rises.
    Storage constant = {};   ///< Made by the program itself of numbers; else empty.
    bool can_shift = false;  ///< Tensors over it may begin elsewhere, all by as much.
  };

  /// How many tensors have had `grad` as their gradient, or have it now.
  size_t num_with_gradient(const Tensor& grad) const;
  uint32_t slot_of(const record::RecordedSegment& capture, const Storage& storage) const noexcept;
  /// The number of the first tensor over a slot.
  size_t first_of(uint32_t slot) const noexcept;
  bool can_shift(const record::RecordedSegment& capture, uint32_t slot) const;
  const char* bind_slot(uint32_t slot, const Storage& storage, int64_t shift,
                        BoundSlots& slots) const noexcept;
  const char* bind_history(const GuardedTensor& noted, const Tensor& t, BoundSlots& slots) const;

  std::vector<GuardedTensor> tensors_;
  std::vector<size_t> changing_gradients_;  ///< The tensors whose gradient the program sets or clears.
  size_t num_arguments_;
  std::vector<Input> inputs_;
};

}  // namespace tenon::python::replay
