#include "tenon/io/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "tenon/core/parallel.h"
#include "tenon/generated/functions.h"
#include "tenon/io/checkpoint_objects.h"
#include "tenon/io/crc32.h"
#include "tenon/io/read_checkpoint.h"
#include "tenon/io/read_safetensors.h"
#include "tenon/io/zip.h"

namespace tenon {
namespace io {
namespace {

constexpr std::string_view kAnyMagic = "tenon checkpoint, ", kOwnMagic = "tenon checkpoint, 2\n";
constexpr std::string_view kPickle = "/data.pkl";
constexpr size_t kStorageAlignment = 16;  // of the largest element

Value unpickled(const Input& input, std::string_view pickle, uint64_t offset, CheckpointObjects& objects) {
  const auto nodes = std::make_shared<Nodes>();
  size_t at = 0;
  try {
    const Node* const root = unpickle(pickle, at, *nodes, objects);
    return Value(nodes, root);
  } catch (const PickleError& error) {
    input.refuse(offset + at, "the pickle cannot be read: " + error.what);
  }
}

/// Where a value is inside another, as Python would write it: "['model']['0.weight']". Empty if it is not.
std::string place_in(const Node* root, const Node* wanted, std::unordered_set<const Node*>& seen) {
  if (!std::holds_alternative<Node::List>(root->value) || !seen.insert(root).second) return {};
  const bool is_dict = root->kind == Value::Kind::Dict;
  for (size_t i = is_dict; i < root->list().size(); i += 1 + is_dict) {
    const Node* const value = root->list()[i];
    const std::string rest = place_in(value, wanted, seen);
    if (value != wanted && rest.empty()) continue;
    const Node* const key = is_dict ? root->list()[i - 1] : nullptr;
    if (!key) return fmt::format("[{}]{}", i, rest);
    if (key->kind == Value::Kind::Text) return fmt::format("['{}']{}", key->text(), rest);
    const auto* const number = std::get_if<int64_t>(&key->value);
    return fmt::format("[{}]{}", number ? std::to_string(*number) : "...", rest);
  }
  return {};
}

/// Throws for a tensor of a dtype that Tenon does not have, of which the file's value has one.
void refuse_absent_dtypes(const Input& input, uint64_t offset, const Value& value,
                          const std::vector<CheckpointObjects::View>& views) {
  const CheckpointObjects::View* found = nullptr;
  std::string place;
  for (const CheckpointObjects::View& view : views) {
    // What a parameter was made of is no value itself, and has no place.
    if (view.absent.empty() || !place.empty()) continue;
    std::unordered_set<const Node*> seen;
    place = place_in(&value.node(), view.node, seen);
    found = &view;
  }
  if (found)
    input.refuse(offset,
                 fmt::format("tensor {}of shape {} is {}, a dtype that Tenon does not have; convert it "
                             "with PyTorch, and save it again",
                             place.empty() ? "" : place + " ", to_string(found->sizes), found->absent));
}

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
    if (const std::string text = zip.text(folder + "/byteorder", *order); text != "little")
      zip.input().refuse(order->offset,
                         fmt::format("the byte order is '{}', and little endian alone is read", text));
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
          0, fmt::format("entry '{}', which a tensor needs, is not in the archive", names.back()));
    zip.check_readable(*entry);
    if (entry->size != storage.nbytes)
      zip.input().refuse(entry->offset,
                         fmt::format("entry '{}' has {} bytes, and a storage of {} is expected", names.back(),
                                     entry->size, storage.nbytes));
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

/// The rest of a file that Python's tenon.save wrote: the pickle's length, a CRC-32, and the pickle, tensors
/// included.
Value read_own(const Input& input) {
  constexpr size_t kHead = 12;
  const std::string head = input.text(kOwnMagic.size(), kHead);
  uint64_t size = 0, sum = 0;
  for (size_t i = 0; i < 8; ++i) size |= uint64_t{static_cast<unsigned char>(head[i])} << (8 * i);
  for (size_t i = 0; i < 4; ++i) sum |= uint64_t{static_cast<unsigned char>(head[8 + i])} << (8 * i);
  const uint64_t start = kOwnMagic.size() + kHead;
  if (size != input.size() - start)
    input.refuse(kOwnMagic.size(),
                 fmt::format("the file says that {} bytes follow, and has {}; it is damaged, or was not "
                             "written whole",
                             size, input.size() - start));
  const std::string pickle = input.text(start, size);
  if (crc32(pickle.data(), pickle.size(), crc32(head.data(), 8)) != sum)
    input.refuse(start,
                 "the file is damaged: its bytes do not have the check sum that was written with them");
  CheckpointObjects objects;
  return unpickled(input, pickle, start, objects);
}

Value dict_of(const StateDict& tensors) {
  const auto nodes = std::make_shared<Nodes>();
  Node::List list;
  for (const auto& [name, tensor] : tensors) {
    list.push_back(add(*nodes, Value::Kind::Text, name));
    list.push_back(add(*nodes, Value::Kind::Tensor, tensor));
  }
  const Node* const root = add(*nodes, Value::Kind::Dict, std::move(list));
  return Value(nodes, root);
}

}  // namespace

bool is_zip(const Input& input) { return input.size() >= 4 && input.text(0, 4) == "PK\3\4"; }

Value read_pytorch(const Input& input, const Place& place) {
  const Zip zip(input);
  const std::string folder = folder_of(zip);
  const std::string name = folder + std::string(kPickle);
  const Zip::Entry& entry = *zip.find(name);
  CheckpointObjects objects;
  Value value = unpickled(input, zip.text(name, entry), entry.offset, objects);
  refuse_absent_dtypes(input, entry.offset, value, objects.views());

  std::vector<Storage> storages = read_storages(zip, folder, objects.storages());
  for (size_t i = 0; place && i < storages.size(); ++i) {
    const CheckpointObjects::Stored& stored = objects.storages()[i];
    storages[i] = place(std::move(storages[i]), stored.location);
    TENON_CHECK(storages[i].nbytes() >= stored.nbytes, Value,
                fmt::format("load: map_location returned a storage of {} bytes, and tensors need {}",
                            storages[i].nbytes(), stored.nbytes));
  }
  for (const CheckpointObjects::View& view : objects.views()) {
    Tensor tensor(
        TensorImpl::make(storages[view.storage], view.dtype, view.sizes, view.strides, view.offset));
    if (view.conj) tensor = conj_physical(tensor);
    if (view.neg) tensor = neg(tensor);
    if (view.requires_grad) tensor.requires_grad_();
    view.node->value = std::move(tensor);
  }
  return value;
}

Value read_checkpoint(const Input& input) {
  if (is_zip(input)) return read_pytorch(input);
  const std::string start = input.text(0, std::min<uint64_t>(input.size(), kOwnMagic.size()));
  if (start == kOwnMagic) return read_own(input);
  if (start.size() > 8 && start[8] == '{') return dict_of(read_safetensors(input));
  if (start.starts_with(kAnyMagic))
    input.refuse(0, "a checkpoint of a later version of Tenon; load it with that version");
  if (start.starts_with("\x80\x02\x8a\x0a"))
    input.refuse(0, "this is PyTorch's format before 1.6; load it with PyTorch, and save it again");
  input.refuse(0, "neither safetensors, nor a zip archive of PyTorch's, nor what tenon.save wrote");
}

}  // namespace io

void save(const StateDict& tensors, const std::string& path) {
  TENON_CHECK(path.ends_with(".safetensors"), Value,
              fmt::format("save: {}: the path must end in .safetensors, which is what C++ writes", path));
  safetensors::save_file(tensors, path);
}

Value load(const std::string& path, LoadOptions options) {
  return io::read_checkpoint(io::Input::file(path, options.mmap));
}

}  // namespace tenon
