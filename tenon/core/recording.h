// What core knows of recorded programs: they compute the bytes of storages later, and core notifies them
// before a read, a write or a switch of a setting. Used by storages and by tenon/record, which implements
// both.
#pragma once

#include <atomic>

namespace tenon {

class StorageImpl;

/// Who computes the bytes of storages that were handed out before their bytes exist: a recorded program. Or
/// what says why they cannot be had: a computation that failed, a mapped file that was cut short. Lives as
/// long as the storages.
class PendingWork {
 public:
  /// Gives `storage` its bytes, and usually others too; does nothing where another thread was first. Throws
  /// what the computation throws; the storage then stays pending, or throws the same from then on.
  virtual void materialize(StorageImpl& storage) = 0;
  /// Whether the bytes are lost: `materialize` throws then, and a write is refused like a read.
  virtual bool has_failed() const noexcept { return false; }

 protected:
  ~PendingWork() = default;
};

/// What a recorder wants to know of storages that its programs read or write. Null until the first recording.
struct RecordingHooks {
  /// The address of a recorded storage, which has its bytes, was asked for.
  void (*before_access)(StorageImpl& storage);
  /// An operator is about to write a recorded storage.
  void (*before_write)(StorageImpl& storage);
  /// A setting that affects results is about to change: the default dtype, strict mode, a
  /// registration. Throws nothing.
  void (*before_switch)();
};
inline constinit std::atomic<const RecordingHooks*> recording_hooks{nullptr};
inline void note_switch() {
  if (const RecordingHooks* hooks = recording_hooks.load(std::memory_order_acquire)) hooks->before_switch();
}

}  // namespace tenon
