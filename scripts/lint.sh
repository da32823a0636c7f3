#!/bin/sh
# Usage: scripts/lint.sh [BASE]
# Checks layers, formatting and, on the C++ files that differ from the commit BASE (default: the
# last one; "all": every file), clang-tidy. Needs a configured build/release.
set -eu
cd "$(dirname "$0")/.."
base=${1:-HEAD}
build=build/release

[ -f "$build/compile_commands.json" ] || {
  echo "lint.sh: $build is not configured; run 'make build' first" >&2
  exit 1
}
python3 scripts/check_layers.py
scripts/format.sh --check

changed() {
  if [ "$base" = all ]; then
    git ls-files --cached --others --exclude-standard "$@"
  else
    git diff --name-only --diff-filter=d "$base" -- "$@"
    git ls-files --others --exclude-standard "$@"
  fi
}
files=$(changed 'src/*.cc' 'tests/*.cc' 'bench/*.cc' | sort -u)
# Benchmarks and whatever else this configuration does not compile have no compile command.
for file in $files; do
  ! grep -qF "$PWD/$file\"" "$build/compile_commands.json" || echo "$file"
done | xargs -r -P "${JOBS:-1}" -n 1 clang-tidy -p "$build" --quiet
