// The SIMD printer: kernels as Highway C++, one translation unit compiled once per instruction set.
// Used by opgen at build, also for the primitives of the tile interpreter. The printed text needs
// backends/cpu/pointwise/simd_ops-inl.h, sums backends/cpu/reduce/lanes-inl.h, and nothing else of Tenon.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tenon/expr/expression.h"

namespace tenon::expr {

/// One kernel to print: a PointwiseFn over the expression's slots, whose dtypes are those of one compute type
/// or of types as wide as it; a mask is stored as 1 and 0 of it. Of float32 all of them may be float16, or
/// bfloat16, where the value is rounded only to be stored. Where all operands are complex, their slots are
/// real and imaginary parts in turn, and the kernel takes whole elements: a pointer for each pair of slots.
///
/// One that `sums` stores nothing: each output is one float, the sum of what at most kReduceChunk elements
/// give, with the bits of reduce.h. Its dtypes are float32.
struct PrintedKernel {
  std::string name;
  const Expression* expression;
  bool sums = false;
};

/// A whole .cc file with these kernels for every CPU target. It defines
///   extern "C++" const PointwiseFn* const tenon::cpu::<table>[kNumCpuTargets];
/// `<table>[target][i]` is the i-th kernel for that target. `file_name` is its own path, as #include finds
/// it. Throws Error{NotImplemented} for what only the interpreter runs yet: values of two widths, dtypes that
/// convert. `targets` is a header after backends/cpu/targets.h that leaves a target out.
std::string print_simd_file(std::span<const PrintedKernel> kernels, std::string_view table,
                            std::string_view file_name, std::string_view targets = {});

/// Whether print_simd_file prints it.
bool is_printable(const Expression& e);

struct GeneratedFile {
  std::string name;  ///< e.g. "primitives_0.cc"
  std::string text;
};

/// The primitives of the tile interpreter: every op and function in every compute type that it runs in, split
/// over files of bounded size, `narrow` functions in `primitives_narrow.cc`, and last the index
/// `primitives_table.cc` that the interpreter links against. `prefix` is put before the names in #include
/// directives (e.g. "generated/").
std::vector<GeneratedFile> print_interpreter_primitives(std::string_view prefix);

}  // namespace tenon::expr
