#!/usr/bin/env bash
# Runs all tests. Sets up what is missing where it may; says what it skips, and why.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=()
skipped=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT
part() { # part NAME COMMAND...
    local name=$1
    shift
    echo
    echo "== $name"
    "$@" 2>&1 | tee -a "$log"
    [ "${PIPESTATUS[0]}" = 0 ] || failed+=("$name")
}
# Adds up the closing lines of cargo's test runner and of Maven's.
count() { # count passed|failed
    local maven=0
    if [ "$1" = passed ] && [ -d hadoop-patches/target/surefire-reports ]; then
        maven=$(sed -n 's/^Tests run: \([0-9]*\), Failures: 0, Errors: 0.*/\1/p' hadoop-patches/target/surefire-reports/*.txt |
            awk '{ n += $1 } END { print n + 0 }')
    fi
    sed -n "s/^test result: .* \([0-9]*\) $1;.*/\1/p" "$log" | awk -v n="$maven" '{ n += $1 } END { print n + 0 }'
}

complete=yes
tests/needs.sh || complete=no
# Root can install what is missing: then nothing may be skipped for want of it.
[ $complete = yes ] || [ "$(id -u)" != 0 ] || failed+=("installing what is missing")

part "formats" cargo fmt --all --check
part "tables: merger, replay and what crosses parts" \
    cargo test --release --no-fail-fast -p trace-tables -p merger -p netsim -p replay -p hadoptic-tests
part "tables: lints" \
    cargo clippy --release -p trace-tables -p merger -p netsim -p replay -p hadoptic-tests --all-targets -- -D warnings

if [ -e /usr/include/pcap/pcap.h ]; then
    if command -v mvn >/dev/null && command -v javac >/dev/null; then
        part "hadoop-patches" mvn -q -B -f hadoop-patches/pom.xml package
    else
        skipped+=("hadoop-patches and jobs on real clusters: no Maven or no JDK")
    fi
    part "agents: programs for the clusters of the tests" cargo build --release -p trace -p sniffer -p dumpingd -p deploy -p lab
    part "agents and lab: lints" cargo clippy --release -p trace -p sniffer -p dumpingd -p deploy -p lab --all-targets -- -D warnings
    part "agents and lab" cargo test --release --no-fail-fast -p trace -p sniffer -p dumpingd -p deploy -p lab
else
    skipped+=("sniffer, dumpingd, hadoptic, lab: no libpcap headers")
fi
[ "$(id -u)" = 0 ] || skipped+=("tests in network namespaces and on real clusters: not root")
[ $complete = yes ] || skipped+=("what needs the missing packages named above")

echo
for reason in ${skipped[@]+"${skipped[@]}"}; do echo "skipped: $reason"; done
for name in ${failed[@]+"${failed[@]}"}; do echo "FAILED: $name"; done
echo "$(count passed) passed, $(count failed) failed"
exit ${#failed[@]}
