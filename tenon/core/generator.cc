#include "tenon/core/generator.h"

namespace tenon {

Generator& default_generator() {
  // PyTorch's default seed; never destroyed, so that it outlives every user.
  static Generator& generator = *new Generator(67280421310721ull);
  return generator;
}

void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace tenon
