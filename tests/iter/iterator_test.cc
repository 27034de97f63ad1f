#include "tenon/iter/tensor_iterator.h"

#include "tests/iter/iter_testing.h"

namespace tenon::testing {
namespace {

Tensor floats(IntArrayRef sizes) { return make_empty(sizes, DType::Float32); }

TEST(TensorIterator, ContiguousOperandsAreOneLoop) {
  const Tensor a = floats({3, 1, 4}), b = floats({3, 1, 4});
  const TensorIterator iter = TensorIteratorConfig().add_output(Tensor()).add_input(a).add_input(b).build();
  EXPECT_EQ(iter.ntensors(), 3);
  EXPECT_EQ(iter.ninputs(), 2);
  EXPECT_EQ(iter.noutputs(), 1);
  EXPECT_EQ(iter.shape(), IntArrayRef({12}));
  EXPECT_TRUE(iter.is_contiguous());
  EXPECT_EQ(iter.numel(), 12);
  EXPECT_EQ(iter.output().sizes(), IntArrayRef({3, 1, 4}));
  EXPECT_EQ(iter.data_ptr(1), a.data_ptr());
  EXPECT_EQ(iter.strides(2), (Dims{4}));
}

TEST(TensorIterator, BroadcastsToTheCommonShape) {
  const Tensor column = floats({3, 1}), row = floats({1, 4});
  const TensorIterator iter =
      TensorIteratorConfig().add_output(Tensor()).add_input(column).add_input(row).build();
  EXPECT_EQ(iter.output().sizes(), IntArrayRef({3, 4}));
  EXPECT_EQ(iter.shape(), IntArrayRef({4, 3}));  // innermost first
  EXPECT_EQ(iter.strides(1), (Dims{0, 4}));
  EXPECT_EQ(iter.strides(2), (Dims{4, 0}));
  const TensorIterator wider = TensorIteratorConfig()
                                   .add_output(Tensor())
                                   .add_input(floats({3, 1, 4}))
                                   .add_input(floats({2, 4}))
                                   .build();
  EXPECT_EQ(wider.output().sizes(), IntArrayRef({3, 2, 4}));
}

TEST(TensorIterator, ShapesThatDoNotBroadcastAreNamed) {
  const std::string text = error_of(ErrorKind::Shape, [] {
    TensorIteratorConfig()
        .set_op_name("add")
        .add_output(Tensor())
        .add_input(floats({3, 4}))
        .add_input(floats({2, 4}))
        .build();
  });
  EXPECT_EQ(text, "add: shapes [3, 4] and [2, 4] do not broadcast at dimension 0 (3 vs 2)");
}

TEST(TensorIterator, ResultKeepsTheInputsArrangement) {
  const Tensor a = transposed(floats({3, 5})), b = transposed(floats({3, 5}));
  const TensorIterator iter = TensorIteratorConfig().add_output(Tensor()).add_input(a).add_input(b).build();
  EXPECT_EQ(iter.output().strides(), IntArrayRef({1, 5}));
  EXPECT_TRUE(iter.is_contiguous());
  // Channels last with a bias per channel.
  const Tensor image = make_empty_strided({2, 3, 4, 5}, {60, 1, 15, 3}, DType::Float32);
  const TensorIterator biased =
      TensorIteratorConfig().add_output(Tensor()).add_input(image).add_input(floats({3, 1, 1})).build();
  EXPECT_TRUE(biased.output().is_contiguous(MemoryFormat::ChannelsLast));
}

TEST(TensorIterator, OutputsOfDifferentShapesAreRefused) {
  const Tensor a = floats({2, 3});
  EXPECT_EQ(error_of(ErrorKind::Shape,
                     [&] {
                       TensorIteratorConfig()
                           .set_op_name("split")
                           .add_output(floats({2, 3}))
                           .add_output(floats({3}))
                           .add_input(a)
                           .build();
                     }),
            "split: output 1 has shape [3], which cannot hold the result of shape [2, 3]");
}

TEST(TensorIterator, MergesAcrossNegativeAndZeroStrides) {
  const Tensor a = flipped(flipped(floats({6, 7}), 0), 1);
  const TensorIterator backwards = TensorIteratorConfig().add_output(floats({6, 7})).add_input(a).build();
  EXPECT_EQ(backwards.shape(), IntArrayRef({42}));
  EXPECT_EQ(backwards.strides(1), (Dims{-4}));
  const Tensor one = make_view(floats({1}), {6, 7}, {0, 0}, 0);
  const TensorIterator expanded = TensorIteratorConfig().add_output(floats({6, 7})).add_input(one).build();
  EXPECT_EQ(expanded.shape(), IntArrayRef({42}));
  EXPECT_EQ(expanded.strides(1), (Dims{0}));
}

TEST(TensorIterator, ADimensionBackwardsInAllOperandsIsReversed) {
  const Tensor a = flipped(floats({10}), 0), b = flipped(floats({10}), 0);
  const TensorIterator iter = TensorIteratorConfig().add_output(a).add_input(b).build();
  EXPECT_TRUE(iter.is_contiguous());
  EXPECT_EQ(iter.data_ptr(0),
            a.storage().address() ? reinterpret_cast<char*>(a.storage().address()) : nullptr);
}

TEST(TensorIterator, ExplainSaysWhatMergedAndWhatKeptItApart) {
  const Tensor a = floats({3, 1, 4}), row = floats({4});
  const std::string merged =
      TensorIteratorConfig().set_op_name("neg").add_output(Tensor()).add_input(a).build().explain();
  EXPECT_NE(merged.find("dimension 1 merges with 2: one of them has size 1"), std::string::npos) << merged;
  EXPECT_NE(merged.find("dimension 0 merges with 1: one stride serves both in every operand"),
            std::string::npos)
      << merged;
  EXPECT_NE(merged.find("loop [12]"), std::string::npos) << merged;
  const std::string apart = TensorIteratorConfig()
                                .set_op_name("add")
                                .add_output(Tensor())
                                .add_input(floats({3, 4}))
                                .add_input(row)
                                .build()
                                .explain();
  EXPECT_NE(
      apart.find("dimension 0 does not merge with 1: input 1 has byte stride 0, merging needs 4 * 4 = 16"),
      std::string::npos)
      << apart;
  const std::string backwards = TensorIteratorConfig()
                                    .add_output(floats({3, 4}))
                                    .add_input(flipped(floats({3, 4}), 1))
                                    .build()
                                    .explain();
  EXPECT_NE(backwards.find("dimension 1 runs backwards in input 0 only"), std::string::npos) << backwards;
}

TEST(TensorIterator, VisitsEveryElementOnceOnAnyNumberOfThreads) {
  const int before = num_threads();
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    const Tensor out = floats({7, 9, 11}), in = transposed(floats({9, 7, 11}));
    std::memset(out.data_ptr(), 0, out.nbytes());
    const TensorIterator iter = TensorIteratorConfig().add_output(out).add_input(in).build();
    iter.for_each(
        [](char* const* ptrs, const int64_t* strides, int64_t n) {
          for (int64_t i = 0; i < n; ++i) *reinterpret_cast<float*>(ptrs[0] + i * strides[0]) += 1;
        },
        /*grain=*/16);
    for (const double v : values(out)) ASSERT_EQ(v, 1);
  }
  set_num_threads(before);
}

TEST(TensorIterator, RefusesOverlappingWrites) {
  const Tensor base = floats({10});
  const Tensor head = make_view(base, {9}, {1}, 0), tail = make_view(base, {9}, {1}, 1);
  const std::string partial = error_of(ErrorKind::Runtime, [&] {
    TensorIteratorConfig().set_op_name("add_").add_output(head).add_input(tail).build();
  });
  EXPECT_EQ(
      partial,
      "add_: output 0 and input 0 overlap in memory, but not element for element; clone() one of them first");
  const Tensor expanded = make_view(base, {3, 4}, {0, 1}, 0);
  const std::string inner = error_of(ErrorKind::Runtime, [&] {
    TensorIteratorConfig().set_op_name("add_").add_output(expanded).add_input(floats({3, 4})).build();
  });
  EXPECT_NE(inner.find("writes some element more than once"), std::string::npos) << inner;
  const Tensor windows = make_view(base, {3, 3}, {1, 1}, 0);
  EXPECT_THROW(TensorIteratorConfig().add_output(windows).build(), Error);
  const Tensor square = floats({4, 4});
  EXPECT_THROW(TensorIteratorConfig().add_output(square).add_input(transposed(square)).build(), Error);
  EXPECT_THROW(TensorIteratorConfig().add_output(base).add_output(base).build(), Error);
  // The very same view, interleaved views, and halves of a matrix are fine.
  EXPECT_NO_THROW(TensorIteratorConfig().add_output(base).add_input(base).build());
  const Tensor even = make_view(base, {5}, {2}, 0), odd = make_view(base, {5}, {2}, 1);
  EXPECT_NO_THROW(TensorIteratorConfig().add_output(even).add_input(odd).build());
  const Tensor left = make_view(square, {4, 2}, {4, 1}, 0), right = make_view(square, {4, 2}, {4, 1}, 2);
  EXPECT_NO_THROW(TensorIteratorConfig().add_output(left).add_input(right).build());
  const Tensor odd_strides = make_view(base, {2, 3}, {3, 2}, 0);  // 0 2 4 3 5 7: no two alike
  EXPECT_NO_THROW(TensorIteratorConfig().add_output(odd_strides).build());
}

TEST(TensorIterator, ChecksDtypesAndDevices) {
  const Tensor a = floats({2}), b = make_empty({2}, DType::Float64);
  const std::string dtype = error_of(ErrorKind::Type, [&] {
    TensorIteratorConfig().set_op_name("mine").add_output(Tensor()).add_input(a).add_input(b).build();
  });
  EXPECT_EQ(dtype, "mine: input 1 is float64, expected float32 as input 0");
  const TensorIterator promoted = TensorIteratorConfig()
                                      .add_output(Tensor())
                                      .add_input(a)
                                      .add_input(b)
                                      .promote_inputs_to_common_dtype(true)
                                      .build();
  EXPECT_EQ(promoted.common_dtype(), DType::Float64);
  EXPECT_EQ(promoted.output().dtype(), DType::Float64);
  const Tensor meta = make_empty({2}, DType::Float32, kMeta);
  const std::string device = error_of(ErrorKind::Device, [&] {
    TensorIteratorConfig().set_op_name("mine").add_output(Tensor()).add_input(a).add_input(meta).build();
  });
  EXPECT_EQ(device, "mine: input 0 is on cpu and input 1 on meta; move one with .to()");
}

}  // namespace
}  // namespace tenon::testing
