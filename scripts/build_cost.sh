#!/usr/bin/env bash
# What building costs, without ccache, in a copy of the tree: a clean build with tests and what edits rebuild, in steps,
# processor seconds and seconds. Half of the processor seconds is what two idle cores take; seconds count where nothing
# else runs.
#     scripts/build_cost.sh                        this tree
#     scripts/build_cost.sh --operators 1000       with so many further operators
#     scripts/build_cost.sh --base 09d035c         and another commit's figures right after, with the ratio to it
# Needs what ./test installs. Takes half an hour and more; docs/decisions/0009-build-cost.md keeps figures.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh
install_packages
install_python
exec .venv/bin/python scripts/build_cost.py "$@"
