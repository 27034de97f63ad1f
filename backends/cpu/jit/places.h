// Where the values of an expression are while its code is emitted: in which register, and where else.
// Registers go to the value that is read next; one that has none left gives up what is read last. Several
// vectors of elements may go through the code side by side: each has values of its own, but for those that
// are the same in all elements. Knows no instructions: it says what to move.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace tenon::cpu::jit {

/// What can be read again at any time.
enum class Home : uint8_t { None, Literal, Number, Input, Kept };

struct Place {
  Home home = Home::None;
  bool is_mask = false;
  bool mask = false;  ///< And lives in a mask register.
  bool wide = false;  ///< Its items have 8 bytes.
  uint8_t copy = 0;   ///< The vector that it is of.
  int reg = -1;
  int slot = -1;                   ///< Of the frame: where it was saved, or is kept.
  uint64_t index = 0;              ///< Of a literal: in the table. Of a number or an input: which.
  std::span<const uint32_t> uses;  ///< What reads it, ascending.
  size_t next = 0;                 ///< The first of `uses` that is still to come.

  bool in_memory() const noexcept { return slot >= 0 || home != Home::None; }
  /// All vectors have it in common.
  bool shared() const noexcept { return home != Home::None && home != Home::Input; }
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
  using Id = uint32_t;

  Places(Mover& mover, size_t values, int vectors, int masks)
      : mover_(mover),
        places_(values),
        vectors_(static_cast<size_t>(vectors)),
        masks_(static_cast<size_t>(masks)) {}

  Place& operator[](Id id) { return places_[id]; }
  const Place& operator[](Id id) const { return places_[id]; }
  int frame_slots() const noexcept { return slots_; }
  int new_slot();

  /// Begins the values' lives again, all of them at home.
  void restart();
  /// From now on `node` is what reads values; the last of its copies does where no other vector follows.
  void at(uint32_t node, bool last_copy) { now_ = node, last_copy_ = last_copy; }
  /// From now on until the next call, these stay where they are.
  void hold(std::span<const Id> values) { held_.assign(values.begin(), values.end()); }
  void hold(std::initializer_list<Id> values) { held_.assign(values); }
  /// The register that holds a value, which is loaded where it is elsewhere.
  int in_register(Id id);
  /// A register for a new value.
  int take(Id id);
  /// A register for a new value: that of the first of `operands` that nothing reads afterwards, if any.
  int take_over(Id id, std::initializer_list<Id> operands);
  bool dies_now(Id id) const;
  /// Whether other vectors read a value at once and a register is free for it, or soon will be.
  bool worth_a_register(Id id) const;
  /// An operand has been read.
  void was_read(Id id);
  /// A value that is computed once before the loop: it goes to a slot of its own and stays there.
  void keep(Id id);

 private:
  static constexpr Id kFree = ~Id{0};
  std::vector<Id>& owners(bool mask) { return mask ? masks_ : vectors_; }
  void release(Place& p);

  Mover& mover_;
  std::vector<Place> places_;
  std::vector<Id> vectors_, masks_;  // who is in each register
  std::vector<Id> held_;
  std::vector<int> free_slots_;
  uint32_t now_ = 0;
  bool last_copy_ = true;
  int slots_ = 0;
};

}  // namespace tenon::cpu::jit
