#!/usr/bin/env bash
# Runs a command beside six busy loops, as a machine with other work would. No test may depend on a quiet machine:
#
#   scripts/busy.sh ./test streams                     a part of the tests, once
#   scripts/busy.sh --times 20 ./test streams          twenty times, or until it fails
set -euo pipefail
times=1
if [ "${1:-}" = --times ]; then times=$2; shift 2; fi
[ $# -gt 0 ] || { echo "usage: scripts/busy.sh [--times N] COMMAND..." >&2; exit 2; }

loops=()
trap 'kill "${loops[@]}" 2>/dev/null' EXIT
for _ in 1 2 3 4 5 6; do
  (while :; do :; done) &
  loops+=($!)
done
for ((run = 1; run <= times; run++)); do
  "$@" || { code=$?; echo "run $run of $times failed: $*" >&2; exit "$code"; }
done
