#include "tenon/io/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "tenon/core/parallel.h"
#include "tenon/io/crc32.h"
#include "tenon/io/node.h"
#include "tenon/io/own_format.h"
#include "tenon/io/pickled.h"
#include "tenon/io/pickler.h"
#include "tenon/io/read_checkpoint.h"
#include "tenon/io/read_legacy.h"
#include "tenon/io/read_safetensors.h"
#include "tenon/io/utf8.h"
#include "tenon/io/zip.h"

namespace tenon {
namespace io {
namespace {

constexpr std::string_view kPickle = "/data.pkl";
constexpr size_t kStorageAlignment = 16;  // of the largest element

/// The name of the folder that the archive's entries are in.
std::string folder_of(const Zip& zip) {
  std::string folder;
  size_t pickles = 0;
  for (const auto& [name, entry] : zip.entries()) {
    if (!name.ends_with(kPickle) || name.find('/') != name.size() - kPickle.size()) continue;
    folder = name.substr(0, name.size() - kPickle.size());
    ++pickles;
  }
  if (pickles != 1)
    zip.input().refuse(
        0, "the zip archive has no data.pkl in a folder of its own, as PyTorch's checkpoints have");
  if (zip.find(folder + "/constants.pkl"))
    zip.input().refuse(0,
                       "this is a TorchScript program; save the state_dict() of its module with torch.save");
  if (const auto* order = zip.find(folder + "/byteorder"))
    if (const Input::Text text = zip.text(folder + "/byteorder", *order); text.view() != "little")
      zip.input().refuse(order->offset, fmt::format("the byte order is '{}', and little endian alone is read",
                                                    shown(text.view())));
  return folder;
}

std::vector<Storage> read_storages(const Zip& zip, const std::string& folder,
                                   const std::vector<CheckpointObjects::Stored>& stored) {
  std::vector<std::string> names;
  std::vector<const Zip::Entry*> entries;
  std::vector<Input::Part> parts;
  for (const auto& storage : stored) {
    names.push_back(fmt::format("{}/data/{}", folder, storage.key));
    const Zip::Entry* const entry = zip.find(names.back());
    if (!entry)
      zip.input().refuse(
          0, fmt::format("entry '{}', which a tensor needs, is not in the archive", shown(names.back())));
    zip.check_readable(*entry);
    if (entry->size != storage.nbytes)
      zip.input().refuse(entry->offset,
                         fmt::format("entry '{}' has {} bytes, and a storage of {} is expected",
                                     shown(names.back()), entry->size, storage.nbytes));
    entries.push_back(entry);
    parts.push_back({entry->offset, entry->size, kStorageAlignment});
  }
  std::vector<Storage> out = zip.input().storages(parts);
  if (zip.input().is_mapped()) return out;
  parallel_for(0, static_cast<int64_t>(out.size()), Input::grain(parts), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      zip.check(names[i], *entries[i],
                crc32(reinterpret_cast<const void*>(out[i].address()), out[i].nbytes()));
  });
  return out;
}

/// A zip archive that PyTorch wrote.
Checkpoint read_pytorch(const Input& input, const ReadOptions& options) {
  const Zip zip(input);
  const std::string folder = folder_of(zip);
  const std::string name = folder + std::string(kPickle);
  const Zip::Entry& entry = *zip.find(name);
  const Input::Text pickle = zip.text(name, entry);
  Pickled pickled(input, CheckpointObjects::Writer::PyTorch, pickle.view(), entry.offset);
  Value value = pickled.value(read_storages(zip, folder, pickled.storages()), options.place);
  return {std::move(value), pickled.is_circular(), input.size()};
}

/// The storages of a pickle that has their bytes itself.
std::vector<Storage> copy_storages(std::span<const CheckpointObjects::Stored> stored) {
  constexpr uint64_t kGrain = uint64_t{4} << 20;
  std::vector<Storage> out;
  uint64_t bytes = 0;
  for (const auto& storage : stored) {
    out.push_back(Storage::allocate(storage.nbytes));
    bytes += storage.nbytes;
  }
  const auto count = static_cast<int64_t>(out.size());
  parallel_for(0, count, bytes > kGrain ? 1 : std::max<int64_t>(count, 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (const std::string_view from = stored[i].bytes; !from.empty())
        std::memcpy(reinterpret_cast<void*>(out[i].address()), from.data(), from.size());
  });
  return out;
}

/// The value of a pickle that Tenon wrote, whose tensors are in it.
Checkpoint read_own_pickle(const Input& input, const ReadOptions& options, uint64_t start,
                           std::string_view pickle, Pickled::Rest rest = Pickled::Rest::None) {
  Pickled pickled(input, CheckpointObjects::Writer::Tenon, pickle, start, rest);
  for (const auto& storage : pickled.storages())
    if (storage.bytes.size() != storage.nbytes)
      input.refuse(start, fmt::format("the storage '{}' of a tensor is not in the file", shown(storage.key)));
  Value value = pickled.value(copy_storages(pickled.storages()), options.place);
  return {std::move(value), pickled.is_circular(), start + pickled.size()};
}

/// A file of the first format, which has neither length nor sum: the pickle says where it ends.
Checkpoint read_first(const Input& input, const ReadOptions& options) {
  constexpr uint64_t kStart = kFirstMagic.size();
  const Input::Text pickle = input.part(kStart, input.size() - kStart);
  return read_own_pickle(input, options, kStart, pickle.view(),
                         options.may_go_on ? Pickled::Rest::Follows : Pickled::Rest::None);
}

/// What tenon.save writes: the pickle's length, the CRC-32 of both, and the pickle.
Checkpoint read_own(const Input& input, const ReadOptions& options) {
  constexpr size_t kHead = 12;
  const std::string head = input.text(kOwnMagic.size(), kHead);
  uint64_t size = 0, sum = 0;
  for (size_t i = 0; i < 8; ++i) size |= uint64_t{static_cast<unsigned char>(head[i])} << (8 * i);
  for (size_t i = 0; i < 4; ++i) sum |= uint64_t{static_cast<unsigned char>(head[8 + i])} << (8 * i);
  constexpr uint64_t kStart = kOwnMagic.size() + kHead;
  uint64_t end = 0;
  if (__builtin_add_overflow(kStart, size, &end) || !input.has(end))
    input.refuse(kOwnMagic.size(),
                 fmt::format("the file says that {} bytes follow, and has {}; it is damaged, or was not "
                             "written whole",
                             size, input.size() - kStart));
  if (!options.may_go_on && input.has(end + 1))
    input.refuse(end, "bytes follow what tenon.save wrote; the file is damaged, or more was appended to it");
  const Input::Text pickle = input.part(kStart, size);
  if (crc32(pickle.view().data(), pickle.view().size(), crc32(head.data(), 8)) != sum)
    input.refuse(kStart,
                 "the file is damaged: its bytes do not have the check sum that was written with them");
  Checkpoint out = read_own_pickle(input, options, kStart, pickle.view());
  pickle.check_whole();
  return out;
}

Checkpoint dict_of(const StateDict& tensors, const ReadOptions& options, uint64_t end) {
  const auto nodes = std::make_shared<Nodes>();
  Node::List list;
  for (const auto& [name, tensor] : tensors) {
    list.push_back(add_text(*nodes, Value::Kind::Text, name));
    Tensor value = tensor;
    if (options.place)
      value = Tensor(
          TensorImpl::make(placed(options.place, tensor.storage(), "cpu"), tensor.dtype(), tensor.sizes()));
    list.push_back(add(*nodes, Value::Kind::Tensor, std::move(value)));
  }
  const Node* const root = add(*nodes, Value::Kind::Dict, std::move(list));
  return {Value(nodes, root), false, end};
}

Checkpoint read_any(const Input& input, const ReadOptions& options) {
  const std::string start = input.text(0, input.has(kOwnMagic.size()) ? kOwnMagic.size() : input.size());
  if (start.starts_with("PK\3\4")) return read_pytorch(input, options);
  if (const auto at = after_legacy_magic(input, start)) return read_legacy(input, options, *at);
  // The header of safetensors follows its length.
  if (start.size() > 8 && std::string_view("{ \t\n\r").find(start[8]) != std::string_view::npos)
    return dict_of(read_safetensors(input), options, input.size());
  const bool is_first = start.starts_with(kFirstMagic);
  if (is_first || start == kOwnMagic) {
    if (options.map)
      input.refuse(
          0, "mmap is for safetensors and PyTorch's checkpoints, and this is one that tenon.save wrote");
    return is_first ? read_first(input, options) : read_own(input, options);
  }
  if (start.starts_with(kAnyMagic))
    input.refuse(0, "this is a checkpoint of a later version of Tenon; load it with that version");
  constexpr size_t kTarMagic = 257;
  if (input.has(kTarMagic + 5) && input.text(kTarMagic, 5) == "ustar")
    input.refuse(0,
                 "this is a tar archive, as PyTorch's first releases wrote; load it with PyTorch, "
                 "weights_only=False, and save it again");
  input.refuse(0, "neither safetensors, nor a checkpoint of PyTorch's, nor what tenon.save wrote");
}

}  // namespace

Checkpoint read_checkpoint(const Input& input, const ReadOptions& options) {
  try {
    return read_any(input, options);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::OutOfMemory,
                fmt::format("load: {}: there is not enough memory to read it", input.name()));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::OutOfMemory) throw;
    throw Error(ErrorKind::OutOfMemory, fmt::format("load: {}: {}", input.name(), error.message()));
  }
}

}  // namespace io

namespace {

bool is_safetensors(const std::string& path) { return path.ends_with(".safetensors"); }

void save_own(const io::Node& root, const std::string& path) {
  const io::OwnCheckpoint checkpoint(root);
  io::replace_file(path, checkpoint.parts());
}

}  // namespace

void save(const StateDict& tensors, const std::string& path) {
  if (is_safetensors(path)) return safetensors::save_file(tensors, path);
  save_own(io::dict_of(tensors, {}, 0).value.node(), path);
}

void save(const Value& value, const std::string& path) {
  if (is_safetensors(path)) return safetensors::save_file(value.state_dict(), path);
  save_own(value.node(), path);
}

void save(const Tensor& tensor, const std::string& path) {
  TENON_CHECK(
      !is_safetensors(path), Value,
      fmt::format("save: {}: a .safetensors file holds tensors by name, and this is one tensor; give it a "
                  "name, save({{{{\"weight\", tensor}}}}, path), or the path another ending",
                  path));
  io::Nodes nodes;
  save_own(*io::add(nodes, Value::Kind::Tensor, tensor), path);
}

Value load(const std::string& path, LoadOptions options) {
  io::Checkpoint read = io::read_checkpoint(io::Input::file(path, options.mmap),
                                            {.place = {}, .may_go_on = false, .map = options.mmap});
  TENON_CHECK(!read.is_circular, Value,
              fmt::format("load: {}: a list or dict contains itself, which a Value cannot show; Python's "
                          "tenon.load reads it",
                          path));
  return std::move(read.value);
}

}  // namespace tenon
