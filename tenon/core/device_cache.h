// DeviceCache: the memory that the caching allocator holds of one device. It takes segments from the device,
// cuts them into blocks, and keeps freed blocks for later requests. Used by CachingAllocator, which has one
// for each device. Independent of tensors.
//
// Pools. A free block serves requests of its own stream only: that stream runs in order, so what it does next
// comes after what it did with the block before. Requests of up to 1 MiB have a pool of their own, so that
// they do not cut large blocks. Private pools serve what is captured.
// Blocks. Sizes are rounded up to the device's granularity. A request takes a free block (BlockBins), whose
// rest becomes a free block again if it is worth it; a freed block unites with free neighbours.
// Segments. Small requests share segments of 2 MiB, those below 10 MiB segments of 20 MiB, larger ones have
// their own. An expandable pool instead has one reserved range of addresses, into which memory is mapped.
// Streams. A block that other streams use is freed when an event on each of them has passed. Its own stream
// needs none, until memory goes back to the device: then the host waits for the streams of that memory.
// Locks. `mutex_` protects everything and is never held while the host waits or takes and returns segments.
// A thread that does either takes `slow_mutex_` before it, one thread at a time: others that find no block
// must see what the first has gained.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tenon/core/device_memory.h"
#include "tenon/core/memory_blocks.h"
#include "tenon/core/memory_history.h"
#include "tenon/core/memory_snapshot.h"
#include "tenon/core/memory_stats.h"
#include "tenon/core/memory_tally.h"

namespace tenon {

inline constexpr size_t kSmallRequest = size_t{1} << 20;  ///< At most; larger ones have the large pool.
inline constexpr size_t kSmallSegment = size_t{2} << 20;
inline constexpr size_t kMiddleRequest = size_t{10} << 20;  ///< Below; larger ones have their own segment.
inline constexpr size_t kMiddleSegment = size_t{20} << 20;

/// What the tests plant in a cache of their own, to see that the model finds it.
enum class CacheFault : uint8_t {
  None,
  NoEvent,            ///< A block that another stream uses is free at once.
  FirstStreamOnly,    ///< Only the first of several streams gets an event.
  FreeingStream,      ///< The stream in whose order a block is freed is ignored.
  OtherStreamsPool,   ///< A pool serves all streams.
  NoMerge,            ///< Free neighbours stay apart.
  LostSplit,          ///< The rest of a block that was split is forgotten.
  ForgottenRest,      ///< The rest is in its segment, but in no bin.
  UncountedSplit,     ///< Statistics miss a rest.
  ReturnsUnwaited,    ///< Memory goes back to the device while its stream still uses it.
  ReturnsAwaiting,    ///< empty() returns segments with blocks that streams may still use.
  NoSearchAfterWait,  ///< Out of memory is raised with a block in the pool that fits (pytorch#189504).
  WaitsInCapture,     ///< Memory is returned and waited for while capturing (pytorch#159594).
  ReturnsCaptured,    ///< A private pool's memory is returned while its graph may run again.
  UnmapsTooMuch,      ///< What is unmapped is rounded outwards.
  KeepsRange,         ///< A reserved range without memory is kept for ever.
};
struct NoFaults {
  static constexpr bool planted(CacheFault) noexcept { return false; }
};

struct CacheOptions {
  bool expandable = false;           ///< New segments are expandable, where the device can map memory.
  size_t max_split_size = SIZE_MAX;  ///< Larger blocks are kept whole, for requests of about their size.
  int fill = -1;                     ///< Freed blocks are filled with this byte in stream order; -1: not.
};

/// One of the pools of a stream.
struct CachePool {
  CachePool(size_t granularity, uint64_t id, Stream stream, bool large) noexcept
      : id(id), stream(stream), large(large), bins(granularity) {}
  uint64_t id;  ///< 0, or that of a private pool.
  Stream stream;
  bool large;
  BlockBins bins;
  MemorySegment* range = nullptr;  ///< Its expandable segment.
};

struct MemorySegment {
  CachePool* pool;
  Address address;
  size_t size;  ///< Of the piece of the device's memory, or of the reserved range.
  bool expandable;
  size_t mapped;  ///< The bytes that it has of the device: for a piece all.
  MemoryBlock* first;
};

template <class Faults>
class BasicDeviceCache {
 public:
  /// Throws Error{Device} if the granularities of `memory` are not as DeviceMemory demands.
  BasicDeviceCache(std::string name, Device device, DeviceMemory& memory, const CacheOptions& options = {});
  /// Returns what is free; blocks in use are leaked, because their addresses are still in use.
  ~BasicDeviceCache();
  BasicDeviceCache(const BasicDeviceCache&) = delete;
  BasicDeviceCache& operator=(const BasicDeviceCache&) = delete;

  /// See Allocator. Throws Error{OutOfMemory} only after everything that may be returned was.
  Address allocate(size_t nbytes, Stream stream);
  void free(Address address, Stream stream) noexcept;
  void record_stream(Address address, Stream stream);
  /// Waits for freed blocks' events, returns what is free, and says how many bytes that was. While something
  /// is captured it does nothing.
  size_t empty();

  /// Creates a private pool. While a capture with it goes on, allocations for `stream` come from it, nothing
  /// is returned to the device, and no event is recorded or waited for. Its memory is kept for it
  /// alone until it is released: a captured graph uses the same addresses each time it runs.
  uint64_t create_pool();
  void release_pool(uint64_t pool) noexcept;
  void begin_capture(uint64_t pool, Stream stream);
  void end_capture(uint64_t pool, Stream stream) noexcept;

  /// Of segments that are taken from now on. Does nothing where the device cannot map memory.
  void set_expandable(bool on);

  /// How many events of a backend the cache has made, and destroying those of them that it does not need now.
  size_t events(Backend backend) const;
  void drop_events(Backend backend) noexcept;

  MemoryStats stats() const;
  void reset_peaks() noexcept;
  void reset_sums() noexcept;
  MemorySnapshot snapshot() const;
  void record_history(size_t max_events);

 private:
  using Lock = std::unique_lock<std::mutex>;
  using State = MemoryBlock::State;
  using Action = MemoryEvent::Action;
  using Stack = std::shared_ptr<const MemoryStack>;
  static constexpr size_t kMostBytes = size_t{1} << 46;  // BlockBins::kMostUnits of the least granularity
  static constexpr size_t kUnknownTotal = size_t{1} << 40;

  /// Freed blocks that a stream may still use, in the order of their events.
  struct AwaitedStream {
    Stream stream;
    std::deque<std::pair<Event, MemoryBlock*>> events;
  };
  struct CapturedStream {
    uint64_t pool;
    uint64_t stream;
  };
  struct StreamPools {
    StreamPools(size_t granularity, uint64_t id, Stream stream)
        : pools{{granularity, id, stream, false}, {granularity, id, stream, true}} {}
    CachePool pools[2];
  };

  // device_cache_impl.h: blocks.
  uint64_t pool_id_for(Stream stream) const noexcept;
  CachePool& pool_for(Stream stream, bool large);
  MemoryBlock* search(CachePool& pool, size_t size);
  Address hand_out(MemoryBlock& block, size_t size, size_t nbytes, Stack stack);
  void put(MemoryBlock& block) noexcept;
  void take(MemoryBlock& block) noexcept;
  MemoryBlock& unite(MemoryBlock& block, State state) noexcept;
  void split_off(MemoryBlock& block, size_t size, State rest) noexcept;
  void set_free(MemoryBlock& block) noexcept;
  bool is_whole(const MemoryBlock& block) const noexcept { return block.size == block.segment->size; }

  // device_cache_events.h: streams.
  static void add_user(MemoryBlock& block, Stream stream);
  void await(MemoryBlock& block, const Stream* freeing = nullptr) noexcept;
  Event event_for(Device device);
  void complete(Event event, MemoryBlock& block) noexcept;
  void poll();
  bool wait_for_events(Lock& lock);

  // device_cache_segments.h: memory of the device.
  size_t segment_size(size_t size) const noexcept;
  MemoryBlock* make_room(Stream stream, size_t size, size_t nbytes, Lock& lock);
  MemoryBlock* grow(CachePool& pool, size_t want, size_t size, Lock& lock);
  MemoryBlock* take_segment(CachePool& pool, size_t want, size_t size, Lock& lock);
  bool reserve_range(CachePool& pool);
  MemoryBlock* map_more(CachePool& pool, size_t want, size_t size, bool& exhausted);
  bool returnable(const CachePool& pool) const noexcept;
  std::vector<MemoryBlock*> cheapest(size_t want);
  std::vector<MemoryBlock*> all_returnable();
  size_t give_back(const std::vector<MemoryBlock*>& blocks, Lock& lock);
  size_t forget(MemoryBlock& block) noexcept;
  void erase(MemorySegment& segment) noexcept;
  void drop_unused() noexcept;
  struct FreeBlocks {
    size_t largest = 0, elsewhere = 0;
    std::string owner;  // of `elsewhere`
  };
  FreeBlocks free_blocks_for(Stream stream) const;
  /// `asked`: the device was asked for memory, and had none.
  [[noreturn]] void throw_out_of_memory(size_t nbytes, Stream stream, Lock& lock, const char* why = "",
                                        bool asked = true);
  MemoryStats stats_locked() const noexcept;

  const std::string name_;
  const Device device_;
  DeviceMemory& memory_;
  const size_t granularity_;
  CacheOptions options_;

  mutable std::mutex slow_mutex_;
  mutable std::mutex mutex_;
  BlockStore store_;
  BlockTable live_;
  std::vector<std::unique_ptr<StreamPools>> pools_;
  std::vector<std::unique_ptr<MemorySegment>> segments_;
  std::list<AwaitedStream> awaited_;
  size_t awaited_events_ = 0;
  std::vector<MemoryBlock*> deferred_;  // freed during a capture, without events so far
  std::vector<Event> spare_events_;
  std::vector<CapturedStream> captures_;
  std::vector<uint64_t> private_pools_;
  uint64_t last_pool_ = 0;
  MemoryHistory history_;

  CacheTally tally_;
};

using DeviceCache = BasicDeviceCache<NoFaults>;
extern template class BasicDeviceCache<NoFaults>;

}  // namespace tenon
