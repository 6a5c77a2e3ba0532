# Sourced by our scripts: from any directory, as root or not, to the root of the checkout with all packages installed.
# shellcheck shell=bash
set -euo pipefail
script=$(realpath "$0")
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
cd "$root"
[ -n "${RETROGRAD_PREPARED:-}" ] || scripts/install-dependencies

# Under sudo, go on as the person who owns the checkout, so that they can build again without it.
if [ "$(id -u)" = 0 ] && [ "${SUDO_UID:-0}" != 0 ] && [ "$(stat -c %u "$root")" = "$SUDO_UID" ]; then
  exec setpriv --reuid "$SUDO_UID" --regid "$SUDO_GID" --init-groups \
    env RETROGRAD_PREPARED=1 HOME="$(getent passwd "$SUDO_UID" | cut -d: -f6)" "$script" "$@"
fi

build() { # build PRESET TARGETS [cmake options…]; TARGETS is one word list, "all" for everything
  local preset=$1 targets=$2 folder=build/$1
  shift 2
  mkdir -p "$folder"
  # A checkout that was moved with its build folder would be refused.
  if ! grep -qsx "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then set -- --fresh "$@"; fi
  echo "building $folder"
  # shellcheck disable=SC2086  # the target list is split on purpose
  if ! { cmake --preset "$preset" -DRETROGRAD_UNITY=ON "$@" && cmake --build --preset "$preset" --target $targets; } \
    >"$folder/build.log" 2>&1; then
    grep -E -A15 'FAILED|CMake Error|error:' "$folder/build.log" | head -n 80 >&2 || true
    echo "building $folder failed; $folder/build.log holds all of it" >&2
    return 1
  fi
}

run_tests() { # run_tests PRESET [ctest options…]: the closing lines, and whatever a failing test printed
  local preset=$1 log=build/$1/ctest.log
  shift
  if ctest --preset "$preset" "$@" >"$log" 2>&1; then
    sed -n '/% tests passed/,$p' "$log"
  else
    grep -vE '^ +Start +[0-9]+|^ *[0-9]+/[0-9]+ Test .* Passed ' "$log" | tail -n 200 >&2
    return 1
  fi
}
