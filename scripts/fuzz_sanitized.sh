#!/usr/bin/env bash
# The fuzz of tests/fuzz under AddressSanitizer and UndefinedBehaviorSanitizer, in build/asan-ubsan as ./test makes it
# (`cmake --preset asan-ubsan -DTENON_PYTHON=ON && cmake --build --preset asan-ubsan`). Arguments are those of fuzz.py:
#     scripts/fuzz_sanitized.sh --seconds 600 --seed 1000
#     scripts/fuzz_sanitized.sh --seed 1003 --only 164
set -euo pipefail
cd "$(dirname "$0")/.."
for library in build/asan-ubsan/python/tenon/_C*.so build/asan-ubsan/tenon/libtenon.so; do
  nm -D "$library" | grep __asan_report >/dev/null || { echo "$library was not built under AddressSanitizer" >&2; exit 1; }
done
# Python itself is not instrumented: the runtimes of the sanitizers and of C++ exceptions come before it.
runtime() { "${CXX:-c++}" -print-file-name="$1"; }
export LD_PRELOAD="$(runtime libasan.so) $(runtime libstdc++.so)" PYTHONPATH=build/asan-ubsan/python
# What Python leaves behind at its end is no leak of Tenon's.
export ASAN_OPTIONS=detect_leaks=0
exec .venv/bin/python tests/fuzz/fuzz.py "$@"
