#!/usr/bin/env bash
# Builds the four consumers against an installed package in one of several ways, and runs them.
# Usage: consume.sh WAY PREFIX LIBDIR SCRATCH, WAY being find_package, find_package_shared, find_package_static, pkg_config,
# pkg_config_static, link_lines, or refused_components, which builds nothing; CC, CXX, FLAGS, RUN (a command to run programs
# under) and CMAKE_GENERATOR come from the environment.
set -euo pipefail
way=$1 prefix=$2 libdir=$2/$3 scratch=$4
here=$(realpath "$(dirname "$0")")
source=$here/consumer
FLAGS=${FLAGS:-} RUN=${RUN:-}
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

run() { # run PROGRAM: it must say that its results are right
  local said
  # shellcheck disable=SC2086  # RUN is a command with its arguments
  said=$($RUN "./$1") || { echo "$1 failed: $said" >&2; return 1; }
  [ "$said" = right ] || { echo "$1 said: $said" >&2; return 1; }
  echo "$1: right"
}

compile() { # compile INTERFACE NAME FLAGS…: in both languages
  local interface=$1 name=$2
  shift 2
  # shellcheck disable=SC2086  # FLAGS is a list
  $CC -std=c11 -Wall -Wextra -Werror $FLAGS "$source/$interface.c" -o "${name}_c" "$@"
  # shellcheck disable=SC2086
  $CXX -std=c++11 -Wall -Wextra -Werror $FLAGS "$source/$interface.cpp" -o "${name}_cpp" "$@"
  run "${name}_c"
  run "${name}_cpp"
}

static() { # static PROGRAM: it must not load our library
  if ldd "$1" | grep -q libretrograd; then echo "$1 loads the shared library" >&2; return 1; fi
}

case $way in
  find_package | find_package_shared | find_package_static)
    component=${way#find_package}
    cmake -S "$source" -B . -DCOMPONENT="${component#_}" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$CC" \
      -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_C_FLAGS="$FLAGS" -DCMAKE_CXX_FLAGS="$FLAGS" >cmake.log 2>&1 ||
      { cat cmake.log >&2; exit 1; }
    cmake --build . >build.log 2>&1 || { cat build.log >&2; exit 1; }
    for program in aclnn_c aclnn_cpp infiniop_c infiniop_cpp; do
      [ "$component" != _static ] || static $program
      run $program
    done
    ;;
  refused_components)
    refused() { # refused COMPONENT REASON
      local said
      said=$(cmake --fresh -S "$here/consumer_refused" -B . -DCOMPONENT="$1" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_COMPILER="$CC" 2>&1 | grep 'found: ') || { echo "$1: cmake failed" >&2; return 1; }
      [[ $said == *"found: 0: "*"$2"* ]] || { echo "$1: $said" >&2; return 1; }
      echo "$1: refused"
    }
    refused statics "there is no component statics; expected shared, static or tools"
    refused static "the component static needs the language CXX"
    if [ -n "${WITHOUT:-}" ]; then refused "$WITHOUT" "the component $WITHOUT is not installed"; fi
    ;;
  pkg_config_static)
    export PKG_CONFIG_PATH=$libdir/pkgconfig
    read -ra flags < <(pkg-config --cflags --libs retrograd-static)
    compile aclnn aclnn "${flags[@]}"
    compile infiniop infiniop "${flags[@]}"
    static aclnn_c
    ;;
  pkg_config)
    export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
    read -ra flags < <(pkg-config --cflags --libs retrograd)
    compile aclnn aclnn "${flags[@]}"
    compile infiniop infiniop "${flags[@]}"
    ;;
  link_lines)
    export LD_LIBRARY_PATH=$libdir
    compile aclnn aclnn "-I$prefix/include" "-L$libdir" -lascendcl -lnnopbase -lopapi
    compile aclnn aclnn_split "-I$prefix/include" "-L$libdir" -lopapi_nn -lopapi_math -lascendcl -lnnopbase
    compile infiniop infiniop "-I$prefix/include" "-L$libdir" -linfiniop -linfinirt
    ;;
  *)
    echo "$0: unknown way $way" >&2
    exit 2
    ;;
esac
