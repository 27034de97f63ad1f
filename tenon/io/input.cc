#include "tenon/io/input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "tenon/core/parallel.h"
#include "tenon/io/mapping.h"

namespace tenon::io {
namespace {

constexpr size_t kBlock = size_t{4} << 20;  // what one thread reads at a time

/// All that comes out of a pipe or a device.
std::vector<std::byte> read_to_end(int file, const std::string& path) {
  std::vector<std::byte> bytes;
  for (size_t size = 0;;) {
    bytes.resize(size + kBlock);
    const auto count = uninterrupted([&] { return ::read(file, bytes.data() + size, kBlock); });
    if (count < 0) throw SystemError(errno, path);
    size += static_cast<size_t>(count);
    if (count == 0) {
      bytes.resize(size);
      return bytes;
    }
  }
}

}  // namespace

Input Input::file(const std::string& path, bool map) {
  Input input;
  input.name_ = path;
  input.file_ = Descriptor(uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  struct stat status;
  if (!input.file_ || fstat(input.file_.get(), &status) != 0) throw SystemError(errno, path);
  if (S_ISDIR(status.st_mode)) throw SystemError(EISDIR, path);
  if (S_ISREG(status.st_mode)) {
    input.size_ = static_cast<uint64_t>(status.st_size);
    if (map && input.size_ > 0) input.mapping_ = Mapping::make(input.file_.get(), input.size_, path);
    return input;
  }
  input.held_ = read_to_end(input.file_.get(), path);
  input.file_ = {};
  input.memory_ = input.held_;
  input.size_ = input.held_.size();
  return input;
}

Input Input::memory(Bytes bytes, std::string name) {
  Input input;
  input.name_ = std::move(name);
  input.memory_ = bytes;
  input.size_ = bytes.size();
  return input;
}

void Input::refuse(uint64_t offset, const std::string& what) const {
  throw Error(ErrorKind::Value, fmt::format("load: {}: at byte {}: {}", name_, offset, what));
}

void Input::check(uint64_t offset, uint64_t size) const {
  if (offset > size_ || size > size_ - offset)
    refuse(offset,
           fmt::format("{} bytes are expected here, and the file ends at byte {}; it is damaged, or was not "
                       "written whole",
                       size, size_));
}

void Input::read(uint64_t offset, std::span<std::byte> to) const {
  check(offset, to.size());
  if (!file_) {
    if (!to.empty()) std::memcpy(to.data(), memory_.data() + offset, to.size());
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

std::string Input::text(uint64_t offset, size_t size) const {
  check(offset, size);  // before memory is made for it
  std::string out(size, '\0');
  read(offset, std::as_writable_bytes(std::span(out)));
  return out;
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
  for (const Part& part : parts) {
    check(part.offset, part.size);
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
