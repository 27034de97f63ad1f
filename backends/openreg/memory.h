// Memory: what openreg's devices allocate. Its addresses belong to the device: the host faults where it
// touches them outside a guard. The device's own threads see the same bytes elsewhere, so a guard opens
// nothing for them, and a kernel opens nothing for the host.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

namespace openreg {

class Memory {
 public:
  /// What addresses and sizes are multiples of: a page, which is what access is given by.
  static constexpr uint64_t kGranularity = 4096;

  /// At most `limit` bytes can be allocated. Throws std::system_error if the system refuses the mappings.
  explicit Memory(uint64_t limit);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// The address of `nbytes` bytes, rounded up; 0 where no gap is large enough.
  uint64_t allocate(uint64_t nbytes);
  /// Gives a block back, and its pages to the system. Throws std::invalid_argument for what is no block, or a
  /// block that was allocated with another number of bytes.
  void free(uint64_t address, uint64_t nbytes);

  /// What memory is mapped into reserved ranges in.
  static constexpr uint64_t kMapGranularity = uint64_t{2} << 20;
  /// A range of addresses without memory; 0 if the system has none.
  uint64_t reserve(uint64_t nbytes);
  /// Maps memory to part of a range; false, and puts none, where too little is left.
  bool map(uint64_t address, uint64_t nbytes);
  void unmap(uint64_t address, uint64_t nbytes);
  void unreserve(uint64_t address);

  /// Where the device's threads find the byte at a device address.
  char* seen_by_device(uint64_t address) const noexcept {
    if (address >= base_ && address - base_ < limit_) return alias_ + (address - base_);
    return seen_in_range(address);
  }

  /// Gives the host access to the pages of a range until `close` is called as often; guards may overlap.
  void open(uint64_t address, uint64_t nbytes);
  void close(uint64_t address, uint64_t nbytes) noexcept;

  uint64_t limit() const noexcept { return limit_; }
  uint64_t used() const noexcept;

 private:
  /// A reserved range: where the device's threads see it, and which part of the file each granule is.
  struct Range {
    uint64_t nbytes;
    char* alias;
    std::map<uint64_t, uint64_t> pieces;  // offset in the range, offset in the file
  };

  char* mapped(int file, uint64_t nbytes, int protection);
  void put(uint64_t address, int protection, uint64_t offset);
  char* seen_in_range(uint64_t address) const noexcept;
  std::map<uint64_t, Range>::iterator range_of(uint64_t address);
  uint64_t take(uint64_t nbytes);  // of the file
  void give(uint64_t offset, uint64_t nbytes);

  const uint64_t limit_;
  int file_ = -1;
  uint64_t base_ = 0;      // The device's addresses: no access.
  char* alias_ = nullptr;  // The same bytes, for the device's threads.
  mutable std::mutex mutex_;
  std::map<uint64_t, uint64_t> gaps_;              // offset, bytes
  std::unordered_map<uint64_t, uint64_t> blocks_;  // offset, bytes that were asked for
  std::map<uint64_t, Range> ranges_;               // by address
  std::unordered_map<uint64_t, int> open_pages_;   // page, how many guards
  uint64_t used_ = 0;
};

}  // namespace openreg
