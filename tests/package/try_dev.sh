#!/usr/bin/env bash
# The development package where it is installed: programs in C and C++ by way of pkg-config, find_package and link lines,
# shared and static. Usage: try_dev.sh PREFIX LIBDIR INSTALL, INSTALL being tests/install. Programs stay in /tmp/try.
set -euo pipefail
prefix=$1 libdir=$2 install=$3
export CC=cc CXX=c++ CMAKE_GENERATOR="Unix Makefiles"
# Whether the program is there or not is known in a root only.
if [ "$prefix" = /usr ]; then export WITHOUT=tools; fi
for way in pkg_config pkg_config_static find_package find_package_shared find_package_static link_lines refused_components; do
  echo "$way:"
  bash "$install/consume.sh" $way "$prefix" "$libdir" /tmp/try/$way | sed 's/^/  /'
done
