#!/usr/bin/env bash
# From a real captured terasort, as it was and grown to 64 workers, to reports over several fabrics: what `make demo` runs once merger and replay are built.
#   tests/demo.sh OUT
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: tests/demo.sh OUT}
mkdir -p "$out"

echo "1. joining the captures of all hosts into a causal trace"
target/release/merger build tests/golden/terasort --out "$out/trace" --force
echo
echo "2. how complete and how sure that is"
target/release/merger check "$out/trace"
echo
echo "3. the same job over other networks"
target/release/replay compare replay/experiments/*.toml --trace "$out/trace" --out "$out/results" --force
echo
echo "4. that job grown: 64 workers in four racks, 64 times the data, cores 8 times as fast"
rm -rf "$out/grown"
target/release/replay grow "$out/trace" --nodes 64 --racks 4 --data 64x --cpu 8x --out "$out/grown"
echo
echo "5. the grown job, scheduled anew on each network"
networks=(ideal gigabit ethernet-10g fat-tree infiniband lightness-ocs lightness-ops lightness-mixed)
target/release/replay compare $(printf "replay/experiments/%s.toml " "${networks[@]}") --generate "$out/grown/job.toml" --out "$out/grown-results" --force
echo
echo "The reports: $(realpath "$out/results/report.html")"
echo "             $(realpath "$out/grown-results/report.html")"
