#!/bin/sh
# Usage: scripts/format.sh [--check]
# Formats all C++ files of the repository (git's view: tracked, or new and not ignored).
set -eu
cd "$(dirname "$0")/.."

case ${1-} in
  '') mode=-i ;;
  --check) mode='--dry-run --Werror' ;;
  *) echo "usage: scripts/format.sh [--check]" >&2; exit 2 ;;
esac
git ls-files --cached --others --exclude-standard '*.h' '*.cc' |
  while read -r file; do [ ! -f "$file" ] || echo "$file"; done |
  xargs -r clang-format $mode
