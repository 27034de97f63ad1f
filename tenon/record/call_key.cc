// The words of a call's key, and typed calls that were recorded before.
#include <algorithm>
#include <bit>
#include <cstring>

#include "tenon/record/record_call.h"
#include "tenon/record/recorder.h"
#include "tenon/record/sink_scope.h"

namespace tenon::record {

CallKey::CallKey(const OperatorInfo& info, Recorder& recorder)
    : recorder_(recorder), special_(info.special), numbers_(info.numbers) {
  recorder_.special_arguments_ = 0;
  recorder_.key_.clear();
  recorder_.numbers_.clear();
  word(reinterpret_cast<uintptr_t>(&info));
  word(static_cast<uint64_t>(default_dtype()));
}

void CallKey::word(uint64_t w) { recorder_.key_.push_back(w); }

void CallKey::tensor(const Tensor& t) {
  word(static_cast<uint64_t>(CellTag::Tensor));
  if (!t.defined()) return word(kNoSlot);
  const TensorImpl& impl = *t.impl();
  StorageImpl& storage = *impl.storage();
  refused_ |= recorder_.refuses(t) != nullptr || (storage.is_pending() && storage.work() != &recorder_);
  if (refused_) return;
  uint32_t slot = recorder_.slot_of(storage);
  const bool is_new = slot == kNoSlot;
  if (is_new) slot = recorder_.add_input(impl);
  const size_t n = static_cast<size_t>(impl.ndim());
  uint64_t words[3 + 2 * TensorHeader::kInlineDims];
  size_t at = 0;
  words[at++] = slot | static_cast<uint64_t>(impl.dtype()) << 32 | static_cast<uint64_t>(n) << 40 |
                uint64_t{impl.is_wrapped_number()} << 48 | uint64_t{is_new} << 49;
  if (is_new) words[at++] = storage.nbytes();
  words[at++] = static_cast<uint64_t>(impl.offset() - recorder_.segment_.slots[slot].begin_of(impl.dtype()));
  auto& key = recorder_.key_;
  if (n <= TensorHeader::kInlineDims) {
    for (const int64_t size : impl.sizes()) words[at++] = static_cast<uint64_t>(size);
    for (const int64_t stride : impl.strides()) words[at++] = static_cast<uint64_t>(stride);
    key.insert(key.end(), words, words + at);
    return;
  }
  key.insert(key.end(), words, words + at);
  key.insert(key.end(), impl.sizes().begin(), impl.sizes().end());
  key.insert(key.end(), impl.strides().begin(), impl.strides().end());
}

void CallKey::tensors(std::span<const Tensor> list) {
  word(static_cast<uint64_t>(CellTag::TensorList) | list.size() << 8);
  for (const Tensor& t : list) tensor(t);
}

void CallKey::scalar(const Scalar& s, size_t argument) {
  // Of integers it matters whether they are negative and whether they fit int32: the rest is a number.
  const int64_t whole = s.is_integral() ? s.to_int() : 0;
  const uint64_t range = static_cast<uint64_t>(whole < 0) | uint64_t{whole != static_cast<int32_t>(whole)}
                                                                << 1;
  word(static_cast<uint64_t>(CellTag::Scalar) | static_cast<uint64_t>(s.kind()) << 8 | range << 16);
  if (is_number(argument)) {
    const bool special = !special_.empty() && std::ranges::find(special_, s.to_double()) != special_.end();
    if (!special) return recorder_.numbers_.push_back(s);
    recorder_.special_arguments_ |= uint64_t{1} << argument;
    word(~uint64_t{0});
  }
  word(std::bit_cast<uint64_t>(s.to_double()));
  word(static_cast<uint64_t>(s.to_int()));
  word(s.is_beyond_int64() ? s.to_uint() : std::bit_cast<uint64_t>(s.to_complex().imag()));
}

void CallKey::real(double value, size_t argument) {
  word(static_cast<uint64_t>(CellTag::Float));
  if (is_number(argument)) return recorder_.numbers_.push_back(value);
  word(std::bit_cast<uint64_t>(value));
}

void CallKey::integer(int64_t value, size_t argument) {
  word(static_cast<uint64_t>(CellTag::Int));
  if (is_number(argument)) return recorder_.numbers_.push_back(value);
  word(static_cast<uint64_t>(value));
}

void CallKey::integers(std::span<const int64_t> list) {
  word(static_cast<uint64_t>(CellTag::IntList) | list.size() << 8);
  for (const int64_t value : list) word(static_cast<uint64_t>(value));
}

void CallKey::boxed(const Stack& stack, size_t at, size_t argument) {
  const CellTag tag = stack.tag(at);
  const auto add_list = [&](const auto& list) {
    word(static_cast<uint64_t>(tag) | list.size() << 8);
    for (const auto& value : list) word(std::bit_cast<uint64_t>(static_cast<double>(value)));
  };
  switch (tag) {
    case CellTag::None:
      return none();
    case CellTag::Tensor:
      return tensor(stack.at<Tensor>(at));
    case CellTag::TensorList:
      return tensors(stack.at<CellList<Tensor>>(at).span());
    case CellTag::Scalar:
      return scalar(stack.at<Scalar>(at), argument);
    case CellTag::Float:
      return real(stack.at<double>(at), argument);
    case CellTag::Int:
      return integer(stack.at<int64_t>(at), argument);
    case CellTag::IntList:
      return integers(stack.at<CellList<int64_t>>(at).span());
    case CellTag::Str:
      return add_list(stack.at<CellList<char>>(at));
    case CellTag::FloatList:
      return add_list(stack.at<CellList<double>>(at));
    case CellTag::BoolList:
      return add_list(stack.at<CellList<bool>>(at));
    case CellTag::ScalarList: {
      const auto& list = stack.at<CellList<Scalar>>(at);
      word(static_cast<uint64_t>(tag) | list.size() << 8);
      for (const Scalar& s : list) scalar(s, 64);
      return;
    }
    default: {
      uint64_t bits;
      std::memcpy(&bits, const_cast<Stack&>(stack).cells() + at, sizeof bits);
      return small(tag, bits);
    }
  }
}

void CallKey::end() { word(recorder_.segment_.slots.size()); }  // new results get the numbers from here on

TypedCall::TypedCall(OperatorEntry& entry) : recorder_(Recorder::current()) {
  locked_ = !tenon::detail::single_threaded();
  if (locked_) recorder_.mutex_.lock();
  const auto* info = static_cast<const OperatorInfo*>(entry.record_info.load(std::memory_order_acquire));
  const bool open = !recorder_.scopes_.empty() && !recorder_.late_error_ && !call_sink;
  if (info && open && info->kind == OperatorInfo::Kind::Recorded) key_.emplace(*info, recorder_);
}

TypedCall::~TypedCall() {
  if (locked_) recorder_.mutex_.unlock();
}

bool TypedCall::record(void* frame, std::span<Tensor> results) {
  if (key_->refused()) return false;
  key_->end();
  Recorder& r = recorder_;
  TrieNode* const node = r.trie_->find(r.cursor_, r.key_);
  // What may have to be computed now is the boxed path's.
  if (!node || !node->is_recorded() || r.has_to_check_caps()) return false;
  r.check_number(*node);
  r.append(node, note_source(frame));
  size_t next = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (node->results[i].kind == Result::Kind::Output) results[i] = r.make_output(node->outputs[next++]);
  }
  return true;
}

}  // namespace tenon::record
