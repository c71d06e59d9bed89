#!/bin/sh
# chainJobs.sh FILE SCRIPT [ARGUMENT...]: submits a job that waits for the one whose id FILE holds, and puts its
# own id there for the next. The first of a chain waits for none.
set -e
if [ $# -lt 2 ]; then
  echo "usage: $0 FILE SCRIPT [ARGUMENT...]" >&2
  exit 1
fi
file=$1
shift
if [ -s "$file" ]; then
  set -- "--dependency=afterany:$(head -n 1 "$file")" "$@"
fi
said=$(sbatch "$@")
echo "$said"
# The id is the last word.
echo "${said##* }" > "$file"
