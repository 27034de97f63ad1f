// Seeded random graphs: pointwise calls of mixed dtypes over views, writes in place, copies, fills, products
// and reductions. Each call runs on the host as it is added, so that what the program leaves is known, by
// eager operators alone.
#pragma once

#include <random>
#include <vector>

#include "tests/graph/machine.h"

namespace tenon::graph::testing {

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : rng_(seed) {
    const size_t num_inputs = 1 + below(3);
    for (size_t i = 0; i < num_inputs; ++i) add_input();
    for (size_t n = 3 + below(12); n > 0; --n) add_call();
    // Some of what is left is wanted; a value that nothing reads any more is dead.
    for (StorageId s = 0; s < graph.storages.size(); ++s) {
      if (current_[s] != kNone) graph.storages[s].is_output = graph.storages[s].is_input || below(2) == 0;
    }
  }

  Graph graph;
  std::vector<tenon::Storage> inputs;  ///< By storage; none for those that are no inputs.
  std::vector<Scalar> numbers;
  std::vector<tenon::Storage> left;  ///< What the program leaves, by storage.
  std::vector<DType> dtypes;         ///< Of each storage's elements.

 private:
  struct Known {
    StorageId storage;
    GeometryId geometry;
  };
  static constexpr DType kStored[] = {DType::Bool,     DType::UInt8,   DType::Int8,     DType::Int32,
                                      DType::Int64,    DType::Float16, DType::BFloat16, DType::Float32,
                                      DType::Float32,  DType::Float32, DType::Float32,  DType::Float64,
                                      DType::Complex64};

  size_t below(size_t n) { return static_cast<size_t>(rng_() % n); }
  template <class T, size_t N>
  const T& one_of(const T (&list)[N]) {
    return list[below(N)];
  }

  static OperatorHandle op(std::string_view name) {
    return Dispatcher::singleton().find_schema_or_throw_full(name);
  }

  StorageId add_storage(tenon::Storage storage, DType dtype, bool is_input) {
    const StorageId id = graph.add_storage({.nbytes = storage.nbytes(), .is_input = is_input});
    left.push_back(std::move(storage));
    inputs.emplace_back();
    dtypes.push_back(dtype);
    current_.push_back(is_input ? graph.add_input_value(id) : kNone);
    return id;
  }

  void add_input() {
    const DType dtype = one_of(kStored);
    constexpr int64_t kRows = 6, kColumns = 6;
    const Tensor t = view(tenon::Storage::allocate(kRows * kColumns * item_size(dtype)),
                          {.dtype = dtype, .sizes = {kRows, kColumns}, .strides = {kColumns, 1}});
    Stack stack;
    const Tensor source =
        view(tenon::Storage::allocate(kRows * kColumns * sizeof(double)),
             {.dtype = DType::Float64, .sizes = {kRows, kColumns}, .strides = {kColumns, 1}});
    auto* values = static_cast<double*>(source.data_ptr());
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      values[i] = static_cast<double>(below(4001)) / 500 - 4;
      if (dtype_info(dtype).category == DTypeCategory::Float && below(20) == 0)
        values[i] = one_of(
            {0.0, -0.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()});
      if (dtype == DType::UInt8 || dtype == DType::Bool) values[i] = std::abs(values[i]);
    }
    stack.push(t);
    stack.push(source);
    stack.push(false);
    op("aten::copy_").call_boxed(stack);
    const StorageId id = add_storage(t.storage(), dtype, true);
    inputs[id] = copy_of(t.storage());
    known_.push_back(
        {id, graph.add_geometry({.dtype = dtype, .sizes = {kRows, kColumns}, .strides = {kColumns, 1}})});
  }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return list.begin()[below(list.size())];
  }

  /// A tensor that is there, or a view of one.
  Known pick(bool written) {
    // What was made last is read most often.
    const size_t n = known_.size();
    Known k = known_[below(2) == 0 ? n - 1 - below(std::min<size_t>(n, 3)) : below(n)];
    if (below(4) != 0) return k;
    Geometry g = graph.geometry(k.geometry);
    if (g.sizes.empty()) return k;
    const size_t d = below(g.sizes.size());
    switch (below(4)) {
      case 0:  // transposed
        std::swap(g.sizes[0], g.sizes.back());
        std::swap(g.strides[0], g.strides.back());
        break;
      case 1:  // half
        if (g.sizes[d] < 2) return k;
        g.sizes[d] /= 2;
        if (below(2) == 0) g.offset += g.sizes[d] * g.strides[d];
        break;
      case 2:  // backwards
        if (g.sizes[d] == 0) return k;
        g.offset += (g.sizes[d] - 1) * g.strides[d];
        g.strides[d] = -g.strides[d];
        break;
      default:  // one row for all
        if (written || g.sizes[d] == 0) return k;
        g.strides[d] = 0;
    }
    k.geometry = graph.add_geometry(g);
    return k;
  }

  Tensor tensor(const Known& k) const { return view(left[k.storage], graph.geometry(k.geometry)); }

  struct Form {
    const char* name;
    const char* arguments;  ///< t: tensor, w: written tensor, n: number, i: number that is whole, k, l, L:
                            ///< keepdim, the last dimension, a list of it; else an attribute.
  };
  static constexpr Form kForms[] = {
      {"aten::add.Tensor", "tti"},
      {"aten::sub.Tensor", "tti"},
      {"aten::mul.Tensor", "tt"},
      {"aten::div.Tensor", "tt"},
      {"aten::mul.Scalar", "tn"},
      {"aten::add.Scalar", "tni"},
      {"aten::maximum", "tt"},
      {"aten::lt.Tensor", "tt"},
      {"aten::eq.Scalar", "tn"},
      {"aten::where.self", "ttt"},
      {"aten::neg", "t"},
      {"aten::exp", "t"},
      {"aten::tanh", "t"},
      {"aten::relu", "t"},
      {"aten::sigmoid", "t"},
      {"aten::abs", "t"},
      {"aten::silu", "t"},
      {"aten::sqrt", "t"},
      {"aten::logical_not", "t"},
      {"aten::pow.Tensor_Scalar", "ti"},
      {"aten::add_.Tensor", "wti"},
      {"aten::mul_.Tensor", "wt"},
      {"aten::mul_.Scalar", "wn"},
      {"aten::relu_", "w"},
      {"aten::copy_", "wtf"},
      {"aten::fill_.Scalar", "wn"},
      {"aten::zero_", "w"},
      {"aten::clone", "t-"},
      {"aten::zeros_like", "t-----"},
      {"aten::ones_like", "t-----"},
      {"aten::full_like", "tn-----"},
      {"aten::_to_copy", "td---f-"},
      {"aten::mm", "tt"},
      {"aten::sum", "t-"},
      {"aten::cumsum", "tz-"},
      {"aten::add.out", "ttiw"},
      {"aten::sum.dim_IntList", "tLk-"},
      {"aten::amax", "tLk"},
      {"aten::mean.dim", "tLk-"},
      {"aten::_softmax", "tlf"},
      {"aten::_log_softmax", "tlf"},
      {"aten::any.dim", "tlk"},
      {"aten::argmax", "tlk"},
      {"aten::_row_var", "tLik"},
      {"aten::amin", "tLk"},
      {"aten::clamp", "tnn"},
      {"aten::addcmul", "tttn"},
  };

  void add_call() {
    for (int tries = 0; tries < 20; ++tries) {
      if (try_call(one_of(kForms))) return;
    }
  }

  struct Given {
    char what;
    Known tensor = {kNone, kNone};
    Scalar number;
  };

  bool try_call(const Form& form) {
    const OperatorHandle handle = op(form.name);
    std::vector<Given> given;
    Stack stack;
    for (const char* c = form.arguments; *c; ++c) {
      Given& a = given.emplace_back(Given{*c});
      switch (*c) {
        case 't':
        case 'w':
          a.tensor = pick(*c == 'w');
          stack.push(tensor(a.tensor));
          break;
        case 'n':
          a.number = below(2) == 0 ? Scalar(static_cast<int64_t>(below(5)))
                                   : Scalar(static_cast<double>(below(9)) / 4 - 1);
          stack.push(a.number);
          break;
        case 'i':
          a.number = static_cast<int64_t>(1 + below(3));
          stack.push(a.number);
          break;
        case 'f':
          stack.push(false);
          break;
        case 'k':
          stack.push(below(3) != 0);
          break;
        case 'l':
          stack.push(int64_t{-1});
          break;
        case 'L':
          stack.push(IntArrayRef{-1});
          break;
        case 'z':
          stack.push(int64_t{0});
          break;
        case 'd':
          stack.push(one_of(kStored));
          break;
        default:
          stack.push_none();
      }
    }
    Stack kept;
    for (size_t i = 0; i < stack.size(); ++i) kept.push_copy(stack, i);
    try {
      handle.call_boxed(stack);
    } catch (const Error&) {
      return false;
    }
    // What was resized or given back as it was is another matter.
    const schema::FunctionSchema& schema = handle.schema();
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i].what == 'w' && !(tensor(given[i].tensor).sizes() == kept.at<Tensor>(i).sizes()))
        return false;
    }
    std::vector<Tensor> results;
    if (!schema.returns[0].is_write()) results.push_back(stack.at<Tensor>(0));
    for (const Tensor& r : results) {
      for (const tenon::Storage& s : left) {
        if (r.storage() == s) return false;
      }
    }
    // Tensors are recorded as they were before the call.
    for (size_t i = 0; i < given.size(); ++i) add_argument(given[i], kept, i, schema.arguments[i]);
    for (const Tensor& r : results) {
      const StorageId id = add_storage(r.storage(), r.dtype(), false);
      const GeometryId geometry = graph.add_geometry({.dtype = r.dtype(),
                                                      .offset = r.storage_offset(),
                                                      .sizes = r.sizes().to_dims(),
                                                      .strides = r.strides().to_dims()});
      current_[id] = graph.add_def(id, geometry, kNone);
      known_.push_back({id, geometry});
    }
    for (const Given& a : given) {
      if (a.what != 'w') continue;
      const ValueId value = graph.add_def(a.tensor.storage, a.tensor.geometry, current_[a.tensor.storage]);
      current_[a.tensor.storage] = value;
      known_.push_back(a.tensor);
    }
    graph.add_node(handle);
    return true;
  }

  void add_argument(const Given& a, const Stack& kept, size_t i, const schema::Argument& declared) {
    if (a.what == 't' || a.what == 'w') {
      graph.add_use({current_[a.tensor.storage], a.tensor.geometry});
    } else if (a.what == 'n' || a.what == 'i') {
      graph.add_number_use(graph.add_number(a.number.kind()));
      numbers.push_back(a.number);
    } else if (kept.is_none(i)) {
      graph.add_none();
    } else {
      graph.add_attribute(kept, i);
    }
    static_cast<void>(declared);
  }

  std::mt19937_64 rng_;
  std::vector<Known> known_;
  std::vector<ValueId> current_;
};

}  // namespace tenon::graph::testing
