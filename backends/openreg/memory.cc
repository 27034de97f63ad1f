#include "memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <stdexcept>
#include <system_error>

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
  base_ = reinterpret_cast<uint64_t>(mapped(file_, PROT_NONE));
  alias_ = mapped(file_, PROT_READ | PROT_WRITE);
  gaps_[0] = limit_;
}

Memory::~Memory() {
  munmap(reinterpret_cast<void*>(base_), limit_);
  munmap(alias_, limit_);
  ::close(file_);
}

char* Memory::mapped(int file, int protection) {
  void* const address = mmap(nullptr, limit_, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (address == MAP_FAILED) fail("mmap");
  // A child of fork has no device: it neither shares its memory nor keeps it alive.
  madvise(address, limit_, MADV_DONTFORK);
  return static_cast<char*>(address);
}

uint64_t Memory::allocate(uint64_t nbytes) {
  if (nbytes > limit_) return 0;
  const uint64_t wanted = rounded_up(nbytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    const auto [offset, size] = *gap;
    if (size < wanted) continue;
    gaps_.erase(gap);
    if (size > wanted) gaps_[offset + wanted] = size - wanted;
    blocks_[offset] = wanted;
    used_ += wanted;
    return base_ + offset;
  }
  return 0;
}

void Memory::free(uint64_t address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto block = blocks_.find(address - base_);
  if (block == blocks_.end()) throw std::invalid_argument("openreg: no block begins at the address to free");
  uint64_t offset = block->first, size = block->second;
  blocks_.erase(block);
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
