#include "tenon/record/trie.h"

#include <cstring>

namespace tenon::record {
namespace {

bool same(const std::vector<uint64_t>& a, std::span<const uint64_t> b) noexcept {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), b.size_bytes()) == 0;
}

uint64_t hash_of(const TrieNode* parent, std::span<const uint64_t> key) noexcept {
  uint64_t h = reinterpret_cast<uintptr_t>(parent) * 0x9E3779B97F4A7C15u;
  for (const uint64_t word : key) h = (h ^ (h >> 29) ^ word) * 0xBF58476D1CE4E5B9u;
  return h ^ (h >> 32);
}

}  // namespace

TrieNode* Trie::find(TrieNode* parent, std::span<const uint64_t> key) {
  TrieNode* const expected = parent->expected;
  if (expected && same(expected->key, key)) [[likely]]
    return expected;
  const auto [begin, end] = nodes_.equal_range(hash_of(parent, key));
  for (auto it = begin; it != end; ++it) {
    TrieNode* const node = it->second.get();
    if (node->parent != parent || !same(node->key, key)) continue;
    if (node->is_recorded()) parent->expected = node;
    return node;
  }
  return nullptr;
}

TrieNode* Trie::add(TrieNode* parent, std::span<const uint64_t> key) {
  auto node = std::make_unique<TrieNode>();
  node->parent = parent;
  node->hash = hash_of(parent, key);
  node->key.assign(key.begin(), key.end());
  TrieNode* const added = node.get();
  nodes_.emplace(added->hash, std::move(node));
  return added;
}

void Trie::clear() {
  nodes_.clear();
  num_plans_ = 0;
  ++num_cleared_;
  root_ = std::make_unique<TrieNode>();
}

}  // namespace tenon::record
