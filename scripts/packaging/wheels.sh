# Sourced by scripts/package: wheels for this python3 and for a Python 3.12, of the package and of the one with CUDA code.
# shellcheck shell=bash

each_python() { # each_python WHAT: WHAT PYTHON for each that is found
  local here newer
  here=$(command -v "${PYTHON:-python3}")
  "$1" "$here"
  if "$here" -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then return; fi
  if newer=$(find_newer_python); then
    "$1" "$newer"
  else
    echo "no cp312-abi3 wheel: no Python 3.12 among python3.12, \$PYENV_ROOT/versions and ~/.pyenv/versions"
  fi
}

find_newer_python() { # the path of an interpreter that runs: a shim of pyenv may not
  local candidate
  for candidate in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12.*/bin/python3 python3.12; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))' 2>/dev/null; then
      "$candidate" -c 'import sys; print(sys.executable)'
      return
    fi
  done
  return 1
}

tag_of() { "$1" -c 'import sys; print("cp%d%d" % sys.version_info[:2])'; }

builder() { # builder PYTHON: its environment with what builds wheels, made once; prints the path
  local venv
  venv=build/package-venv-$(tag_of "$1")
  if ! "$venv/bin/python" -c 'import nanobind, scikit_build_core, wheel' 2>/dev/null; then
    { "$1" -m venv "$venv" && "$venv/bin/pip" install 'scikit-build-core>=0.10' 'nanobind>=2.4' wheel ninja; } >"$log" 2>&1 ||
      { echo "wheels cannot be built: $(grep -i error "$log" | tail -n 1)" >&2; return 1; }
  fi
  realpath -s "$venv"
}

# build_wheel PYTHON SOURCE BUILD-FOLDER OPTIONS…: into $wheels, an empty folder
build_wheel() {
  local python=$1 source=$2 folder=$3 venv options=()
  shift 3
  venv=$(builder "$python")
  for define in "$@" "${defines[@]}"; do options+=(-C "cmake.define.${define#-D}"); done
  rm -rf "$wheels"
  mkdir -p "$wheels"
  # Without isolation: the build folder stays valid, since nanobind does not move. With the compiler of the other builds, and
  # not the one that Python was compiled with.
  logged "building a wheel for $(tag_of "$python") in $source/$folder" env -C "$source" PATH="$venv/bin:$PATH" \
    CC="${CC:-cc}" CXX="${CXX:-c++}" "$venv/bin/pip" wheel --disable-pip-version-check --no-build-isolation \
    --no-deps -w "$PWD/$wheels" -C build-dir="$folder" "${options[@]}" .
}
wheels=build/package-wheels

make_wheel() { # make_wheel PYTHON
  build_wheel "$1" . "build/package-$(tag_of "$1")" -DRETROGRAD_CUDA=OFF
  take_wheel "$1" no
}

make_cuda_wheel() { # make_cuda_wheel PYTHON
  local nvcc major source
  if ! nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null); then
    echo "no wheel with CUDA code: nvcc is not here"
    return
  fi
  major=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  # A project has one name: the same files with another one. What was built there stays.
  source=build/package-cu$major
  mkdir -p "$source"
  find "$source" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
  sources | tar --null -T - -cf - | tar -C "$source" -xf -
  sed -i "s/^name = \"retrograd\"$/name = \"retrograd-cu$major\"/" "$source/pyproject.toml"
  build_wheel "$1" "$source" "build/$(tag_of "$1")" -DRETROGRAD_CUDA=ON \
    -DCMAKE_CUDA_ARCHITECTURES="$arch" -DCMAKE_CUDA_COMPILER="$nvcc"
  take_wheel "$1" yes
}

sources() { # what git knows of, changed or not; everything but builds where there is no git
  git ls-files -z 2>/dev/null || find . -type f -not -path './build/*' -not -path './.git/*' -print0
}

take_wheel() { # take_wheel PYTHON WITH-CUDA: tries $wheels/*.whl and puts it into $out
  local built=("$wheels"/*.whl) version pythons
  version=$(sed -n 's/^#define RETROGRAD_VERSION_[A-Z]* //p' include/retrograd/retrograd.h | paste -sd.)
  try_wheel "$1" "${built[0]}" "$version" "$2"
  # One for all later versions of Python: tried with another, if it is there.
  if [[ ${built[0]} == *-abi3-* ]]; then
    pythons=("${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[3-9].*/bin/python3)
    if [ -x "${pythons[0]}" ]; then
      try_wheel "${pythons[0]}" "${built[0]}" "$version" "$2"
    else
      echo "${built[0]##*/}: not tried with a later Python, there is none"
    fi
  fi
  mv "${built[0]}" "$out/"
}

try_wheel() { # try_wheel PYTHON WHEEL VERSION WITH-CUDA
  local numpy prefix python=$1 wheel=$2
  numpy=build/package-numpy-$(tag_of "$python")
  if ! ls "$numpy"/numpy-*.whl >/dev/null 2>&1; then
    logged "fetching NumPy" "$python" -m pip download --disable-pip-version-check --only-binary :all: --no-deps -d "$numpy" numpy
  fi
  if ! have_root; then
    rm -rf build/package-try
    logged "installing $wheel" "$python" -m venv build/package-try
    logged "installing $wheel" build/package-try/bin/pip install --no-index --find-links "$numpy" "$wheel"
    build/package-try/bin/python tests/package/try_wheel.py "$3" "$4"
    return
  fi
  fresh_root wheel
  if [ "$(tag_of "$python")" = cp311 ]; then
    python=python3  # Debian's own
    root_install wheel python3 python3-venv
  else
    # Debian 12 has no other: the one from here, at its place, and the libraries that its modules load.
    prefix=$("$python" -c 'import sys; print(sys.base_prefix)')
    root_install wheel libssl3 libffi8 zlib1g libbz2-1.0 liblzma5 libexpat1
    root_user mkdir -p "$roots/wheel$prefix"
    root_user cp -a "$prefix/." "$roots/wheel$prefix/"
    python=$prefix/bin/python3
  fi
  root_copy wheel "$numpy"/*.whl "$wheel" tests/package/try_wheel.py
  logged "installing ${wheel##*/} in the root" in_root wheel sh -c \
    "$python -m venv /venv && /venv/bin/pip install --no-index --find-links /try /try/${wheel##*/}"
  in_root wheel /venv/bin/python /try/try_wheel.py "$3" "$4"
  drop_roots wheel
}
