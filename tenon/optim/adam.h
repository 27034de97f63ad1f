// Adam and AdamW: steps scaled by running averages of the gradient and of its square.
// Source: Kingma and Ba (2014), arXiv:1412.6980; Loshchilov and Hutter (2017), arXiv:1711.05101.
#pragma once

#include <span>

#include "tenon/optim/optimizer.h"

namespace tenon {
class Value;
}

namespace tenon::optim {

struct AdamOptions {
  double lr = 1e-3;
  /// The decay of the two running averages.
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  /// AdamW: weight decay shrinks the parameter itself instead of adding to the gradient.
  bool decoupled_weight_decay = false;
  /// Scales by the largest average of squares so far. Reddi et al. (2018).
  bool amsgrad = false;
  bool maximize = false;
};

/// Throws Error{Value} for a negative rate, decay or epsilon, and for a beta outside [0, 1).
void check(const AdamOptions& options);

/// The numbers of one step that follow from the options and from how many steps there were.
struct AdamNumbers {
  double step;    ///< By which the quotient of the averages is scaled.
  double root;    ///< Of the correction of the second average.
  double shrink;  ///< What decoupled weight decay leaves of a parameter.
};
/// Of step number `step`, counted from 1.
AdamNumbers numbers_of(const AdamOptions& options, int64_t step) noexcept;

/// The state that Adam keeps for one parameter.
struct AdamState {
  int64_t step = 0;
  Tensor exp_avg, exp_avg_sq, max_exp_avg_sq;
};

/// Updates every parameter that has a gradient. Both the C++ and the Python class call this function.
void adam_step(TensorList parameters, std::span<AdamState> states, const AdamOptions& options);

class Adam : public Optimizer {
 public:
  Adam(std::vector<Tensor> parameters, AdamOptions options);
  void step() override { adam_step(parameters_, states_, options_); }
  /// Goes on from what an Adam or AdamW of Python, or of PyTorch, has saved as its `state_dict()`:
  ///     optimizer.load_state_dict(tenon::load("run.tenon")["optimizer"]);
  /// Options and the state of each parameter are taken from it; parameters are known by their order. The
  /// next steps have the bits of those that Python would have made. Throws Error{Value}, and changes nothing,
  /// for a state that does not fit.
  void load_state_dict(const Value& state);

  /// May be changed between steps.
  AdamOptions& options() noexcept { return options_; }

 private:
  AdamOptions options_;
  std::vector<AdamState> states_;
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};

class AdamW final : public Adam {
 public:
  AdamW(std::vector<Tensor> parameters, AdamWOptions o)
      : Adam(std::move(parameters), {.lr = o.lr,
                                     .beta1 = o.beta1,
                                     .beta2 = o.beta2,
                                     .eps = o.eps,
                                     .weight_decay = o.weight_decay,
                                     .decoupled_weight_decay = true,
                                     .amsgrad = o.amsgrad,
                                     .maximize = o.maximize}) {}
};

}  // namespace tenon::optim
