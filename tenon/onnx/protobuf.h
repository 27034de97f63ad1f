// Protocol buffers, read by protozero: its messages' fields. Of this room alone; included in place of
// protozero's own headers.
#pragma once

namespace tenon::onnx::detail {
[[noreturn]] void throw_wrong_wire_type();
}
// A field whose wire type is not the standard's is damage in a file, and no mistake in the program.
#define protozero_assert(condition) \
  ((condition) ? static_cast<void>(0) : ::tenon::onnx::detail::throw_wrong_wire_type())

#include <protozero/pbf_reader.hpp>
#include <string>
#include <utility>

namespace tenon::onnx {

using protozero::data_view;
using protozero::pbf_reader;

/// A StringStringEntryProto.
inline std::pair<std::string, std::string> key_and_value(pbf_reader message) {
  std::pair<std::string, std::string> out;
  while (message.next())
    if (message.tag() == 1)
      out.first = message.get_string();
    else if (message.tag() == 2)
      out.second = message.get_string();
    else
      message.skip();
  return out;
}

/// Calls `take` for each value of a repeated field of numbers, which may be packed.
template <auto One, auto Packed, class Take>
void each(pbf_reader& message, Take take) {
  if (message.wire_type() != protozero::pbf_wire_type::length_delimited)
    take((message.*One)());
  else
    for (const auto value : (message.*Packed)()) take(value);
}
template <class Take>
void each_int64(pbf_reader& message, Take take) {
  each<&pbf_reader::get_int64, &pbf_reader::get_packed_int64>(message, take);
}
template <class Take>
void each_int32(pbf_reader& message, Take take) {
  each<&pbf_reader::get_int32, &pbf_reader::get_packed_int32>(message, take);
}
template <class Take>
void each_float(pbf_reader& message, Take take) {
  each<&pbf_reader::get_float, &pbf_reader::get_packed_float>(message, take);
}
template <class Take>
void each_double(pbf_reader& message, Take take) {
  each<&pbf_reader::get_double, &pbf_reader::get_packed_double>(message, take);
}

}  // namespace tenon::onnx
