// docs/accuracy.md from measurements. Used by main.cc.
#pragma once

#include <string>

#include "bench/accuracy/results.h"
#include "bench/accuracy/special_values.h"
#include "tenon/core/dtype.h"

namespace tenon::accuracy {

inline constexpr DType kMeasuredDTypes[] = {DType::Float16, DType::BFloat16, DType::Float64, DType::Float32};

/// The page, in Markdown. Functions or dtypes that were not measured are left out, and it says how many.
std::string page(const Results& results, const SpecialValues& special);

}  // namespace tenon::accuracy
