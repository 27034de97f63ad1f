// Special values written out by hand, so that they rest on no library. Used by main.cc and the page.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tenon::accuracy {

struct SpecialValues {
  size_t checked = 0;              ///< Results, over functions, dtypes and instruction sets.
  std::vector<std::string> wrong;  ///< "float32 SSE4 pow(-0, -3) = inf, not -inf"
};

/// What annex F of the C standard says of zeros, infinities, NaN and the edges of domains, what it implies
/// for functions that C lacks, and that tiny arguments, denormals included, come back from functions like sin
/// unchanged. In float32 and float64 on every instruction set.
SpecialValues check_special_values();

}  // namespace tenon::accuracy
