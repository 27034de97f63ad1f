#include "tenon/cache/build_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstring>

namespace tenon::cache {
namespace {

struct Search {
  uintptr_t here;  // an address in the file that is looked for
  std::string id;
};

/// The id among the notes of a segment.
std::string id_in(const char* notes, size_t size) {
  std::string id;
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof(note));
    const auto padded = [](size_t n) { return (n + 3) & ~size_t{3}; };
    const size_t whole = sizeof(note) + padded(note.n_namesz) + padded(note.n_descsz);
    if (whole > size) break;
    const char* const name = notes + sizeof(note);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
      const char* const bytes = name + padded(note.n_namesz);
      for (size_t i = 0; i < note.n_descsz; ++i) id += fmt::format("{:02x}", static_cast<uint8_t>(bytes[i]));
      return id;
    }
    notes += whole;
    size -= whole;
  }
  return id;
}

int look(dl_phdr_info* file, size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  bool is_here = false;
  for (int i = 0; i < file->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = file->dlpi_phdr[i];
    const uintptr_t begin = file->dlpi_addr + segment.p_vaddr;
    is_here |= segment.p_type == PT_LOAD && search.here - begin < segment.p_memsz;
  }
  if (!is_here) return 0;
  for (int i = 0; i < file->dlpi_phnum && search.id.empty(); ++i) {
    const ElfW(Phdr)& segment = file->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE)
      search.id = id_in(reinterpret_cast<const char*>(file->dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return 1;
}

}  // namespace

std::string build_id() {
  Search search{reinterpret_cast<uintptr_t>(&look), {}};
  dl_iterate_phdr(&look, &search);
  return TENON_VERSION + (search.id.empty() ? "" : "-" + search.id);
}

}  // namespace tenon::cache
