// Graphs as texts, for several tests of the room.
#pragma once

namespace tenon::graph::testing {

// Views, writes in place, an overwritten argument, lists with an absent tensor, every kind of attribute.
inline constexpr const char* kCalls = R"(graph 1
storage %0 4096 cpu input
storage %1 4096 cpu output
storage %2 64 cpu input output
storage %3 4096 cpu
storage %4 8192 cpu output
storage %5 4096 cpu output
number $0 float
number $1 int
%1.0 float32[32, 32] = aten::mul.Scalar(%0.0 float32[32, 32]:[1, 32], $0)
%1.1(%1.0) float32[32, 32] = aten::relu_(%1.0 float32[32, 32])
%2.1(%2.0) float32[4]:[2]+1 = aten::add_.Scalar(%2.0 float32[4]:[2]+1, $0, $1)
%2.2(%2.1) float32[4]:[-2]+7 = aten::fill_.Scalar(_ float32[4]:[-2]+7, $1)
%3.0 float32[32, 32] = aten::add.Tensor(%1.1 float32[32, 32], %2.2 float32[] number, 1)
%4.0 float32[32, 64] = aten::cat([%1.1 float32[32, 32], %3.0 float32[32, 32]], -1)
%5.0 float32[32, 32] = aten::gelu(%3.0 float32[32, 32], "tanh")
)";

// A flat region with an inner value, and a product with a prologue and an epilogue.
inline constexpr const char* kRegions = R"(graph 1
storage %0 64 cpu input
storage %1 64 cpu
storage %2 64 cpu output
storage %3 64 cpu
storage %4 64 cpu
storage %5 64 cpu output
number $0 float
%2.0 float32[4, 4] = tenon::region_flat([%0.0 float32[4, 4]], [$0]) region_0_mul_relu {
  %1.0 float32[4, 4] = aten::mul.Scalar(%0.0 float32[4, 4], $0)
  %2.0 float32[4, 4] = aten::relu(%1.0 float32[4, 4])
  numbers (0.0)
  body (0) (0) (0): in x0: float32; number n0: f32; out float32: relu(mul(x0, n0));
}
%5.0 float32[4, 4] = tenon::region_matmul([%0.0 float32[4, 4], %2.0 float32[4, 4]:[1, 4]], []) region_1_neg_mm_relu {
  %3.0 float32[4, 4] = aten::neg(%0.0 float32[4, 4])
  %4.0 float32[4, 4] = aten::mm(%3.0 float32[4, 4], %2.0 float32[4, 4]:[1, 4])
  %5.0 float32[4, 4] = aten::relu(%4.0 float32[4, 4])
  anchor 1
  prologue (0) () (): in x0: float32; out float32: neg(x0);
  prologue
  epilogue (anchor) () (0): in x0: float32; out float32: relu(x0);
  engine composed (rows 24, pack -1)
}
)";

}  // namespace tenon::graph::testing
