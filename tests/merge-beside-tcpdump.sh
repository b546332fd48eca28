#!/usr/bin/env bash
# Times merger, tcpdump and tshark on the same packets, one after the other, from the page cache.
#
#     merge-beside-tcpdump.sh CAPTURE [MERGER]
#
# CAPTURE is one of the agents; it is told as tcpdump and ss would have left it (foreign-capture.py) in TMPDIR, 100 to 300 bytes a packet.
# MERGER is target/release/merger where nothing is said. A line a program: packets, seconds of CPU, seconds, packets a second of CPU. Needs tcpdump and tshark.
set -euo pipefail
capture=$1
merger=${2:-target/release/merger}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$(dirname "$0")/foreign-capture.py" "$capture" "$work/capture" > "$work/made"
files=$(find "$work/capture" -name '*.pcap' | sort)
cat $files > /dev/null # into the page cache
packets=$(for file in $files; do TZ=UTC tcpdump -nn -r "$file" 2> "$work/said" | wc -l; done | awk '{ all += $1 } END { print all }')

run() {
    local name=$1 taken
    shift
    TIMEFORMAT='%U %S %R'
    taken=$({ time "$@" > "$work/out" 2> "$work/said"; } 2>&1) || { cat "$work/said" >&2; exit 1; }
    echo "$taken" | awk -v name="$name" -v packets="$packets" \
        '{ cpu = $1 + $2; printf "%-12s %d packets, %.2f s of CPU, %.2f s, %.2f million packets a second of CPU\n", name, packets, cpu, $3, packets / cpu / 1e6 }'
}

of_each() {
    for file in $files; do "$@" -r "$file"; done
}

export TZ=UTC
run merger "$merger" build "$work/capture" --out "$work/trace"
run "tcpdump -r" of_each tcpdump -nn
run "tshark -r" of_each tshark -n
run merger "$merger" build "$work/capture" --out "$work/trace" --force
