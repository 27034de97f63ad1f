#include "tenon/core/host_cache.h"

#include <sys/mman.h>

#include <bit>
#include <new>

namespace tenon {
namespace {

constexpr size_t kStepsPerDoubling = 8;
constexpr size_t kLargestBin = size_t{256} << 20;
constexpr size_t kLargeStep = size_t{32} << 20;
// How often the system is asked what it has left: 30 microseconds for as many bytes as take 20 milliseconds
// to write.
constexpr size_t kTrafficBetweenLooks = size_t{256} << 20;

constexpr size_t round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

void* map_anonymous(size_t bytes) noexcept {
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

/// Maps a block that starts on a huge page, if the address space allows it.
void* map_huge(size_t bytes) noexcept {
  constexpr size_t kPage = HostCache::kHugePage;
  void* block = map_anonymous(bytes);
  if (block && reinterpret_cast<uintptr_t>(block) % kPage != 0) {
    // Newer kernels align by themselves; with others a longer mapping has such a block in it.
    if (void* longer = map_anonymous(bytes + kPage)) {
      ::munmap(block, bytes);
      auto* start = static_cast<char*>(longer);
      char* aligned = start + (kPage - reinterpret_cast<uintptr_t>(start) % kPage) % kPage;
      if (aligned != start) ::munmap(start, static_cast<size_t>(aligned - start));
      if (char* end = aligned + bytes; end != start + bytes + kPage)
        ::munmap(end, static_cast<size_t>(start + bytes + kPage - end));
      block = aligned;
    }
  }
#ifdef MADV_HUGEPAGE
  if (block) ::madvise(block, bytes, MADV_HUGEPAGE);
#endif
  return block;
}

}  // namespace

struct HostCache::Kept {
  size_t bytes;
  Kept* next;  // in the bin, kept longer ago
  Kept* previous;
  Kept* newer;  // among all
  Kept* older;
};

HostCache::HostCache(size_t limit, MemoryFlow& mapped, size_t (*available)() noexcept) noexcept
    : limit_(limit), mapped_(mapped), available_(available) {}

HostCache::~HostCache() { empty(); }

size_t HostCache::block_bytes(size_t nbytes) noexcept {
  if (nbytes > kLargestBin) return round_up(nbytes, kLargeStep);
  return round_up(nbytes, std::bit_floor(nbytes) / kStepsPerDoubling);
}

size_t HostCache::bin_of(size_t bytes) noexcept {
  if (bytes > kLargestBin) return kBins - 1;
  const size_t octave = std::bit_floor(bytes);
  const auto doublings = static_cast<size_t>(std::countr_zero(octave) - std::countr_zero(kMinBlock));
  return doublings * kStepsPerDoubling + (bytes - octave) / (octave / kStepsPerDoubling);
}

void* HostCache::map(size_t bytes) noexcept {
  void* block = bytes >= kHugeBlock ? map_huge(bytes) : map_anonymous(bytes);
  if (block) mapped_.add(static_cast<int64_t>(bytes));
  return block;
}

void HostCache::unmap(void* address, size_t bytes) noexcept {
  mapped_.subtract(static_cast<int64_t>(bytes));
  // A process with the most mappings that it may have cannot split one; then the pages go, at least.
  if (::munmap(address, bytes) != 0) ::madvise(address, bytes, MADV_DONTNEED);
}

void HostCache::unlink(Kept* block) noexcept {
  (block->previous ? block->previous->next : bins_[bin_of(block->bytes)]) = block->next;
  if (block->next) block->next->previous = block->previous;
  (block->newer ? block->newer->older : newest_) = block->older;
  (block->older ? block->older->newer : oldest_) = block->newer;
  kept_ -= block->bytes;
}

HostCache::Kept* HostCache::take_until(size_t most) noexcept {
  Kept* taken = nullptr;
  while (kept_ > most) {
    Kept* block = oldest_;
    unlink(block);
    block->older = taken;
    taken = block;
  }
  return taken;
}

size_t HostCache::give_back(Kept* blocks) noexcept {
  size_t total = 0;
  while (blocks) {
    Kept* block = blocks;
    blocks = block->older;
    total += block->bytes;
    unmap(block, block->bytes);
  }
  return total;
}

void HostCache::trim(size_t most) noexcept {
  std::unique_lock lock(mutex_);
  Kept* surplus = take_until(most);
  lock.unlock();
  give_back(surplus);
}

bool HostCache::count_traffic(size_t bytes) noexcept {
  traffic_ += bytes;
  if (traffic_ < kTrafficBetweenLooks) return false;
  traffic_ = 0;
  return true;
}

HostCache::Block HostCache::allocate(size_t nbytes) noexcept {
  if (nbytes > PTRDIFF_MAX - kLargeStep) return {};
  const size_t bytes = block_bytes(nbytes);
  std::unique_lock lock(mutex_);
  Kept* inherited = nullptr;
  if (drop_first_) [[unlikely]] {
    drop_first_ = false;
    inherited = take_until(0);
  }
  Kept* block = bins_[bin_of(bytes)];
  while (block && block->bytes != bytes) block = block->next;
  if (block) {
    unlink(block);
    lock.unlock();
    return {.address = block};
  }
  const bool look = count_traffic(bytes) && kept_ > 0;
  lock.unlock();

  give_back(inherited);
  Block fresh{.address = map(bytes), .zeroed = true};
  if (!fresh.address) {
    fresh.emptied = empty();
    fresh.address = map(bytes);  // also when another thread has just emptied it
  } else if (look) {
    // The new block takes memory as it is written to.
    const size_t available = available_();
    trim(available > bytes ? available - bytes : 0);
  }
  return fresh;
}

void HostCache::free(void* address, size_t nbytes) noexcept {
  const size_t bytes = block_bytes(nbytes);
  std::unique_lock lock(mutex_);
  if (bytes > limit_) {
    lock.unlock();
    return unmap(address, bytes);
  }
  Kept*& bin = bins_[bin_of(bytes)];
  auto* block = new (address)
      Kept{.bytes = bytes, .next = bin, .previous = nullptr, .newer = nullptr, .older = newest_};
  if (bin) bin->previous = block;
  bin = block;
  (newest_ ? newest_->newer : oldest_) = block;
  newest_ = block;
  kept_ += bytes;
  Kept* surplus = take_until(limit_);
  const bool look = count_traffic(bytes);
  lock.unlock();

  give_back(surplus);
  if (look) trim(available_());
}

size_t HostCache::empty() noexcept {
  std::unique_lock lock(mutex_);
  Kept* all = take_until(0);
  lock.unlock();
  return give_back(all);
}

size_t HostCache::kept_bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return kept_;
}

size_t HostCache::limit() const noexcept {
  const std::lock_guard lock(mutex_);
  return limit_;
}

void HostCache::set_limit(size_t limit) noexcept {
  std::unique_lock lock(mutex_);
  limit_ = limit;
  Kept* surplus = take_until(limit);
  lock.unlock();
  give_back(surplus);
}

}  // namespace tenon
