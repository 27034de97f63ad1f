// Addresses for devices whose memory has none of its own: a buffer's number and an offset in one
// TenonAddress, which adding bytes to moves on within the buffer. No pointer of the host has such bits, so
// that a host access faults. Header-only C++17 for plug-ins.
#pragma once

#include "tenon/abi/tenon_types.h"

namespace tenon::abi {

/// Addresses are 2^62 + slot * 2^40 + offset: neither canonical on x86-64 nor in user space on AArch64.
inline constexpr TenonAddress kSlotAddresses = TenonAddress{1} << 62;
/// A buffer of more bytes has no addresses.
inline constexpr uint64_t kMaxSlotBytes = uint64_t{1} << 40;
/// Slots are numbered from 0.
inline constexpr uint64_t kMaxSlots = uint64_t{1} << 22;

/// `slot` below kMaxSlots, `offset` below kMaxSlotBytes.
constexpr TenonAddress slot_address(uint64_t slot, uint64_t offset) noexcept {
  return kSlotAddresses + slot * kMaxSlotBytes + offset;
}
constexpr uint64_t slot_of(TenonAddress address) noexcept {
  return (address - kSlotAddresses) / kMaxSlotBytes;
}
constexpr uint64_t offset_of(TenonAddress address) noexcept { return address % kMaxSlotBytes; }

}  // namespace tenon::abi
