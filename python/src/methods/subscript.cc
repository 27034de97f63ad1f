// self[...] and self[...] = value, len and iteration: ints, slices with any step, None, Ellipsis, bools,
// lists and tensors, with NumPy's meaning. Views where only ints and slices are given; otherwise index and
// index_put_.
#include <fmt/format.h>

#include "python/src/call/parser.h"
#include "python/src/call/spread.h"
#include "python/src/exchange/from_data.h"
#include "python/src/interpreter/sequences.h"
#include "python/src/module_parts.h"
#include "python/src/tensor/tensor_parts.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/ops/indexing/tensor_index.h"

namespace tenon::python {
namespace {

/// The items of a subscript; one that is not a tuple is the only item.
std::span<PyObject* const> items_of(PyObject* const& key) noexcept {
  if (!PyTuple_Check(key)) return {&key, 1};
  return {reinterpret_cast<PyTupleObject*>(key)->ob_item, static_cast<size_t>(PyTuple_GET_SIZE(key))};
}

/// uint8 is what masks were before there was bool.
bool is_mask(const Tensor& t) noexcept { return t.dtype() == DType::Bool || t.dtype() == DType::UInt8; }

/// Whether an item is a sequence of positions, such as a range or an array.array.
bool is_sequence_of_positions(PyObject* item) noexcept {
  return PySequence_Check(item) && !PyIndex_Check(item) && !PyUnicode_Check(item) && !PyBytes_Check(item);
}

/// An item that is a sequence or an array, as a tensor; undefined for others.
Tensor index_data(PyObject* item) {
  if (is_tensor(item)) return tensor_of(item);
  Ref list;
  if (!PyList_Check(item) && !PyTuple_Check(item) && !is_numpy_array(item)) {
    if (!is_sequence_of_positions(item)) return {};
    list = Ref(checked(PySequence_List(item)));
    item = list.get();
  }
  const Tensor t = tensor_from_data(item);
  // An empty list has no numbers to tell a dtype from.
  return t.numel() == 0 && !is_mask(t) ? t.to(kInt64) : t;
}

/// The slice at `position` of a dimension; messages are those of indexing.
Tensor select_at(const Tensor& t, int64_t dim, int64_t position) {
  const int64_t size = t.size(dim);
  TENON_CHECK(position >= -size && position < size, Index,
              fmt::format("index {} is out of bounds for dimension {} with size {}", position, dim, size));
  return t.select(dim, position);
}

/// Dimensions of `self` that an item takes up.
int64_t dims_taken(PyObject* item, const Tensor& data) noexcept {
  if (item == Py_None || item == Py_Ellipsis || PyBool_Check(item)) return 0;
  return data.defined() && is_mask(data) ? data.dim() : 1;
}

/// What a subscript selects: a view, and index tensors for those of its dimensions that need them.
class Selection {
 public:
  Selection(const Tensor& self, PyObject* key) : view_(self) {
    const auto items = items_of(key);
    std::vector<Tensor> data;
    int64_t taken = 0, ellipses = 0;
    for (PyObject* item : items) {
      data.push_back(index_data(item));
      taken += dims_taken(item, data.back());
      ellipses += item == Py_Ellipsis;
    }
    TENON_CHECK(ellipses <= 1, Index, "index: only one Ellipsis is possible");
    TENON_CHECK(
        taken <= self.dim(), Index,
        fmt::format("index: too many indices for tensor of dimension {} (got {})", self.dim(), taken));
    hidden_ = self.dim() - taken;
    for (size_t i = 0; i < items.size(); ++i) apply(items[i], data[i]);
  }

  const Tensor& view() const noexcept { return view_; }
  bool has_tensors() const noexcept { return !tensors_.empty(); }
  std::span<const Tensor> tensors() const noexcept { return tensors_; }

 private:
  void apply(PyObject* item, const Tensor& data) {
    int64_t position = 0;
    if (item == Py_Ellipsis) {
      dim_ += hidden_;
    } else if (item == Py_None) {
      view_ = view_.unsqueeze(dim_++);
    } else if (PySlice_Check(item)) {
      slice(item);
    } else if (PyBool_Check(item)) {
      all_or_nothing(item == Py_True);
    } else if (data.defined() && is_mask(data)) {
      mask(data);
    } else if (parse_int(item, position)) {
      view_ = select_at(view_, dim_, position);
    } else if (data.defined()) {
      index_tensor(data);
    } else {
      throw_error(
          ErrorKind::Index,
          fmt::format("index: expected an int, slice, None, Ellipsis, bool, sequence of ints or bools, or "
                      "a tensor of them, got {}",
                      Py_TYPE(item)->tp_name));
    }
  }

  void slice(PyObject* item) {
    const auto* s = reinterpret_cast<PySliceObject*>(item);
    const auto bound = [](PyObject* o) -> std::optional<int64_t> {
      if (o == Py_None) return std::nullopt;
      if (!PyIndex_Check(o)) {
        throw_error(ErrorKind::Type, fmt::format("index: a slice takes ints, not {}", Py_TYPE(o)->tp_name));
      }
      // Beyond any size: Python's slices clip.
      const Py_ssize_t value = PyNumber_AsSsize_t(o, nullptr);
      if (value == -1 && PyErr_Occurred()) throw PythonError();
      return value;
    };
    const auto start = bound(s->start), stop = bound(s->stop), step = bound(s->step);
    TENON_CHECK(step.value_or(1) != 0, Value, "index: the step of a slice is zero");
    if (start || stop || step.value_or(1) != 1) view_ = view_.slice(dim_, start, stop, step.value_or(1));
    ++dim_;
  }

  void index_tensor(const Tensor& t) {
    TENON_CHECK(is_integral(t.dtype(), false), Type,
                fmt::format("index: an index tensor must hold integers or bools, got {}", name(t.dtype())));
    TENON_CHECK(
        t.dtype() == kInt64 || t.dtype() == DType::Int32, Index,
        fmt::format("index: an index tensor must be int64, int32, uint8 or bool, got {}", name(t.dtype())));
    add_tensor(t);
  }

  /// A mask becomes the positions of its true elements, in as many dimensions as it has. As the array API
  /// standard says, each of its sizes is that of the tensor, or 0.
  void mask(const Tensor& t) {
    if (t.dim() == 0) return all_or_nothing(t.item<bool>());
    bool of_one_shape = true;
    for (int64_t d = 0; d < t.dim(); ++d) {
      TENON_CHECK(t.size(d) == view_.size(dim_ + d) || t.size(d) == 0, Index,
                  fmt::format("index: the mask has shape {}, the tensor {} from dimension {}",
                              to_string(t.sizes()), to_string(view_.sizes()), dim_));
      of_one_shape &= t.size(d) == view_.size(dim_ + d);
    }
    if (of_one_shape) return add_tensor(t, t.dim());
    for (int64_t d = 0; d < t.dim(); ++d) add_tensor(zeros(0, kInt64));
  }

  /// A bool: a new dimension that holds everything or nothing.
  void all_or_nothing(bool all) {
    view_ = view_.unsqueeze(dim_);
    const int64_t count = all ? 1 : 0;
    add_tensor(zeros(count, kInt64));
  }

  /// An index of the dimensions from here on; those before it that have none are kept whole.
  void add_tensor(const Tensor& t, int64_t dims = 1) {
    for (; listed_ < dim_; ++listed_) tensors_.emplace_back();
    tensors_.push_back(t);
    listed_ = dim_ += dims;
  }

  Tensor view_;
  int64_t dim_ = 0;
  int64_t hidden_ = 0;
  int64_t listed_ = 0;  // dimensions that tensors_ speaks of
  std::vector<Tensor> tensors_;
};

PyObject* get_item(PyObject* o, PyObject* key) {
  return guarded("__getitem__", [&] {
    const Tensor& self = tensor_of(o);
    int64_t position = 0;
    if (PyLong_CheckExact(key) && self.dim() > 0 && parse_int(key, position))
      return wrap(select_at(self, 0, position));
    const Selection s(self, key);
    if (s.has_tensors()) {
      auto result =
          without_gil(self.numel() >= kReleaseGilElements, [&] { return index(s.view(), s.tensors()); });
      return wrap(std::move(result));
    }
    return wrap(s.view().is_same(self) ? alias(self) : s.view());
  });
}

void assign(const Tensor& self, PyObject* key, PyObject* value) {
  const Selection s(self, key);
  Tensor target = s.view();
  Scalar number;
  if (!s.has_tensors()) {
    if (!is_tensor(value) && parse_scalar(value, number)) {
      target.fill_(number);
    } else {
      const Tensor source = is_tensor(value) ? tensor_of(value) : tensor_from_data(value, self.dtype());
      target.copy_(without_leading_ones(source, target));
    }
    return;
  }
  Tensor source = is_tensor(value) ? tensor_of(value) : tensor_from_data(value, self.dtype());
  if (source.dtype() != self.dtype()) source = source.to(self.dtype());
  if (source.device() != target.device()) source = source.to(target.device());
  assign_selected(target, s.tensors(), source);
}

int set_item(PyObject* o, PyObject* key, PyObject* value) {
  return guarded("__setitem__", [&] {
    TENON_CHECK(
        value, Type,
        "__delitem__: a tensor's elements cannot be deleted; make a tensor of the others, as x[mask]");
    assign(tensor_of(o), key, value);
    return 0;
  });
}

Py_ssize_t length(PyObject* o) {
  return guarded([&]() -> Py_ssize_t {
    const Tensor& t = tensor_of(o);
    TENON_CHECK(t.dim() > 0, Type, "len() of a 0-dim tensor");
    return t.sizes()[0];
  });
}

PyObject* iterate(PyObject* o) {
  return guarded([&] {
    const Tensor& t = tensor_of(o);
    TENON_CHECK(t.dim() > 0, Type, "iteration over a 0-dim tensor");
    const std::vector<Tensor> rows = t.unbind(0);
    const Ref tuple = tuple_of(rows, [](const Tensor& t) { return wrap(t); });
    return PyObject_GetIter(tuple.get());
  });
}

int contains(PyObject* o, PyObject* item) {
  return guarded("__contains__", [&] {
    const Tensor& t = tensor_of(o);
    Scalar number;
    if (is_tensor(item)) return static_cast<int>(t.eq(tensor_of(item)).any().item<bool>());
    if (!parse_scalar(item, number)) {
      throw_error(ErrorKind::Type,
                  fmt::format("in: expected a number or Tensor, got {}", Py_TYPE(item)->tp_name));
    }
    return static_cast<int>(t.eq(number).any().item<bool>());
  });
}

PyObject* nonzero_of(Tensor self, PyObject* as_tuple) {
  const bool split = given(as_tuple) && flag("nonzero", "as_tuple", as_tuple);
  std::vector<Tensor> parts;
  Tensor all;
  {
    const ReleaseGil gil(self.numel() >= kReleaseGilElements);
    if (split)
      parts = nonzero_numpy(self);
    else
      all = nonzero(self);
  }
  if (!split) return wrap(std::move(all));
  return tuple_of(parts, [](Tensor& t) { return wrap(std::move(t)); }).release();
}

PyObject* nonzero_method(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded("nonzero", [&] {
    const auto [as_tuple] = spread("nonzero", {"as_tuple"}, 0, args, n, keywords);
    return nonzero_of(tensor_of(o), as_tuple);
  });
}
PyObject* nonzero_function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded("nonzero", [&] {
    const auto [input, out, as_tuple] = spread("nonzero", {"input", "out", "as_tuple"}, 1, args, n, keywords);
    if (!input || !is_tensor(input)) wrong_type("nonzero", "input", "a Tensor", input ? input : Py_None);
    if (!given(out)) return nonzero_of(tensor_of(input), as_tuple);
    if (!is_tensor(out)) wrong_type("nonzero", "out", "a Tensor", out);
    TENON_CHECK(!given(as_tuple) || !flag("nonzero", "as_tuple", as_tuple), Value,
                "nonzero: as_tuple=True has no out");
    nonzero_out(tensor_of(out), tensor_of(input));
    return Py_NewRef(out);
  });
}

PyMethodDef g_subscript_methods[] = {
    fast_method("nonzero", &nonzero_method,
                "nonzero($self, *, as_tuple=False)\n--\n\n"
                "The positions of the elements that are not zero; see tenon.nonzero.")};
PyMethodDef g_subscript_functions[] = {
    fast_method("nonzero", &nonzero_function,
                "nonzero(input, *, out=None, as_tuple=False)\n--\n\n"
                "The positions of the elements that are not zero, in order, as int64 [count, dim()]; with "
                "as_tuple a vector for each dimension."),
    {}};

PyMappingMethods g_mapping = {&length, &get_item, &set_item};
PySequenceMethods g_sequence = {};

}  // namespace

TensorPart index_part() {
  g_sequence.sq_contains = &contains;
  tensor_type.tp_as_mapping = &g_mapping;
  tensor_type.tp_as_sequence = &g_sequence;
  tensor_type.tp_iter = &iterate;
  return {g_subscript_methods, {}};
}

bool add_indexing(PyObject* module) { return PyModule_AddFunctions(module, g_subscript_functions) == 0; }

}  // namespace tenon::python
