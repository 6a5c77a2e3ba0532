#!/usr/bin/env bash
# Compiles every kernel for a machine that is not here: compile_for.sh no_vectors|avx512 SRC COMPILER
set -euo pipefail
machine=$1 src=$2 compiler=$3
options=(-std=c++20 -Wall -Wextra -Wshadow -Wconversion -Werror -ffp-contract=off -I "$src" -DRETROGRAD_ONE_TARGET)
case $machine in
  no_vectors) options+=(-DHWY_COMPILE_ONLY_SCALAR) ;;
  avx512) options+=(-DHWY_COMPILE_ONLY_STATIC -march=skylake-avx512) ;;
esac

# What most of them include, read once.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf '#include <%s>\n' algorithm array bit cmath cstddef cstdint cstring utility >"$scratch/read_once.h"
if [ "$machine" = avx512 ]; then echo '#include <immintrin.h>' >>"$scratch/read_once.h"; fi
"$compiler" "${options[@]}" -x c++-header "$scratch/read_once.h" -o "$scratch/read_once.h.gch"
options+=(-include "$scratch/read_once.h")

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
