#include "memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace openreg {
namespace {

uint64_t rounded_up(uint64_t n) {
  return (n + Memory::kGranularity - 1) / Memory::kGranularity * Memory::kGranularity;
}

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

Memory::Memory(uint64_t limit) : limit_(rounded_up(limit)) {
  file_ = memfd_create("openreg", MFD_CLOEXEC);
  if (file_ < 0) fail("memfd_create");
  if (ftruncate(file_, static_cast<off_t>(limit_)) != 0) fail("ftruncate");
  base_ = reinterpret_cast<uint64_t>(mapped(file_, limit_, PROT_NONE));
  alias_ = mapped(file_, limit_, PROT_READ | PROT_WRITE);
  gaps_[0] = limit_;
}

Memory::~Memory() {
  while (!ranges_.empty()) unreserve(ranges_.begin()->first);
  munmap(reinterpret_cast<void*>(base_), limit_);
  munmap(alias_, limit_);
  ::close(file_);
}

/// A mapping of the file from its beginning, or of nothing if `file` is -1.
char* Memory::mapped(int file, uint64_t nbytes, int protection) {
  const int flags = MAP_NORESERVE | (file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
  void* const address = mmap(nullptr, nbytes, protection, flags, file, 0);
  if (address == MAP_FAILED) fail("mmap");
  // A child of fork has no device: it neither shares its memory nor keeps it alive.
  madvise(address, nbytes, MADV_DONTFORK);
  return static_cast<char*>(address);
}

/// The offset of a gap in the file; limit_ where none is large enough.
uint64_t Memory::take(uint64_t wanted) {
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    const auto [offset, size] = *gap;
    if (size < wanted) continue;
    gaps_.erase(gap);
    if (size > wanted) gaps_[offset + wanted] = size - wanted;
    used_ += wanted;
    return offset;
  }
  return limit_;
}

/// Makes a part of the file a gap, united with its neighbours.
void Memory::give(uint64_t offset, uint64_t size) {
  used_ -= size;
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(size));
  auto next = gaps_.lower_bound(offset);
  if (next != gaps_.end() && next->first == offset + size) {
    size += next->second;
    next = gaps_.erase(next);
  }
  if (next != gaps_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += size;
      return;
    }
  }
  gaps_[offset] = size;
}

uint64_t Memory::allocate(uint64_t nbytes) {
  if (nbytes > limit_) return 0;
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t offset = take(rounded_up(nbytes));
  if (offset == limit_) return 0;
  blocks_[offset] = nbytes;
  return base_ + offset;
}

void Memory::free(uint64_t address, uint64_t nbytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto block = blocks_.find(address - base_);
  if (block == blocks_.end()) throw std::invalid_argument("openreg: no block begins at the address to free");
  const auto [offset, asked] = *block;
  if (asked != nbytes)
    throw std::invalid_argument("openreg: a block of " + std::to_string(asked) +
                                " bytes was freed as one of " + std::to_string(nbytes));
  blocks_.erase(block);
  give(offset, rounded_up(asked));
}

uint64_t Memory::reserve(uint64_t nbytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  char* const range = mapped(-1, nbytes, PROT_NONE);
  const auto address = reinterpret_cast<uint64_t>(range);
  ranges_[address] = {nbytes, mapped(-1, nbytes, PROT_NONE), {}};
  return address;
}

std::map<uint64_t, Memory::Range>::iterator Memory::range_of(uint64_t address) {
  auto range = ranges_.upper_bound(address);
  if (range == ranges_.begin() || address - (--range)->first >= range->second.nbytes)
    throw std::invalid_argument("openreg: the address is in no reserved range");
  return range;
}

bool Memory::map(uint64_t address, uint64_t nbytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (nbytes > limit_ - used_) return false;
  auto& [begin, range] = *range_of(address);
  std::vector<uint64_t> pieces;
  for (uint64_t n = 0; n < nbytes; n += kMapGranularity) {
    const uint64_t offset = take(kMapGranularity);
    if (offset == limit_) {
      for (const uint64_t piece : pieces) give(piece, kMapGranularity);
      return false;
    }
    pieces.push_back(offset);
  }
  uint64_t at = address - begin;
  for (const uint64_t piece : pieces) {
    put(begin + at, PROT_NONE, piece);
    put(reinterpret_cast<uint64_t>(range.alias) + at, PROT_READ | PROT_WRITE, piece);
    range.pieces[at] = piece;
    at += kMapGranularity;
  }
  return true;
}

/// Puts a granule of the file at an address.
void Memory::put(uint64_t address, int protection, uint64_t offset) {
  void* const there = reinterpret_cast<void*>(address);
  if (mmap(there, kMapGranularity, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file_,
           static_cast<off_t>(offset)) == MAP_FAILED)
    fail("mmap");
  madvise(there, kMapGranularity, MADV_DONTFORK);
}

void Memory::unmap(uint64_t address, uint64_t nbytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto& [begin, range] = *range_of(address);
  for (uint64_t at = address - begin; at < address - begin + nbytes; at += kMapGranularity) {
    const auto piece = range.pieces.find(at);
    if (piece == range.pieces.end()) throw std::invalid_argument("openreg: what is unmapped was not mapped");
    for (const uint64_t there : {begin + at, reinterpret_cast<uint64_t>(range.alias) + at})
      mmap(reinterpret_cast<void*>(there), kMapGranularity, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    give(piece->second, kMapGranularity);
    range.pieces.erase(piece);
  }
}

void Memory::unreserve(uint64_t address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto range = range_of(address);
  munmap(reinterpret_cast<void*>(range->first), range->second.nbytes);
  munmap(range->second.alias, range->second.nbytes);
  ranges_.erase(range);
}

char* Memory::seen_in_range(uint64_t address) const noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto range = ranges_.upper_bound(address);
  if (range == ranges_.begin()) return nullptr;
  --range;
  return range->second.alias + (address - range->first);
}

void Memory::open(uint64_t address, uint64_t nbytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (uint64_t page = address / kGranularity; page * kGranularity < address + nbytes; ++page) {
    if (open_pages_[page]++ == 0 &&
        mprotect(reinterpret_cast<void*>(page * kGranularity), kGranularity, PROT_READ | PROT_WRITE) != 0)
      fail("mprotect");
  }
}

void Memory::close(uint64_t address, uint64_t nbytes) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (uint64_t page = address / kGranularity; page * kGranularity < address + nbytes; ++page) {
    const auto found = open_pages_.find(page);
    if (found == open_pages_.end() || --found->second > 0) continue;
    open_pages_.erase(found);
    mprotect(reinterpret_cast<void*>(page * kGranularity), kGranularity, PROT_NONE);
  }
}

uint64_t Memory::used() const noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return used_;
}

}  // namespace openreg
