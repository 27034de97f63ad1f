// How often registrations have changed: what a replay of a recorded program, which calls no operator through
// its table, compares instead. Counted by the dispatcher.
#pragma once

#include <cstdint>

namespace tenon {

/// Rises when the registrations of an operator change that has been called. The first use of a built-in
/// operator, which makes its registrations, is no change.
uint64_t num_changed_registrations() noexcept;

}  // namespace tenon
