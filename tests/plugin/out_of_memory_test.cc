// Memory of a device that ends in the middle of a call which it runs by itself.
#include <gtest/gtest.h>

#include "tenon/plugin/load.h"
#include "tests/iter/iter_testing.h"

namespace tenon::testing {
namespace {

constexpr int64_t kMiB = 1 << 20;

/// The sum of x and y, and whether x is smaller: one program of two outputs.
struct SumAndOrder {
  SumAndOrder() {
    expr::Builder g;
    const expr::Symbol symbols[] = {{"x", expr::SymbolKind::Tensor}, {"y", expr::SymbolKind::Tensor}};
    const expr::NodeId roots[] = {expr::parse(g, "x + y", symbols), expr::parse(g, "x < y", symbols)};
    written = g.finish(roots);
    info.name = "sum_and_order";
    info.tensor_names = names;
    info.written = written.get();
    info.outputs = outputs;
  }
  static constexpr const char* names[] = {"x", "y"};
  const PointwiseOutput outputs[2] = {{"sum"}, {"less", -1, true}};
  expr::ExpressionPtr written;
  PointwiseInfo info{};
};

std::tuple<Tensor, Tensor> call(const Tensor& x, const Tensor& y) {
  static const SumAndOrder& op = *new SumAndOrder;
  const Kernel kernel{.data = &op.info};
  return detail::PointwiseCall<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&)>::call(kernel, {}, x,
                                                                                               y);
}

TEST(OutOfMemory, InTheSecondOutputOfANativeOperatorLeavesNothing) {
  const Device device = load_device(TENON_OPENREG, "tight_reg", {{"devices", "1"}, {"memory", "67108864"}});
  Allocator& allocator = allocator_for(device);
  const auto held = [&] { return allocator.memory_stats(device).allocated_bytes.current; };
  const Dims shape{4 * kMiB};  // 16 MiB of float32, 4 MiB of bool
  Tensor host_x = make_empty(shape, DType::Float32), host_y = make_empty(shape, DType::Float32);
  for (int64_t i = 0; i < shape[0]; ++i) {
    host_x.data_ptr<float>()[i] = static_cast<float>(i % 7);
    host_y.data_ptr<float>()[i] = static_cast<float>(i % 5);
  }
  {
    const Tensor x = host_x.to(device), y = host_y.to(device);
    Storage ballast = Storage::allocate(14 * kMiB, device);  // room for the sum, but not for the order
    const auto before = held();
    const auto version = x._version();
    try {
      call(x, y);
      ADD_FAILURE() << "there was enough memory";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::OutOfMemory) << e.what();
      EXPECT_NE(std::string(e.what()).find("4194304 bytes"), std::string::npos) << e.what();
    }
    EXPECT_EQ(held(), before) << "the first output went back";
    EXPECT_EQ(x._version(), version);
    ballast = Storage();
    const auto [sum, less] = call(x, y);
    const auto [host_sum, host_less] = call(host_x, host_y);
    const Tensor got_sum = sum.to(kCPU), got_less = less.to(kCPU);
    EXPECT_EQ(std::memcmp(got_sum.data_ptr(), host_sum.data_ptr(), host_sum.nbytes()), 0);
    EXPECT_EQ(std::memcmp(got_less.data_ptr(), host_less.data_ptr(), host_less.nbytes()), 0);
  }
  unload_device("tight_reg");
}

}  // namespace
}  // namespace tenon::testing
