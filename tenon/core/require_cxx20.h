// Says in one sentence that the language is too old; headers that programs include have it first.
#pragma once

#if __cplusplus < 202002L
#error "Tenon needs C++20: compile with -std=c++20 or newer (CMake: target_compile_features, cxx_std_20)"
#endif
