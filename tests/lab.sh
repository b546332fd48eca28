#!/usr/bin/env bash
# The whole way, live: cluster up, job under capture, merge, check, replay, report. Needs root and the built programs.
#   tests/lab.sh OUT [options of `lab run`]
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: tests/lab.sh OUT [options of lab run]}
shift
rm -rf "$out/capture"
mkdir -p "$out"

echo "1. a cluster, and a job under capture"
target/release/lab setup
# 1: it ran, and something is not as it should be, such as links that a busy machine does not bring to their rates.
found=0
target/release/lab run --job terasort --quiet --remote-maps 1 "$@" --capture "$out/capture" || found=$?
[ "$found" -le 1 ] || exit "$found"
[ "$found" = 0 ] || echo "(this is in the capture; it is joined and replayed all the same)"
echo
echo "2. joining the captures of all hosts into a causal trace"
target/release/merger build "$out/capture" --out "$out/trace" --force
echo
echo "3. how complete and how sure that is"
target/release/merger check "$out/trace" || echo "(the check found something; the report is made all the same)"
echo
echo "4. the same job over other networks"
target/release/replay compare replay/experiments/*.toml --trace "$out/trace" --out "$out/results" --force
echo
echo "The report: $(realpath "$out/results/report.html")"
[ "$found" = 0 ] || echo "What the lab found wrong stands under 1: its figures are worth less." >&2
exit "$found"
