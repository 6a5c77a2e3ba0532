#!/usr/bin/env bash
# scripts/gpu gives its programs a search path without empty entries, each of which would stand for the current
# folder. Runs a copy of it in an empty folder, with a bundle whose programs only say what path they were given.
#   gpu_search_path.sh SCRIPT
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/scripts" "$folder/build/gpu-bundle" "$folder/bundle/bin" "$folder/bundle/lib" "$folder/commands"
cp "$1" "$folder/scripts/gpu"
for program in test_engines candidates_fuzz test_cuda test_cuda_interfaces; do
  printf '#!/bin/sh\necho "path=$LD_LIBRARY_PATH"\necho "[  PASSED  ] 1 test."\n' >"$folder/bundle/bin/$program"
done
# No PyTorch.
printf '#!/bin/sh\nexit 1\n' >"$folder/commands/python3"
printf '#!/bin/sh\n' >"$folder/commands/nvidia-smi"
chmod +x "$folder"/bundle/bin/* "$folder"/commands/*
tar -C "$folder/bundle" -cJf "$folder/build/gpu-bundle/bundle.tar.xz" .
here=$folder/build/gpu-run/lib

failed=0
expect() { # expect PATHS [assignments…]: what the programs are given under that environment
  local expected=$1
  shift
  rm -rf "$folder/results"
  env -u LD_LIBRARY_PATH PATH="$folder/commands:$PATH" OUT="$folder/results" "$@" "$folder/scripts/gpu" >/dev/null
  local given
  given=$(grep -h '^path=' "$folder/results/tests.log" | sort -u)
  if [ "$given" != "path=$expected" ]; then
    echo "given $given, expected path=$expected" >&2
    failed=1
  fi
}
expect "$here"
expect "$here" LD_LIBRARY_PATH=
expect "$here:/a:/b" LD_LIBRARY_PATH=/a:/b
exit $failed
