// MaxPool2d: the largest elements of windows.
#pragma once

#include <optional>

#include "tenon/generated/window/functions.h"
#include "tenon/nn/module.h"
#include "tenon/nn/size2d.h"

namespace tenon::nn {

struct MaxPool2dOptions {
  std::optional<Size2d> stride;  ///< Without: the kernel's size.
  Size2d padding = 0;
  Size2d dilation = 1;
  bool ceil_mode = false;
};

/// The maxima of windows of [N, C, H, W] or [C, H, W].
class MaxPool2d final : public Module {
 public:
  explicit MaxPool2d(Size2d kernel_size, MaxPool2dOptions options = {})
      : kernel_size_(kernel_size), options_(options) {}
  Tensor forward(const Tensor& input) override {
    return max_pool2d(input, kernel_size_.dims(), options_.stride.value_or(kernel_size_).dims(),
                      options_.padding.dims(), options_.dilation.dims(), options_.ceil_mode);
  }
  std::string extra_repr() const override {
    return "kernel_size=" + kernel_size_.text() +
           ", stride=" + options_.stride.value_or(kernel_size_).text() +
           ", padding=" + options_.padding.text() + ", dilation=" + options_.dilation.text() +
           ", ceil_mode=" + (options_.ceil_mode ? "True" : "False");
  }

 private:
  Size2d kernel_size_;
  MaxPool2dOptions options_;
};

}  // namespace tenon::nn
