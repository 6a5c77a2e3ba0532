# Sourced by scripts that keep virtual environments of packages from PyPI, and that need our Python package.
# shellcheck shell=bash

# kept_environment FOLDER GIGABYTES TEST PACKAGES…: a virtual environment in FOLDER in which the Python code TEST runs;
# where it does not, PACKAGES are installed, which take GIGABYTES while that goes on. Answers 0: it is there; 1: it cannot be
# had here, and $why is the sentence that says why; 2: installing failed or took 20 minutes, and FOLDER.log holds the rest.
kept_environment() {
  local lock code=0
  why=''
  if "$1/bin/python" -c "$3" >/dev/null 2>&1; then return; fi
  mkdir -p "$1"
  exec {lock}>"$1.lock"
  flock "$lock"  # whoever else is installing has done so after this
  "$1/bin/python" -c "$3" >/dev/null 2>&1 || install_environment "$@" || code=$?
  exec {lock}>&-
  return "$code"
}

install_environment() { # as above, where TEST fails
  local folder=$1 gigabytes=$2 test=$3 free there
  shift 3
  free=$(df -BG --output=avail "$folder" | tail -n 1 | tr -dc 0-9)
  there=$(du -sBG "$folder" | cut -dG -f1)
  if ((free + there < gigabytes)); then
    why="$folder would take $gigabytes GB, and $free GB are free there"
    return 1
  fi
  if [ ! -x "$folder/bin/pip" ] && ! "${PYTHON:-python3}" -m venv "$folder" >"$folder.log" 2>&1; then
    why="${PYTHON:-python3} makes no virtual environment"
    return 2
  fi
  # A small package tells whether there is a PyPI, or a mirror that pip's settings name.
  if ! "$folder/bin/pip" download -q --disable-pip-version-check --no-deps -d "$folder/reach" iniconfig >"$folder.log" 2>&1; then
    why="PyPI cannot be reached: $(tail -n 1 "$folder.log")"
    return 1
  fi
  echo "installing $* into $folder"
  # Downloads next to the packages: /tmp may be small, and a copy in pip's cache would be kept for nobody.
  mkdir -p "$folder/downloads"
  if ! TMPDIR="$folder/downloads" timeout -k 10 1200 "$folder/bin/pip" install -q --disable-pip-version-check --no-cache-dir "$@" >"$folder.log" 2>&1 ||
    ! "$folder/bin/python" -c "$test" >>"$folder.log" 2>&1; then
    # shellcheck disable=SC2034  # for the caller
    why="$* cannot be installed"
    return 2
  fi
  rm -rf "$folder/downloads" "$folder/reach"
}

# python_wheel: builds the Python package as `pip install .` does, around the library of build/release, which is compiled
# once for all stages; with CUDA where that build folder has it, or where there is none yet and RETROGRAD_CUDA says so.
# Sets $wheel. What it is built with is kept in build/python/venv: answers 1 and 2 as above; 3: it does not build, and
# build/python/log holds the rest.
python_wheel() {
  local venv=build/python/venv log=build/python/log wheels=build/python/wheels settings=(-C build-dir=build/python/build)
  mkdir -p build/python
  kept_environment $venv 1 'import nanobind, numpy, pytest, scikit_build_core, ml_dtypes' \
    numpy 'scikit-build-core>=0.10' 'nanobind>=2.4' 'pytest>=7' 'ml_dtypes>=0.4' ninja || return
  settings+=(-C cmake.define.RETROGRAD_BUILT_LIBRARY="$PWD/build/release/lib/libretrograd.so")
  if command -v ccache >/dev/null; then settings+=(-C cmake.define.CMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  rm -rf $wheels
  # A build folder that is there is not configured again: the preset would change its options, and all would be compiled
  # anew. Without isolation: the build finds what is in the environment, and needs no network.
  if ! { { [ -f build/release/build.ninja ] || cmake --preset release -DRETROGRAD_CUDA="${RETROGRAD_CUDA:-OFF}"; } &&
    cmake --build build/release --target retrograd &&
    $venv/bin/pip wheel --disable-pip-version-check --no-build-isolation --no-deps -w $wheels "${settings[@]}" .; } >$log 2>&1; then
    # shellcheck disable=SC2034  # for the caller
    why="the Python package does not build"
    return 3
  fi
  # shellcheck disable=SC2034  # for the caller
  wheel=$(ls $wheels/*.whl)
}

# install_wheel PYTHON: $wheel, instead of the one that is there.
install_wheel() {
  "$1" -m pip install -q --disable-pip-version-check --no-deps --no-index --force-reinstall "$wheel"
}
