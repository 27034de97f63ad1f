// The short-time Fourier transform and its inverse, of frames that are views, windows and transforms.
#include <fmt/core.h>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/fft/bodies.h"
#include "tenon/generated/fft/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/generated/window/functions.h"
#include "tenon/ops/fft/arguments.h"

namespace tenon::ops {
namespace {

/// Lengths of frames, as both directions have them.
struct Frames {
  int64_t n_fft, hop, win;

  Frames(int64_t n, std::optional<int64_t> hop_length, std::optional<int64_t> win_length)
      : n_fft(n), hop(hop_length.value_or(n / 4)), win(win_length.value_or(n)) {}

  void check(const Tensor& window, const char* op) const {
    TENON_CHECK(n_fft > 0, Runtime, fmt::format("{}: expected `n_fft` of at least 1, got {}", op, n_fft));
    TENON_CHECK(hop > 0, Runtime, fmt::format("{}: expected `hop_length` of at least 1, got {}", op, hop));
    TENON_CHECK(win > 0 && win <= n_fft, Runtime,
                fmt::format("{}: expected `win_length` from 1 to `n_fft` {}, got {}", op, n_fft, win));
    TENON_CHECK(!window.defined() || (window.dim() == 1 && window.sizes()[0] == win), Runtime,
                fmt::format("{}: expected `window` of shape [{}], as `win_length` says, got {}", op, win,
                            window.defined() ? to_string(window.sizes()) : ""));
  }
  /// The window in the middle of a frame.
  Tensor padded(const Tensor& window) const {
    if (win == n_fft) return window;
    const int64_t left = (n_fft - win) / 2;
    return tenon::constant_pad_nd(window, IntArrayRef({left, n_fft - win - left}));
  }
};

Tensor transformed(const Tensor& self, Frames frames, const Tensor& window, bool normalized,
                   std::optional<bool> onesided_given, std::optional<bool> return_complex,
                   bool align_to_window) {
  constexpr const char* kOp = "stft";
  const DType dtype = self.dtype();
  TENON_CHECK(is_floating_point(dtype) || is_complex(dtype), Type,
              fmt::format("{}: expected `self` of a floating or complex dtype, got {}; convert it", kOp,
                          name(dtype)));
  TENON_CHECK(self.dim() == 1 || self.dim() == 2, Runtime,
              fmt::format("{}: expected `self` of 1 or 2 dimensions, got {}", kOp, to_string(self.sizes())));
  frames.check(window, kOp);
  const bool complex = is_complex(dtype) || (window.defined() && window.is_complex());
  TENON_CHECK(
      return_complex || complex, Runtime,
      fmt::format("{}: expected `return_complex` to be given for real `self`; True gives complex numbers, "
                  "and view_as_real() of them what False gives",
                  kOp));
  const bool onesided = onesided_given.value_or(!complex);
  TENON_CHECK(!onesided || !complex, Runtime,
              fmt::format("{}: expected `onesided` False for a complex `self` or `window`, got True", kOp));
  Tensor x = fft_operand(self, false, kOp);
  if (x.dim() == 1) x = tenon::unsqueeze(x, 0);
  if (align_to_window) {
    const int64_t left = (frames.n_fft - frames.win) / 2;
    x = tenon::constant_pad_nd(x, IntArrayRef({left, frames.n_fft - frames.win - left}));
  }
  const int64_t samples = x.sizes()[1];
  TENON_CHECK(
      frames.n_fft <= samples, Runtime,
      fmt::format("{}: expected `n_fft` of at most the number of samples {}, got {}; give a longer `self` or "
                  "a shorter `n_fft`",
                  kOp, samples, frames.n_fft));
  x = x.unfold(1, frames.n_fft, frames.hop);
  if (window.defined())
    x = tenon::mul(x, frames.padded(window));
  else if (frames.win < frames.n_fft)
    x = tenon::mul(
        x, frames.padded(tenon::ones({frames.win}, TensorOptions(real_dtype(x.dtype())).device(x.device()))));
  x = fft_operand(x, false, kOp);
  const int64_t mode = number(normalized ? FftNorm::ByRoot : FftNorm::None);
  const Dims last{2};
  x = x.is_complex() ? tenon::_fft_c2c(x, last, mode, true) : tenon::_fft_r2c(x, last, mode, onesided);
  x = tenon::transpose(x, 1, 2);
  if (self.dim() == 1) x = tenon::squeeze(x, 0);
  return return_complex.value_or(true) ? x : tenon::view_as_real(x);
}

/// `self` with n_fft / 2 samples more at each end. By few copies: the tables of taps of reflection_pad1d
/// would take longer than the transforms.
Tensor padded_ends(const Tensor& self, int64_t n_fft, std::string_view mode) {
  const int64_t pad = n_fft / 2, samples = self.sizes().back();
  if (mode == "constant") return tenon::constant_pad_nd(self, IntArrayRef({pad, pad}));
  TENON_CHECK(
      mode == "reflect" || mode == "replicate" || mode == "circular", Runtime,
      fmt::format(
          "stft: expected `pad_mode` \"constant\", \"reflect\", \"replicate\" or \"circular\", got \"{}\"",
          mode));
  const int64_t least = mode == "reflect" ? pad + 1 : mode == "circular" ? pad : 1;
  TENON_CHECK(
      samples >= least, Runtime,
      fmt::format(
          "stft: expected at least {} samples for `pad_mode` \"{}\" and `n_fft` {}, got {}; give `pad_mode` "
          "\"constant\", or a shorter `n_fft`",
          least, mode, n_fft, samples));
  const auto part = [&](int64_t begin, int64_t count) { return tenon::narrow(self, -1, begin, count); };
  const Dims last{-1};
  if (mode == "reflect")
    return tenon::cat(
        {tenon::flip(part(1, pad), last), self, tenon::flip(part(samples - 1 - pad, pad), last)}, -1);
  if (mode == "circular") return tenon::cat({part(samples - pad, pad), self, part(0, pad)}, -1);
  Dims sizes = self.sizes().to_dims();
  sizes.back() = pad;
  return tenon::cat({tenon::expand(part(0, 1), sizes), self, tenon::expand(part(samples - 1, 1), sizes)}, -1);
}

}  // namespace

Tensor stft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
            std::optional<int64_t> win_length, const Tensor& window, bool normalized,
            std::optional<bool> onesided, std::optional<bool> return_complex,
            std::optional<bool> align_to_window) {
  return transformed(self, Frames(n_fft, hop_length, win_length), window, normalized, onesided,
                     return_complex, align_to_window.value_or(false));
}

Tensor stft_center(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
                   std::optional<int64_t> win_length, const Tensor& window, bool center,
                   std::string_view pad_mode, bool normalized, std::optional<bool> onesided,
                   std::optional<bool> return_complex, std::optional<bool> align_to_window) {
  const Frames frames(n_fft, hop_length, win_length);
  if (!center)
    return transformed(self, frames, window, normalized, onesided, return_complex,
                       align_to_window.value_or(false));
  TENON_CHECK(!align_to_window, Runtime,
              "stft: expected `align_to_window` only with `center` False; leave it out, or set `center`");
  TENON_CHECK(self.dim() == 1 || self.dim() == 2, Runtime,
              fmt::format("stft: expected `self` of 1 or 2 dimensions, got {}", to_string(self.sizes())));
  frames.check(window, "stft");
  return transformed(padded_ends(self, n_fft, pad_mode), frames, window, normalized, onesided, return_complex,
                     false);
}

Tensor istft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
             std::optional<int64_t> win_length, const Tensor& window, bool center, bool normalized,
             std::optional<bool> onesided_given, std::optional<int64_t> length, bool return_complex) {
  constexpr const char* kOp = "istft";
  const Frames frames(n_fft, hop_length, win_length);
  TENON_CHECK(self.is_complex(), Type,
              fmt::format("{}: expected a complex `self`, as stft returns with return_complex=True, got {}; "
                          "view_as_complex() makes one of pairs",
                          kOp, name(self.dtype())));
  TENON_CHECK(self.dim() == 2 || self.dim() == 3, Runtime,
              fmt::format("{}: expected `self` of 2 or 3 dimensions, got {}", kOp, to_string(self.sizes())));
  TENON_CHECK(self.numel() > 0, Runtime,
              fmt::format("{}: expected `self` with elements, got {}", kOp, to_string(self.sizes())));
  frames.check(window, kOp);
  TENON_CHECK(frames.hop <= frames.win, Runtime,
              fmt::format("{}: expected `hop_length` of at most `win_length` {}, got {}", kOp, frames.win,
                          frames.hop));
  TENON_CHECK(!length || *length > 0, Runtime,
              fmt::format("{}: expected `length` of at least 1, got {}", kOp, length.value_or(0)));
  const int64_t bins = self.sizes()[static_cast<size_t>(self.dim() - 2)], count = self.sizes().back();
  const bool onesided = onesided_given.value_or(bins != n_fft);
  const int64_t wanted = onesided ? n_fft / 2 + 1 : n_fft;
  TENON_CHECK(bins == wanted, Runtime,
              fmt::format("{}: expected {} frequencies in `self` for `n_fft` {} with `onesided` {}, got {}",
                          kOp, wanted, n_fft, onesided ? "True" : "False", to_string(self.sizes())));
  TENON_CHECK(
      !return_complex || !onesided, Runtime,
      fmt::format("{}: expected `onesided` False for `return_complex` True, got frequencies of real samples",
                  kOp));
  TENON_CHECK(!window.defined() || !window.is_complex() || return_complex, Runtime,
              fmt::format("{}: expected a real `window` for `return_complex` False, got {}", kOp,
                          window.defined() ? name(window.dtype()) : ""));

  Tensor x = fft_operand(self.dim() == 2 ? tenon::unsqueeze(self, 0) : self, true, kOp);
  x = tenon::transpose(x, 1, 2);
  const TensorOptions options = TensorOptions(real_dtype(x.dtype())).device(x.device());
  const Tensor weights = frames.padded(window.defined() ? window : tenon::ones({frames.win}, options));
  const int64_t mode = number(normalized ? FftNorm::ByRoot : FftNorm::ByNumber),
                all = n_fft + frames.hop * (count - 1);
  const Dims last{2};
  if (return_complex)
    x = tenon::_fft_c2c(x, last, mode, false);
  else
    x = tenon::_fft_c2r(onesided ? x : tenon::narrow(x, 2, 0, n_fft / 2 + 1), last, mode, n_fft);
  x = tenon::mul(x, weights);
  const Tensor squares =
      tenon::expand(tenon::reshape(tenon::mul(weights, weights), {1, 1, n_fft}), {1, count, n_fft});
  const int64_t batch = x.sizes()[0], start = center ? n_fft / 2 : 0;
  const int64_t end = length ? start + *length : center ? all - n_fft / 2 : all, stop = std::min(end, all);
  TENON_CHECK(start < stop, Runtime,
              fmt::format("{}: expected more frames than {}: with `center` nothing of {} samples is left",
                          kOp, count, all));
  Tensor sum = tenon::unfold_backward(x, {batch, all}, 1, n_fft, frames.hop);
  Tensor envelope = tenon::unfold_backward(squares, {1, all}, 1, n_fft, frames.hop);
  sum = tenon::narrow(sum, 1, start, stop - start);
  envelope = tenon::narrow(envelope, 1, start, stop - start);
  if (!envelope.device().is_meta()) {
    const double least = tenon::min(tenon::abs(envelope.detach())).item<double>();
    TENON_CHECK(
        least > 1e-11, Runtime,
        fmt::format(
            "{}: expected windows whose squares add up to more than 1e-11 at every sample, got {:g} at the "
            "least; give a shorter `hop_length`, another `window`, or a `length` that leaves the end out",
            kOp, least));
  }
  Tensor y = tenon::div(sum, envelope);
  if (self.dim() == 2) y = tenon::squeeze(y, 0);
  return end > all ? tenon::constant_pad_nd(y, IntArrayRef({0, end - all})) : y;
}

}  // namespace tenon::ops
