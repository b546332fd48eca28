#!/usr/bin/env bash
# Builds the fuzz targets with coverage (stable Rust; no cargo-fuzz needed, a C++ compiler is) and runs each for a while:
#   tests/fuzz/run.sh [SECONDS [TARGET...]]
# What it learns is kept in tests/fuzz/corpus/TARGET; what fails, in tests/fuzz/artifacts. Exits with 1 at a finding.
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:-60}
shift || true
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
host=$(rustc -vV | sed -n 's/^host: //p')
cargo build --release --target "$host"
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n 's/^name = "\([a-z_]*\)"$/\1/p' Cargo.toml)
mkdir -p artifacts
failed=0
for target in "${targets[@]}"; do
    mkdir -p "corpus/$target" "seeds/$target"
    echo "== $target"
    "target/$host/release/$target" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -verbosity=0 \
        -print_final_stats=1 -artifact_prefix="artifacts/$target-" "corpus/$target" "seeds/$target" || failed=1
done
exit $failed
