#include "tenon/nn/embedding.h"

#include <fmt/format.h>

#include "tenon/generated/embedding/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/nn/init.h"

namespace tenon::nn {

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, EmbeddingOptions options)
    : padding_idx_(options.padding_idx.value_or(-1)) {
  TENON_CHECK(num_embeddings >= 0 && embedding_dim >= 0, Value,
              fmt::format("Embedding: num_embeddings and embedding_dim must not be negative, got {} and {}",
                          num_embeddings, embedding_dim));
  if (options.padding_idx) {
    TENON_CHECK(padding_idx_ >= -num_embeddings && padding_idx_ < num_embeddings, Value,
                fmt::format("Embedding: padding_idx {} is out of range for {} embeddings", padding_idx_,
                            num_embeddings));
    if (padding_idx_ < 0) padding_idx_ += num_embeddings;
  }
  weight = register_parameter("weight", empty({num_embeddings, embedding_dim}, options.dtype));
  reset_parameters();
}

void Embedding::reset_parameters() {
  init::normal_(weight);
  if (padding_idx_ >= 0) init::constant_(weight.detach().select(0, padding_idx_), 0);
}

std::string Embedding::extra_repr() const {
  const std::string sizes = fmt::format("{}, {}", weight.size(0), weight.size(1));
  return padding_idx_ < 0 ? sizes : sizes + fmt::format(", padding_idx={}", padding_idx_);
}

Tensor Embedding::forward(const Tensor& input) { return embedding(weight, input, padding_idx_); }

}  // namespace tenon::nn
