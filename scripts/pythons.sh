#!/usr/bin/env bash
# Runs the Python tests of ./test on other versions of CPython:
#
#   scripts/pythons.sh python3.10 python3.13     programs of the path, or their paths
#
# Each has a copy of the tree in build/pythons, with changes that are not committed yet, and there an environment and a
# release build of its own. ./test leaves this out: with a warm ccache a version takes 6 minutes on two cores, and 15 without.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo "usage: scripts/pythons.sh PYTHON..." >&2; exit 2; }
for python in "$@"; do
  command -v "$python" >/dev/null || { echo "scripts/pythons.sh: no program '$python'" >&2; exit 2; }
done

test_copy() {
  . scripts/common.sh
  . scripts/stages.sh
  install_packages
  install_python
  build release -DTENON_PYTHON=ON -- tenon_python tenon_stubs openreg opencl blind_device
  stage_install
  stage_python
  TENON_REPLAY=check pytest_of release tests/compile -k "pure or random_programs or replay" -n 2
}

# Changes that are not committed become a commit that no branch has; without any, there is none.
commit=$(git stash create)
commit=${commit:-$(git rev-parse HEAD)}
ends=()
code=0
for python in "$@"; do
  version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')
  copy=build/pythons/$version
  [ -d "$copy" ] || git clone -q --shared --no-checkout . "$copy"
  git -C "$copy" checkout -q --detach "$commit"
  BASE_PYTHON=$(command -v "$python")
  export BASE_PYTHON
  set +e
  (set -e; cd "$copy"; test_copy)
  ended=$?
  set -e
  [ "$ended" = 0 ] && ends+=("CPython $version: passed") || { ends+=("CPython $version: FAILED"); code=1; }
done
printf '%s\n' "${ends[@]}"
exit "$code"
