#include "tenon/io/mapping.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>

#include "tenon/io/replace_file.h"

namespace tenon::io {
namespace {

/// The lock of the list of mappings and of their parts. Its holder reads no mapped memory, so that the
/// handler, which takes it on the thread that did, cannot wait for itself.
class SpinLock {
 public:
  void lock() noexcept {
    while (taken_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void unlock() noexcept { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_;
};
constinit SpinLock g_lock;

struct sigaction g_previous;

size_t page_size() noexcept {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

constinit Mapping* Mapping::first_ = nullptr;

/// One storage of a mapping.
struct Mapping::Part {
  std::shared_ptr<Mapping> mapping;
  StorageImpl* storage = nullptr;
  Part* next = nullptr;
  Part* previous = nullptr;

  explicit Part(std::shared_ptr<Mapping> of) : mapping(std::move(of)) {}
  /// Puts the part in the list of its mapping.
  void add(StorageImpl* made) noexcept {
    const std::scoped_lock held(g_lock);
    storage = made;
    if (mapping->is_cut_) storage->set_pending(mapping.get());
    next = mapping->parts_;
    if (next) next->previous = this;
    mapping->parts_ = this;
  }
  static void release(void* context) noexcept {
    auto* part = static_cast<Part*>(context);
    {
      const std::scoped_lock held(g_lock);
      (part->previous ? part->previous->next : part->mapping->parts_) = part->next;
      if (part->next) part->next->previous = part->previous;
    }
    delete part;
  }
};

std::shared_ptr<Mapping> Mapping::make(int file, size_t size, const std::string& path) {
  [[maybe_unused]] static const bool installed = [] {
    page_size();
    struct sigaction action = {};
    action.sa_sigaction = &handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &g_previous);
    return true;
  }();
  void* const begin = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  if (begin == MAP_FAILED) throw SystemError(errno, path);
  const std::shared_ptr<Mapping> mapping(new Mapping(static_cast<char*>(begin), size, path));
  const std::scoped_lock held(g_lock);
  mapping->next_ = first_;
  first_ = mapping.get();
  return mapping;
}

Mapping::~Mapping() {
  {
    const std::scoped_lock held(g_lock);
    Mapping** at = &first_;
    while (*at != this) at = &(*at)->next_;
    *at = next_;
  }
  munmap(begin_, size_);
}

Storage Mapping::storage(size_t offset, size_t size) {
  auto part = std::make_unique<Part>(shared_from_this());
  Storage storage = Storage::from_foreign(reinterpret_cast<Address>(begin_ + offset), size, kCPU,
                                          &Part::release, part.get());
  storage->set_private();
  part.release()->add(storage.operator->());
  if (storage->is_pending()) materialize(*storage);
  return storage;
}

void Mapping::check(int file) {
  struct stat status;
  if (fstat(file, &status) != 0 || static_cast<uint64_t>(status.st_size) >= size_) return;
  {
    const std::scoped_lock held(g_lock);
    lose();
  }
  throw_cut();
}

void Mapping::lose() noexcept {
  is_cut_ = true;
  for (Part* part = parts_; part; part = part->next) part->storage->set_pending(this);
}

void Mapping::materialize(StorageImpl&) { throw_cut(); }

void Mapping::throw_cut() const {
  throw FileError(
      fmt::format("{}: the file was cut short while tensors of it were mapped; load it again, or load it "
                  "without mmap",
                  path_));
}

bool Mapping::replace_lost_pages(const char* address) noexcept {
  const std::scoped_lock held(g_lock);
  Mapping* lost = first_;
  while (lost && (address < lost->begin_ || address >= lost->begin_ + lost->size_)) lost = lost->next_;
  if (!lost) return false;
  // All that follows has gone with this page.
  const size_t offset = static_cast<size_t>(address - lost->begin_) / page_size() * page_size();
  void* const zeros = mmap(lost->begin_ + offset, lost->size_ - offset, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (zeros == MAP_FAILED) return false;
  lost->lose();
  return true;
}

void Mapping::handle(int number, siginfo_t* info, void* context) {
  const int error = errno;
  if (replace_lost_pages(static_cast<const char*>(info->si_addr))) {
    errno = error;
    return;
  }
  if ((g_previous.sa_flags & SA_SIGINFO) != 0) return g_previous.sa_sigaction(number, info, context);
  if (g_previous.sa_handler != SIG_DFL && g_previous.sa_handler != SIG_IGN)
    return g_previous.sa_handler(number);
  // The access that failed fails again, and ends the process as it would have without a handler.
  sigaction(SIGBUS, &g_previous, nullptr);
}

}  // namespace tenon::io
