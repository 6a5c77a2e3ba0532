# Sourced by scripts/package: Debian 12 in folders below build/package-roots, each made anew from one that debootstrap made.
# shellcheck shell=bash
roots=build/package-roots
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
root_state=""  # "yes", or why there is none

root_user() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

have_root() {
  if [ -z "$root_state" ]; then
    root_state=$(make_base)
    if [ "$root_state" = yes ]; then echo "trying in a fresh Debian 12"; else echo "trying without a fresh Debian: $root_state"; fi
  fi
  [ "$root_state" = yes ]
}

make_base() { # prints yes, or the reason
  if ! root_user true 2>/dev/null; then echo "neither root nor sudo without a password" && return; fi
  if ! command -v debootstrap >/dev/null && [ ! -x /usr/sbin/debootstrap ]; then echo "no debootstrap here" && return; fi
  mkdir -p "$roots"
  if [ ! -f "$roots/base.made" ]; then
    root_user rm -rf "$roots/base"
    if ! root_user debootstrap --variant=minbase bookworm "$roots/base" "$mirror" >"$roots/debootstrap.log" 2>&1; then
      echo "debootstrap failed: $(tail -n 1 "$roots/debootstrap.log")" && return
    fi
    touch "$roots/base.made"
  fi
  if ! in_root base true 2>"$roots/chroot.log"; then echo "no chroot: $(tail -n 1 "$roots/chroot.log")" && return; fi
  echo yes
}

fresh_root() { # fresh_root NAME
  drop_roots "$1"
  root_user cp -a "$roots/base" "$roots/$1"
  root_user cp /etc/resolv.conf /etc/hosts "$roots/$1/etc/"  # apt asks the same servers as here
  root_user mkdir "$roots/$1/try"
}

in_root() { # in_root NAME COMMAND…: with /proc, in a mount namespace that ends with the command
  local name=$1
  shift
  # shellcheck disable=SC2016  # the inner shell expands it
  root_user unshare --mount bash -c 'mount -t proc proc "$1/proc" && exec chroot "$1" "${@:2}"' _ "$roots/$name" \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

root_copy() { # root_copy NAME FILES…: into its /try
  local name=$1
  shift
  root_user cp -rL "$@" "$roots/$name/try/"
}

root_install() { # root_install NAME PACKAGES…: names of Debian's, or our files
  local name=$1 packages=()
  shift
  for package in "$@"; do
    if [ -f "$package" ]; then
      root_copy "$name" "$package"
      package=/try/$(basename "$package")
    fi
    packages+=("$package")
  done
  logged "installing ${packages[*]##*/} in the root $name" in_root "$name" sh -c \
    'apt-get -q update && apt-get -q -y --no-install-recommends install "$@"' _ "${packages[@]}"
}

drop_roots() { # drop_roots NAMES…
  for each in "$@"; do root_user rm -rf "${roots:?}/$each"; done
}
