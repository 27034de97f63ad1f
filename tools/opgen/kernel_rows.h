// KernelRow: one row of a family's table of kernels. A row is data; the code that it refers to exists once
// for each C++ signature, in separate files. Used by the printers of registrations.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/opgen/model.h"

namespace tenon::opgen {

struct KernelRow {
  const Operator* op = nullptr;
  std::string key;    ///< C++ of the DispatchKey.
  std::string entry;  ///< The template that computes, by its name: "PointwiseCall"; empty: a fallthrough;
                      ///< "cells": history over cells.
  std::string data;   ///< C++ of its data; empty where that is `body`.
  std::string probe = "";  ///< C++ of its ServesProbe, without data where that is the kernel's; empty: it
                           ///< serves every backend.
  std::string body = "";   ///< C++ of the BuiltinFunction that is its data.
};

/// The stubs that a body calls, as a list of addresses in C++.
std::string stub_names(const OpDef& def);

/// The rows of one operator.
void add_kernel_rows(const OpDef& def, const Operator& op, std::vector<KernelRow>& rows);
/// The row of its key Autograd, if it has one.
void add_autograd_rows(const OpDef& def, const Operator& op, std::vector<KernelRow>& rows);

/// The row of its key Record, if it has one; other operators that are recorded go through the fallback.
void add_record_rows(const OpDef& def, const Operator& op, std::vector<KernelRow>& rows);

/// The name of the BuiltinCode of an entry for a signature: "code_PointwiseCall_Tensor_of_Tensor".
std::string code_name(const std::string& entry, const FunctionSchema& schema);

/// Code that exists once for each signature: its name, its C++ and what was asked for.
struct SignatureCode {
  std::string word;
  std::string signature;
  std::vector<std::string> parameters;
  std::string returns;
  std::set<std::string> entries;
};
std::vector<SignatureCode> signature_code(const std::vector<OpDef>& defs);

}  // namespace tenon::opgen
