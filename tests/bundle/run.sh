#!/bin/sh
# Checks this machine and runs what is in this folder; `run.sh --help` says more.
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd) || exit 1
for python in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
  if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    exec "$python" -B "$here/run.py" "$@"
  fi
done
echo "run.sh: Python 3.9 or newer is not here. Name one: PYTHON=/path/to/python3 $0" >&2
exit 1
