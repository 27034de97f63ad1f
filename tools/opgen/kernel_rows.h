// KernelRow: one line of a generated registration table, and its way into one of several files.
// Used by the printers of registrations. Rows of one C++ signature go to one file, so that its templates are
// instantiated once.
#pragma once

#include <string>
#include <vector>

namespace tenon::opgen {

struct KernelRow {
  size_t op = 0;
  std::string key;         ///< C++ of the DispatchKey.
  std::string signature;   ///< What rows are grouped by.
  std::string maker;       ///< C++ of the function that makes it.
  std::string data;        ///< C++ of its data; empty where that is `body`.
  std::string probe = "";  ///< C++ of its ServesProbe; empty: it serves every backend.
  std::string body = "";   ///< C++ of the BuiltinFunction that is its data.
};

/// Rows in `count` parts: those of one signature together, parts of about equal length.
std::vector<std::vector<KernelRow>> group_by_signature(const std::vector<KernelRow>& rows, size_t count);
/// "const BuiltinFunction bodies[] = ...; const BuiltinKernel rows[] = ...; extern const std::span<const
/// BuiltinKernel> NAME = rows;".
std::string print_rows(const std::vector<KernelRow>& rows, const std::string& name);

}  // namespace tenon::opgen
