#!/usr/bin/env bash
# Runs a command in a root folder that holds Python, libstdc++, libgomp and nothing else: no compiler, no shell, no
# vendor's libraries, no packages of Python. What it holds are this machine's files at their own paths, mounted and not
# copied, so that it is there at once and gone when the command ends.
#
#   scripts/bare_root.sh [--python PYTHON] [--show PATH]... [--libraries-of FILE]... COMMAND [ARGUMENT]...
#
#   --python PYTHON        the interpreter, which COMMAND calls `python`; default: .venv/bin/python. Of a virtual
#                          environment it is the interpreter that made it.
#   --show PATH            a file or folder that the command sees too
#   --libraries-of FILE    and the shared libraries that FILE names, such as libfmt; not those that it looks for as
#                          it runs
#
# The command starts in / with this environment, but for PATH and HOME; /tmp is empty. Needs root or user namespaces:
# without, it says so and exits with 77, which test runners take for "skipped".
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" != --inside ]; then
  flags=(--mount --propagation private)
  [ "$(id -u)" = 0 ] || flags+=(--user --map-root-user)
  unshare "${flags[@]}" true 2>/dev/null || { echo "bare_root.sh: needs root, or user namespaces" >&2; exit 77; }
  exec unshare "${flags[@]}" scripts/bare_root.sh --inside "$@"
fi
shift

python=.venv/bin/python shown=() files=()
while [ $# -gt 0 ]; do
  case $1 in
    --python) python=$2 ;;
    --show) shown+=("$(realpath -s "$2")") ;;
    --libraries-of) files+=("$2") ;;
    --*) echo "bare_root.sh: unknown option $1" >&2; exit 2 ;;
    *) break ;;
  esac
  shift 2
done
[ $# -gt 0 ] || { echo "bare_root.sh: no command" >&2; exit 2; }

mapfile -t standard < <("$python" -c '
import os, sys, sysconfig
print(os.path.realpath(sys.executable))
print(sysconfig.get_path("stdlib"))')
interpreter=${standard[0]} stdlib=${standard[1]}

root=$(mktemp -d)
trap 'umount -l "$root" 2>/dev/null; rmdir "$root"' EXIT
mount -t tmpfs -o mode=755 bare_root "$root"
mkdir -p "$root"/usr/{bin,lib} "$root/tmp"
for link in /bin /lib /lib64; do # links to /usr on most machines
  [ ! -L $link ] || { mkdir -p "$root/$(readlink $link)"; ln -s "$(readlink $link)" "$root$link"; }
done

# Gives the root a file or folder of this machine.
show() {
  [ ! -e "$root$1" ] || return 0
  if [ -d "$1" ]; then mkdir -p "$root$1"; else mkdir -p "$root$(dirname "$1")"; touch "$root$1"; fi
  mount --rbind "$1" "$root$1"
}
for path in /proc /dev "$interpreter" "$stdlib" "${shown[@]}"; do show "$path"; done
ln -sf "$interpreter" "$root/usr/bin/python"
# As the loader finds them; what it does not find is the command's own matter. The standard library has extension
# modules.
libraries() { ldd "$@" 2>/dev/null | grep -o '/[^ :]* (0x' | cut -d' ' -f1 | sort -u; }
mapfile -t runtime < <(ldconfig -p | awk '$1 == "libstdc++.so.6" || $1 == "libgomp.so.1" { print $NF }')
mapfile -t needed < <(libraries "$interpreter" "$stdlib"/lib-dynload/*.so "${runtime[@]}" "${files[@]}")
for path in "${runtime[@]}" "${needed[@]}"; do show "$path"; done

chroot=$(PATH=$PATH:/usr/sbin:/sbin command -v chroot)
PATH=/usr/bin HOME=/tmp "$chroot" "$root" "$@"
