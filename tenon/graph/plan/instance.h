// Instance: a plan as it runs again and again: tensors and other arguments of its calls, numbers of its
// loops. A run binds them to where memory is. Used by plans at addresses, by the recorder for segments, by
// replays and by the tuner. Does not depend on where memory comes from.
#pragma once

#include <bit>
#include <complex>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "tenon/core/tensor.h"
#include "tenon/graph/plan/plan.h"

namespace tenon::graph {

/// Where the bytes of one run are, by storage, where the run itself finds, makes and releases them.
class RunMemory {
 public:
  /// What offsets of a storage's operands count from, in memory that is there before the run; null where the
  /// run makes the memory.
  virtual char* given(StorageId id) = 0;
  /// Nothing reads the storage any more. Memory that the run has made for it is gone.
  virtual void release(StorageId) {}
  /// After the last step, of a storage that a step has used: its memory, if the run has made it.
  virtual void keep(StorageId id, tenon::Storage made) = 0;
  /// Of a storage without bytes, because what computes it has failed.
  virtual void fail(StorageId, const std::exception_ptr&) {}
  /// Where a call of the program was recorded.
  virtual SourceMark line(uint32_t call) const = 0;

 protected:
  ~RunMemory() = default;
};

/// Whether two numbers are of the same kind and have the same bits: zeros of both signs differ.
inline bool same_bits(const Scalar& a, const Scalar& b) noexcept {
  if (a.kind() != b.kind()) return false;
  if (a.is_integral())
    return a.to_int() == b.to_int() && (a.to_int() != INT64_MAX || a.to_uint() == b.to_uint());
  const auto bits = [](double v) { return std::bit_cast<uint64_t>(v); };
  const std::complex<double> x = a.to_complex(), y = b.to_complex();
  return bits(x.real()) == bits(y.real()) && bits(x.imag()) == bits(y.imag());
}

/// For one run at a time. The plan outlives it.
class Instance {
 public:
  explicit Instance(const Plan& plan);

  /// Has the next runs find a storage at an address; offsets count from there.
  void place(StorageId id, char* bytes) noexcept {
    is_used_[id] = 1;
    bind(id, bytes);
  }
  void put_number(uint32_t i, const Scalar& value) noexcept {
    if (same_bits(numbers_[i], value)) return;
    numbers_[i] = value;
    is_stale_ = true;
  }
  void put_numbers(std::span<const Scalar> numbers) noexcept {
    for (uint32_t i = 0; i < numbers.size(); ++i) put_number(i, numbers[i]);
  }

  /// Runs all steps. With a memory, what fails leaves out what depends on it; without one, all storages are
  /// placed but those that stay inside a region, and the first failure ends the run. Returns the first error,
  /// null if there is none.
  std::exception_ptr run(RunMemory* memory = nullptr);

 private:
  struct Step {
    // Of a loop: its numbers as it takes them.
    std::vector<uint64_t> numbers = {};
    bool numbers_fit = true;  ///< Else a member has to throw for one of them.
    // Of a region around a product or a convolution.
    std::vector<Tensor> uses = {}, defs = {};
  };
  /// A call as its kernel takes it.
  struct Call {
    struct Number {
      size_t argument;
      uint32_t number;
    };
    OperatorHandle op;  ///< The `out=` form where all results had memory when the call was bound.
    Stack arguments = {};
    std::vector<Number> numbers = {};
    std::span<const Def> results = {};  ///< New tensors, in the order of the defs.
    bool by_out = false;
  };

  Tensor tensor(StorageId storage, GeometryId geometry);
  Tensor tensor(const Use& u) {
    return u.value == kNone ? Tensor() : tensor(storage_of(u.value), u.geometry);
  }
  Tensor tensor(const Def& d) { return tensor(storage_of(d.value), d.geometry); }
  Call make_call(const Node& node);
  void put_number(Call& call, const Call::Number& n) const;
  void refresh_numbers();

  void run_step(size_t index);
  void run_call(uint32_t index);
  bool run_loop(const Plan::Step& plan, Step& step);
  bool run_region(const Plan::Step& plan, const Step& step, const Node& node);
  void take_over(StorageId id, StorageId from) noexcept;
  void compute(uint32_t index);
  void call_kernel(const Call& call, Stack& stack) const;
  void keep(const Node& node, const Def& promised, const Tensor& result);
  void report(const Plan::Step& plan, std::string_view engine) const;

  /// Notes what was thrown, as the error of a call.
  std::exception_ptr note(std::exception_ptr error, const Node& call);
  bool has_failed(StorageId id) const noexcept { return !failed_.empty() && failed_[id]; }
  /// The error of an operand; null if there is none.
  std::exception_ptr inherited(const Node& call) const;
  /// Of a call that has failed: its results, and what it writes, as what follows would see other bytes than
  /// it should. Afterwards, a tensor whose write has failed is as it was before, as in a program that stops
  /// there.
  void fail(const Node& call, const std::exception_ptr& error);

  StorageId storage_of(ValueId value) const noexcept { return g_.values[value].storage; }
  /// The address that offsets of a storage's tensors count from, in its memory, which is made if there is
  /// none.
  char* memory(StorageId id) {
    if (!is_used_[id]) [[unlikely]]
      find_memory(id);
    return addresses_[id];
  }
  void find_memory(StorageId id);
  void bind(StorageId id, char* bytes) noexcept {
    addresses_[id] = bytes;
    if (shells_[id]) shells_[id]->rebind(reinterpret_cast<Address>(bytes));
  }
  void put(StorageId id, char* bytes) noexcept;
  void release(StorageId id) noexcept;

  const Plan& plan_;
  const Graph& g_;
  const DispatchKeySet keys_;
  std::vector<Scalar> numbers_;
  bool is_stale_ = true;  // steps and calls have other numbers
  std::vector<Step> steps_;
  std::vector<std::optional<Call>> calls_;  // made when a call first runs by itself
  std::vector<tenon::Storage> shells_;      // by storage: as calls see it, wherever it is
  std::vector<char*> operands_;             // of a loop

  // Of a run.
  RunMemory* memory_ = nullptr;
  // By storage: whether a step has asked for its memory, where that is, and whether the run has made it.
  std::vector<uint8_t> is_used_;
  std::vector<StorageId> used_;  // those that are not placed, some of which were released since
  std::vector<char*> addresses_;
  std::vector<tenon::Storage> made_;
  std::vector<std::exception_ptr> failed_;  // by storage; empty until something fails
  std::exception_ptr first_;
};

}  // namespace tenon::graph
