// Where the values of an expression are while its code is emitted: in which register, and where else.
// Registers go to the value that is read next; one that has none left gives up what is read last. Knows no
// instructions: who emits is told what to move.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tenon/expr/expression.h"

namespace tenon::cpu::jit {

/// What can be read again at any time.
enum class Home : uint8_t { None, Literal, Number, Input, Kept };

struct Place {
  Home home = Home::None;
  bool is_mask = false;
  bool mask = false;  ///< And lives in a mask register.
  bool wide = false;  ///< Its items have 8 bytes.
  int reg = -1;
  int slot = -1;               ///< Of the frame: where it was saved, or is kept.
  uint64_t index = 0;          ///< Of a literal: in the table. Of a number or an input: which.
  std::vector<uint32_t> uses;  ///< What reads it, ascending.
  size_t next = 0;             ///< The first of `uses` that is still to come.

  bool in_memory() const noexcept { return slot >= 0 || home != Home::None; }
  uint32_t next_use() const noexcept { return next < uses.size() ? uses[next] : ~uint32_t{0}; }
};

/// The moves that places ask for.
class Mover {
 public:
  virtual void save(const Place& from) = 0;  ///< Register to slot.
  virtual void load(const Place& to) = 0;    ///< From wherever it is to its register.

 protected:
  ~Mover() = default;
};

class Places {
 public:
  Places(Mover& mover, size_t values, int vectors, int masks)
      : mover_(mover),
        places_(values),
        vectors_(static_cast<size_t>(vectors)),
        masks_(static_cast<size_t>(masks)) {}

  Place& operator[](expr::NodeId id) { return places_[id]; }
  const Place& operator[](expr::NodeId id) const { return places_[id]; }
  int frame_slots() const noexcept { return slots_; }
  int new_slot();

  /// Begins the values' lives anew, all of them at home.
  void restart();
  /// From now on until the next call, these stay where they are.
  void hold(std::vector<expr::NodeId> values) { held_ = std::move(values); }
  /// The register that holds a value, which is loaded where it is elsewhere.
  int in_register(expr::NodeId id);
  /// A register for a new value.
  int take(expr::NodeId id);
  /// A register for a new value that `at` makes: that of the first of `operands` that nothing reads
  /// afterwards, if any.
  int take_over(expr::NodeId id, std::initializer_list<expr::NodeId> operands);
  bool dies_at(expr::NodeId id, uint32_t at) const { return places_[id].uses.back() <= at; }
  /// `at` has read it.
  void was_read(expr::NodeId id, uint32_t at);
  /// A value that is computed once before the loop: it goes to a slot of its own and stays there.
  void keep(expr::NodeId id);

 private:
  static constexpr expr::NodeId kFree = expr::kNoNode;
  std::vector<expr::NodeId>& owners(bool mask) { return mask ? masks_ : vectors_; }
  void release(Place& p);

  Mover& mover_;
  std::vector<Place> places_;
  std::vector<expr::NodeId> vectors_, masks_;  // who is in each register
  std::vector<expr::NodeId> held_;
  std::vector<int> free_slots_;
  int slots_ = 0;
};

}  // namespace tenon::cpu::jit
