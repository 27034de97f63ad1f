// TensorReader: tensors of a model's file, and of the files that it names. Of this room alone.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tenon/core/tensor.h"
#include "tenon/io/input.h"
#include "tenon/onnx/protobuf.h"

namespace tenon::onnx {

class TensorReader {
 public:
  /// `folder`: the folder of external data; absent where there may be none. `input` outlives the reader.
  TensorReader(const io::Input& input, std::optional<std::string> folder);

  /// The file's bytes.
  data_view bytes() const noexcept { return {begin_, size_}; }

  struct Named {
    std::string name;
    Tensor tensor;          ///< Undefined for a type that Tenon does not have.
    std::string_view type;  ///< By the standard's name.
  };
  /// A TensorProto or a SparseTensorProto. Throws Error{Value} for damaged ones, and for external data that
  /// is not in the folder.
  Named read(pbf_reader message);
  Named read_sparse(pbf_reader message);

 private:
  struct External {
    std::string location;
    std::optional<uint64_t> offset, length;
  };
  [[noreturn]] void refuse(std::string_view tensor, const std::string& what) const;
  /// Throws for tensors that take far more memory than the file has bytes.
  void count_copy(uint64_t size, std::string_view tensor);
  External external(pbf_reader entry, External so_far) const;
  Storage external_bytes(const External& from, uint64_t size, size_t alignment, std::string_view tensor);

  const io::Input& input_;
  const std::optional<std::string> folder_;
  Storage file_;
  const char* begin_ = nullptr;
  size_t size_ = 0;
  uint64_t copied_ = 0;
  std::map<std::string, io::Input> others_;  // by path
};

}  // namespace tenon::onnx
