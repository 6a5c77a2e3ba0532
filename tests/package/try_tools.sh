#!/usr/bin/env bash
# The program where it is installed. Usage: try_tools.sh PROGRAM VERSION
set -euo pipefail
program=$1 version=$2
info=$("$program" info)
[[ $info == *"$version"* ]] || { echo "retrograd info does not name version $version: $info" >&2; exit 1; }
"$program" check "conv input=2x3x10x10 weight=6x3x3x3 stride=2x2" "avgpool input=2x3x9x9 kernel=2x2"
# What is illegal must be refused: a weight of four channels for an input of three.
if "$program" explain "conv input=2x3x10x10 weight=6x4x3x3" >/dev/null 2>&1; then
  echo "retrograd explain takes an illegal problem" >&2
  exit 1
fi
echo "retrograd: info names $version, check is right"
