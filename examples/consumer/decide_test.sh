#!/usr/bin/env bash
# The model adds what is above 1, 2 and 3 and takes 4 away: see make_model.py.
set -euo pipefail

printf '%s\n' "5 2 3" "1 2 3" "2 9.5 3" | "$1" | diff - <(printf '%s\n' "drop 0" "drop -4" "keep 4.5")
