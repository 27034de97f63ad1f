// What the files of libtenon and opgen include of the C++ library and fmt, compiled once. Headers of Tenon
// are not here: parsing them takes a tenth of what these take, and an edit of one must not recompile what
// does not use it. A file still includes what it uses; -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>
