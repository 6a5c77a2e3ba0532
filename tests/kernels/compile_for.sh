#!/usr/bin/env bash
# Compiles every kernel for a machine without vectors: compile_without_vectors.sh SRC COMPILER
set -euo pipefail
src=$1 compiler=$2
options=(-std=c++20 -Wall -Wextra -Wshadow -Wconversion -Werror -ffp-contract=off -I "$src" -DHWY_COMPILE_ONLY_SCALAR)

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
echo "$count files compile without vectors"
