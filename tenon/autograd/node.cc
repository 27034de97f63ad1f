#include "tenon/autograd/node.h"

#include <thread>

#include "tenon/autograd/anomaly.h"
#include "tenon/autograd/hooks.h"
#include "tenon/autograd/lock_owner.h"
#include "tenon/core/small_alloc.h"

namespace tenon {
namespace {

// Numbers need only order the nodes of one thread's graph; blocks of numbers keep threads apart.
constexpr uint64_t kBlock = 1 << 16;
std::atomic<uint64_t> next_block{1};
thread_local constinit uint64_t next_sequence TENON_FAST_TLS = 0;

std::atomic<uint32_t> next_owner{1};
thread_local constinit autograd::LockOwner owner_here TENON_FAST_TLS{0, nullptr};

thread_local constinit Node* waiting TENON_FAST_TLS = nullptr;
thread_local constinit bool freeing TENON_FAST_TLS = false;

}  // namespace

Node::Node() noexcept {
  if (next_sequence % kBlock == 0) [[unlikely]]
    next_sequence = kBlock * next_block.fetch_add(1, std::memory_order_relaxed);
  sequence_ = next_sequence++;
  if (autograd::is_anomaly_enabled()) [[unlikely]]
    trace_ = autograd::trace_forward();
}

Node::Node(RunsFirst) noexcept : sequence_(UINT64_MAX) {}

Node::~Node() {
  if (autograd::NodeHooks* hooks = hooks_.load(std::memory_order_relaxed)) {
    // Handles may outlive the node; what its hooks hold must not.
    const auto owner = IntrusivePtr<autograd::NodeHooks>::adopt(hooks);
    owner->clear();
  }
}

void Node::destroy(Node* node) noexcept {
  node->visit_.store(reinterpret_cast<uint64_t>(waiting), std::memory_order_relaxed);
  waiting = node;
  if (freeing) return;
  freeing = true;
  while (waiting) {
    Node* next = waiting;
    waiting = reinterpret_cast<Node*>(next->visit_.load(std::memory_order_relaxed));
    // Puts the nodes that only this one kept alive on the list, instead of freeing them here.
    delete next;
  }
  freeing = false;
}

autograd::NodeHooks& Node::ensure_hooks() {
  if (autograd::NodeHooks* known = hooks()) return *known;
  auto made = IntrusivePtr<autograd::NodeHooks>::adopt(new autograd::NodeHooks);
  autograd::NodeHooks* none = nullptr;
  if (hooks_.compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) none = made.release();
  return *none;
}

namespace autograd {

LockOwner current_lock_owner() noexcept {
  if (owner_here.id == 0) owner_here.id = next_owner.fetch_add(1, std::memory_order_relaxed);
  return owner_here;
}

LockOwnerScope::LockOwnerScope(const LockOwner& outer) noexcept : before_(current_lock_owner()) {
  owner_here = {next_owner.fetch_add(1, std::memory_order_relaxed), &outer};
}
LockOwnerScope::~LockOwnerScope() { owner_here = before_; }

namespace {

/// Whether the lock is this thread's, or of one that waits for it.
bool may_pass(uint32_t id) noexcept {
  for (const LockOwner* o = &owner_here; o; o = o->outer) {
    if (o->id == id) return true;
  }
  return false;
}

}  // namespace

NodeLock::NodeLock(Node& node) noexcept : node_(node) {
  if (owner_here.id == 0) current_lock_owner();
  uint32_t owner = 0;
  while (!node_.owner_.compare_exchange_weak(owner, owner_here.id, std::memory_order_acquire)) {
    if (may_pass(owner)) {
      taken_ = false;
      return;
    }
    if (owner != 0) std::this_thread::yield();
    owner = 0;
  }
}

}  // namespace autograd

void* Node::operator new(size_t nbytes) {
  return nbytes <= kSmallBlockMax ? small_allocate(nbytes) : ::operator new(nbytes);
}

void Node::operator delete(void* p, size_t nbytes) noexcept {
  if (nbytes <= kSmallBlockMax)
    small_free(p, nbytes);
  else
    ::operator delete(p);
}

}  // namespace tenon
