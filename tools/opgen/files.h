// The number of generated files for each subject that is not split by family. CMake must know the names of
// generated files before the generator runs, so tenon/CMakeLists.txt reads the numbers from here. Raise a
// number when its files take long to compile.
#pragma once

#include <cstddef>

namespace tenon::opgen {

inline constexpr size_t kSignatureFiles = 2;
/// Of signatures that have no typed code (typed_signatures.h): compiled for size.
inline constexpr size_t kRareSignatureFiles = 4;
inline constexpr size_t kHistoryFiles = 2;
inline constexpr size_t kKernelFiles = 6;
inline constexpr size_t kPrimitiveFiles = 6;
/// Of the Python binding.
inline constexpr size_t kPythonSignatureFiles = 2;

}  // namespace tenon::opgen
