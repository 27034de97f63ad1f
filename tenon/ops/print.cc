#include "tenon/ops/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>
#include <vector>

#include "tenon/core/float8.h"
#include "tenon/core/storage.h"
#include "tenon/dispatch/key.h"
#include "tenon/ops/elements/elements.h"

namespace tenon {
namespace {

/// How one tensor's elements are shown: chosen from those that appear.
struct NumberFormat {
  enum class Style : uint8_t { Bool, Integer, Whole, Fixed, Scientific } style = Style::Integer;
  int precision = 4;
  size_t width = 1;

  std::string text(const Scalar& v) const {
    switch (style) {
      case Style::Bool:
        return v.to_bool() ? "True" : "False";
      case Style::Integer:
        return v.is_beyond_int64() ? fmt::format("{}", v.to_uint()) : fmt::format("{}", v.to_int());
      default:
        break;
    }
    const double d = v.to_double();
    if (std::isnan(d)) return "nan";
    if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
    if (style == Style::Whole) return fmt::format("{:.0f}.", d);
    if (style == Style::Scientific) return fmt::format("{:.{}e}", d, precision);
    return fmt::format("{:.{}f}", d, precision);
  }
  std::string padded(const Scalar& v) const { return fmt::format("{:>{}}", text(v), width); }
};

NumberFormat choose_format(const std::vector<Scalar>& shown, DType dtype, const PrintOptions& options) {
  using Style = NumberFormat::Style;
  NumberFormat f;
  f.precision = options.precision;
  if (dtype == DType::Bool) {
    f.style = Style::Bool;
  } else if (is_integral(dtype, false)) {
    f.style = Style::Integer;
  } else {
    double low = INFINITY, high = 0;
    bool whole = true, any = false;
    for (const Scalar& s : shown) {
      const double d = std::abs(s.to_double());
      if (!std::isfinite(d) || d == 0) continue;
      any = true;
      low = std::min(low, d);
      high = std::max(high, d);
      whole &= d == std::ceil(d);
    }
    if (!any) {
      f.style = Style::Whole;
    } else if (whole) {
      f.style = high / low > 1000. || high > 1e8 ? Style::Scientific : Style::Whole;
    } else {
      f.style = high / low > 1000. || high > 1e8 || low < 1e-4 ? Style::Scientific : Style::Fixed;
    }
    if (options.scientific)
      f.style = *options.scientific ? Style::Scientific : whole ? Style::Whole : Style::Fixed;
  }
  // Floats are aligned by the numbers among them: zeros, infinities and NaNs may stick out.
  const bool real = is_floating_point(dtype);
  for (const Scalar& s : shown) {
    if (!real || (std::isfinite(s.to_double()) && s.to_double() != 0))
      f.width = std::max(f.width, f.text(s).size());
  }
  return f;
}

/// Prints nested brackets over a host tensor.
class Printer {
 public:
  Printer(const Tensor& t, const PrintOptions& options)
      : t_(t), options_(options), summarise_(t.numel() > options.threshold) {
    if (t.numel() == 0) return;
    std::vector<Scalar> shown;
    collect(0, 0, shown);
    if (!t.is_complex()) {
      format_ = choose_format(shown, t.dtype(), options);
      return;
    }
    // Real and imaginary parts have formats of their own.
    std::vector<Scalar> imaginary;
    for (Scalar& s : shown) {
      imaginary.emplace_back(s.to_complex().imag());
      s = Scalar(s.to_complex().real());
    }
    format_ = choose_format(shown, real_dtype(t.dtype()), options);
    imaginary_ = choose_format(imaginary, real_dtype(t.dtype()), options);
  }

  std::string text(int indent) {
    if (t_.dim() == 0) return t_.is_complex() ? element_text(element(0)) : format_.text(element(0));
    std::string out;
    print(0, 0, indent, out);
    return out;
  }

 private:
  std::string element_text(const Scalar& value) const {
    if (!t_.is_complex()) return format_.padded(value);
    const std::complex<double> z = value.to_complex();
    const std::string im = imaginary_.text(Scalar(z.imag()));
    return format_.padded(Scalar(z.real())) + (im[0] == '-' ? "" : "+") + im + "j";
  }
  size_t element_width() const { return format_.width + (t_.is_complex() ? imaginary_.width + 1 : 0); }
  Scalar element(int64_t offset) const {
    const Tensor one = make_view(t_, {}, {}, t_.storage_offset() + offset);
    return ops::read_scalar(one);
  }
  /// The positions of dimension `d` that are shown; -1 for "...".
  std::vector<int64_t> positions(size_t d) const {
    const int64_t n = t_.sizes()[d], edge = options_.edge_items;
    std::vector<int64_t> result;
    const bool cut = summarise_ && n > 2 * edge;
    for (int64_t i = 0; i < n; ++i) {
      if (cut && i == edge) {
        result.push_back(-1);
        i = n - edge;
      }
      result.push_back(i);
    }
    return result;
  }
  void collect(size_t d, int64_t offset, std::vector<Scalar>& shown) const {
    if (d == t_.sizes().size()) return shown.push_back(element(offset));
    for (const int64_t i : positions(d)) {
      if (i >= 0) collect(d + 1, offset + i * t_.strides()[d], shown);
    }
  }
  void print(size_t d, int64_t offset, int indent, std::string& out) {
    const auto at = positions(d);
    out += '[';
    if (d + 1 == t_.sizes().size()) {
      const size_t per_line =
          std::max<size_t>(1, static_cast<size_t>(std::max(options_.line_width - indent, 1)) /
                                  std::max<size_t>(element_width() + 2, 1));
      for (size_t k = 0; k < at.size(); ++k) {
        if (k > 0)
          out += k % per_line == 0 ? ",\n" + std::string(static_cast<size_t>(indent) + 1, ' ') : ", ";
        out += at[k] < 0 ? std::string(" ...") : element_text(element(offset + at[k] * t_.strides()[d]));
      }
    } else {
      for (size_t k = 0; k < at.size(); ++k) {
        if (k > 0) {
          out += "," + std::string(t_.sizes().size() - d - 1, '\n') +
                 std::string(static_cast<size_t>(indent) + 1, ' ');
        }
        if (at[k] < 0)
          out += "...";
        else
          print(d + 1, offset + at[k] * t_.strides()[d], indent + 1, out);
      }
    }
    out += ']';
  }

  const Tensor& t_;
  const PrintOptions& options_;
  bool summarise_;
  NumberFormat format_, imaginary_;
};

/// "(2, 0)", "(3,)": a shape as Python writes it.
std::string size_text(IntArrayRef sizes) {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size(); ++i) text += fmt::format("{}{}", i ? ", " : "", sizes[i]);
  return text + (sizes.size() == 1 ? ",)" : ")");
}

/// As Python's repr: the fewest digits that read back as the number, an exponent below 1e-4 and from 1e16 on.
std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  return fmt::format("{}", value);
}

std::string options_text(const TensorOptions& options) {
  std::ostringstream out;
  const char* before = "TensorOptions(";
  const auto part = [&](const char* name, const auto& value) {
    out << std::exchange(before, ", ") << name << '=' << value;
  };
  if (options.dtype_opt) part("dtype", *options.dtype_opt);
  if (options.layout_opt) part("layout", *options.layout_opt);
  if (options.device_opt) part("device", *options.device_opt);
  if (options.pinned_memory_opt) part("pinned_memory", *options.pinned_memory_opt ? "True" : "False");
  if (options.requires_grad_flag) part("requires_grad", "True");
  return (out.str().empty() ? "TensorOptions(" : out.str()) + ")";
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& t) { return out << to_string(t); }

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << "tenon." << name(dtype); }
std::ostream& operator<<(std::ostream& out, Layout layout) { return out << "tenon." << name(layout); }
std::ostream& operator<<(std::ostream& out, MemoryFormat format) {
  switch (format) {
    case MemoryFormat::Contiguous:
      return out << "tenon.contiguous_format";
    case MemoryFormat::Preserve:
      return out << "tenon.preserve_format";
    case MemoryFormat::ChannelsLast:
      return out << "tenon.channels_last";
    case MemoryFormat::ChannelsLast3d:
      return out << "tenon.channels_last_3d";
  }
  return out;
}

std::string number_text(const Scalar& number) {
  switch (number.kind()) {
    case Scalar::Kind::Bool:
      return number.to_bool() ? "True" : "False";
    case Scalar::Kind::Int:
      return std::to_string(number.to_int());
    case Scalar::Kind::Float: {
      std::string text = python_float(number.to_double());
      // Python tells a float from an int by its point.
      if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
      return text;
    }
    case Scalar::Kind::Complex:
      break;
  }
  const std::complex<double> z = number.to_complex();
  const std::string imaginary = python_float(z.imag()) + "j";
  if (z.real() == 0 && !std::signbit(z.real())) return imaginary;
  return fmt::format("({}{}{})", python_float(z.real()), imaginary[0] == '-' ? "" : "+", imaginary);
}

template <PrintedExactly T>
std::ostream& operator<<(std::ostream& out, const T& value) {
  if constexpr (std::same_as<T, Scalar>)
    return out << number_text(value);
  else if constexpr (std::same_as<T, TensorOptions>)
    return out << options_text(value);
  else
    return out << to_string(value);
}
template std::ostream& operator<<(std::ostream&, const Device&);
template std::ostream& operator<<(std::ostream&, const Stream&);
template std::ostream& operator<<(std::ostream&, const Scalar&);
template std::ostream& operator<<(std::ostream&, const Dims&);
template std::ostream& operator<<(std::ostream&, const IntArrayRef&);
template std::ostream& operator<<(std::ostream&, const TensorOptions&);

std::string to_string(const Tensor& t, const PrintOptions& options) {
  if (!t.defined()) return "tensor(undefined)";
  constexpr int kIndent = 7;  // of "tensor("
  std::vector<std::string> notes;
  std::string body;
  const bool has_data = !t.is_meta() && (has_arithmetic(t.dtype()) || is_float8(t.dtype()));
  if (!has_data) {
    body = "...";
    if (!t.device().is_cpu()) notes.push_back(fmt::format("device='{}'", to_string(t.device())));
    notes.push_back("size=" + size_text(t.sizes()));
  } else {
    Tensor host = t.detach();
    if (!t.device().is_cpu()) {
      host = make_empty(t.sizes(), t.dtype());
      ops::copy_elements(host, t.detach(), "print");
      notes.push_back(fmt::format("device='{}'", to_string(t.device())));
    }
    if (t.numel() == 0) {
      body = "[]";
      if (t.dim() != 1) notes.push_back("size=" + size_text(t.sizes()));
    } else {
      body = Printer(host, options).text(kIndent);
    }
  }
  const bool implied = t.dtype() == default_dtype() || t.dtype() == DType::Int64 ||
                       t.dtype() == DType::Bool || t.dtype() == complex_dtype(default_dtype());
  const bool default_when_empty = t.numel() == 0 && t.dtype() != default_dtype();
  if (!implied || default_when_empty || (!has_data && t.dtype() != default_dtype())) {
    notes.push_back(fmt::format("dtype=tenon.{}", name(t.dtype())));
  }
  if (std::string note = history_note(t); !note.empty()) notes.push_back(std::move(note));
  std::string out = "tensor(" + body;
  // PyTorch counts two characters more.
  size_t line = out.size() + 2 - (out.rfind('\n') == std::string::npos ? 0 : out.rfind('\n') + 1);
  for (const std::string& note : notes) {
    const bool wraps = line + note.size() + 2 > static_cast<size_t>(options.line_width);
    out += wraps ? ",\n" + std::string(kIndent, ' ') : ", ";
    line = wraps ? kIndent + note.size() : line + note.size() + 2;
    out += note;
  }
  return out + ")";
}

std::string describe(const Tensor& t) {
  if (!t.defined()) return "undefined tensor";
  const Storage& s = t.storage();
  std::string text;
  const auto line = [&](std::string_view key, const std::string& value) {
    text += fmt::format("{:<15} {}\n", key, value);
  };
  line("sizes", to_string(t.sizes()));
  line("strides", to_string(t.strides()));
  line("storage_offset", std::to_string(t.storage_offset()));
  line("dtype", std::string(name(t.dtype())));
  line("device", to_string(t.device()));
  line("layout", std::string(name(t.layout())));
  line("key_set", to_string(t.key_set()));
  line("contiguous", t.is_contiguous() ? "yes" : "no");
  line("storage", fmt::format("0x{:x}, {} bytes, {} use{}", s.address(), s.nbytes(), s.use_count(),
                              s.use_count() == 1 ? "" : "s"));
  line("allocator", s->allocator() ? std::string(s->allocator()->name()) : "foreign memory");
  line("version", std::to_string(s.version()));
  line("view", t.is_view() ? "yes" : "no");
  text.pop_back();
  return text;
}

}  // namespace tenon
