#include "backends/cpu/pointwise/interpreter.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/pointwise/conversion.h"

namespace tenon::cpu {

namespace {

// Partial tiles are rounded up to whole vectors of any target, over padded copies of the caller's memory, so
// that no primitive has a tail of its own. Of longer ones only what is less than a vector is copied.
constexpr size_t kMostPadded = 256;
constexpr size_t kAlignment = 64;

constexpr size_t round_up(size_t n) {
  return (n + Program::kGranule - 1) / Program::kGranule * Program::kGranule;
}

// Registers and padded copies of one thread; grows to what the largest program needs.
std::byte* scratch(size_t bytes) {
  static thread_local std::vector<std::byte> memory;
  if (memory.size() < bytes + kAlignment) memory.resize(bytes + kAlignment);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  return memory.data() + (kAlignment - address % kAlignment) % kAlignment;
}

template <class T>
void fill(std::byte* to, size_t n, T value) {
  std::fill_n(reinterpret_cast<T*>(to), n, value);
}

}  // namespace

void Program::execute(const std::vector<Instruction>& list, void* const* places, size_t n, CpuTarget target) {
  for (const Instruction& i : list) {
    void* const ptrs[4] = {places[i.to], places[i.from[0]], places[i.from[1]], places[i.from[2]]};
    i.kernels[static_cast<int>(target)](ptrs, n, i.context, i.repeated);
  }
}

// A line of the cache more than a tile: registers of whole pages would all begin in one place of the cache.
size_t Program::register_bytes() const noexcept { return tile_ * register_item_size_ + kAlignment; }

void Program::fill_constants(std::byte* registers, const void* numbers) const {
  for (const Constant& c : constants_) {
    uint64_t bits = c.bits_or_index;
    if (c.is_number) bits = static_cast<const uint64_t*>(numbers)[c.bits_or_index];
    std::byte* const to = registers + c.to * register_bytes();
    c.item_size == 4 ? fill(to, uniform_elements_, static_cast<uint32_t>(bits))
                     : fill(to, uniform_elements_, bits);
  }
}

void Program::run(void* const* ptrs, size_t n, const void* numbers, CpuTarget target) const {
  if (n == 0) return;
  const size_t tile_bytes = register_bytes();
  const size_t num_places = size_t{num_registers_} + num_inputs_ + num_outputs_;
  const size_t table_bytes = (num_places * sizeof(void*) + kAlignment - 1) / kAlignment * kAlignment;
  std::byte* const memory = scratch(table_bytes + num_places * tile_bytes);
  void** const places = reinterpret_cast<void**>(memory);
  std::byte* const tiles = memory + table_bytes;
  for (size_t r = 0; r < num_registers_; ++r) places[r] = tiles + r * tile_bytes;
  fill_constants(tiles, numbers);
  execute(uniform_, places, uniform_elements_, target);

  void** const inputs = places + num_registers_;
  void** const outputs = inputs + num_inputs_;
  for (size_t begin = 0, count = 0; begin < n; begin += count) {
    count = std::min(tile_, n - begin);
    if (count > kMostPadded) count -= count % kGranule;
    const size_t rounded = round_up(count);
    const bool padded = rounded != count;
    for (size_t i = 0; i < size_t{num_inputs_} + num_outputs_; ++i) {
      const bool is_output = i >= num_inputs_;
      const size_t p = is_output ? i - num_inputs_ : i + num_outputs_, size = item_sizes_[i];
      std::byte* const user = static_cast<std::byte*>(ptrs[p]) + begin * size;
      inputs[i] = padded ? tiles + (num_registers_ + i) * tile_bytes : user;
      if (padded && !is_output) {
        std::memcpy(inputs[i], user, count * size);
        std::memset(static_cast<std::byte*>(inputs[i]) + count * size, 0, (rounded - count) * size);
      }
    }
    execute(body_, places, rounded, target);
    for (const Store& s : stores_) {
      if (s.conversion) {
        run_conversion(std::array<void*, 2>{places[s.to], places[s.from]}.data(), count, s.conversion);
      } else {
        const size_t output = s.to - num_registers_;
        std::memmove(places[s.to], places[s.from], count * item_sizes_[output]);
      }
    }
    for (size_t i = 0; padded && i < num_outputs_; ++i) {
      const size_t size = item_sizes_[num_inputs_ + i];
      std::memcpy(static_cast<std::byte*>(ptrs[i]) + begin * size, outputs[i], count * size);
    }
  }
}

void Program::call(const void* program, void* const* ptrs, size_t n, const void* numbers) {
  static_cast<const Program*>(program)->run(ptrs, n, numbers);
}

}  // namespace tenon::cpu
