#!/usr/bin/env bash
# Runs all tests. Sets up what is missing where it may; says what it skips, and why.
set -uo pipefail
cd "$(dirname "$0")/.."
tests/disk.sh || exit 1
failed=()
skipped=()
log=$(mktemp)
beside=$(mktemp -d)
# Here tests say what they could not do, a line each: "PACKAGE TEST: REASON".
HADOPTIC_SKIPPED=$(mktemp)
export HADOPTIC_SKIPPED
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$log" "$beside" "$HADOPTIC_SKIPPED"' EXIT
# A checkout that is built once gains nothing from it: 3:52 in place of 4:33 for the programs of the tables group.
[ -z "${CI:-}" ] || export CARGO_INCREMENTAL=0
part() { # part NAME COMMAND...
    local name=$1 begin=$SECONDS
    shift
    echo
    echo "== $name"
    "$@" 2>&1 | tee -a "$log"
    [ "${PIPESTATUS[0]}" = 0 ] || failed+=("$name")
    echo "== $name: $((SECONDS - begin)) s"
}
# Runs a command beside others and keeps what it says for `show`. A session of its own, to be ended with all that it started.
# Where the kernel shares cores among sessions first (autogroup), it is the session's nice value that counts against other ones.
beside() { # beside NICE NAME COMMAND...
    local nice=$1 name=$2 begin=$SECONDS
    shift 2
    setsid bash -c 'echo "$0" 2>/dev/null >/proc/self/autogroup; exec nice -n "$0" "$@"' "$nice" "$@" >"$beside/$name" 2>&1 &
    wait $!
    echo "$? $((SECONDS - begin))" >"$beside/$name.end"
}
end_sessions() {
    for session in $(jobs -p); do kill -- "-$session" 2>/dev/null; done
    exit 1
}
show() { # show NAME TITLE
    local status=none seconds=0
    read -r status seconds <"$beside/$1.end"
    echo
    echo "== $2"
    tee -a "$log" <"$beside/$1"
    [ "$status" = 0 ] || failed+=("$2")
    echo "== $2: $seconds s"
}
# Adds up the closing lines of cargo's test runner and of Maven's, whose tests that ran are those that were skipped as well.
count() { # count passed|failed|ignored
    {
        sed -n "s/^test result: .* \([0-9]*\) $1;.*/\1/p" "$log"
        [ ! -d hadoop-patches/target/surefire-reports ] || case $1 in
        passed) sed -n 's/^Tests run: \([0-9]*\), Failures: 0, Errors: 0, Skipped: \([0-9]*\).*/\1\n-\2/p' hadoop-patches/target/surefire-reports/*.txt ;;
        ignored) sed -n 's/^Tests run: .*, Skipped: \([0-9]*\).*/\1/p' hadoop-patches/target/surefire-reports/*.txt ;;
        esac
    } | awk '{ n += $1 } END { print n + 0 }'
}
# Tests that said so, each once.
not_run() {
    sed 's/: .*//' "$HADOPTIC_SKIPPED" | sort -u | wc -l
}

# Tests that need root are marked as ignored.
run_ignored=()
[ "$(id -u)" != 0 ] || run_ignored=(-- --include-ignored)

complete=yes
tests/needs.sh || complete=no
# Root can install what is missing: then nothing may be skipped for want of it.
[ $complete = yes ] || [ "$(id -u)" != 0 ] || failed+=("installing what is missing")

part "formats" cargo fmt --all --check
tables=(-p trace-tables -p merger -p netsim -p netsim-rank -p congestion -p coflow -p job-profile -p mapreduce -p pages -p program -p causal -p replay -p hadoptic-tests)
agents=(-p trace -p man-pages -p sniffer -p dumpingd -p deploy -p lab -p test-support)
# One core's work, much of it waiting: it runs beside the building.
java=
if [ -e /usr/include/pcap/pcap.h ]; then
    if command -v mvn >/dev/null && command -v javac >/dev/null; then
        {
            trap end_sessions TERM
            beside 0 java mvn -q -B -f hadoop-patches/pom.xml package
        } &
        java=$!
    else
        skipped+=("hadoop-patches and jobs on real clusters: no Maven or no JDK")
    fi
fi
# What clusters need comes first: they mostly wait.
part "tables: programs" cargo build --release "${tables[@]}"
with_agents=no
if [ -e /usr/include/pcap/pcap.h ]; then
    with_agents=yes
    part "agents: programs for the clusters of the tests" cargo build --release "${agents[@]}"
    part "agents: building" cargo test --release --no-run "${agents[@]}"
    [ -z "$java" ] || wait "$java"
    [ -z "$java" ] || show java "hadoop-patches"
else
    skipped+=("sniffer, dumpingd, hadoptic, lab: no libpcap headers")
fi

# What only calculates has the time in which agents and clusters wait: it is built and runs beside them at the lowest priority, what it says is
# shown at its end. It begins when cargo has begun to run those, for only one cargo builds at a time.
{
    trap end_sessions TERM
    until [ $with_agents = no ] || [ -e "$beside/agents.end" ] || grep -q 'Running .*/deps/' "$log"; do sleep 1; done
    # Where there is no MPI library, the tests that need this program say so.
    if tests/mpi.sh; then
        beside 19 ranks cargo build --release "${tables[@]}" --features netsim-rank/mpi --bin netsim-rank
    fi
    beside 19 tables cargo test --release --no-fail-fast "${tables[@]}" ${run_ignored[@]+"${run_ignored[@]}"}
    # With the build folder of the tests, whose macros and build scripts it then finds built.
    beside 19 lint make --no-print-directory lint CARGO_TARGET_DIR="$PWD/target"
} &
if [ $with_agents = yes ]; then
    part "agents and lab" cargo test --release --no-fail-fast "${agents[@]}" ${run_ignored[@]+"${run_ignored[@]}"}
    touch "$beside/agents.end"
fi
wait
[ ! -e "$beside/ranks.end" ] || show ranks "ranks: program"
show tables "tables: merger, replay and what crosses parts"
show lint "lints and documentation"
[ "$(count ignored)" = 0 ] || skipped+=("$(count ignored) tests that need root: in network namespaces, on real clusters")
[ $complete = yes ] || skipped+=("what needs the missing packages named above")

# What failing tests said last, so that it need not be looked for far above.
panics() {
    awk '/ panicked at /{ left = 12 } left > 0 { print "  " substr($0, 1, 400); left-- }' "$log"
    awk '/^failures:$/{ on = 1; next } /^test result/{ on = 0 } on && /^    /' "$log" | sort -u
}

echo
sort -u "$HADOPTIC_SKIPPED" | sed 's/^/skipped: /'
[ "$(count failed)" = 0 ] || panics
for reason in ${skipped[@]+"${skipped[@]}"}; do echo "skipped: $reason"; done
for name in ${failed[@]+"${failed[@]}"}; do echo "FAILED: $name"; done
echo "$(($(count passed) - $(not_run))) passed, $(count failed) failed, $(($(count ignored) + $(not_run))) skipped"
exit ${#failed[@]}
