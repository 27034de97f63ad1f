// Pickled: the pickle of a checkpoint, whose tensors wait for their storages. Of this room alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tenon/io/checkpoint_objects.h"
#include "tenon/io/read_checkpoint.h"

namespace tenon::io {

class Pickled {
 public:
  /// What comes after a pickle in the bytes that it is read from.
  enum class Rest : uint8_t {
    None,     ///< Nothing; bytes there are an error.
    Follows,  ///< Other bytes.
    Unread,   ///< The input has more bytes; PickleError says if the pickle needs them.
  };

  /// Reads the pickle at `offset` of the input. Throws Error{Value} for one that is damaged or holds what no
  /// checkpoint does, and for a tensor of a dtype that Tenon does not have.
  Pickled(const Input& input, CheckpointObjects::Writer writer, std::string_view pickle, uint64_t offset,
          Rest rest = Rest::None);

  const std::vector<CheckpointObjects::Stored>& storages() const noexcept { return objects_.storages(); }
  const std::vector<CheckpointObjects::View>& views() const noexcept { return objects_.views(); }
  /// The value, over these storages. The pickle is no longer used then.
  Value value(std::vector<Storage> storages, const Place& place);

  /// How many bytes the pickle has.
  size_t size() const noexcept { return size_; }
  bool is_circular() const noexcept { return nodes_->is_circular; }

 private:
  void refuse_absent_dtypes() const;
  bool in_pickle(std::string_view text) const;
  uint64_t text_bytes() const;
  void keep_texts();

  const Input& input_;
  const std::string_view pickle_;
  const uint64_t offset_;
  std::shared_ptr<Nodes> nodes_ = std::make_shared<Nodes>();
  CheckpointObjects objects_;
  Node* root_ = nullptr;
  size_t size_ = 0;
};

/// Where `place` wants a storage of host memory that a file has on `location`. Throws Error{Value} for one
/// that is too small.
Storage placed(const Place& place, Storage storage, const std::string& location);

}  // namespace tenon::io
