// Prints launches as kernels in OpenCL C, CUDA C++ or C, with the bits that program.h defines. Header-only
// C++17 for plug-ins; includes nothing of Tenon but tenon/abi. Compiles and runs nothing.
//
// A source is one prelude and any number of kernels. A kernel serves all launches of its variant, and takes
// 64-bit words (`kernel_words`):
//   OpenCL  __kernel void NAME(struct of the words, __global char* for each operand on the device, outputs
//   first) CUDA    extern "C" __global__ void NAME(struct of the words) C       void NAME(const uint64_t*
//   words, uint64_t begin, uint64_t end), for elements from begin to end
// In OpenCL and CUDA any number of work-items or threads share the elements, in one dimension; or there are
// as many of them, or more.
#pragma once

#include <string>
#include <vector>

#include "tenon/abi/evaluate.h"
#include "tenon/abi/print_prelude.h"

namespace tenon::abi {

/// The operations that are printed, as `ops_used` has them.
inline constexpr uint64_t kPrintedOps = kKnownOps;

/// Whether a launch can be printed for a device with that arithmetic. A launch that cannot is to be declined.
inline bool prints(const TenonLaunch& launch, Arithmetic has) {
  const TenonProgram& p = *launch.program;
  if ((p.ops_used & ~kPrintedOps) != 0) return false;
  bool f64 = (p.types_used >> TENON_TYPE_F64 & 1u) != 0;
  for (uint32_t id = 0; id < p.num_nodes && !has.f32_division; ++id) {
    const TenonNode& n = p.nodes[id];
    f64 = f64 || (n.type == TENON_TYPE_F32 && (n.op == TENON_OP_DIV || n.op == TENON_OP_SQRT));
  }
  for (uint32_t k = 0; k < p.num_outputs + p.num_inputs; ++k) {
    if (carrier(launch.operands[k].dtype) > TENON_TYPE_I64) return false;
    f64 = f64 || launch.operands[k].dtype == TENON_DTYPE_FLOAT64;
  }
  for (uint32_t k = 0; k < p.num_outputs; ++k) f64 = f64 || launch.results[k] == TENON_DTYPE_FLOAT64;
  return has.f64 || !f64;
}

/// How work-items or threads share the elements of a launch. Kernels for one element each are what compilers
/// for processors make vectors of.
enum class Share : uint8_t { Any, OneEach };

namespace detail {

class KernelPrinter {
 public:
  KernelPrinter(Language language, const TenonLaunch& launch, Share share)
      : language_(language),
        share_(share),
        launch_(launch),
        p_(*launch.program),
        num_operands_(p_.num_outputs + p_.num_inputs),
        used_(num_operands_) {
    for (uint32_t k = 0; k < p_.num_outputs; ++k) used_[k] = true;
    for (uint32_t id = 0; id < p_.num_nodes; ++id) {
      if (p_.nodes[id].op == TENON_OP_LOAD) used_[p_.num_outputs + p_.nodes[id].bits] = true;
    }
  }

  std::string print(const std::string& name) const {
    std::string head, text;
    std::string index = "begin", step = "1", end = "end";
    if (language_ == Language::C) {
      head = "void " + name + "(const u64* w, u64 begin, u64 end) {\n";
    } else {
      const std::string words = name + "_words";
      text = "typedef struct { u64 w[" + std::to_string(words_size()) + "]; } " + words + ";\n";
      head = language_ == Language::Cuda ? "extern \"C\" __global__ void " : "__kernel void ";
      head += name + "(" + words + " arguments";
      if (language_ == Language::OpenCL) {
        for (uint32_t k = 0; k < num_operands_; ++k) {
          if (on_device(k)) head += ", __global char* p" + std::to_string(k);
        }
      }
      head += ") {\n  const u64* w = arguments.w;\n";
      end = "w[0]";
      index = language_ == Language::Cuda ? "(u64)blockIdx.x * blockDim.x + threadIdx.x" : "get_global_id(0)";
      step = language_ == Language::Cuda ? "(u64)gridDim.x * blockDim.x" : "get_global_size(0)";
    }
    text += head;
    for (uint32_t k = 0; k < num_operands_; ++k) {
      if (used_[k] && on_device(k))
        text += "  TENON_GLOBAL char* const a" + std::to_string(k) + " = " + start(k) + ";\n";
    }
    for (uint32_t id = 0; id < p_.num_nodes; ++id) {
      if (is_uniform(id)) text += "  " + statement(id);
    }
    text += share_ == Share::OneEach
                ? "  const u64 i = " + index + ";\n  if (i < " + end + ") {\n"
                : "  for (u64 i = " + index + "; i < " + end + "; i += " + step + ") {\n";
    text += places();
    for (uint32_t id = 0; id < p_.num_nodes; ++id) {
      if (!is_uniform(id)) text += "    " + statement(id);
    }
    for (uint32_t k = 0; k < p_.num_outputs; ++k) text += "    " + store(k);
    return text + "  }\n}\n";
  }

 private:
  bool dense() const { return launch_.form == TENON_FORM_DENSE; }
  bool on_device(uint32_t k) const { return launch_.operands[k].place == TENON_PLACE_DEVICE; }
  bool is_uniform(uint32_t id) const { return (p_.nodes[id].flags & 3u) == TENON_RANK_NUMBER; }

  // The words: the count, an operand each, the numbers, and in the strided form sizes and strides.
  uint32_t size_word(uint32_t d) const { return 1 + num_operands_ + p_.num_scalars + d; }
  uint32_t stride_word(uint32_t k, uint32_t d) const {
    return size_word(launch_.ndim) + k * launch_.ndim + d;
  }
  uint32_t words_size() const { return dense() ? size_word(0) : stride_word(num_operands_, 0); }
  static std::string word(uint32_t i) { return "w[" + std::to_string(i) + "]"; }
  static std::string value(uint32_t id) { return "v" + std::to_string(id); }

  std::string start(uint32_t k) const {
    const std::string w = word(1 + k);
    return language_ == Language::OpenCL ? "p" + std::to_string(k) + " + " + w : "(char*)" + w;
  }

  // Where element i of each operand begins, in the strided form.
  std::string places() const {
    if (dense()) return "";
    std::string text = "    u64 rest = i;\n";
    for (uint32_t d = 0; d < launch_.ndim; ++d) {
      const std::string c = "c" + std::to_string(d);
      if (d + 1 < launch_.ndim)
        text += "    const i64 " + c + " = (i64)(rest % " + word(size_word(d)) +
                ");\n    rest /= " + word(size_word(d)) + ";\n";
      else
        text += "    const i64 " + c + " = (i64)rest;\n";
    }
    for (uint32_t k = 0; k < num_operands_; ++k) {
      if (!used_[k] || !on_device(k)) continue;
      std::string sum;
      for (uint32_t d = 0; d < launch_.ndim; ++d)
        sum += (d > 0 ? " + c" : "c") + std::to_string(d) + " * (i64)" + word(stride_word(k, d));
      text += "    const i64 o" + std::to_string(k) + " = " + sum + ";\n";
    }
    return text;
  }

  // Element i of an operand, as an integer of the element's width.
  std::string element(uint32_t k, const char* type) const {
    const TenonOperand& o = launch_.operands[k];
    if (!on_device(k)) return std::string("(") + type + ")" + word(1 + k);
    const std::string n = std::to_string(k);
    std::string at = "a" + n;
    if (!dense())
      at += " + o" + n;
    else if (o.strides[0] != 0)
      at += " + i * " + std::to_string(item_size(o.dtype));
    return std::string("*(TENON_GLOBAL ") + type + "*)(" + at + ")";
  }
  static const char* element_type(TenonDType t) {
    constexpr const char* kTypes[] = {"u8", "u8", "i8", "i16", "u32", "u64", "u16", "u16", "u32", "u64"};
    return kTypes[t];
  }

  std::string load(uint32_t k, TenonType type) const {
    const TenonDType t = launch_.operands[k].dtype;
    const std::string x = element(k, element_type(t));
    std::string loaded;
    switch (t) {
      case TENON_DTYPE_BOOL:
        loaded = "(" + x + " != 0)";
        break;
      case TENON_DTYPE_FLOAT16:
        loaded = "tenon_half_to_f32(" + x + ")";
        break;
      case TENON_DTYPE_BFLOAT16:
        loaded = "tenon_bfloat16_to_f32(" + x + ")";
        break;
      case TENON_DTYPE_FLOAT32:
        loaded = "tenon_f32_of(" + x + ")";
        break;
      case TENON_DTYPE_FLOAT64:
        loaded = "tenon_f64_of(" + x + ")";
        break;
      default:
        loaded = std::string("(") + name_of(carrier(t)) + ")" + x;
    }
    return cast(loaded, carrier(t), type);
  }

  std::string store(uint32_t k) const {
    const TenonDType result = launch_.results[k], stored = launch_.operands[k].dtype;
    const TenonType from = p_.nodes[p_.outputs[k]].type;
    std::string x = cast(value(p_.outputs[k]), from, carrier(result));
    if (result != stored) x = cast(rounded(x, result), carrier(result), carrier(stored));
    switch (stored) {
      case TENON_DTYPE_FLOAT16:
        x = "tenon_f32_to_half(" + x + ")";
        break;
      case TENON_DTYPE_BFLOAT16:
        x = "tenon_f32_to_bfloat16(" + x + ")";
        break;
      case TENON_DTYPE_FLOAT32:
        x = "tenon_bits_f32(" + x + ")";
        break;
      case TENON_DTYPE_FLOAT64:
        x = "tenon_bits_f64(" + x + ")";
        break;
      default:
        break;
    }
    const char* type = element_type(stored);
    return element(k, type) + " = (" + type + ")(" + x + ");\n";
  }

  static const char* name_of(TenonType t) {
    constexpr const char* kNames[] = {"i32", "f32", "f64", "i32", "i64"};  // a mask is an int
    return kNames[t];
  }
  static bool is_float(TenonType t) { return t == TENON_TYPE_F32 || t == TENON_TYPE_F64; }

  static std::string cast(const std::string& x, TenonType from, TenonType to) {
    if (from == to) return x;
    if (to == TENON_TYPE_MASK) return "(" + x + " != 0)";
    const std::string target = std::string("(") + name_of(to) + ")";
    if (!is_float(from) || is_float(to)) return target + "(" + x + ")";
    return target + (from == TENON_TYPE_F32 ? "tenon_f32_to_i64(" : "tenon_f64_to_i64(") + x + ")";
  }

  static std::string rounded(const std::string& x, TenonDType t) {
    switch (t) {
      case TENON_DTYPE_FLOAT16:
        return "tenon_half_to_f32(tenon_f32_to_half(" + x + "))";
      case TENON_DTYPE_BFLOAT16:
        return "tenon_bfloat16_to_f32(tenon_f32_to_bfloat16(" + x + "))";
      case TENON_DTYPE_UINT8:
      case TENON_DTYPE_INT8:
      case TENON_DTYPE_INT16:
        return std::string("(i64)(") + element_type(t) + ")(" + x + ")";
      default:
        return x;
    }
  }

  static std::string hex(uint64_t bits) {
    std::string digits;
    for (int shift = 60; shift >= 0; shift -= 4) {
      const char digit = "0123456789abcdef"[bits >> shift & 15u];
      if (digit != '0' || !digits.empty() || shift == 0) digits += digit;
    }
    return "0x" + digits;
  }
  // A value of a type from its bits, which `x` has as a u64.
  static std::string from_bits(const std::string& x, TenonType type) {
    switch (type) {
      case TENON_TYPE_F32:
        return "tenon_f32_of((u32)" + x + ")";
      case TENON_TYPE_F64:
        return "tenon_f64_of(" + x + ")";
      case TENON_TYPE_I64:
        return "(i64)" + x;
      default:
        return "(i32)(u32)" + x;
    }
  }

  std::string statement(uint32_t id) const {
    const TenonNode& n = p_.nodes[id];
    return std::string("const ") + name_of(n.type) + " " + value(id) + " = " + expression(n) + ";\n";
  }

  // x OP y of integers, which wraps.
  static std::string wrapping(TenonType t, const std::string& x, const char* op, const std::string& y) {
    const char* u = t == TENON_TYPE_I32 ? "(u32)" : "(u64)";
    return std::string("(") + name_of(t) + ")(" + u + x + op + u + y + ")";
  }
  std::string arithmetic(TenonType t, const std::string& x, const char* op, const std::string& y) const {
    return is_float(t) ? x + op + y : wrapping(t, x, op, y);
  }
  static std::string function(const std::string& name, TenonType t, const std::string& arguments) {
    return "tenon_" + name + "_" + name_of(t) + "(" + arguments + ")";
  }

  std::string expression(const TenonNode& n) const {
    const std::string x = n.arity > 0 ? value(n.args[0]) : "", y = n.arity > 1 ? value(n.args[1]) : "",
                      z = n.arity > 2 ? value(n.args[2]) : "";
    const TenonType t = n.arity > 0 ? p_.nodes[n.args[0]].type : n.type;
    const std::string integer = std::string("(") + name_of(t) + ")";
    switch (n.op) {
      case TENON_OP_LITERAL:
        return from_bits(hex(n.bits), n.type);
      case TENON_OP_LOAD:
        return load(p_.num_outputs + static_cast<uint32_t>(n.bits), n.type);
      case TENON_OP_NUMBER:
        return from_bits(word(1 + num_operands_ + static_cast<uint32_t>(n.bits)), n.type);
      case TENON_OP_ADD:
        return arithmetic(t, x, " + ", y);
      case TENON_OP_SUB:
        return arithmetic(t, x, " - ", y);
      case TENON_OP_MUL:
        return arithmetic(t, x, " * ", y);
      case TENON_OP_DIV:
        return function("div", t, x + ", " + y);
      case TENON_OP_TRUNC_DIV:
        return integer + "tenon_trunc_div(" + x + ", " + y + ")";
      case TENON_OP_FMOD:
        return is_float(t) ? function("fmod", t, x + ", " + y) : integer + "tenon_mod(" + x + ", " + y + ")";
      case TENON_OP_NEG:
        return is_float(t) ? "-" + x : wrapping(t, "0", " - ", x);
      case TENON_OP_ABS:
        return is_float(t) ? function("fabs", t, x)
                           : "(" + x + " < 0 ? " + wrapping(t, "0", " - ", x) + " : " + x + ")";
      case TENON_OP_SQRT:
        return function("sqrt", t, x);
      case TENON_OP_FMA:
        return is_float(t) ? function("fma", t, x + ", " + y + ", " + z)
                           : wrapping(t, "(" + wrapping(t, x, " * ", y) + ")", " + ", z);
      case TENON_OP_MIN:
      case TENON_OP_MAX:
        return "(" + (is_float(t) ? x + " != " + x + " || " : "") + x +
               (n.op == TENON_OP_MIN ? " < " : " > ") + y + " ? " + x + " : " + y + ")";
      case TENON_OP_FLOOR:
        return function("floor", t, x);
      case TENON_OP_CEIL:
        return function("ceil", t, x);
      case TENON_OP_TRUNC:
        return function("trunc", t, x);
      case TENON_OP_ROUND:
        return function("rint", t, x);
      case TENON_OP_INT_POW:
        return integer + "tenon_int_pow(" + x + ", " + y + ")";
      case TENON_OP_EQ:
      case TENON_OP_NE:
      case TENON_OP_LT:
      case TENON_OP_LE:
      case TENON_OP_GT:
      case TENON_OP_GE: {
        constexpr const char* kSigns[] = {" == ", " != ", " < ", " <= ", " > ", " >= "};
        return "(" + x + kSigns[n.op - TENON_OP_EQ] + y + ")";
      }
      case TENON_OP_AND:
        return x + " & " + y;
      case TENON_OP_OR:
        return x + " | " + y;
      case TENON_OP_XOR:
        return x + " ^ " + y;
      case TENON_OP_NOT:
        return (n.type == TENON_TYPE_MASK ? "!" : "~") + x;
      case TENON_OP_WHERE:
        return x + " ? " + y + " : " + z;
      case TENON_OP_BITS:
        return is_float(t) ? std::string("(") + name_of(n.type) + ")" + function("bits", t, x) : x;
      case TENON_OP_FROM_BITS:
        return is_float(n.type) ? from_bits("(u64)" + x, n.type) : x;
      case TENON_OP_SHIFT_LEFT:
        return integer + "(" + (t == TENON_TYPE_I32 ? "(u32)" : "(u64)") + x + " << " +
               std::to_string(n.bits) + ")";
      case TENON_OP_SHIFT_RIGHT:
        return x + " >> " + std::to_string(n.bits);
      case TENON_OP_SHIFT_RIGHT_LOGICAL:
        return integer + "(" + (t == TENON_TYPE_I32 ? "(u32)" : "(u64)") + x + " >> " +
               std::to_string(n.bits) + ")";
      case TENON_OP_PI_REDUCE:
        return function("pi_reduce", t, x + ", " + std::to_string(n.bits));
      case TENON_OP_CAST:
        return cast(x, t, n.type);
      default:
        return rounded(x, static_cast<TenonDType>(n.bits));
    }
  }

  Language language_;
  Share share_;
  const TenonLaunch& launch_;
  const TenonProgram& p_;
  uint32_t num_operands_;
  std::vector<bool> used_;  // outputs, and inputs that are loaded
};

}  // namespace detail

/// The kernel `name` for launches of this one's variant; `prints` must have said yes. In C a loop has no
/// share.
inline std::string print_kernel(Language language, const std::string& name, const TenonLaunch& launch,
                                Share share = Share::Any) {
  return detail::KernelPrinter(language, launch, language == Language::C ? Share::Any : share).print(name);
}

/// How many words a kernel takes; launches of one variant have as many.
inline uint32_t count_kernel_words(const TenonLaunch& launch) noexcept {
  const TenonProgram& p = *launch.program;
  const uint32_t num_operands = p.num_outputs + p.num_inputs, dense = 1 + num_operands + p.num_scalars;
  return launch.form == TENON_FORM_DENSE ? dense : dense + launch.ndim * (1 + num_operands);
}

/// What a kernel takes for this launch, at `words`; returns how many they are. `start(operand)` gives the
/// word for one on the device: its address, or in OpenCL its offset in bytes from the buffer that the kernel
/// gets.
template <class Start>
uint32_t kernel_words(const TenonLaunch& launch, Start&& start, uint64_t* words) {
  const TenonProgram& p = *launch.program;
  const uint32_t num_operands = p.num_outputs + p.num_inputs;
  uint64_t* to = words;
  uint64_t& count = *to++;
  count = 1;
  for (uint32_t d = 0; d < launch.ndim; ++d) count *= static_cast<uint64_t>(launch.sizes[d]);
  for (uint32_t k = 0; k < num_operands; ++k) {
    const TenonOperand& o = launch.operands[k];
    uint64_t& word = *to++;
    word = 0;
    if (o.place == TENON_PLACE_HOST)
      std::memcpy(&word, reinterpret_cast<const void*>(o.address), item_size(o.dtype));
    else
      word = start(o);
  }
  for (uint32_t i = 0; i < p.num_scalars; ++i) *to++ = launch.scalars[i];
  if (launch.form == TENON_FORM_DENSE) return static_cast<uint32_t>(to - words);
  for (uint32_t d = 0; d < launch.ndim; ++d) *to++ = static_cast<uint64_t>(launch.sizes[d]);
  for (uint32_t k = 0; k < num_operands; ++k) {
    for (uint32_t d = 0; d < launch.ndim; ++d) *to++ = static_cast<uint64_t>(launch.operands[k].strides[d]);
  }
  return static_cast<uint32_t>(to - words);
}

/// The same as a vector.
template <class Start>
std::vector<uint64_t> kernel_words(const TenonLaunch& launch, Start&& start) {
  std::vector<uint64_t> words(count_kernel_words(launch));
  kernel_words(launch, start, words.data());
  return words;
}

}  // namespace tenon::abi
