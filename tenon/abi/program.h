// Evaluates launches: the definition of what they do, and a way to run all pointwise operators on a device
// that can call C++. Keeps launches for later. Header-only C++17 for plug-ins; includes nothing of Tenon but
// tenon/abi. Compile it with -ffp-contract=off: what is two operations must not become one.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tenon/abi/evaluate.h"

namespace tenon::abi {

/// Whether the evaluator knows all of a program; a later Tenon may have operations that it does not know.
inline bool evaluates(const TenonProgram& p) noexcept { return (p.ops_used & ~kKnownOps) == 0; }

namespace detail {

/// Runs a launch in blocks along its innermost dimension.
class Evaluation {
 public:
  template <class Pointer>
  Evaluation(const TenonLaunch& launch, Pointer&& pointer)
      : launch_(launch),
        p_(*launch.program),
        block_(static_cast<size_t>(std::min<int64_t>(launch.sizes[0], kBlock))),
        values_(new uint64_t[p_.num_nodes * block_]) {
    for (uint32_t k = 0; k < p_.num_outputs + p_.num_inputs; ++k)
      at_.push_back(static_cast<char*>(pointer(launch.operands[k])));
  }

  void run() {
    for (uint32_t id = 0; id < p_.num_nodes; ++id) {
      if (is_uniform(id)) compute(id, 0, block_);
    }
    std::vector<int64_t> place(launch_.ndim);
    for (;;) {
      for (int64_t i = 0; i < launch_.sizes[0]; i += kBlock)
        compute_block(i, static_cast<size_t>(std::min<int64_t>(kBlock, launch_.sizes[0] - i)));
      // The next row: on along dimension 1, back to the start of those that are done.
      uint32_t d = 1;
      for (; d < launch_.ndim && ++place[d] == launch_.sizes[d]; ++d) {
        place[d] = 0;
        move(d, 1 - launch_.sizes[d]);
      }
      if (d >= launch_.ndim) return;
      move(d, 1);
    }
  }

 private:
  static constexpr int64_t kBlock = 64;

  bool is_uniform(uint32_t id) const { return (p_.nodes[id].flags & 3u) == TENON_RANK_NUMBER; }
  uint64_t* values(uint32_t id) const { return values_.get() + id * block_; }
  void move(uint32_t d, int64_t steps) {
    for (size_t k = 0; k < at_.size(); ++k) at_[k] += steps * launch_.operands[k].strides[d];
  }
  char* element(uint32_t k, int64_t i) const { return at_[k] + i * launch_.operands[k].strides[0]; }

  void compute_block(int64_t first, size_t n) const {
    for (uint32_t id = 0; id < p_.num_nodes; ++id) {
      if (!is_uniform(id)) compute(id, first, n);
    }
    for (uint32_t k = 0; k < p_.num_outputs; ++k) store(k, first, n);
  }

  void compute(uint32_t id, int64_t first, size_t n) const {
    const TenonNode& node = p_.nodes[id];
    uint64_t* to = values(id);
    if (node.op == TENON_OP_LITERAL || node.op == TENON_OP_NUMBER) {
      std::fill(to, to + n, node.op == TENON_OP_LITERAL ? node.bits : launch_.scalars[node.bits]);
    } else if (node.op == TENON_OP_LOAD) {
      const uint32_t k = p_.num_outputs + static_cast<uint32_t>(node.bits);
      const TenonDType dtype = launch_.operands[k].dtype;
      for (size_t i = 0; i < n; ++i)
        to[i] = cast_bits(load_bits(element(k, first + static_cast<int64_t>(i)), dtype), carrier(dtype),
                          node.type);
    } else {
      Operation o{node, p_.nodes[node.args[0]].type, {}, to, n};
      for (int i = 0; i < node.arity; ++i) o.args[i] = values(node.args[i]);
      evaluate(o);
    }
  }

  void store(uint32_t k, int64_t first, size_t n) const {
    const TenonDType result = launch_.results[k], stored = launch_.operands[k].dtype;
    const uint64_t* from = values(p_.outputs[k]);
    const TenonType type = p_.nodes[p_.outputs[k]].type;
    for (size_t i = 0; i < n; ++i) {
      uint64_t value = cast_bits(from[i], type, carrier(result));
      if (result != stored) value = cast_bits(round_bits(value, result), carrier(result), carrier(stored));
      store_bits(element(k, first + static_cast<int64_t>(i)), stored, value);
    }
  }

  const TenonLaunch& launch_;
  const TenonProgram& p_;
  size_t block_;
  std::unique_ptr<uint64_t[]> values_;  // of each node a block
  std::vector<char*> at_;
};

}  // namespace detail

/// Runs a launch. `pointer(operand)` gives what the caller reads and writes an operand's first element
/// through.
template <class Pointer>
void run(const TenonLaunch& launch, Pointer&& pointer) {
  detail::Evaluation(launch, pointer).run();
}

/// Runs a launch whose addresses are pointers.
inline void run(const TenonLaunch& launch) {
  run(launch, [](const TenonOperand& operand) { return reinterpret_cast<void*>(operand.address); });
}

/// A launch for later: a copy of all that lives only until the device's function returns, numbers of the host
/// included. The operands' memory on the device is not its own.
class KeptLaunch {
 public:
  explicit KeptLaunch(const TenonLaunch& given) : data_(new Data) {
    const TenonProgram& p = *given.program;
    const uint32_t num_operands = p.num_outputs + p.num_inputs;
    Data& d = *data_;
    d.launch = given;
    d.name = given.name;
    d.sizes.assign(given.sizes, given.sizes + given.ndim);
    d.operands.assign(given.operands, given.operands + num_operands);
    d.results.assign(given.results, given.results + p.num_outputs);
    if (p.num_scalars > 0) d.scalars.assign(given.scalars, given.scalars + p.num_scalars);
    d.elements.resize(num_operands);
    for (const TenonOperand& o : d.operands)
      d.strides.insert(d.strides.end(), o.strides, o.strides + given.ndim);
    for (uint32_t k = 0; k < num_operands; ++k) {
      TenonOperand& o = d.operands[k];
      o.strides = d.strides.data() + size_t{k} * given.ndim;
      if (o.place != TENON_PLACE_HOST) continue;
      std::memcpy(&d.elements[k], reinterpret_cast<const void*>(o.address), item_size(o.dtype));
      o.address = reinterpret_cast<TenonAddress>(&d.elements[k]);
    }
    d.launch.name = d.name.c_str();
    d.launch.sizes = d.sizes.data();
    d.launch.operands = d.operands.data();
    d.launch.results = d.results.data();
    d.launch.scalars = d.scalars.data();
  }

  const TenonLaunch& operator*() const noexcept { return data_->launch; }
  const TenonLaunch* operator->() const noexcept { return &data_->launch; }

 private:
  struct Data {
    TenonLaunch launch;
    std::string name;
    std::vector<int64_t> sizes, strides;
    std::vector<TenonOperand> operands;
    std::vector<TenonDType> results;
    std::vector<uint64_t> scalars, elements;
  };
  std::shared_ptr<Data> data_;  // tasks are copied
};

/// What the plug-in has made of a launch's program: `make()` gives a T* at the first launch. Where another
/// thread is first, that one's is taken, and this one's deleted.
template <class T, class Make>
T& in_slot(const TenonLaunch& launch, Make&& make) {
  void* there = __atomic_load_n(launch.slot, __ATOMIC_ACQUIRE);
  if (!there) {
    std::unique_ptr<T> fresh(make());
    if (__atomic_compare_exchange_n(launch.slot, &there, static_cast<void*>(fresh.get()), false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      there = fresh.release();
  }
  return *static_cast<T*>(there);
}

}  // namespace tenon::abi
