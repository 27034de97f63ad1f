// What the names in a checkpoint mean: PyTorch's, and those of files that Python's
// tenon.save wrote. Of this room alone.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/io/unpickler.h"

namespace tenon::io {

class CheckpointObjects final : public Objects {
 public:
  /// A storage: the file keeps it outside the pickle, under a key, or its bytes are in the pickle.
  struct Stored {
    std::string key, location;
    uint64_t nbytes;
    std::string_view bytes = {};
    size_t item = 1;  ///< Bytes of an element, as its first tensor has it.
  };
  /// A tensor over such a storage.
  struct View {
    Node* node;
    size_t storage;
    DType dtype;
    Dims sizes, strides;
    int64_t offset;
    bool requires_grad;
    bool conj = false, neg = false;  ///< The values are those of the storage, conjugated or negated.
    std::string_view absent = {};    ///< A dtype that Tenon does not have; the tensor cannot be read.
  };

  /// Legacy: PyTorch before 1.6.
  enum class Writer : uint8_t { PyTorch, Legacy, Tenon };

  CheckpointObjects(Writer writer, uint64_t pickle_bytes) : writer_(writer), allowance_(pickle_bytes) {}

  Node* named(Nodes& nodes, std::string_view name) override;
  Node* call(Nodes& nodes, std::string_view function, const Node::List& arguments) override;
  /// Refused in PyTorch's files, as torch.load(weights_only=True) refuses them.
  Node* frozenset(Nodes& nodes, Node::List elements) override;
  Node* persistent(Nodes& nodes, const Node& id) override;

  /// Counts what else is copied out of the pickle. Throws PickleError.
  void use(uint64_t bytes) { allowance_.use(bytes); }

  const std::vector<Stored>& storages() const noexcept { return storages_; }
  const std::vector<View>& views() const noexcept { return views_; }

 private:
  Node* rebuild_tensor(Nodes& nodes, std::string_view function, const Node::List& arguments);
  Node* rebuild_own_tensor(Nodes& nodes, const Node::List& arguments);
  Node* rebuild_parameter(Nodes& nodes, std::string_view function, const Node::List& arguments);
  Node* add_view(Nodes& nodes, View view, bool is_parameter);
  /// A list that a call copies.
  Node::List copy_of(const Node::List& list);

  const Writer writer_;
  Allowance allowance_;
  std::vector<Stored> storages_;
  std::unordered_map<std::string, size_t> numbers_;  // of storages by key
  std::vector<View> views_;
};

}  // namespace tenon::io
