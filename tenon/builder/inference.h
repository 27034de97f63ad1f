// Inference: what a function computes of inputs of given dtypes and sizes, planned once for many runs.
// Used by programs that run trained models; in Python it is tenon.inference.
//
//     nn::Sequential net = ...;
//     net.eval();
//     const tenon::Inference run({image}, [&](std::span<const Tensor> x) { return std::vector{net(x[0])}; });
//     std::vector<Tensor> y = run({other_image});
//     run.execute(addresses_of_inputs, addresses_of_outputs);   // no tensors, no lock
//
// The function is called once, with inputs that have no bytes. What follows from its weights alone is
// computed then, and batch norms are folded into the convolutions and linear layers before them: results
// differ from eager's by rounding. With `exact` nothing is folded, and the bits are eager's.
#pragma once

#include "tenon/core/require_cxx20.h"

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tenon/core/allocator.h"
#include "tenon/core/tensor.h"

namespace tenon {

namespace graph {
class Graph;
struct Signature;
}  // namespace graph

struct InferenceOptions {
  bool exact = false;  ///< Nothing is folded.
};

class Inference {
 public:
  using Function = std::function<std::vector<Tensor>(std::span<const Tensor>)>;
  /// A tensor that a run takes or returns: contiguous, on the host.
  struct Port {
    DType dtype;
    Dims sizes;

    bool takes(const Tensor& t) const noexcept {
      return t.defined() && t.dtype() == dtype && t.device().is_cpu() && t.sizes() == IntArrayRef(sizes);
    }
  };

  /// `example`: tensors of the dtypes and sizes that runs take; their values do not matter. Throws what the
  /// function throws, and Error{NotImplemented} where it needs the values of an input, or an operator that
  /// cannot wait. Later changes of weights show with `exact` alone.
  Inference(std::span<const Tensor> example, const Function& f, InferenceOptions options = {});
  Inference(std::initializer_list<Tensor> example, const Function& f, InferenceOptions options = {})
      : Inference(std::span(example.begin(), example.size()), f, options) {}

  const std::vector<Port>& inputs() const noexcept;
  const std::vector<Port>& outputs() const noexcept;

  /// Whether a run takes such inputs.
  bool fits(std::span<const Tensor> inputs) const noexcept;
  /// Throws Error{Value} for another number of inputs, Error{Type} or Error{Shape} for another dtype or
  /// shape. Threads may run it at once.
  std::vector<Tensor> operator()(std::span<const Tensor> inputs) const;
  std::vector<Tensor> operator()(std::initializer_list<Tensor> inputs) const {
    return (*this)(std::span(inputs.begin(), inputs.size()));
  }
  /// The same on contiguous memory of the caller. Takes no lock, and makes no memory of its own once
  /// as many threads have run it at once before; operators that run as calls may take scratch memory from the
  /// host's cache.
  void execute(std::span<const Address> inputs, std::span<const Address> outputs) const;

  /// What was fused, and what was left.
  std::string report() const;

  /// What it computes, as it was before anything was fused, and which of its storages are what: input `i` is
  /// tensor `i` of the signature, and outputs follow the inputs. For files of other formats.
  const graph::Graph& graph() const noexcept;
  const graph::Signature& signature() const noexcept;
  /// An output that follows from weights alone, and so is no tensor of the signature; undefined for others.
  const Tensor& constant_output(size_t i) const noexcept;

  /// What it is made of: the program as bytes, which are the same on every machine, and the memory of its
  /// constants, in the program's order, as tensors of one dimension. For files of programs.
  struct Parts {
    std::vector<std::byte> program;
    std::vector<Tensor> constants;
  };
  Parts parts() const;
  /// Plans it. Throws Error{Value} for bytes that are no program, of a newer version, or that the
  /// constants do not fit.
  static Inference from_parts(const Parts& parts);

  /// Opens and closes the function's call, for bindings whose functions are not C++.
  class Builder;

 private:
  struct Impl;
  explicit Inference(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// From the making of a Builder to `finish`, the thread's calls on `inputs` are written down. On one thread.
class Inference::Builder {
 public:
  Builder(std::span<const Tensor> example, InferenceOptions options);
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  /// Without bytes.
  const std::vector<Tensor>& inputs() const noexcept;
  Inference finish(std::span<const Tensor> outputs);
  /// Ends the writing down without a result.
  void abandon() noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tenon
