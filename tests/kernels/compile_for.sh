#!/usr/bin/env bash
# Compiles every kernel for a machine that is not this one: compile_for.sh scalar|neon SRC COMPILER
# Exits 77, which ctest shows as skipped, where the compiler or Highway's headers are not installed.
set -euo pipefail
machine=$1 src=$2 compiler=$3
options=(-std=c++20 -O0 -c -o /dev/null -Wall -Wextra -Wshadow -Wconversion -Werror -ffp-contract=off -I "$src")
skip() {
  echo "skipped: $1"
  exit 77
}

case $machine in
  scalar) options+=(-DHWY_COMPILE_ONLY_SCALAR) ;;
  neon)
    compiler=aarch64-linux-gnu-g++
    command -v "$compiler" >/dev/null || skip "$compiler is not installed (Debian: g++-aarch64-linux-gnu)"
    [ -d /usr/include/hwy ] || skip "no /usr/include/hwy"
    # Highway's headers serve every machine; the rest of /usr/include is this one's.
    headers=$(mktemp -d)
    trap 'rm -rf "$headers"' EXIT
    ln -s /usr/include/hwy "$headers/hwy"
    options+=(-isystem "$headers")
    ;;
  *) echo "no machine '$machine'" >&2 && exit 2 ;;
esac

count=0
for file in "$src"/kernels/cpu/*.cpp "$src"/kernels/cpu/*/*.cpp; do
  "$compiler" "${options[@]}" "$file"
  count=$((count + 1))
done
[ $count -gt 0 ]
echo "$count files compile for $machine"
