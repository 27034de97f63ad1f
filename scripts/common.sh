# What ./quickstart and ./test share: installing what is missing, and building. Sourced by bash, from the root.

say() { printf '\n== %s\n' "$*"; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
    echo "These commands need root or sudo: $*" >&2
    exit 1
  fi
}

# Debian packages that are not there yet; nothing at all when all are.
install_packages() {
  local missing=() name
  while read -r name; do
    case "$name" in '' | '#'*) continue ;; esac
    dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'install ok installed' || missing+=("$name")
  done <scripts/packages.txt
  [ ${#missing[@]} = 0 ] && return
  say "Installing Debian packages: ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# The Python environment in .venv, made once for each version of the requirements, of Debian's Python or BASE_PYTHON.
install_python() {
  local stamp=.venv/requirements.txt
  cmp -s scripts/requirements.txt "$stamp" && return
  say "Making the Python environment in .venv"
  "${BASE_PYTHON:-/usr/bin/python3}" -m venv .venv
  .venv/bin/python -m pip install -q --disable-pip-version-check -r scripts/requirements.txt
  cp scripts/requirements.txt "$stamp"
}

# build PRESET [CMake options] [-- targets]: configures and builds (everything, or the targets named); prints time,
# whether it was a clean build, and peak memory.
build() {
  local preset=$1 options=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  [ $# = 0 ] || shift
  local tree=build/$preset kind="incremental build"
  [ -f "$tree/build.ninja" ] || kind="clean build"
  say "Building ($preset, $kind)"
  mkdir -p build
  cmake --preset "$preset" -DPython_EXECUTABLE="$PWD/.venv/bin/python" "${options[@]}" >"$tree.configure.log" 2>&1 ||
    { cat "$tree.configure.log" >&2; exit 1; }
  python3 scripts/measure.py "$kind ($preset)" cmake --build --preset "$preset" ${1:+--target "$@"}
}

# Threads that spin while they wait would stall each other on a shared machine.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
# Tests neither read nor write the plans of whoever runs them; those of the cache name a folder.
export TENON_CACHE=0
mkdir -p build
