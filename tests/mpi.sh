#!/usr/bin/env bash
# Whether `make ranks` can be built and run here: an MPI library with mpicc and mpirun, and libclang, by which its header is read.
set -u
shopt -s nullglob
command -v mpicc >/dev/null && command -v mpirun >/dev/null || exit 1
libclang=(/usr/lib/*/libclang-[0-9]*.so* /usr/lib/*/libclang.so* /usr/lib/llvm-*/lib/libclang{-[0-9]*,}.so* "${LIBCLANG_PATH:-/none}"/libclang*.so*)
[ ${#libclang[@]} -gt 0 ] || exit 1
# Headers of other libraries than MPICH want clang's own ones.
headers=(/usr/lib/llvm-*/lib/clang/*/include/stddef.h /usr/lib/clang/*/include/stddef.h)
mpicc -show 2>/dev/null | grep -q mpich || [ ${#headers[@]} -gt 0 ]
