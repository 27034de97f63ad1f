// What the files of the Python extension include of Python, the C++ library and fmt, compiled once; see
// library.h.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>
