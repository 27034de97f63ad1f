// Families: a family is the operators of one YAML file. Each generated file that names operators belongs to
// one family, so that a changed entry recompiles only the files that include its family.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/opgen/model.h"

namespace tenon::opgen {

struct Family {
  std::string name;  ///< "activation"
  std::vector<const OpDef*> defs;

  /// "tenon/generated/activation/functions.h"
  std::string header(std::string_view what) const;
  /// "activation/operators.cc"
  std::string source(std::string_view what) const;
};

/// In the order of the entries.
std::vector<Family> families_of(const std::vector<OpDef>& defs);
/// The family of an entry.
std::string family_name(const OpDef& def);
/// The C++ of an operator's entry: "tenon::detail::activation_entries[3]".
std::string entry_of(const OpDef& def, const Operator& op);

/// The families that have the overloads of a free function, and the family of an operator's constant.
class FunctionFamilies {
 public:
  explicit FunctionFamilies(const std::vector<OpDef>& defs);

  /// The families whose functions a C++ text calls: every `name(` that is no method.
  std::set<std::string> called_in(std::string_view cpp) const;
  /// The families of every `operators::NAME` in a C++ text.
  std::set<std::string> constants_in(std::string_view cpp) const;

 private:
  std::map<std::string, std::set<std::string>, std::less<>> functions_, constants_;
};

}  // namespace tenon::opgen
