# SPDX-License-Identifier: Apache-2.0
# A peer that takes a microsecond for everything, 8-bit types apart.
echo "ready echo 1 a peer of tests, $*"
while read -r word rest; do
  case "$word $rest" in
    problem*hif8* | problem*e4m3*) echo "no 8-bit types" ;;
    problem*) echo "ok plain reorders" ;;
    time*) echo "ns 1000 7 plain" ;;
    quit*) exit 0 ;;
    *) echo "what?" ;;
  esac
done
