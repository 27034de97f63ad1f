// LAPACK, where it is found at run time: the library is no requirement of the build or of a program. Its
// names and the size of its integers differ between builds. Used in this folder alone.
#pragma once

namespace tenon::cpu::lapack {

struct Library {
  void* handle = nullptr;   ///< Null without one.
  const char* prefix = "";  ///< Of the names of functions, before "dsyevd",
  const char* suffix = "";  ///< and after it.
  bool wide = false;        ///< Integers have 64 bits.
  /// OpenBLAS's number of threads; returns what it was. Null elsewhere.
  int (*set_threads)(int) = nullptr;

  /// The address of a function by its plain name; null if there is none.
  void* function(const char* name) const;
};

/// The library of this process, looked for once: the file that TENON_LAPACK names ("off": none); OpenBLAS as
/// NumPy's wheel has it, in the same site-packages; the system's OpenBLAS; the system's LAPACK.
const Library& library();

}  // namespace tenon::cpu::lapack
