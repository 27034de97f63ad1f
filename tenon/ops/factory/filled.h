// What factories are made of: checks and sizes of new tensors, and elements that are all one number. Called
// by the entries of factory.yaml and the files of this folder.
#pragma once

#include "tenon/core/scalar.h"
#include "tenon/ops/forms/memory_format.h"
#include "tenon/ops/forms/output_spec.h"

namespace tenon::ops {

/// Fills what the shape function has not made zeros of.
void fill_unless_zero(const Tensor& out, const Scalar& value);
/// The number of places on or below (`low`), or on or above, the diagonal `offset`. Throws Error{Value} for
/// negative sizes, Error{Shape} for more places than int64 can count.
int64_t triangle_places(bool low, int64_t row, int64_t col, int64_t offset);
/// The places, rows before columns.
void fill_indices(bool low, int64_t row, int64_t col, int64_t offset, Tensor& out, const char* op);

namespace shape {

using OptDType = std::optional<DType>;
using OptLayout = std::optional<Layout>;
using OptDevice = std::optional<Device>;
using OptBool = std::optional<bool>;
using OptFormat = std::optional<MemoryFormat>;

void set_new(OutputSpecs& out, IntArrayRef size, DType dtype, OptLayout layout, OptDevice device,
             OptBool pin_memory, const char* op, Elements elements = Elements::Any);
void set_new_like(OutputSpecs& out, HeaderRef self, OptDType dtype, OptLayout layout, OptDevice device,
                  OptBool pin_memory, OptFormat memory_format, Elements elements);

}  // namespace shape
}  // namespace tenon::ops
