// RNN, LSTM and GRU, and single steps of them. Used by programs that define models. Weights have the names,
// shapes and first values of Python's, and results have the same bits (python/tenon/nn/rnn.py).
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/random/functions.h"
#include "tenon/generated/recurrent/functions.h"
#include "tenon/nn/init.h"
#include "tenon/nn/module.h"
#include "tenon/nn/packed_sequence.h"
#include "tenon/ops/print.h"
#include "tenon/ops/recurrent/geometry.h"

namespace tenon::nn {

/// A state and LSTM's cell state; undefined: zeros, or none.
struct LSTMState {
  Tensor h, c;
};

namespace detail {

using ops::Cell;

inline Cell cell_of(const char* name, std::string_view nonlinearity) {
  TENON_CHECK(nonlinearity == "tanh" || nonlinearity == "relu", Value,
              std::string(name) + ": unknown nonlinearity \"" + std::string(nonlinearity) +
                  "\"; expected \"tanh\" or \"relu\"");
  return nonlinearity == "relu" ? Cell::Relu : Cell::Tanh;
}
inline int64_t gates_of(Cell cell) { return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1; }

/// Those that are absent are undefined.
struct RecurrentWeights {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};

/// One direction of a layer: the states after each step, the last one, and the last cell state.
inline std::pair<Tensor, LSTMState> run_direction(Cell cell, const Tensor& input, const LSTMState& state,
                                                  const RecurrentWeights& w, const Tensor& batch_sizes,
                                                  bool reverse) {
  // r of GRU multiplies the product with the state and its bias; elsewhere both biases are one.
  const bool apart = cell == Cell::Gru;
  const Tensor products = linear(input, w.w_ih, apart ? w.b_ih : Tensor());
  const Tensor bias = apart || !w.b_ih.defined() ? w.b_hh : add(w.b_ih, w.b_hh);
  bool keep = false;
  for (const Tensor* t : {&products, &state.h, &state.c, &w.w_hh, &bias, &w.w_hr})
    keep = keep || (thread_state.grad_enabled && t->defined() && t->requires_grad());
  auto [output, h, c, kept] =
      _recurrence(products, state.h, cell == Cell::Lstm ? state.c : Tensor(), w.w_hh, bias, w.w_hr,
                  batch_sizes, static_cast<int64_t>(cell), reverse, keep);
  return {output, {h, cell == Cell::Lstm ? c : Tensor()}};
}

}  // namespace detail

struct RecurrentOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;  ///< input and output are [batch, steps, *], not [steps, batch, *]
  double dropout = 0;        ///< After all layers but the last, while training.
  bool bidirectional = false;
  int64_t proj_size = 0;                   ///< LSTM alone: the size that states are projected to, if not 0.
  std::string_view nonlinearity = "tanh";  ///< RNN alone: "tanh" or "relu".
  DType dtype = default_dtype();
};

/// The weights of all layers and directions: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0,
/// weight_hr_l0, weight_ih_l0_reverse, ... Base of RNN, LSTM and GRU.
class RecurrentBase : public Module {
 public:
  /// Draws all weights uniformly within 1 / sqrt(hidden_size), as in PyTorch.
  void reset_parameters() {
    const double bound = 1 / std::sqrt(static_cast<double>(hidden_size_));
    for (const Tensor& w : parameters()) init::uniform_(w, -bound, bound);
  }
  std::string extra_repr() const override {
    std::string text = std::to_string(input_size_) + ", " + std::to_string(hidden_size_);
    if (options_.proj_size != 0) text += ", proj_size=" + std::to_string(options_.proj_size);
    if (options_.num_layers != 1) text += ", num_layers=" + std::to_string(options_.num_layers);
    if (!options_.bias) text += ", bias=False";
    if (options_.batch_first) text += ", batch_first=True";
    if (options_.dropout != 0) text += ", dropout=" + number_text(options_.dropout);
    if (options_.bidirectional) text += ", bidirectional=True";
    return text;
  }

 protected:
  RecurrentBase(const char* name, detail::Cell cell, int64_t input_size, int64_t hidden_size,
                const RecurrentOptions& options)
      : name_(name), cell_(cell), input_size_(input_size), hidden_size_(hidden_size), options_(options) {
    check();
    const int64_t gates = detail::gates_of(cell) * hidden_size;
    for (int64_t layer = 0; layer < options.num_layers; ++layer) {
      for (int64_t d = 0; d < directions(); ++d) {
        const std::string end = "_l" + std::to_string(layer) + (d == 1 ? "_reverse" : "");
        const auto make = [&](const char* part, const Dims& sizes) {
          return register_parameter(part + end, empty(sizes, options.dtype));
        };
        detail::RecurrentWeights w;
        w.w_ih = make("weight_ih", {gates, layer == 0 ? input_size : state_size() * directions()});
        w.w_hh = make("weight_hh", {gates, state_size()});
        if (options.bias) w.b_ih = make("bias_ih", {gates}), w.b_hh = make("bias_hh", {gates});
        if (options.proj_size > 0) w.w_hr = make("weight_hr", {state_size(), hidden_size});
        weights_.push_back(w);
      }
    }
    reset_parameters();
  }

  std::pair<Tensor, LSTMState> run(const Tensor& input, LSTMState state) const {
    const bool unbatched = input.dim() == 2, turned = options_.batch_first && !unbatched;
    check_input(input, input.dim() == 3 || unbatched);
    Tensor x = unbatched ? input.unsqueeze(1) : turned ? input.transpose(0, 1) : input;
    if (unbatched) {
      for (Tensor* t : {&state.h, &state.c}) *t = t->defined() ? t->unsqueeze(1) : *t;
    }
    auto [output, last] = run_layers(x, {}, x.size(1), state);
    if (!unbatched) return {turned ? output.transpose(0, 1) : output, last};
    return {output.squeeze(1), {last.h.squeeze(1), last.c.defined() ? last.c.squeeze(1) : last.c}};
  }
  std::pair<PackedSequence, LSTMState> run(const PackedSequence& input, LSTMState state) const {
    check_input(input.data, input.data.dim() == 2);
    const auto reorder = [](LSTMState& s, const Tensor& order) {
      for (Tensor* t : {&s.h, &s.c}) {
        if (t->defined() && order.defined()) *t = index_select(*t, 1, order);
      }
    };
    reorder(state, input.sorted_indices);
    const int64_t batch = input.batch_sizes.select(0, 0).item<int64_t>();
    auto [output, last] = run_layers(input.data, input.batch_sizes, batch, state);
    reorder(last, input.unsorted_indices);
    return {{output, input.batch_sizes, input.sorted_indices, input.unsorted_indices}, last};
  }

 private:
  int64_t directions() const { return options_.bidirectional ? 2 : 1; }
  int64_t state_size() const { return options_.proj_size > 0 ? options_.proj_size : hidden_size_; }

  void check() const {
    const RecurrentOptions& o = options_;
    const std::string name = std::string(name_) + ": ";
    TENON_CHECK(input_size_ > 0 && hidden_size_ > 0 && o.num_layers > 0, Value,
                name + "input_size, hidden_size and num_layers must be positive, got " +
                    std::to_string(input_size_) + ", " + std::to_string(hidden_size_) + " and " +
                    std::to_string(o.num_layers));
    TENON_CHECK(
        o.proj_size >= 0 && o.proj_size < hidden_size_ && (cell_ == detail::Cell::Lstm || o.proj_size == 0),
        Value,
        name + "proj_size is LSTM's, and less than hidden_size " + std::to_string(hidden_size_) + ", got " +
            std::to_string(o.proj_size));
    TENON_CHECK(o.dropout >= 0 && o.dropout <= 1, Value,
                name + "dropout must be between 0 and 1, got " + number_text(o.dropout));
  }
  void check_input(const Tensor& input, bool has_rank) const {
    TENON_CHECK(has_rank && input.size(-1) == input_size_, Shape,
                std::string(name_) + ": expected input [steps, batch, " + std::to_string(input_size_) +
                    "], got " + to_string(input.sizes()));
  }

  /// All layers over [steps, batch, *], or packed data.
  std::pair<Tensor, LSTMState> run_layers(Tensor x, const Tensor& batch_sizes, int64_t batch,
                                          LSTMState state) const {
    const auto count = static_cast<int64_t>(weights_.size());
    const bool lstm = cell_ == detail::Cell::Lstm;
    if (!state.h.defined()) state.h = zeros({count, batch, state_size()}, x.options());
    if (lstm && !state.c.defined()) state.c = zeros({count, batch, hidden_size_}, x.options());
    std::vector<Tensor> h, c;
    for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
      std::vector<Tensor> outputs;
      for (int64_t d = 0; d < directions(); ++d) {
        const auto at = static_cast<int64_t>(h.size());
        const LSTMState first{state.h.select(0, at), lstm ? state.c.select(0, at) : Tensor()};
        auto [output, last] = detail::run_direction(cell_, x, first, weights_[h.size()], batch_sizes, d == 1);
        outputs.push_back(output), h.push_back(last.h), c.push_back(last.c);
      }
      x = outputs.size() == 1 ? outputs[0] : cat(outputs, -1);
      if (options_.dropout != 0 && is_training() && layer + 1 < options_.num_layers)
        x = tenon::dropout(x, options_.dropout, true);
    }
    const auto join = [](const std::vector<Tensor>& all) {
      return all.size() == 1 ? all[0].unsqueeze(0) : stack(all);
    };
    return {x, {join(h), lstm ? join(c) : Tensor()}};
  }

  const char* name_;
  detail::Cell cell_;
  int64_t input_size_, hidden_size_;
  RecurrentOptions options_;
  std::vector<detail::RecurrentWeights> weights_;
};

/// Layers of h = tanh(W x + b + U h + b'), or max(0, .). Elman (1990).
///
/// input [steps, batch, input_size], or [steps, input_size]; hx [layers * directions, batch, hidden_size],
/// or without the batch, is zeros unless given. Returns the states of the last layer after each step, [steps,
/// batch, directions * hidden_size], and the last state of each layer and direction, as hx.
class RNN final : public RecurrentBase {
 public:
  RNN(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {})
      : RecurrentBase("RNN", detail::cell_of("RNN", options.nonlinearity), input_size, hidden_size, options) {
  }
  Tensor forward(const Tensor& input) override { return forward(input, {}).first; }
  std::pair<Tensor, Tensor> forward(const Tensor& input, const Tensor& hx) const {
    auto [output, last] = run(input, {hx, {}});
    return {output, last.h};
  }
  std::pair<PackedSequence, Tensor> forward(const PackedSequence& input, const Tensor& hx = {}) const {
    auto [output, last] = run(input, {hx, {}});
    return {output, last.h};
  }
};

/// Layers of gated recurrent units (Cho et al., 2014), the reset gate after the product. Shapes: see RNN.
class GRU final : public RecurrentBase {
 public:
  GRU(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {})
      : RecurrentBase("GRU", detail::Cell::Gru, input_size, hidden_size, options) {}
  Tensor forward(const Tensor& input) override { return forward(input, {}).first; }
  std::pair<Tensor, Tensor> forward(const Tensor& input, const Tensor& hx) const {
    auto [output, last] = run(input, {hx, {}});
    return {output, last.h};
  }
  std::pair<PackedSequence, Tensor> forward(const PackedSequence& input, const Tensor& hx = {}) const {
    auto [output, last] = run(input, {hx, {}});
    return {output, last.h};
  }
};

/// Layers of long short-term memory (Hochreiter and Schmidhuber, 1997). Shapes: see RNN; states have
/// proj_size elements if that is not 0, cell states have hidden_size.
class LSTM final : public RecurrentBase {
 public:
  LSTM(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {})
      : RecurrentBase("LSTM", detail::Cell::Lstm, input_size, hidden_size, options) {}
  Tensor forward(const Tensor& input) override { return forward(input, {}).first; }
  std::pair<Tensor, LSTMState> forward(const Tensor& input, const LSTMState& hx) const {
    return run(input, hx);
  }
  std::pair<PackedSequence, LSTMState> forward(const PackedSequence& input, const LSTMState& hx = {}) const {
    return run(input, hx);
  }
};

struct CellOptions {
  bool bias = true;
  std::string_view nonlinearity = "tanh";  ///< RNNCell alone: "tanh" or "relu".
  DType dtype = default_dtype();
};

/// The weights of one step: weight_ih, weight_hh, bias_ih, bias_hh. Base of RNNCell, LSTMCell and GRUCell.
class CellBase : public Module {
 public:
  /// Draws all weights uniformly within 1 / sqrt(hidden_size), as in PyTorch.
  void reset_parameters() {
    const double bound = weight_hh.size(1) > 0 ? 1 / std::sqrt(static_cast<double>(weight_hh.size(1))) : 0;
    for (const Tensor& w : parameters()) init::uniform_(w, -bound, bound);
  }
  std::string extra_repr() const override {
    return std::to_string(weight_ih.size(1)) + ", " + std::to_string(weight_hh.size(1)) +
           (bias_ih.defined() ? "" : ", bias=False") +
           (cell_ == detail::Cell::Relu ? ", nonlinearity=relu" : "");
  }

  Tensor weight_ih, weight_hh;  ///< [gates * hidden_size, input_size] and [gates * hidden_size, hidden_size]
  Tensor bias_ih, bias_hh;      ///< [gates * hidden_size], or undefined

 protected:
  CellBase(detail::Cell cell, int64_t input_size, int64_t hidden_size, const CellOptions& options)
      : cell_(cell) {
    const int64_t gates = detail::gates_of(cell) * hidden_size;
    weight_ih = register_parameter("weight_ih", empty({gates, input_size}, options.dtype));
    weight_hh = register_parameter("weight_hh", empty({gates, hidden_size}, options.dtype));
    if (options.bias) {
      bias_ih = register_parameter("bias_ih", empty({gates}, options.dtype));
      bias_hh = register_parameter("bias_hh", empty({gates}, options.dtype));
    }
    reset_parameters();
  }
  /// One step; states are zeros where undefined.
  LSTMState run(const Tensor& input, LSTMState state) const {
    for (Tensor* t : {&state.h, &state.c}) {
      if (!t->defined()) *t = zeros({input.size(0), weight_hh.size(1)}, input.options());
    }
    return detail::run_direction(cell_, input.unsqueeze(0), state,
                                 {weight_ih, weight_hh, bias_ih, bias_hh, {}}, {}, false)
        .second;
  }

 private:
  detail::Cell cell_;
};

/// One step of RNN: input [batch, input_size], hx [batch, hidden_size], zeros unless given, to the new state.
class RNNCell final : public CellBase {
 public:
  RNNCell(int64_t input_size, int64_t hidden_size, const CellOptions& options = {})
      : CellBase(detail::cell_of("RNNCell", options.nonlinearity), input_size, hidden_size, options) {}
  Tensor forward(const Tensor& input) override { return forward(input, {}); }
  Tensor forward(const Tensor& input, const Tensor& hx) const { return run(input, {hx, {}}).h; }
};

/// One step of GRU; see RNNCell.
class GRUCell final : public CellBase {
 public:
  GRUCell(int64_t input_size, int64_t hidden_size, const CellOptions& options = {})
      : CellBase(detail::Cell::Gru, input_size, hidden_size, options) {}
  Tensor forward(const Tensor& input) override { return forward(input, {}); }
  Tensor forward(const Tensor& input, const Tensor& hx) const { return run(input, {hx, {}}).h; }
};

/// One step of LSTM; see RNNCell.
class LSTMCell final : public CellBase {
 public:
  LSTMCell(int64_t input_size, int64_t hidden_size, const CellOptions& options = {})
      : CellBase(detail::Cell::Lstm, input_size, hidden_size, options) {}
  Tensor forward(const Tensor& input) override { return forward(input, {}).h; }
  LSTMState forward(const Tensor& input, const LSTMState& hx) const { return run(input, hx); }
};

}  // namespace tenon::nn
