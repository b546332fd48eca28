#!/usr/bin/env bash
# Fuzzes the readers of foreign bytes, one target after the other, with what was kept as the beginning.
#   tests/fuzz.sh [SECONDS [TARGET]...]       600 seconds each, all targets
# Needs cargo-fuzz (`cargo install cargo-fuzz`). Without a nightly compiler the stable one is asked for its nightly ways.
# New inputs gather in out/fuzz; `KEEP=1` packs the smallest set that reaches everything into tests/fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
shift || true
command -v cargo-fuzz >/dev/null || { echo "cargo-fuzz is missing: cargo install cargo-fuzz" >&2; exit 2; }
export RUSTC_BOOTSTRAP=1
target_dir=${FUZZ_TARGET_DIR:-$PWD/out/fuzz-target}
options=(--fuzz-dir tests/fuzz --sanitizer none --codegen-units 16 --target-dir "$target_dir")
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cargo fuzz list --fuzz-dir tests/fuzz)
for target in "${targets[@]}"; do cargo fuzz build "${options[@]}" "$target"; done
programs=$(dirname "$(find "$target_dir" -path "*release/${targets[0]}" -type f | head -n 1)")
out=$PWD/out/fuzz
# Captures of a few kilobytes are written a hundred times a second: in memory, if there is a folder for that.
[ -d /dev/shm ] && export TMPDIR=/dev/shm
found=()
for target in "${targets[@]}"; do
    mkdir -p "$out/$target" "$out/artifacts"
    log=$out/$target.log
    named=tests/fuzz/corpus/$target
    reached=$named.tar.gz
    [ ! -e "$reached" ] || tar -xzf "$reached" -C "$out/$target"
    result=clean
    "$programs/$target" -max_total_time="$seconds" -max_len=4096 -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="$out/artifacts/$target-" "$out/$target" "$named" >"$log" 2>&1 || { result=FOUND; found+=("$target"); }
    printf '%-14s %-6s %12s inputs in %4s s, %6s branches\n' "$target" $result \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$seconds" \
        "$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | tr -dc 0-9)"
    if [ "${KEEP:-}" = 1 ] && [ $result = clean ]; then
        smallest=$out/smallest/$target
        rm -rf "$smallest" && mkdir -p "$smallest"
        "$programs/$target" -merge=1 -max_len=4096 "$smallest" "$named" "$out/$target" >/dev/null 2>&1
        # The same inputs make the same file, so that it changes only with them.
        tar -C "$smallest" --sort=name --mtime=@0 --owner=0 --group=0 --mode=0644 -cf - . | gzip -9n >"$reached"
    fi
done
[ ${#found[@]} -eq 0 ] || { echo "inputs that break something: $out/artifacts (${found[*]})"; exit 1; }
