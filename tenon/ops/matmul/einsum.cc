// einsum: operands are brought to one order of dimensions, which all of them have then, and contracted two at
// a time by bmm.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tenon/generated/matmul/bodies.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/iter/geometry.h"

namespace tenon::ops {
namespace {

constexpr int kLetters = 52;

/// The number of a letter, in the order of results: A to Z, then a to z.
int number_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  return c >= 'a' && c <= 'z' ? 26 + c - 'a' : -1;
}

char letter(int number) { return static_cast<char>(number < 26 ? 'A' + number : 'a' + (number - 26)); }

struct Term {
  /// Letters by number; -1 once where the dimensions of "..." are.
  std::vector<int> labels;
  bool has_dots = false;
};

Term parse_term(std::string_view text, std::string_view equation) {
  Term term;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] == '.') {
      TENON_CHECK(text.substr(i, 3) == "..." && !term.has_dots, Value,
                  fmt::format("einsum: found '.' in '{}' that is not part of one ellipsis (...)", equation));
      term.has_dots = true;
      term.labels.push_back(-1);
      i += 2;
      continue;
    }
    const int label = number_of(text[i]);
    TENON_CHECK(
        label >= 0, Value,
        fmt::format("einsum: '{}' in '{}' is no letter; dimensions are named by letters", text[i], equation));
    term.labels.push_back(label);
  }
  return term;
}

std::vector<Term> parse_operands(std::string_view text, std::string_view equation) {
  std::vector<Term> terms;
  for (;;) {
    const size_t comma = text.find(',');
    terms.push_back(parse_term(text.substr(0, comma), equation));
    if (comma == std::string_view::npos) return terms;
    text.remove_prefix(comma + 1);
  }
}

/// What an equation says: its operands, and the order of dimensions that all of them get: those of the
/// result (`dots` of them for "..."), then those that are summed.
struct Equation {
  std::vector<Term> operands;
  std::array<int64_t, kLetters> place{};  // of each letter; -1 where it does not occur
  int64_t dots = 0, dots_at = 0, outputs = 0, rank = 0;

  /// How the equation names a dimension: "'j'", or "..." where it has no letter.
  std::string name_of(int64_t dim) const {
    const auto found = std::find(place.begin(), place.end(), dim);
    return found == place.end() ? "..."
                                : fmt::format("'{}'", letter(static_cast<int>(found - place.begin())));
  }
};

Equation parse_equation(std::string_view equation, TensorList tensors) {
  Equation parsed;
  parsed.place.fill(-1);
  const size_t arrow = equation.find("->");
  parsed.operands = parse_operands(equation.substr(0, arrow), equation);
  TENON_CHECK(parsed.operands.size() == tensors.size(), Value,
              fmt::format("einsum: '{}' has {} operand{}, and {} tensor{} were given", equation,
                          parsed.operands.size(), parsed.operands.size() == 1 ? "" : "s", tensors.size(),
                          tensors.size() == 1 ? "" : "s"));
  std::array<int, kLetters> uses{};
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Term& term = parsed.operands[i];
    const auto named = static_cast<int64_t>(term.labels.size()) - term.has_dots;
    TENON_CHECK(term.has_dots ? tensors[i].dim() >= named : tensors[i].dim() == named, Shape,
                fmt::format("einsum: operand {} of '{}' names {} dimension{}, and the tensor has shape {}", i,
                            equation, named, named == 1 ? "" : "s", to_string(tensors[i].sizes())));
    if (term.has_dots) parsed.dots = std::max(parsed.dots, tensors[i].dim() - named);
    for (const int label : term.labels) {
      if (label >= 0) ++uses[at(label)];
    }
  }
  Term result;
  if (arrow != std::string_view::npos) {
    result = parse_term(equation.substr(arrow + 2), equation);
  } else {
    result.labels.push_back(-1);
    for (int label = 0; label < kLetters; ++label) {
      if (uses[at(label)] == 1) result.labels.push_back(label);
    }
  }
  int64_t next = 0;
  bool dots_placed = false;
  for (const int label : result.labels) {
    if (label < 0) {
      parsed.dots_at = next;
      next += parsed.dots;
      dots_placed = true;
      continue;
    }
    TENON_CHECK(uses[at(label)] > 0, Value,
                fmt::format("einsum: the result of '{}' names '{}', a dimension that no operand has",
                            equation, letter(label)));
    TENON_CHECK(
        parsed.place[at(label)] < 0, Value,
        fmt::format("einsum: the result of '{}' names dimension '{}' twice", equation, letter(label)));
    parsed.place[at(label)] = next++;
  }
  parsed.outputs = next;
  if (!dots_placed) {
    parsed.dots_at = next;
    next += parsed.dots;
  }
  for (int label = 0; label < kLetters; ++label) {
    if (uses[at(label)] > 0 && parsed.place[at(label)] < 0) parsed.place[at(label)] = next++;
  }
  parsed.rank = next;
  return parsed;
}

/// An operand with the dimensions of the equation, of size 1 where it has none.
Tensor spread(const Equation& parsed, const Term& term, Tensor t) {
  const int64_t dots = t.dim() - (static_cast<int64_t>(term.labels.size()) - term.has_dots);
  // The place of each dimension of t; a letter that occurs again is taken along the diagonal.
  std::vector<int64_t> places;
  for (const int label : term.labels) {
    if (label < 0) {
      for (int64_t i = 0; i < dots; ++i) places.push_back(parsed.dots_at + parsed.dots - dots + i);
    } else {
      places.push_back(parsed.place[at(label)]);
    }
  }
  for (size_t d = 0; d < places.size();) {
    const auto again = std::find(places.begin() + static_cast<int64_t>(d) + 1, places.end(), places[d]);
    if (again == places.end()) {
      ++d;
      continue;
    }
    const int64_t other = again - places.begin();
    TENON_CHECK(
        t.size(static_cast<int64_t>(d)) == t.size(other), Shape,
        fmt::format("einsum: dimension {}, which is repeated in an operand, needs one size, got {} and {}",
                    parsed.name_of(places[d]), t.size(static_cast<int64_t>(d)), t.size(other)));
    t = t.diagonal(0, static_cast<int64_t>(d), other);
    const int64_t place = places[d];
    places.erase(places.begin() + other);
    places.erase(places.begin() + static_cast<int64_t>(d));
    places.push_back(place);
  }
  Dims order(at(parsed.rank), -1);
  int64_t rank = t.dim();
  for (size_t d = 0; d < places.size(); ++d) order[at(places[d])] = static_cast<int64_t>(d);
  for (int64_t& d : order) {
    if (d >= 0) continue;
    t = t.unsqueeze(-1);
    d = rank++;
  }
  return t.permute(order);
}

Tensor summed(const Tensor& t, const Dims& dims) {
  return dims.empty() ? t : tenon::sum(t, dims, true, t.dtype());
}

/// The sum of products of two operands over `dims`, which stay with size 1.
Tensor contract(const Tensor& left, const Tensor& right, const std::vector<bool>& sums) {
  Dims batch, rows, columns, inner, left_sums, right_sums;
  Dims sizes;  // of the product: batch, rows, columns, inner
  const int64_t rank = left.dim();
  for (int64_t d = 0; d < rank; ++d) {
    const bool in_left = left.size(d) != 1, in_right = right.size(d) != 1;
    if (sums[at(d)]) {
      if (in_left && in_right)
        inner.push_back(d);
      else
        (in_left ? left_sums : right_sums).push_back(d);
    } else if (in_left && in_right) {
      batch.push_back(d);
    } else if (in_left) {
      rows.push_back(d);
    } else {
      columns.push_back(d);
    }
  }
  const Tensor a = summed(left, left_sums), b = summed(right, right_sums);
  for (const int64_t d : left_sums) rows.push_back(d);
  for (const int64_t d : right_sums) columns.push_back(d);
  int64_t count = 1, m = 1, k = 1, n = 1;
  const auto measure = [&](const Dims& dims, const Tensor& t, int64_t& product, bool kept) {
    for (const int64_t d : dims) {
      product *= t.size(d);
      sizes.push_back(kept ? t.size(d) : 1);
    }
  };
  measure(batch, a, count, true);
  measure(rows, a, m, true);
  measure(columns, b, n, true);
  measure(inner, a, k, false);
  const auto joined = [](std::initializer_list<const Dims*> parts) {
    Dims out;
    for (const Dims* part : parts) {
      for (const int64_t d : *part) out.push_back(d);
    }
    return out;
  };
  const Dims left_order = joined({&batch, &rows, &inner, &columns});
  const Dims right_order = joined({&batch, &inner, &columns, &rows});
  const Dims order = joined({&batch, &rows, &columns, &inner});
  const Tensor product =
      tenon::bmm(a.permute(left_order).reshape({count, m, k}), b.permute(right_order).reshape({count, k, n}));
  Dims back(at(rank));
  for (int64_t i = 0; i < rank; ++i) back[at(order[at(i)])] = i;
  return product.reshape(sizes).permute(back);
}

}  // namespace

Tensor einsum(std::string_view equation, TensorList tensors, std::optional<IntArrayRef> path) {
  TENON_CHECK(!tensors.empty(), Value, "einsum: expected at least one tensor");
  for (const Tensor& t : tensors) {
    TENON_CHECK(t.defined(), Type, "einsum: expected tensors, got an undefined one (None in Python)");
    TENON_CHECK(t.dtype() == tensors[0].dtype(), Type,
                fmt::format("einsum: all operands must have one dtype, got {} and {}",
                            name(tensors[0].dtype()), name(t.dtype())));
  }
  const Equation parsed = parse_equation(equation, tensors);
  std::vector<Tensor> operands;
  for (size_t i = 0; i < tensors.size(); ++i)
    operands.push_back(spread(parsed, parsed.operands[i], tensors[i]));
  for (int64_t d = 0; d < parsed.rank; ++d) {
    int64_t size = 1;
    size_t first = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      const int64_t n = operands[i].size(d);
      TENON_CHECK(n == size || n == 1 || size == 1, Shape,
                  fmt::format("einsum: dimension {} of '{}' has size {} in operand {} and {} in operand {}",
                              parsed.name_of(d), equation, size, first, n, i));
      if (size == 1) first = i;
      if (n != 1) size = n;
    }
  }
  const std::span<const int64_t> steps =
      path ? std::span<const int64_t>(path->data(), path->size()) : std::span<const int64_t>();
  TENON_CHECK(!path || steps.size() == 2 * (operands.size() - 1), Value,
              fmt::format("einsum: a path for {} operands has {} numbers, got {}", operands.size(),
                          2 * (operands.size() - 1), steps.size()));
  for (size_t step = 0; operands.size() > 1; ++step) {
    size_t i = 0, j = 1;
    if (path) {
      const auto count = static_cast<int64_t>(operands.size());
      const auto [least, most] = std::minmax(steps[2 * step], steps[2 * step + 1]);
      TENON_CHECK(least >= 0 && least < most && most < count, Value,
                  fmt::format("einsum: step {} of the path names operands {} and {} of {}", step,
                              steps[2 * step], steps[2 * step + 1], count));
      i = at(least);
      j = at(most);
    }
    const Tensor left = operands[i], right = operands[j];
    operands.erase(operands.begin() + static_cast<int64_t>(j));
    operands.erase(operands.begin() + static_cast<int64_t>(i));
    // A dimension is summed once no other operand has it.
    std::vector<bool> sums(at(parsed.rank));
    for (int64_t d = parsed.outputs; d < parsed.rank; ++d) {
      sums[at(d)] =
          std::all_of(operands.begin(), operands.end(), [&](const Tensor& t) { return t.size(d) == 1; });
    }
    const Tensor product = contract(left, right, sums);
    operands.insert(path ? operands.end() : operands.begin(), product);
  }
  Tensor result = operands[0];
  Dims rest;
  for (int64_t d = parsed.outputs; d < parsed.rank; ++d) rest.push_back(d);
  if (rest.empty()) return result;
  if (tensors.size() == 1) return tenon::sum(result, rest, false, result.dtype());
  Dims sizes(result.sizes().data(), at(parsed.outputs));
  return result.reshape(sizes);
}

}  // namespace tenon::ops
