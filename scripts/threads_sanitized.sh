#!/usr/bin/env bash
# Python's tests of threads that record under ThreadSanitizer, in build/tsan as ./test makes it
# (`cmake --preset tsan -DTENON_PYTHON=ON && cmake --build --preset tsan --target tenon_python`). Arguments are pytest's.
set -euo pipefail
cd "$(dirname "$0")/.."
for library in build/tsan/python/tenon/_C*.so build/tsan/tenon/libtenon.so; do
  nm -D "$library" | grep __tsan >/dev/null || { echo "$library was not built under ThreadSanitizer" >&2; exit 1; }
done
# Python itself is not instrumented: the runtimes of the sanitizer and of C++ exceptions come before it.
runtime() { "${CXX:-c++}" -print-file-name="$1"; }
export LD_PRELOAD="$(runtime libtsan.so) $(runtime libstdc++.so)" PYTHONPATH=build/tsan/python
exec .venv/bin/python -m pytest -q -p no:cacheprovider tests/compile/compiled_threads_test.py "$@"
