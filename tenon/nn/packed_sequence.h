// PackedSequence: sequences of several lengths in one tensor, as recurrent layers take them. Used by
// recurrent.h and by programs. The Python package has the same in nn.utils.rnn.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/ops/factory/from_data.h"

namespace tenon::nn {

/// Sequences, longest first: the first elements of all, then the second ones, and so on.
struct PackedSequence {
  Tensor data;              ///< [rows, ...]
  Tensor batch_sizes;       ///< int64 on the host: how many sequences have each step.
  Tensor sorted_indices;    ///< The sequences' numbers in the order in which they are packed; or undefined.
  Tensor unsorted_indices;  ///< The way back; or undefined.
};

/// Packs the first lengths[i] elements of each sequence of `input` [steps, batch, ...], or [batch, steps,
/// ...] with `batch_first`. They must come longest first, unless `enforce_sorted` is false. Throws
/// Error{Value} for lengths that do not fit.
inline PackedSequence pack_padded_sequence(const Tensor& input, std::span<const int64_t> lengths,
                                           bool batch_first = false, bool enforce_sorted = true) {
  const std::string name = "pack_padded_sequence: ";
  TENON_CHECK(input.dim() >= 2, Shape,
              name + "expected `input` with at least 2 dimensions, got " + to_string(input.sizes()));
  Tensor by_step = batch_first ? input.transpose(0, 1) : input;
  const int64_t steps = by_step.size(0), batch = by_step.size(1);
  TENON_CHECK(static_cast<int64_t>(lengths.size()) == batch && batch > 0, Value,
              name + "expected `lengths` of the batch's " + std::to_string(batch) + " sequences, got " +
                  std::to_string(lengths.size()));
  for (const int64_t n : lengths) {
    TENON_CHECK(n > 0 && n <= steps, Value,
                name + "expected `lengths` between 1 and the " + std::to_string(steps) +
                    " steps of `input` " + to_string(input.sizes()) + ", got " + std::to_string(n));
  }
  std::vector<int64_t> order(lengths.size()), back(lengths.size()), sorted, counts;
  std::iota(order.begin(), order.end(), 0);
  const auto length = [&](int64_t i) { return lengths[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
  for (size_t i = 0; i < order.size(); ++i) {
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    sorted.push_back(length(order[i]));
  }
  TENON_CHECK(
      !enforce_sorted || std::equal(sorted.begin(), sorted.end(), lengths.begin()), Value,
      name + "`lengths` must be in decreasing order; sequences in another order need enforce_sorted = false");
  PackedSequence packed;
  if (!enforce_sorted) {
    packed.sorted_indices = tensor(order), packed.unsorted_indices = tensor(back);
    by_step = index_select(by_step, 1, packed.sorted_indices);
  }
  for (int64_t t = 0; t < sorted[0]; ++t)
    counts.push_back(std::count_if(sorted.begin(), sorted.end(), [&](int64_t n) { return n > t; }));
  packed.batch_sizes = tensor(counts);
  const Tensor present = lt(arange(batch), packed.batch_sizes.unsqueeze(1));
  const Tensor rows = nonzero(present.flatten()).squeeze(1);
  packed.data = index_select(by_step.narrow(0, 0, sorted[0]).flatten(0, 1), 0, rows);
  return packed;
}

/// The reverse: zeros after the end of each sequence, and their lengths, int64.
inline std::pair<Tensor, Tensor> pad_packed_sequence(const PackedSequence& packed, bool batch_first = false) {
  const int64_t steps = packed.batch_sizes.size(0), batch = packed.batch_sizes.select(0, 0).item<int64_t>();
  const Tensor present = lt(arange(batch), packed.batch_sizes.unsqueeze(1));
  const Dims first{0}, both{steps, batch};
  Tensor lengths = sum(present, IntArrayRef(first));
  Dims sizes = packed.data.sizes().to_dims();
  sizes[0] = steps * batch;
  const Tensor rows = nonzero(present.flatten()).squeeze(1);
  Tensor padded = index_copy(zeros(sizes, packed.data.options()), 0, rows, packed.data).unflatten(0, both);
  if (packed.unsorted_indices.defined()) {
    padded = index_select(padded, 1, packed.unsorted_indices);
    lengths = index_select(lengths, 0, packed.unsorted_indices);
  }
  return {batch_first ? padded.transpose(0, 1) : padded, lengths};
}

}  // namespace tenon::nn
