// Operators that read and write by index. Negative indices count from the back everywhere.
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"
#include "tenon/onnx/rows_count.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

int64_t size_of(const Tensor& x, int64_t axis) { return x.sizes()[static_cast<size_t>(axis)]; }

/// Indices as the operators that take none from the back have them.
Tensor from_front(const Tensor& index, int64_t size) {
  return where(lt(index, Scalar(0)), add(index, Scalar(size)), index);
}
/// Elements of `x` at `index` of dimension `axis`, whose place the dimensions of `index` take.
Tensor taken(const Tensor& x, int64_t axis, const Tensor& index) {
  std::vector<Tensor> all(static_cast<size_t>(axis));
  all.push_back(index);
  return tenon::index(x, all);
}

/// Input 1: indices, which are no mask.
const Tensor& indices(N& n) {
  const Tensor& index = n.tensor(1);
  TENON_NODE_CHECK(n, index.dtype() == kInt32 || index.dtype() == kInt64, Type,
                   fmt::format("`indices` are of {}, expected int32 or int64", name(index.dtype())));
  return index;
}

void gather_of(N& n) {
  const Tensor &x = n.tensor(0), &index = indices(n);
  const int64_t axis = n.axis(n.integer("axis", 0), x.sizes().size());
  // One place that the file names is a view.
  if (n.is_constant(1) && index.dim() == 0) {
    const int64_t place = index.item().to_int(), size = size_of(x, axis);
    TENON_NODE_CHECK(n, -size <= place && place < size, Index,
                     fmt::format("index {} is out of range for a dimension of {}", place, size));
    return n.set(select(x, axis, place));
  }
  n.set(taken(x, axis, index));
}
void gather_elements(N& n) {
  const Tensor& x = n.tensor(0);
  const int64_t axis = n.axis(n.integer("axis", 0), x.sizes().size());
  n.set(gather(x, axis, from_front(indices(n), size_of(x, axis))));
}

/// The last dimension of `index` as one index tensor for each dimension of `x` after the first `batch`,
/// which pair up with those of `index`.
std::vector<Tensor> each_index(N& n, const Tensor& x, const Tensor& index, int64_t batch) {
  const auto dims = static_cast<int64_t>(x.sizes().size()), rank = static_cast<int64_t>(index.sizes().size());
  TENON_NODE_CHECK(n, rank >= 1 && 0 <= batch && batch < rank, Shape,
                   fmt::format("`indices` of {} dimensions, and {} of a batch", rank, batch));
  const int64_t count = size_of(index, rank - 1);
  TENON_NODE_CHECK(n, 1 <= count && batch + count <= dims, Shape,
                   fmt::format("indices of {} dimensions, for {}", count, dims - batch));
  std::vector<Tensor> all;
  for (int64_t i = 0; i < batch; ++i) {
    TENON_NODE_CHECK(n, size_of(x, i) == size_of(index, i), Shape,
                     fmt::format("a batch of {}, and one of {}", size_of(x, i), size_of(index, i)));
    Dims sizes(static_cast<size_t>(rank - 1), 1);
    sizes[static_cast<size_t>(i)] = size_of(x, i);
    all.push_back(arange(size_of(x, i), TensorOptions(kInt64)).reshape(sizes));
  }
  for (int64_t i = 0; i < count; ++i) all.push_back(select(index, -1, i));
  return all;
}
void gather_nd(N& n) {
  const Tensor& x = n.tensor(0);
  n.set(tenon::index(x, each_index(n, x, indices(n), n.integer("batch_dims", 0))));
}

/// What the operators call a reduction.
std::string_view reduction(N& n) {
  const std::string_view given = n.text("reduction", "none");
  for (const auto& [name, ours] :
       {std::pair{"none", ""}, {"add", "sum"}, {"mul", "prod"}, {"max", "amax"}, {"min", "amin"}})
    if (given == name) return ours;
  n.refuse(ErrorKind::NotImplemented, fmt::format("attribute `reduction` is {}", given));
}
void scatter_elements(N& n) {
  const Tensor &x = n.tensor(0), &updates = n.tensor(2);
  const int64_t axis = n.axis(n.integer("axis", 0), x.sizes().size());
  const Tensor index = from_front(indices(n), size_of(x, axis));
  const std::string_view how = reduction(n);
  n.set(how.empty()    ? scatter(x, axis, index, updates)
        : how == "sum" ? scatter_add(x, axis, index, updates)
                       : scatter_reduce(x, axis, index, updates, how));
}
void scatter_nd(N& n) {
  const Tensor &x = n.tensor(0), &index = indices(n), &updates = n.tensor(2);
  const std::string_view how = reduction(n);
  const std::vector<Tensor> all = each_index(n, x, index, 0);
  if (how.empty() || how == "sum") return n.set(index_put(x, all, updates, how == "sum"));
  // Rows: the dimensions that are indexed are one, and those after them another.
  int64_t rows = 1;
  Tensor row;
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t size = x.sizes()[i];
    // Checked: an index that is out of range would be one of another row.
    const Tensor checked = tenon::index(arange(size, TensorOptions(kInt64)), std::vector{all[i]});
    row = row.defined() ? add(mul(row, Scalar(size)), checked) : checked;
    rows *= size;
  }
  const int64_t width = rows == 0 ? 0 : x.numel() / rows, count = row.numel();
  const Tensor out =
      scatter_reduce(x.reshape({rows, width}), 0, expand(row.reshape({count, 1}), {count, width}),
                     updates.reshape({count, width}), how);
  n.set(out.reshape(x.sizes()));
}
/// Writes to a cache from the places of `write_indices` on, one for each of the batch.
void tensor_scatter(N& n) {
  const Tensor &past = n.tensor(0), &update = n.tensor(1);
  const int64_t axis = n.axis(n.integer("axis", -2), past.sizes().size());
  TENON_NODE_CHECK(n, axis > 0 && update.sizes().size() == past.sizes().size(), Shape,
                   "its axis is that of the batch, or its tensors have not one number of dimensions");
  const bool wraps = n.text("mode", "linear") == "circular";
  const int64_t batch = size_of(past, 0), size = size_of(past, axis), count = size_of(update, axis);
  const TensorOptions ints(kInt64);
  const Tensor first = n.has(2) ? n.tensor(2) : zeros({batch}, ints);
  Tensor at = add(first.reshape({batch, 1}), arange(count, ints));
  if (wraps) at = remainder(at, Scalar(size));
  const Tensor out =
      index_put(movedim(past, axis, 1), std::vector{arange(batch, ints).reshape({batch, 1}), at},
                movedim(update, axis, 1));
  n.set(movedim(out, 1, axis));
}

void one_hot_of(N& n) {
  const Tensor &index = n.tensor(0), &values = n.tensor(2);
  TENON_NODE_CHECK(n, values.numel() == 2, Shape, "`values` are not two");
  const double given = n.number(1);
  TENON_NODE_CHECK(n, 0 <= given && given < 1e15, Value, fmt::format("`depth` is {}", given));
  const auto depth = static_cast<int64_t>(given);
  const size_t rank = index.sizes().size() + 1;
  const int64_t axis = n.axis(n.integer("axis", -1), rank);
  Dims sizes(rank, 1);
  sizes[static_cast<size_t>(axis)] = depth;
  const Tensor place = unsqueeze(from_front(index.to(kInt64), depth), axis);
  n.set(where(eq(place, arange(depth, TensorOptions(kInt64)).reshape(sizes)), select(values, 0, 1),
              select(values, 0, 0)));
}
void compress(N& n) {
  const Tensor &x = n.tensor(0), &condition = n.tensor(1);
  TENON_NODE_CHECK(n, condition.sizes().size() == 1, Shape, "`condition` has not one dimension");
  const bool is_flat = !n.has("axis");
  const Tensor from = is_flat ? x.reshape({-1}) : x;
  const int64_t axis = is_flat ? 0 : n.axis(n.integer("axis", 0), x.sizes().size());
  n.set(taken(from, axis, nonzero(condition.to(kBool)).reshape({-1})));
}
void nonzero_of(N& n) { n.set(transpose(nonzero(n.tensor(0)), 0, 1)); }

void unique_of(N& n) {
  const Tensor& x = n.tensor(0);
  const bool is_flat = !n.has("axis");
  const Tensor from = is_flat ? x.reshape({-1}) : x;
  const int64_t axis = is_flat ? 0 : n.axis(n.integer("axis", 0), x.sizes().size());
  const int64_t count = size_of(from, axis), width = count == 0 ? 0 : from.numel() / count;
  const UniqueRows found =
      unique_rows(movedim(from, axis, 0).reshape({count, width}), n.flag("sorted", true));
  n.set(0, index_select(from, axis, found.first));
  n.set(1, found.first);
  n.set(2, found.place);
  n.set(3, found.count);
}
void tf_idf_vectorizer(N& n) {
  TENON_NODE_CHECK(n, n.texts("pool_strings").empty(), NotImplemented, "attribute `pool_strings` is given");
  NGrams grams;
  grams.shortest = n.integer("min_gram_length", 1);
  grams.longest = n.integer("max_gram_length", 1);
  grams.most_skips = n.integer("max_skip_count", 0);
  for (const int64_t value : n.ints("pool_int64s").value_or(Dims())) grams.pool.push_back(value);
  for (const int64_t value : n.ints("ngram_counts").value_or(Dims())) grams.starts.push_back(value);
  for (const int64_t value : n.ints("ngram_indexes").value_or(Dims())) grams.columns.push_back(value);
  const Tensor& x = n.tensor(0);
  const bool is_row = x.sizes().size() <= 1;
  TENON_NODE_CHECK(n, x.sizes().size() <= 2 && is_integral(x.dtype(), false), Type,
                   "its input is no matrix of integers");
  const std::optional<Tensor> counted = counts(grams, is_row ? x.reshape({1, -1}) : x);
  TENON_NODE_CHECK(n, counted.has_value(), Value, "its attributes do not fit each other");
  Tensor out = *counted;
  const std::string_view mode = n.text("mode", "TF");
  const std::vector<double> weights = n.numbers("weights");
  if (mode == "IDF") out = clamp(out, std::nullopt, Scalar(1));
  if (mode != "TF" && !weights.empty()) {
    TENON_NODE_CHECK(n, weights.size() == grams.columns.size(), Value, "its weights do not fit its n-grams");
    Tensor of_columns = ones({size_of(out, 1)}, TensorOptions(kFloat32));
    for (size_t i = 0; i < weights.size(); ++i)
      of_columns.data_ptr<float>()[grams.columns[i]] = static_cast<float>(weights[i]);
    out = mul(out, of_columns);
  }
  n.set(is_row ? out.reshape({-1}) : out);
}
void array_feature_extractor(N& n) {
  const Tensor& x = n.tensor(0);
  TENON_NODE_CHECK(n, !x.sizes().empty(), Shape, "its input has no dimensions");
  const Tensor out = taken(x, static_cast<int64_t>(x.sizes().size()) - 1, indices(n).reshape({-1}));
  n.set(x.sizes().size() == 1 ? out.reshape({1, -1}) : out);
}
void bit_cast(N& n) {
  const Tensor x = n.tensor(0).contiguous();
  const DType dtype = n.dtype("to").value_or(x.dtype());
  TENON_NODE_CHECK(
      n, item_size(dtype) == item_size(x.dtype()), NotImplemented,
      fmt::format("from {} to {}, whose elements have another size", name(x.dtype()), name(dtype)));
  Tensor out = empty(x.sizes(), TensorOptions(dtype));
  if (x.numel() > 0)
    std::memcpy(out.data_ptr(), x.data_ptr(), static_cast<size_t>(x.numel()) * item_size(dtype));
  n.set(out);
}

constexpr auto kIndexRows = std::to_array<Row>({
    {"ArrayFeatureExtractor", 1, array_feature_extractor, "ai.onnx.ml"},
    {"BitCast", 26, bit_cast},
    {"Compress", 9, compress},
    {"Gather", 1, gather_of},
    {"GatherElements", 11, gather_elements},
    {"GatherND", 11, gather_nd},
    {"NonZero", 9, nonzero_of},
    {"OneHot", 9, one_hot_of},
    {"Scatter", 9, scatter_elements},
    {"ScatterElements", 11, scatter_elements},
    {"ScatterND", 11, scatter_nd},
    {"TensorScatter", 24, tensor_scatter},
    {"TfIdfVectorizer", 9, tf_idf_vectorizer},
    {"Unique", 11, unique_of},
});

}  // namespace

std::span<const Row> index_rows() noexcept { return kIndexRows; }

}  // namespace tenon::onnx
