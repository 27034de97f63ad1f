// What can be wrong with a library that dlopen does not notice.
#include <elf.h>
#include <fmt/core.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tenon/core/error.h"
#include "tenon/plugin/registry.h"

namespace tenon::plugin {

void check_library_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  // What is no ELF file of this machine, dlopen says best.
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return;
  std::error_code unreadable;
  const uint64_t size = std::filesystem::file_size(path, unreadable);
  if (unreadable) return;
  const auto check_within = [&](uint64_t offset, uint64_t nbytes) {
    if (offset > size || nbytes > size - offset)
      throw FileError(
          fmt::format("load_device: '{}' is truncated: it has {} bytes, and lacks what should be at {}", path,
                      size, offset));
  };
  check_within(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment)) return;
    check_within(segment.p_offset, segment.p_filesz);
  }
}

}  // namespace tenon::plugin
