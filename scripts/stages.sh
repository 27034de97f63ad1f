# The stages of ./test and .ci/run. Each is a function stage_NAME; `stage NAME` runs it, and a stage that fails does not
# keep later ones from running. The table in CONTRIBUTING.md says how many seconds each may take on two cores.
# Sourced by bash, from the root, after common.sh.

CORE_STAGES=(formatting install cpp python samples)
DEEP_STAGES=(slow conformance trees address thread fuzz recorded recorded_cut)

# Samples follow the commit, so that a series of commits covers everything.
COMMIT=$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0000001)
COMMIT_NUMBER=$((16#$COMMIT))

# Names to select tests by, or empty: what `./test NAME` was given.
SELECT=

stage_lines=()
failed_stages=()

# The seconds that a stage may take, from the table in CONTRIBUTING.md.
seconds_of() {
  local found
  found=$(sed -n "s/^| \`$1\` | *\([0-9]*\) *|.*/\1/p" CONTRIBUTING.md)
  [ -n "$found" ] || { echo "The table in CONTRIBUTING.md has no stage '$1'" >&2; return 1; }
  echo "$found"
}

# stage NAME [LIMIT]: runs stage_NAME and notes how it ended and how long it took. One that runs for more than LIMIT seconds
# is stopped with all that it has started; that is no failure.
stage() {
  local name=$1 limit=${2:-} start=$SECONDS code allowed ending=passed
  allowed=$(seconds_of "$name")
  say "Stage $name, up to $allowed s"
  set +e
  if [ -z "$limit" ]; then
    (set -e; "stage_$name")
    code=$?
  else
    run_limited "$limit" "stage_$name"
    code=$?
  fi
  set -e
  if [ -n "$limit" ] && [ "$code" = 124 ]; then
    ending="stopped, not finished"
  elif [ "$code" != 0 ]; then
    ending="FAILED with exit status $code"
    failed_stages+=("$name")
  fi
  stage_lines+=("$(printf '%-20s %5d s of %5d  %s' "$name" $((SECONDS - start)) "$allowed" "$ending")")
}

# run_limited SECONDS COMMAND: runs it in a process group of its own; 124 where the group had to be stopped.
run_limited() {
  local group
  set -m
  (set -e; "$2") &
  group=$!
  set +m
  if timeout "$1" tail --pid="$group" -f /dev/null; then
    wait "$group"
  else
    kill -TERM -- "-$group"
    timeout 10 tail --pid="$group" -f /dev/null || kill -KILL -- "-$group"
    return 124
  fi
}

# not_run NAME REASON: a line of the report for a stage that was left out.
not_run() { stage_lines+=("$(printf '%-20s     - s of %5d  not run: %s' "$1" "$(seconds_of "$1")" "$2")"); }

# Prints what ran and what failed; fails when a stage failed.
report_stages() {
  say "Stages of commit $COMMIT"
  printf '%s\n' "${stage_lines[@]}"
  echo "all stages: $SECONDS s"
  [ ${#failed_stages[@]} = 0 ] || { echo "FAILED: ${failed_stages[*]}"; return 1; }
}

# pytest of PRESET's build: pytest_of PRESET ARGUMENTS. Selecting none by name is no failure.
pytest_of() {
  local preset=$1 code=0
  shift
  PYTHONPATH=build/$preset/python .venv/bin/python -m pytest -q -p no:cacheprovider ${SELECT:+-k "$SELECT"} "$@" || code=$?
  [ "$code" = 0 ] || { [ -n "$SELECT" ] && [ "$code" = 5 ]; }
}
# The same in two processes; the tests of a file stay together.
pytest_twice() { pytest_of "$@" -n 2 --dist loadfile; }

stage_packages() {
  install_packages
  install_python
}

stage_build() { build release -DTENON_PYTHON=ON -DTENON_BENCH=ON; }

stage_formatting() { git ls-files '*.h' '*.cc' | xargs -P 2 -n 200 clang-format --dry-run -Werror; }

# What others install, which the tests of tests/packaging use. The example's losses are what the digits tests compare.
stage_install() {
  rm -rf build/install build/wheels
  cmake --build build/release --target tenon_static >build/install.log
  cmake --install build/release --prefix build/install >>build/install.log
  cmake --install build/release --component static --prefix build/install >>build/install.log
  .venv/bin/python -m pip wheel . -q --disable-pip-version-check --no-deps --no-build-isolation \
    --config-settings=build-dir=build/release -w build/wheels
  ls -s --block-size=K build/wheels
  cmake -S examples/digits -B build/digits -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$PWD/build/install" >build/digits.configure.log
  cmake --build build/digits
  strip -o build/libtenon.stripped.so build/release/tenon/libtenon.so
  echo "library size, stripped: $(($(stat -c %s build/libtenon.stripped.so) / 1024)) KB"
}

stage_cpp() { ctest --test-dir build/release --output-on-failure -j2 ${SELECT:+-R "$SELECT"}; }

# Tests that build copies of the tree or programs outside of it, build devices, or run the kit on whole devices take minutes each.
LONG_TESTS=(tests/integration tests/devices/build_test.py tests/devices/kit_test.py tests/docs/conformance_test.py
  tests/docs/tutorial_device_test.py tests/packaging/consumers_test.py)
# The same of files whose other tests are short.
LONG_PARTS=(tests/devices/opencl_test.py::test_every_expression_in_the_dtypes_that_the_kits_page_leaves_out
  tests/docs/blocks_test.py::test_the_commands_that_build_a_device tests/python/autograd/backward_test.py::test_a_million_leaves_wide)

# Python tests but for long ones and conformance, of PRESET's build: python_tests PRESET OPTIONS.
python_tests() {
  pytest_twice "$@" tests --ignore tests/conformance "${LONG_TESTS[@]/#/--ignore=}" "${LONG_PARTS[@]/#/--deselect=}"
}

# Of the slow ones a tenth, but by name all.
stage_python() {
  local slow=sample:$COMMIT
  [ -z "$SELECT" ] || slow=all
  python_tests release --slow "$slow"
}

# with_conformance PRESET COMMAND: runs it, and beside it a tenth of conformance on PRESET's build.
with_conformance() {
  local preset=$1 log=build/conformance_sample.log code=0 conformance
  shift
  (TENON_CONFORMANCE=sample:$COMMIT pytest_of "$preset" tests/conformance) >"$log" 2>&1 &
  conformance=$!
  "$@" || code=$?
  wait "$conformance" || code=$?
  tail -n 30 "$log"
  return "$code"
}

# Two samples at once: a tenth of conformance, and a tenth of all tests, recorded.
stage_samples() { with_conformance release scripts/test_recorded.sh --sample "$COMMIT_NUMBER"; }

# For work in progress: what the dev build has, without slow tests.
stage_fast_build() { build dev; }
# Without two that compute for half a minute each in this build; ./test has them.
stage_fast_cpp() {
  ctest --test-dir build/dev --output-on-failure -j2 -E '^(bench/accuracy|record/Composed.BlocksOfALargeProductHaveItsBits)$'
}
stage_fast_python() { with_conformance dev python_tests dev --slow none; }

stage_slow() { python_tests release --slow only; }

stage_trees() { pytest_twice release "${LONG_TESTS[@]}" "${LONG_PARTS[@]}"; }

stage_conformance() { pytest_of release tests/conformance; }

# The release build's tests cover every instruction set; sanitizers look for other faults, and need one.
stage_address() {
  build asan-ubsan -DTENON_PYTHON=ON
  ctest --test-dir build/asan-ubsan --output-on-failure -j2
  scripts/fuzz_sanitized.sh --count 24000 --jobs 2 --seed "$COMMIT_NUMBER"
}

stage_thread() {
  local rooms=(core dispatch autograd plugin record cache)
  build tsan -DTENON_PYTHON=ON -DTENON_OPGEN="$PWD/build/release/tools/opgen/opgen" -- \
    "${rooms[@]/%/_tests}" planted_race tenon_python
  ctest --test-dir build/tsan --output-on-failure -j2 -R "^($(IFS='|'; echo "${rooms[*]}")|sanitizers)/"
  scripts/threads_sanitized.sh
}

stage_fuzz() {
  PYTHONPATH=build/release/python .venv/bin/python tests/fuzz/fuzz.py --count 100000 --jobs 2 --seed "$COMMIT_NUMBER"
  TENON_MUTATIONS=20000 pytest_of release tests/fuzz/files_test.py
  TENON_SAMPLES=1000000 pytest_of release tests/python/distributions/samplers_test.py tests/python/distributions/matrices_test.py
  TENON_MUTATIONS=20000 ctest --test-dir build/release --output-on-failure -R 'Damage|GraphBinaryFuzz|ChangedPlans'
  TENON_EXPRESSIONS=500 ctest --test-dir build/release --output-on-failure -R PrintC
  PYTHONPATH=build/release/python .venv/bin/python tests/fuzz/fuzz.py --wrong --count 100000 --jobs 2 --seed "$COMMIT_NUMBER"
}

stage_recorded() {
  scripts/test_recorded.sh
  TENON_REPLAY=check pytest_of release tests/compile -k "pure or random_programs"
}

stage_recorded_cut() { TENON_FLUSH=random:$COMMIT_NUMBER scripts/test_recorded.sh; }
