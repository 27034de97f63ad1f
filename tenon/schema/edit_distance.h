// edit_distance: how far a misspelt name is from another. Used wherever an error message suggests names.
#pragma once

#include <cstddef>
#include <string_view>

namespace tenon::schema {

/// The Levenshtein distance: how many characters must be inserted, deleted or replaced to turn `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace tenon::schema
