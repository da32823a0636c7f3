#!/usr/bin/env bash
# Usage: scripts/deps.sh
# Installs the Debian packages that FuncPipe is built from and selects OpenBLAS. Does nothing, in a
# fraction of a second, when all is there. Works as root or through sudo.
set -euo pipefail

packages=(
  build-essential g++ cmake ninja-build pkg-config
  libtorch-dev python3-torch python3-numpy libopenblas0-openmp
  libcurl4-openssl-dev libssl-dev libboost-dev
  nlohmann-json3-dev libyaml-cpp-dev libcli11-dev libspdlog-dev libfmt-dev
  zlib1g-dev libarchive-dev libxxhash-dev coinor-libcbc-dev libeigen3-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  clang-format clang-tidy awscli ca-certificates
)
# Node.js from elsewhere (nvm, NodeSource) conflicts with Debian's npm: an npm on PATH is enough.
command -v npm >/dev/null || packages+=(nodejs npm)

die() {
  echo "deps.sh: $*" >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "needs root to run '$*', and there is no sudo"
  fi
}

# Runs a command silently; shows its whole output when it fails.
quietly() {
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    die "failed: $*"
  fi
  rm -f "$log"
}

missing_packages() {
  local installed
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null |
    sed -n 's/^installed //p' || true)
  printf '%s\n' "${packages[@]}" | grep -vxF -f <(printf '%s\n' "$installed") || true
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"
}

install_missing() {
  local missing
  mapfile -t missing < <(missing_packages)
  [ "${#missing[@]}" -gt 0 ] || return 0
  echo "deps.sh: installing ${missing[*]}"
  quietly apt update
  quietly apt install --no-install-recommends "${missing[@]}"
}

# libtorch calls whatever libblas.so.3 is; the reference BLAS is about 30 times slower.
select_openblas() {
  local name current best
  name=libblas.so.3-$(dpkg-architecture -qDEB_HOST_MULTIARCH)
  current=$(update-alternatives --query "$name" | sed -n 's/^Value: //p')
  case $current in *openblas*) return ;; esac
  best=$(update-alternatives --list "$name" | grep -m1 openblas-openmp) ||
    die "OpenBLAS is installed but no alternative of $name"
  echo "deps.sh: libblas.so.3 was ${current:-not set}, is now $best"
  quietly as_root update-alternatives --set "$name" "$best"
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  die "this script knows Debian only (made for Debian 12); install what these packages hold: ${packages[*]}"
fi
install_missing
select_openblas
