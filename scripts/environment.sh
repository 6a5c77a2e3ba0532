# Sourced by scripts that keep a virtual environment of large packages from PyPI.
# shellcheck shell=bash

# kept_environment FOLDER GIGABYTES TEST PACKAGES…: a virtual environment in FOLDER in which the Python code TEST runs;
# where it does not, PACKAGES are installed, which take GIGABYTES while that goes on. Answers 0: it is there; 1: it cannot be
# had here, and $why is the sentence that says why; 2: installing failed, and FOLDER.log holds the rest.
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
  if ! TMPDIR="$folder/downloads" "$folder/bin/pip" install -q --disable-pip-version-check --no-cache-dir "$@" >"$folder.log" 2>&1 ||
    ! "$folder/bin/python" -c "$test" >>"$folder.log" 2>&1; then
    # shellcheck disable=SC2034  # for the caller
    why="$* cannot be installed"
    return 2
  fi
  rm -rf "$folder/downloads" "$folder/reach"
}
