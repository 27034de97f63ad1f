// Embedding: rows of a table, by number.
#pragma once

#include <optional>

#include "tenon/nn/module.h"

namespace tenon::nn {

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx;  ///< A row that starts as zeros and gets no gradient.
  DType dtype = default_dtype();
};

/// The rows of `weight` that the input names: [...] -> [..., embedding_dim]. Rows start standard normal.
class Embedding final : public Module {
 public:
  Embedding(int64_t num_embeddings, int64_t embedding_dim, EmbeddingOptions options = {});

  Tensor forward(const Tensor& input) override;
  void reset_parameters();
  std::string extra_repr() const override;

  Tensor weight;  ///< [num_embeddings, embedding_dim]

 private:
  int64_t padding_idx_;  ///< -1: none.
};

}  // namespace tenon::nn
