#!/usr/bin/env bash
# Compiles every kernel for a machine that is not this one: compile_for.sh scalar|neon SRC COMPILER
# Exits 77, which ctest shows as skipped, where the compiler or Highway's headers are not installed.
set -euo pipefail
machine=$1 src=$2 compiler=$3
options=(-std=c++20 -Wall -Wextra -Wshadow -Wconversion -Werror -ffp-contract=off -I "$src")
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

# Templates are instantiated either way; code is made for those that include inline assembly, whose constraints nothing
# else looks at: all would take three times as long.
count=0 assembled=0
for file in "$src"/kernels/cpu/*.cpp "$src"/kernels/cpu/*/*.cpp; do
  case ${file##*/} in
    masked_rows.cpp | tile_product.cpp) output=(-O0 -c -o /dev/null) assembled=$((assembled + 1)) ;;
    *) output=(-fsyntax-only) ;;
  esac
  "$compiler" "${options[@]}" "${output[@]}" "$file"
  count=$((count + 1))
done
[ $assembled = 2 ] || { echo "the files with inline assembly have other names now" >&2 && exit 1; }
echo "$count files compile for $machine"
