#include "backends/cpu/jit/places.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace tenon::cpu::jit {

int Places::new_slot() {
  if (free_slots_.empty()) return slots_++;
  const int slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void Places::restart() {
  for (Place& p : places_) {
    if (p.slot >= 0 && p.home != Home::Kept) free_slots_.push_back(p.slot), p.slot = -1;
    p.reg = -1;
    p.next = 0;
  }
  std::fill(vectors_.begin(), vectors_.end(), kFree);
  std::fill(masks_.begin(), masks_.end(), kFree);
}

int Places::in_register(Id id) {
  Place& p = places_[id];
  if (p.reg < 0) {
    take(id);
    mover_.load(p);
  }
  return p.reg;
}

int Places::take(Id id) {
  auto& list = owners(places_[id].mask);
  size_t chosen = list.size();
  uint64_t chosen_score = 0;
  for (size_t r = 0; r < list.size(); ++r) {
    if (list[r] == kFree) {
      chosen = r;
      break;
    }
    if (std::find(held_.begin(), held_.end(), list[r]) != held_.end()) continue;
    // Of two that are read at the same time, the one that need not be saved.
    const Place& p = places_[list[r]];
    const uint64_t score = uint64_t{p.next_use()} * 2 + (p.in_memory() ? 1 : 0) + 1;
    if (score > chosen_score) chosen = r, chosen_score = score;
  }
  assert(chosen < list.size());
  if (list[chosen] != kFree) {
    Place& out = places_[list[chosen]];
    if (!out.in_memory()) {
      out.slot = new_slot();
      mover_.save(out);
    }
    out.reg = -1;
  }
  list[chosen] = id;
  places_[id].reg = static_cast<int>(chosen);
  return places_[id].reg;
}

bool Places::dies_now(Id id) const {
  const Place& p = places_[id];
  return p.uses.back() <= now_ && (last_copy_ || !p.shared());
}

bool Places::worth_a_register(Id id) const {
  const Place& p = places_[id];
  if (p.reg >= 0 || p.mask || !p.shared() || last_copy_) return false;
  for (const Id owner : vectors_) {
    if (owner == kFree) return true;
    const Place& o = places_[owner];
    if (o.in_memory() && o.next_use() > now_ + 1 &&
        std::find(held_.begin(), held_.end(), owner) == held_.end())
      return true;
  }
  return false;
}

int Places::take_over(Id id, std::initializer_list<Id> operands) {
  for (const Id operand : operands) {
    Place& p = places_[operand];
    if (p.reg < 0 || p.mask != places_[id].mask || !dies_now(operand)) continue;
    owners(p.mask)[static_cast<size_t>(p.reg)] = id;
    return places_[id].reg = std::exchange(p.reg, -1);
  }
  return take(id);
}

void Places::release(Place& p) {
  if (p.reg >= 0) owners(p.mask)[static_cast<size_t>(p.reg)] = kFree;
  p.reg = -1;
  if (p.slot >= 0 && p.home != Home::Kept) free_slots_.push_back(p.slot), p.slot = -1;
}

void Places::was_read(Id id) {
  Place& p = places_[id];
  if (p.shared() && !last_copy_) return;
  while (p.next < p.uses.size() && p.uses[p.next] <= now_) ++p.next;
  if (p.next == p.uses.size()) release(p);
}

void Places::keep(Id id) {
  Place& p = places_[id];
  p.slot = slots_++;
  p.home = Home::Kept;
  mover_.save(p);
}

}  // namespace tenon::cpu::jit
