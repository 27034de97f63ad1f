#include "backends/cpu/rows/row_scratch.h"

namespace tenon::cpu {
namespace {

// Bytes of one element of what is computed for a reducer, and of one value of a row, at most.
constexpr int64_t kTempBytes = 8;

int64_t bytes_of(expr::Type t) { return static_cast<int64_t>(expr::item_size(t)); }

}  // namespace

RowScratch::RowScratch(const RowCall& call, const expr::RowPasses& cut, int64_t piece, std::span<char> room)
    : buffers(call.operands()),
      row_buffers(call.operands()),
      values(cut.values.size()),
      spread(cut.values.size()),
      kept(cut.kept.size()),
      temp_bytes(std::min(piece, call.length) * kTempBytes) {
  SmallVector<Want, 32> wanted;
  const auto want = [&](Bytes& to, int64_t bytes) {
    constexpr auto kUnit = static_cast<int64_t>(kAlign);
    // Kernels may read a vector beyond the end.
    wanted.push_back({&to, (bytes + 64 + kUnit - 1) / kUnit * kUnit});
  };
  const int64_t lanes = call.panel, row = call.length * lanes;
  const int64_t places = std::min(piece, call.length);
  const int64_t count = call.across() ? call.panel : call.group;  // values of rows at a time
  const size_t inputs = call.e.num_inputs;
  const auto elements_of = [&](size_t i) {
    if (call.by_places) return lanes;
    if (i >= inputs || !call.whole) return places * lanes;
    return call.same[i] ? row : row * call.group;
  };
  for (size_t i = 0; i < call.operands(); ++i) {
    if (call.is_of_rows(i))
      want(row_buffers[i], count * kTempBytes);
    else if (!call.direct[i] || (!call.streamed.empty() && call.streamed[i]))
      want(buffers[i], elements_of(i) * call.item(i));
  }
  for (size_t v = 0; v < values.size(); ++v) {
    want(values[v], count * kTempBytes);
    if (call.across()) want(spread[v], piece * lanes * bytes_of(cut.values[v]));
  }
  for (size_t k = 0; k < kept.size(); ++k) want(kept[k], row * call.group * bytes_of(cut.kept[k]));
  want(position, places * lanes * kTempBytes);
  size_t reducers = 0;
  for (const expr::RowPass& pass : cut.passes) {
    first_reducer.push_back(reducers);
    reducers += pass.reducers.size();
  }
  temps.resize(2 * reducers);
  for (Bytes& b : temps) want(b, temp_bytes * lanes * call.group);
  place({wanted.data(), wanted.size()}, room);
}

void RowScratch::place(std::span<const Want> wanted, std::span<char> room) {
  for (const Want& w : wanted) nbytes_ += static_cast<size_t>(w.bytes);
  char* at = room.data();
  if (nbytes_ > room.size()) {
    // Not of the library's allocator: what is not touched costs nothing.
    memory_ = std::make_unique_for_overwrite<char[]>(nbytes_ + kAlign);
    at = memory_.get() + (kAlign - reinterpret_cast<uintptr_t>(memory_.get()) % kAlign) % kAlign;
  }
  for (const Want& w : wanted) {
    *w.to = at;
    at += w.bytes;
  }
}

}  // namespace tenon::cpu
