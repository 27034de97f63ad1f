#!/usr/bin/env bash
# Runs the tests of the release build inside a scope that records everything: no result may change. Prints how many calls
# were recorded, for each room and folder.
#
#   scripts/test_recorded.sh                 all of them, but for what tests/not_recorded.txt names
#   scripts/test_recorded.sh --sample SEED   about a tenth of those that are not slow, chosen by the seed
#   TENON_FLUSH=random:SEED scripts/test_recorded.sh    what is recorded is cut at random points
set -euo pipefail
cd "$(dirname "$0")/.."

export TENON_COMPILE=all
slow=all
if [ "${1:-}" = --sample ]; then
  TENON_COMPILE=sample:$2
  slow=none
  export GTEST_TOTAL_SHARDS=10 GTEST_SHARD_INDEX=$(($2 % 10))
fi
# Names of C++ tests have a dot and no slash.
left_out=$(sed -n 's/^\([A-Za-z0-9_*]*\.[A-Za-z0-9_*]*\)  .*/\1/p' tests/not_recorded.txt | paste -sd:)

passed=yes
for program in build/release/tests/*_tests; do
  room=$(basename "$program" _tests)
  # These open scopes of their own, and count what they do.
  [ "$room" = record ] || [ "$room" = cache ] && continue
  log=build/recorded.$room.log
  # Tests of a room may change what their process has registered: each program runs on its own.
  if (cd build/release/tests && "./${room}_tests" --gtest_filter="-$left_out") >"$log" 2>&1; then
    echo "$room: $(grep '^recorded:' "$log")"
  else
    passed=no
    tail -n 40 "$log"
    echo "$room: FAILED ($log)"
  fi
done

pytest_of() { PYTHONPATH=build/release/python .venv/bin/python -m pytest -q -p no:cacheprovider "$@"; }
log=build/recorded.conformance.log
pytest_of tests/conformance >"$log" 2>&1 &
conformance=$!
pytest_of tests --ignore tests/conformance --slow "$slow" || passed=no
wait "$conformance" || passed=no
tail -n 40 "$log"
[ "$passed" = yes ]
