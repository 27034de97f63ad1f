// safetensors: files of tensors that C++, Python and other programs read and write.
//
//     tenon::safetensors::save_file(model.state_dict(), "model.safetensors");
//     model.load_state_dict(tenon::safetensors::load_file("model.safetensors"));
//
// Files hold a checksum of all their bytes (docs/weights.md), which programs that do not know it pass over.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tenon/io/state_dict.h"

namespace tenon {

/// How files of weights are read.
struct LoadOptions {
  /// Tensors are parts of the mapped file, where it has them at a multiple of their element's size: nothing
  /// is read until it is used, and the checksum is not looked at. Writing to such a tensor does not reach the
  /// file. Only for files that no program changes in place meanwhile; docs/weights.md says what happens
  /// otherwise.
  bool mmap = false;
};

namespace safetensors {

/// Texts by name that a file holds besides its tensors.
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// Replaces the file at `path`, completely or not at all (tenon/io/replace_file.h). Tensors of any stride and
/// device; those that share memory are written separately. Throws Error{Type} for a dtype that the format
/// does not have (complex128, quantized), Error{Value} for a name that it does not allow, and
/// io::SystemError.
void save_file(const StateDict& tensors, const std::string& path, const Metadata& metadata = {});
/// The bytes of such a file.
std::string save(const StateDict& tensors, const Metadata& metadata = {});

/// All tensors, in host memory: parts of the mapped file, unless `{.mmap = false}` has it read and its
/// checksum verified. Throws Error{Value} for a file that is damaged or of another kind, which names the
/// place and the tensor, for one with a tensor of a dtype that Tenon does not have (File reads the others),
/// and io::SystemError.
StateDict load_file(const std::string& path, LoadOptions options = {.mmap = true});
StateDict load(std::span<const std::byte> bytes);

/// A file from which single tensors are read.
class File {
 public:
  /// Reads the header. The checksum is not looked at. Throws as load_file does.
  explicit File(const std::string& path, LoadOptions options = {.mmap = true});
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();

  std::vector<std::string> keys() const;
  /// What the header says of a tensor: its dtype as the format names it, "F32", which Tenon may not have.
  struct Row {
    std::string name, dtype;
    Dims sizes;
  };
  /// Of all tensors, in the order of their bytes.
  std::vector<Row> rows() const;
  const Metadata& metadata() const noexcept;
  /// Whether the file has metadata, be it none by name.
  bool has_metadata() const noexcept;
  /// Throws Error{Value} for a name that is not there, and for a dtype that Tenon does not have.
  Tensor tensor(std::string_view name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace safetensors
}  // namespace tenon
