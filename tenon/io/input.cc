#include "tenon/io/input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "tenon/core/interrupt.h"
#include "tenon/core/parallel.h"
#include "tenon/io/mapping.h"
#include "tenon/io/wait.h"

namespace tenon::io {
namespace {

constexpr size_t kBlock = size_t{4} << 20;        // what one thread reads at a time
constexpr size_t kFirstBlock = size_t{64} << 10;  // of a stream, which may be short

/// The bytes that come out of a pipe or a device.
StreamReader reader_of(Descriptor opened, const std::string& path) {
  return [file = std::make_shared<Descriptor>(std::move(opened)), path](std::span<std::byte> to) {
    for (;;) {
      wait_for(file->get(), POLLIN, path);
      const auto count = ::read(file->get(), to.data(), to.size());
      if (count >= 0) return static_cast<size_t>(count);
      if (errno != EINTR && errno != EAGAIN) throw SystemError(errno, path);
    }
  };
}

}  // namespace

/// What was read of a stream.
struct Input::Stream {
  StreamReader reader;
  std::vector<std::byte> held;
  bool ended = false;

  /// Reads until there are `size` bytes, or no more. The size may be a damaged number, so memory is made for
  /// what comes, and not for what is wanted.
  void read_to(uint64_t size) {
    while (held.size() < size && !ended) {
      check_interrupt();
      const size_t before = held.size();
      const uint64_t most = std::clamp(before, kFirstBlock, kBlock);
      held.resize(before + static_cast<size_t>(std::min(size - before, most)));
      const size_t count = reader(std::span(held).subspan(before));
      held.resize(before + count);
      ended = count == 0;
    }
  }
};

Input::Input() = default;
Input::Input(Input&&) noexcept = default;
Input& Input::operator=(Input&&) noexcept = default;
Input::~Input() = default;

Input Input::file(const std::string& path, bool map) {
  Input input;
  input.name_ = path;
  const auto opened = [&](int flags) {
    return Descriptor(uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | flags); }));
  };
  // A pipe that nothing writes to yet is waited for later, where the wait can be interrupted. A file that
  // another process has leased is waited for here.
  input.file_ = opened(O_NONBLOCK);
  if (!input.file_ && errno == EWOULDBLOCK) input.file_ = opened(0);
  struct stat status;
  if (!input.file_ || fstat(input.file_.get(), &status) != 0) throw SystemError(errno, path);
  if (S_ISDIR(status.st_mode)) throw SystemError(EISDIR, path);
  if (!S_ISREG(status.st_mode)) return stream(reader_of(std::move(input.file_), path), path);
  input.size_ = static_cast<uint64_t>(status.st_size);
  if (map && input.size_ > 0) input.mapping_ = Mapping::make(input.file_.get(), input.size_, path);
  return input;
}

Input Input::stream(StreamReader reader, std::string name) {
  Input input;
  input.name_ = std::move(name);
  input.stream_ = std::make_unique<Stream>(Stream{std::move(reader), {}, false});
  return input;
}

Input Input::memory(Bytes bytes, std::string name) {
  Input input;
  input.name_ = std::move(name);
  input.memory_ = bytes;
  input.size_ = bytes.size();
  return input;
}

Bytes Input::held() const noexcept { return stream_ ? Bytes(stream_->held) : memory_; }
uint64_t Input::taken() const noexcept { return stream_ ? stream_->held.size() : 0; }

bool Input::has(uint64_t size) const {
  if (!stream_) return size <= size_;
  stream_->read_to(size);
  return size <= stream_->held.size();
}

uint64_t Input::size() const {
  if (!stream_) return size_;
  stream_->read_to(std::numeric_limits<uint64_t>::max());
  return stream_->held.size();
}

void Input::refuse(uint64_t offset, const std::string& what) const {
  throw Error(ErrorKind::Value, fmt::format("load: {}: at byte {}: {}", name_, offset, what));
}

void Input::check(uint64_t offset, uint64_t size) const {
  uint64_t end = 0;
  if (__builtin_add_overflow(offset, size, &end) || !has(end))
    refuse(offset,
           fmt::format("{} bytes are expected here, and the file ends at byte {}; it is damaged, or was not "
                       "written whole",
                       size, this->size()));
}

void Input::read(uint64_t offset, std::span<std::byte> to) const {
  check(offset, to.size());
  if (!file_) {
    if (!to.empty()) std::memcpy(to.data(), held().data() + offset, to.size());
    return;
  }
  while (!to.empty()) {
    const auto count =
        uninterrupted([&] { return pread(file_.get(), to.data(), to.size(), static_cast<off_t>(offset)); });
    if (count < 0) throw SystemError(errno, name_);
    if (count == 0) refuse(offset, "the file ends here; it had more bytes when it was opened");
    offset += static_cast<uint64_t>(count);
    to = to.subspan(static_cast<size_t>(count));
  }
}

std::string Input::text(uint64_t offset, uint64_t size) const {
  check(offset, size);  // before memory is made for it
  std::string out(size, '\0');
  read(offset, std::as_writable_bytes(std::span(out)));
  return out;
}

Input::Text Input::part(uint64_t offset, uint64_t size) const {
  constexpr uint64_t kLarge = uint64_t{1} << 20;
  Text out;
  if (file_ && size < kLarge) {
    out.own_ = text(offset, size);
  } else {
    check(offset, size);
    if (file_) out.mapping_ = Mapping::make(file_.get(), size_, name_);
    out.input_ = this;
    out.offset_ = offset;
    out.size_ = size;
  }
  return out;
}

std::string_view Input::Text::view() const noexcept {
  if (!input_) return own_;
  if (mapping_) return mapping_->bytes().substr(offset_, size_);
  const Bytes bytes = input_->held().subspan(offset_, size_);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void Input::Text::check_whole() const {
  if (mapping_) mapping_->check(input_->file_.get());
}

int64_t Input::grain(std::span<const Part> parts) noexcept {
  uint64_t bytes = 0;
  for (const Part& part : parts) bytes += part.size;
  return bytes > kBlock ? 1 : std::numeric_limits<int64_t>::max();
}

std::vector<Storage> Input::storages(std::span<const Part> parts) const {
  struct Block {
    uint64_t offset;
    std::span<std::byte> to;
  };
  std::vector<Storage> out;
  std::vector<Block> blocks;
  // All of them before memory is made for any, and before threads read a stream.
  for (const Part& part : parts) check(part.offset, part.size);
  if (mapping_) mapping_->check(file_.get());
  for (const Part& part : parts) {
    if (mapping_ && part.size > 0 && part.offset % part.alignment == 0) {
      out.push_back(mapping_->storage(part.offset, part.size));
      continue;
    }
    out.push_back(Storage::allocate(part.size));
    const std::span<std::byte> to(reinterpret_cast<std::byte*>(out.back().address()), part.size);
    for (size_t at = 0; at < to.size(); at += kBlock)
      blocks.push_back({part.offset + at, to.subspan(at, std::min(kBlock, to.size() - at))});
  }
  parallel_for(0, static_cast<int64_t>(blocks.size()), grain(parts), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) read(blocks[i].offset, blocks[i].to);
  });
  return out;
}

}  // namespace tenon::io
