// Tensor's side of Python's buffer protocol: memoryview(t), and readers of memory through one.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "python/src/call/parser.h"
#include "python/src/interpreter/errors.h"
#include "python/src/tensor/tensor_object.h"
#include "python/src/tensor/tensor_parts.h"
#include "tenon/iter/overlap.h"

namespace tenon::python {
namespace {

/// What a view keeps: the memory, and the numbers that it points to.
struct Exported {
  explicit Exported(const Tensor& t)
      : tensor(alias_of(t)),
        memory(t.storage()),
        sizes(t.sizes().to_dims()),
        strides(t.strides().to_dims()) {}

  Tensor tensor;
  LentStorage memory;
  Dims sizes, strides;
};

/// dtypes in the struct module's letters; the others have none.
constexpr std::pair<DType, const char*> kFormats[] = {
    {DType::Bool, "?"},       {DType::UInt8, "B"},      {DType::Int8, "b"},    {DType::Int16, "h"},
    {DType::UInt16, "H"},     {DType::UInt32, "I"},     {DType::UInt64, "L"},  {DType::Int32, "i"},
    {DType::Int64, "l"},      {DType::Float16, "e"},    {DType::Float32, "f"}, {DType::Float64, "d"},
    {DType::Complex64, "Zf"}, {DType::Complex128, "Zd"}};

const char* format_of(DType dtype) noexcept {
  for (const auto& [known, format] : kFormats) {
    if (known == dtype) return format;
  }
  return nullptr;
}

[[noreturn]] void refuse(const std::string& why) {
  PyErr_SetString(PyExc_BufferError, ("Tensor.__buffer__: " + why).c_str());
  throw PythonError();
}

bool is_fortran(const Tensor& t) noexcept {
  int64_t expected = 1;
  for (size_t d = 0; d < t.sizes().size(); ++d) {
    if (t.sizes()[d] != 1 && t.strides()[d] != expected) return false;
    expected *= t.sizes()[d];
  }
  return true;
}

void fill(PyObject* o, Py_buffer* view, int flags) {
  const Tensor& t = tensor_of(o);
  if (!t.device().is_cpu())
    refuse(fmt::format("the tensor is on {}; move it with .cpu()", to_string(t.device())));
  if (t.requires_grad()) refuse("a tensor that requires grad has no buffer; use .detach()");
  const char* format = format_of(t.dtype());
  if (!format) refuse(fmt::format("buffers have no {}; use .view(tenon.uint8)", name(t.dtype())));
  const bool contiguous = t.is_contiguous() || t.numel() == 0, fortran = is_fortran(t) || t.numel() == 0;
  const auto asks = [flags](int flag) { return (flags & flag) == flag; };
  if ((asks(PyBUF_C_CONTIGUOUS) || !asks(PyBUF_STRIDES)) && !contiguous && !asks(PyBUF_F_CONTIGUOUS) &&
      !asks(PyBUF_ANY_CONTIGUOUS))
    refuse("the elements are not contiguous; use .contiguous()");
  if (asks(PyBUF_F_CONTIGUOUS) && !fortran) refuse("the elements are not in Fortran's order");
  if (asks(PyBUF_ANY_CONTIGUOUS) && !contiguous && !fortran)
    refuse("the elements are not contiguous; use .contiguous()");
  const bool overlaps = overlaps_itself(t.sizes(), t.strides()),
             read_only = t.storage()->read_only() || overlaps;
  if (asks(PyBUF_WRITABLE) && read_only)
    refuse(overlaps ? "several elements of the tensor are the same memory; .clone() it first"
                    : "the tensor's memory is read-only");

  auto kept = std::make_unique<Exported>(t);
  const auto item = static_cast<int64_t>(t.itemsize());
  for (int64_t& s : kept->strides) s *= item;
  static char nothing = 0;
  view->buf = t.numel() > 0 ? t.data_ptr() : &nothing;
  view->len = t.numel() * item;
  view->itemsize = item;
  view->readonly = read_only;
  view->ndim = static_cast<int>(t.dim());
  view->format = asks(PyBUF_FORMAT) ? const_cast<char*>(format) : nullptr;
  view->shape = asks(PyBUF_ND) ? kept->sizes.data() : nullptr;
  view->strides = asks(PyBUF_STRIDES) ? kept->strides.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = kept.release();
  view->obj = Py_NewRef(o);
}

int get_buffer(PyObject* o, Py_buffer* view, int flags) {
  view->obj = nullptr;
  return guarded([&] {
    fill(o, view, flags);
    return 0;
  });
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Exported*>(view->internal); }

PyBufferProcs g_buffer = {&get_buffer, &release_buffer};

}  // namespace

TensorPart buffer_part() {
  static_assert(sizeof(long) == sizeof(int64_t) && sizeof(Py_ssize_t) == sizeof(int64_t));
  tensor_type.tp_as_buffer = &g_buffer;
  return {};
}

}  // namespace tenon::python
