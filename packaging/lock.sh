#!/usr/bin/env bash
# packaging/core.lock: the core's packages as constraints.txt has them, each file by its SHA-256. Needs uv.
#   pip install --require-hashes --requirement packaging/core.lock && pip install --no-deps .
# torch is in none of it: its builds for CPUs come from an index of their own, with other files of the same version.
set -euo pipefail
cd "$(dirname "$0")/.."
{
  echo '# Made by packaging/lock.sh from pyproject.toml and constraints.txt: the core, Python 3.11 and newer.'
  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
    --constraint constraints.txt pyproject.toml
} > packaging/core.lock.new
mv packaging/core.lock.new packaging/core.lock
