// PureReplay: one captured call of a program that compile(pure=True) was given: what it depended on, and how
// it is computed without the program. Used by the type of compiled functions (modules/compiled_function.cc).
// Made by replay_maker.cc.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/src/replay/guards.h"
#include "python/src/replay/identities.h"
#include "python/src/replay/live_numbers.h"
#include "python/src/replay/structure.h"
#include "python/src/replay/tensor_guards.h"
#include "tenon/autograd/node.h"
#include "tenon/core/thread_state.h"
#include "tenon/record/recorder.h"
#include "tenon/record/replay.h"

namespace tenon::python::replay {

/// What a program depends on besides its arguments and what it has captured: the thread's and the process's
/// modes, and which kernels operators have.
struct Modes {
  static Modes now();
  bool operator==(const Modes&) const = default;
  /// Which one differs: "gradient mode"; null if none does.
  const char* difference(const Modes& other) const noexcept;

  uint64_t included, excluded;
  bool grad_enabled, inference_mode;
  bool saved_hooks_disabled;
  DType default_dtype;
  int num_threads;
  uint64_t registrations;
};

class PureReplay {
 public:
  /// A tensor among the results: one of the noted, the gradient of one, or a new one, which may be a view of
  /// another such tensor, and may have history that was used up.
  struct Result {
    size_t noted = SIZE_MAX, gradient_of = SIZE_MAX;
    std::optional<NewTensor> made = {};
    size_t base = SIZE_MAX;  ///< An earlier one of `results`.
    Edge history = {};
  };
  struct Parts {
    uint64_t program;
    Modes modes;
    Structure arguments;  ///< A tuple of the positional arguments, then those by name.
    size_t num_positional;
    Ref names;                                 ///< Of the others: a tuple, or null.
    Identities same_tensors, same_containers;  ///< Among the arguments.
    TensorGuards tensors;
    Guards guards;
    std::vector<Result> results;  ///< Those of `result` by their numbers, among others.
    Structure result;
    record::Replay replay;
    LiveNumbers live;
  };
  explicit PureReplay(Parts parts);

  /// Unique in the process.
  uint64_t number() const noexcept { return number_; }
  /// Whether everything is as it was; fills in what `run` needs.
  bool matches(PyObject* const* arguments, size_t n, PyObject* names);
  /// Computes and returns the result: a new reference. Throws.
  PyObject* run();
  /// Prepares `difference`, where `run` does not follow: the numbers that the next run would bring.
  void expect();
  struct Difference {
    std::string what;  ///< "it records ... ", empty if there is none.
    std::string line;  ///< Of the program, "model.py:12"; may be empty.
  };
  /// How another call of the program, which this replay fits, differs from it.
  Difference difference(const PureReplay& now) const;
  /// Whether a call of it has not ended: on another thread, as runs may give up the interpreter's lock, or of
  /// the program that calls itself through a finalizer or the handler of a signal.
  bool is_running() const noexcept { return is_running_; }
  /// Why `matches` was false the last time.
  struct Mismatch {
    std::string what;           ///< "the value of an argument", "had no gradient", "`model.scale`".
    size_t tensor = SIZE_MAX;   ///< The number of the tensor that it is about, if it is about one.
    std::string was = {};       ///< That tensor's header then, where it is another: "float32[4]".
    Guards::Broken guard = {};  ///< What failed, if a guard did.
  };
  Mismatch mismatch() const;
  int traverse(visitproc visit, void* arg) const;

 private:
  void forget_call() noexcept;
  void run_segment();
  PyObject* noted(size_t number) const noexcept;
  Tensor make(const Result& result, std::span<const Tensor> before) const;

  uint64_t number_;
  const record::Recorder* thread_;
  const record::Trie* known_;
  uint64_t num_cleared_;
  Parts parts_;
  Structure::Call call_;
  BoundSlots slots_;
  std::vector<Tensor> made_;  // results
  bool is_running_ = false;
  const char* what_ = "";
  Guards::Broken broken_;
  size_t which_ = SIZE_MAX;  // argument or tensor
};

/// A replay on its way from its maker to the compiled function: a capsule, and what is in it, which
/// `take_replay` takes out. Throw PythonError.
PyObject* wrap_replay(std::unique_ptr<PureReplay> replay);
std::unique_ptr<PureReplay> take_replay(PyObject* capsule);

/// Adds the type of makers to the module; false with an exception set.
bool add_replay_maker(PyObject* module);

}  // namespace tenon::python::replay
