#include "tenon/io/pickled.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <unordered_set>

#include "tenon/generated/functions.h"
#include "tenon/io/utf8.h"

namespace tenon::io {
namespace {

// Conjugated and negated copies may take as much as the file's storages, and that much in any case.
constexpr uint64_t kLeastForCopies = uint64_t{32} << 20;

/// Where a value that `wanted` accepts is inside another, as Python would write it: "['model']['0.weight']".
/// Empty if there is none.
std::string place_in(const Node* root, const std::function<bool(const Node&)>& wanted,
                     std::unordered_set<const Node*>& seen) {
  if (!std::holds_alternative<Node::List>(root->value) || !seen.insert(root).second) return {};
  const bool is_dict = root->kind == Value::Kind::Dict;
  for (size_t i = is_dict; i < root->list().size(); i += 1 + is_dict) {
    const Node* const value = root->list()[i];
    const std::string rest = place_in(value, wanted, seen);
    if (rest.empty() && !wanted(*value)) continue;
    const Node* const key = is_dict ? root->list()[i - 1] : nullptr;
    if (!key) return fmt::format("[{}]{}", i, rest);
    if (key->kind == Value::Kind::Text) return fmt::format("['{}']{}", shown(key->text()), rest);
    const auto* const number = std::get_if<int64_t>(&key->value);
    return fmt::format("[{}]{}", number ? std::to_string(*number) : "...", rest);
  }
  return {};
}

/// Storages whose elements are those of others, conjugated or negated, which Tenon does not do when they are
/// read. One serves all tensors over the same storage, which share their memory as they did.
class Copies {
 public:
  explicit Copies(std::span<const Storage> storages) : storages_(storages) {
    for (const Storage& storage : storages) left_ += storage.nbytes();
    left_ = std::max(left_, kLeastForCopies);
  }
  const Storage& of(const Input& input, uint64_t offset, const CheckpointObjects::View& view) {
    if (!view.conj && !view.neg) return storages_[view.storage];
    const auto [found, first] =
        made_.try_emplace(std::tuple(view.storage, view.dtype, view.conj, view.neg), std::nullopt);
    if (first) {
      const Storage& storage = storages_[view.storage];
      if (storage.nbytes() > left_)
        input.refuse(offset,
                     "its conjugated and negated tensors take more memory than the file has bytes; save "
                     "them with resolve_conj() and resolve_neg()");
      left_ -= storage.nbytes();
      const Dims all{static_cast<int64_t>(storage.nbytes() / item_size(view.dtype))};
      Tensor elements(TensorImpl::make(storage, view.dtype, all));
      if (view.conj) elements = conj_physical(elements);
      if (view.neg) elements = neg(elements);
      found->second = elements.storage();
    }
    return *found->second;
  }

 private:
  std::span<const Storage> storages_;
  uint64_t left_ = 0;
  std::map<std::tuple<size_t, DType, bool, bool>, std::optional<Storage>> made_;
};

}  // namespace

Pickled::Pickled(const Input& input, CheckpointObjects::Writer writer, std::string_view pickle,
                 uint64_t offset, Rest rest)
    : input_(input), pickle_(pickle), offset_(offset), objects_(writer, pickle.size()) {
  try {
    root_ = unpickle(pickle, size_, *nodes_, objects_);
    if (rest == Rest::None && size_ != pickle.size()) refuse_pickle("bytes follow its end");
    objects_.use(text_bytes());
  } catch (const PickleError& error) {
    if (rest == Rest::Unread && error.ended) throw;
    input.refuse(offset + size_, "the pickle cannot be read: " + error.what);
  }
  refuse_absent_dtypes();
}

void Pickled::refuse_absent_dtypes() const {
  const auto view_of = [&](const Node& node) -> const CheckpointObjects::View* {
    const auto* const unread = std::get_if<Unread>(&node.value);
    return unread && !objects_.views()[unread->view].absent.empty() ? &objects_.views()[unread->view]
                                                                    : nullptr;
  };
  const auto found =
      std::ranges::find_if(nodes_->all, [&](const Node& node) { return node.reached && view_of(node); });
  if (found == nodes_->all.end()) return;
  std::unordered_set<const Node*> seen;
  const std::string place = place_in(
      root_, [&](const Node& node) { return view_of(node) == view_of(*found); }, seen);
  input_.refuse(offset_,
                fmt::format("tensor {}of shape {} is {}, a dtype that Tenon does not have; convert it "
                            "with PyTorch, and save it again",
                            place.empty() ? "" : place + " ", to_string(view_of(*found)->sizes),
                            view_of(*found)->absent));
}

bool Pickled::in_pickle(std::string_view text) const {
  const std::less_equal<const char*> before;
  return !text.empty() && before(pickle_.data(), text.data()) &&
         before(text.data() + text.size(), pickle_.data() + pickle_.size());
}

/// The bytes of the texts of the value that are parts of the pickle.
uint64_t Pickled::text_bytes() const {
  uint64_t total = 0;
  for (const Node& node : nodes_->all)
    if (const auto* const text = std::get_if<std::string_view>(&node.value);
        text && node.reached && in_pickle(*text))
      total += text->size();
  return total;
}

/// Copies the texts that are part of the value out of the pickle, and forgets everything else in it.
void Pickled::keep_texts() {
  std::string& kept = nodes_->texts.emplace_back();
  kept.reserve(text_bytes());
  for (Node& node : nodes_->all) {
    if (!node.reached) node.value = std::monostate();
    auto* const text = std::get_if<std::string_view>(&node.value);
    if (!text || !in_pickle(*text)) continue;
    kept += *text;
    *text = std::string_view(kept).substr(kept.size() - text->size());
  }
}

Value Pickled::value(std::vector<Storage> storages, const Place& place) {
  for (size_t i = 0; i < storages.size(); ++i)
    storages[i] = placed(place, std::move(storages[i]), this->storages()[i].location);
  Copies copies(storages);
  for (const CheckpointObjects::View& view : objects_.views()) {
    if (!view.node->reached) continue;
    Tensor tensor(TensorImpl::make(copies.of(input_, offset_, view), view.dtype, view.sizes, view.strides,
                                   view.offset));
    if (view.requires_grad) tensor.requires_grad_();
    view.node->value = std::move(tensor);
  }
  keep_texts();
  return Value(nodes_, root_);
}

Storage placed(const Place& place, Storage storage, const std::string& location) {
  if (!place) return storage;
  const uint64_t needed = storage.nbytes();
  Storage out = place(std::move(storage), location);
  TENON_CHECK(out.nbytes() >= needed, Value,
              fmt::format("load: map_location returned a storage of {} bytes, and tensors need {}",
                          out.nbytes(), needed));
  return out;
}

}  // namespace tenon::io
