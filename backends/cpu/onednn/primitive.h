// Primitive: a product or a convolution of float32 with what oneDNN computes of its result, made once for
// each description and kept. Used by the engine, which finds out what to describe.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/onednn/api.h"
#include "tenon/core/dims.h"

namespace tenon::cpu::onednn {

struct Layout {
  Dims sizes, strides;
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// What oneDNN computes of each element of the result, in place.
struct PostOp {
  int algorithm = 0;          ///< dnnl_alg_kind_t
  float alpha = 0, beta = 0;  ///< Of functions of one argument.
  bool is_binary = false;     ///< With an operand, of as many dimensions as the result:
  Layout operand = {};
  friend bool operator==(const PostOp&, const PostOp&) = default;
};

/// Steps of a convolution's window, by spatial dimension.
struct Window {
  Dims strides, dilations, padding;
  friend bool operator==(const Window&, const Window&) = default;
};

struct Description {
  /// [M, K], [K, N] and [M, N]; [B, ...] of each for batches. Of a convolution [N, C, ...], [O, C, ...] or
  /// [G, O/G, C/G, ...] for groups, and [N, O, ...].
  Layout source, weights, result;
  Layout bias;  ///< Of as many dimensions as the result of a product, one of a convolution; empty: none.
  bool is_convolution = false;
  Window window;  ///< Of a convolution.
  std::vector<PostOp> post_ops;
  int threads = 1;
  friend bool operator==(const Description&, const Description&) = default;
};

class Primitive {
 public:
  /// The one for a description. Null, with a sentence in `problem`, where oneDNN has none but its reference.
  /// The library must be there. Thread-safe.
  static std::shared_ptr<const Primitive> find(const Description& description, std::string& problem);
  ~Primitive();
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;

  const Description& description() const noexcept { return description_; }

  struct Operands {
    void* source;
    void* weights;
    void* bias;  ///< Null where there is none.
    void* result;
    std::span<void* const> post_ops;  ///< One for each; null for functions of one argument.
  };
  /// Safe to call from many threads at once. Throws Error{Internal} for what oneDNN reports,
  /// Error{OutOfMemory} where there is no memory for it.
  void run(const Operands& operands) const;

 private:
  struct Parts;
  static std::shared_ptr<const Primitive> make(const Description& description, std::string& problem);
  Primitive(const Description& description, std::unique_ptr<Parts> parts);

  Description description_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tenon::cpu::onednn
