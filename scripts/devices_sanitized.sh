#!/usr/bin/env bash
# The tests of devices (tests/devices) under AddressSanitizer and UndefinedBehaviorSanitizer, in build/asan-ubsan as
# ./test makes it (`cmake --preset asan-ubsan -DTENON_PYTHON=ON && cmake --build --preset asan-ubsan`), or in the build
# that TENON_BUILD names. Arguments are pytest's:
#     scripts/devices_sanitized.sh
#     scripts/devices_sanitized.sh tests/devices/failures_test.py -k exceptions
set -euo pipefail
cd "$(dirname "$0")/.."
build=${TENON_BUILD:-build/asan-ubsan}
for library in "$build"/python/tenon/_C*.so "$build/tenon/libtenon.so" "$build/backends/openreg/openreg.so"; do
  nm -D "$library" | grep __asan_report >/dev/null || { echo "$library was not built under AddressSanitizer" >&2; exit 1; }
done
# Python itself is not instrumented: the runtimes of the sanitizers and of C++ exceptions come before it.
runtime() { "${CXX:-c++}" -print-file-name="$1"; }
# What Python leaves behind at its end is no leak of Tenon's. The tests look for the signals that memory of devices sends
# to the host themselves.
export ASAN_OPTIONS=detect_leaks=0:handle_segv=0:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
[ $# -gt 0 ] || set -- tests/devices
LD_PRELOAD="$(runtime libasan.so) $(runtime libstdc++.so)" PYTHONPATH="$(realpath "$build")/python" \
  exec .venv/bin/python -m pytest -q -p no:cacheprovider "$@"
