// The device of plain.c with operators whose kernels call operators, with values of every type, and operators
// that tell what they were called with. example.h is the example of docs/backends.md.
#include "tenon/abi/kernel.h"
#include "tenon/abi/operator.h"

#define tenon_plugin_v1 plain_plugin_v1
#include "../plain/plain.c"
#undef tenon_plugin_v1

#include "example.h"

namespace {

using abi::call_operator;
using abi::Tensor;
using Ints = std::vector<int64_t>;

// ---- Arguments ----

Tensor scalars(const Tensor& x) {
  const Tensor less = call_operator("aten::mul.Scalar", x, abi::scalar(0.5));
  return call_operator("aten::add.Scalar", less, abi::scalar(true), abi::scalar(3));
}
Tensor numbers(const Tensor& x) {
  return call_operator("aten::nan_to_num", x, 0.25, std::optional<double>(9), std::nullopt);
}
Tensor texts(const Tensor& x) {
  const std::string mode = "floor";
  const Tensor whole = call_operator("aten::div.Tensor_mode", x, x, std::string_view(mode));
  return call_operator("aten::add.Tensor", call_operator("aten::gelu", x, "tanh"), whole, abi::scalar(1));
}
Tensor lists(const Tensor& x) {
  const Tensor twice = call_operator("aten::cat", std::vector<Tensor>{x, x}, 1);
  const int64_t dims[] = {0};
  return call_operator("aten::sum.dim_IntList", twice, abi::IntList{dims, 1}, false, TENON_DTYPE_FLOAT64);
}
Tensor scaled_up(const Tensor& x, const abi::List<double>& factors) {
  const Tensor once =
      call_operator("aten::upsample_nearest2d.vec", x, std::optional<Ints>(), std::vector<double>{2, 1});
  return call_operator("aten::upsample_nearest2d.vec", once, std::nullopt, factors);
}
Tensor channels_last(const Tensor& like) {
  const TenonDType dtype = TENON_DTYPE_INT16;
  return call_operator("aten::empty.memory_format", Ints{1, 2, 3, 4}, dtype, abi::Layout::Strided,
                       like.view().device, std::optional<bool>(), abi::MemoryFormat::ChannelsLast);
}
Tensor drawn(const Tensor& x, const abi::Generator& generator) {
  return call_operator("aten::normal_", x, 1.0, 2.0f, generator);
}
Tensor undefined(const Tensor& x, const Tensor& weight) {
  return call_operator("aten::layer_norm", x, Ints{2}, weight, std::optional<Tensor>(), 0.0, false);
}

// ---- Results ----

std::tuple<Tensor, Tensor> sorted(const Tensor& x) {
  static const abi::Operator sort("aten::sort.stable");
  return sort.call<std::tuple<Tensor, Tensor>>(x, true, -1, true);
}
Tensor last_row(const Tensor& x) {
  return call_operator<std::vector<Tensor>>("aten::unbind.int", x, 0).back();
}
bool same(const Tensor& x, const Tensor& y) { return call_operator<bool>("aten::equal", x, y); }
double item(const Tensor& x) {
  const auto number = call_operator<TenonScalar>("aten::item", x);
  return number.kind == 2 ? number.value.d : static_cast<double>(number.value.i);
}
int64_t times(int64_t n) { return n == 0 ? 0 : 3 + call_operator<int64_t>("calls::times", n - 1); }
void nothing(const Tensor& x) {
  if (x.view().ndim > 0) call_operator<void>("calls::nothing", call_operator("aten::sum", x, std::nullopt));
}

// ---- What is wrong ----

Tensor moved(const Tensor& x, TenonDevice device, TenonDType dtype) {
  return call_operator("aten::to.device", x, device, dtype, false, false, std::nullopt);
}
Tensor wrong(const Tensor& x, int64_t how) {
  switch (how) {
    case 0:
      return call_operator("aten::no_such", x);
    case 1:
      return call_operator("aten::abs", x, x);
    case 2:
      return call_operator("aten::mul.Scalar", x, 2);
    case 3:
      return call_operator<std::tuple<Tensor, Tensor>>("aten::abs", x), x;
    case 4:
      return call_operator<double>("aten::abs", x), x;
    case 5:
      return call_operator("aten::mm", x, x);
    case 6:
      return call_operator("aten::abs", std::nullopt);
    case 7:
      return call_operator("aten::cat", std::vector<Tensor>{x}, std::optional<int64_t>());
    case 8:
      return moved(x, TenonDevice{77, 3}, TENON_DTYPE_FLOAT32);
    case 9:
      return moved(x, TenonDevice{0, -7}, TENON_DTYPE_FLOAT32);
    case 10:
      return moved(x, TenonDevice{0, -1}, TenonDType{200});
    case 11:
      return call_operator("aten::mul.Scalar", x, TenonScalar{99, {2}, 0});
    case 12:
      return call_operator("aten::clone", x, static_cast<abi::MemoryFormat>(77));
    case 13:
      return call_operator("aten::empty.memory_format", Ints{2}, std::nullopt, static_cast<abi::Layout>(99),
                           std::nullopt, std::nullopt, std::nullopt);
    case 14:
      return call_operator("aten::mul.Scalar", x, abi::scalar(uint64_t{1} << 63));
    case 15:
      return call_operator("aten::cat", std::vector<Tensor>{x}, uint64_t{1} << 63);
    case 16:
      return call_operator<void>("aten::abs", x), x;
    default:
      return call_operator("aten::cat", x, 0);
  }
}

// ---- Types of arguments ----

int64_t layout(abi::Layout l) { return static_cast<int64_t>(l); }
int64_t layout_or(std::optional<abi::Layout> l) { return l ? layout(*l) : -1; }
int64_t format(abi::MemoryFormat f) { return static_cast<int64_t>(f); }
int64_t format_or(const std::optional<abi::MemoryFormat>& f) { return f ? format(*f) : -1; }
int64_t take(int64_t blocks, abi::Generator g) {
  return static_cast<int64_t>(g.take(static_cast<uint64_t>(blocks)).offset);
}
bool has_generator(std::optional<abi::Generator> g) { return g.has_value() && g->defined(); }
bool has_tensor(const std::optional<Tensor>& t) { return t.has_value() && t->defined(); }

}  // namespace

TENON_LIBRARY(calls, m) {
  m.def("scalars(Tensor x) -> Tensor", &scalars);
  m.def("numbers(Tensor x) -> Tensor", &numbers);
  m.def("texts(Tensor x) -> Tensor", &texts);
  m.def("lists(Tensor x) -> Tensor", &lists);
  m.def("scaled_up(Tensor x, float[] factors) -> Tensor", &scaled_up);
  m.def("channels_last(Tensor like) -> Tensor", &channels_last);
  m.def("drawn(Tensor(a!) x, *, Generator? generator=None) -> Tensor(a!)", &drawn);
  m.def("undefined(Tensor x, Tensor? weight) -> Tensor", &undefined);
  m.def("sorted(Tensor x) -> (Tensor, Tensor)", &sorted);
  m.def("last_row(Tensor(a) x) -> Tensor(a)", &last_row);
  m.def("same(Tensor x, Tensor y) -> bool", &same);
  m.def("item(Tensor x) -> float", &item);
  m.def("times(int n) -> int", &times);
  m.def("nothing(Tensor x) -> ()", &nothing);
  m.def("wrong(Tensor x, int how) -> Tensor", &wrong);
  m.def("layout(Layout l) -> int", &layout);
  m.def("layout_or(Layout? l=None) -> int", &layout_or);
  m.def("format(MemoryFormat f) -> int", &format);
  m.def("format_or(MemoryFormat? f=None) -> int", &format_or);
  m.def("take(int blocks, Generator g) -> int", &take);
  m.def("take_or(int blocks, Generator? g=None) -> int", &take);
  m.def("has_generator(Generator? g=None) -> bool", &has_generator);
  m.def("has_tensor(Tensor? t=None) -> bool", &has_tensor);
}

extern "C" [[gnu::visibility("default")]] TenonStatus* tenon_plugin_v1(const TenonHost* given,
                                                                       const TenonOptions* options,
                                                                       TenonPlugin* out) {
  abi::set_host(given);
  if (TenonStatus* status = plain_plugin_v1(given, options, out)) return status;
  out->register_kernels = &abi::register_blocks;
  return nullptr;
}
