#!/usr/bin/env bash
# Measures what the agents use while next to nothing happens, and at 1,000 packets a second: CPU time and wakeups a second, of a
# whole run and of each agent. Needs root, and:  cargo build --release -p sniffer -p dumpingd --example flood --bins
#   sniffer/examples/idle.sh [SECONDS [SNIFFER [DUMPINGD]]]
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-20} sniffer=${2:-target/release/sniffer} dumpingd=${3:-target/release/dumpingd}
l=hi$$l r=hi$$r dir=$(mktemp -d)
finish() {
    kill "${sniff:-}" "${dump:-}" 2>/dev/null || true
    wait
    ip netns del $l 2>/dev/null || true
    ip netns del $r 2>/dev/null || true
    rm -rf "$dir"
}
trap finish EXIT
ip netns add $l
ip netns add $r
ip link add eth0 netns $l type veth peer name eth0 netns $r
for n in $l $r; do
    ip netns exec $n sysctl -qw net.ipv6.conf.all.disable_ipv6=1
    ip -n $n link set lo up
    ip -n $n link set eth0 up
done
ip -n $r addr add 10.98.0.8/24 dev eth0
ip netns exec $r "$sniffer" run --out "$dir" 2>"$dir/sniffer.txt" &
sniff=$!
ip netns exec $r "$dumpingd" run --out "$dir" 2>"$dir/dumpingd.txt" &
dump=$!
sleep 3
# Nanoseconds on a CPU and voluntary switches of all threads.
used() { cat /proc/"$1"/task/*/schedstat | awk '{ s += $1 } END { printf "%d ", s / 1000 }'
    cat /proc/"$1"/task/*/status | awk '/^voluntary/ { s += $2 } END { print s }'; }
measure() {
    local s=($(used $sniff)) d=($(used $dump))
    sleep "$seconds"
    local t=($(used $sniff)) e=($(used $dump))
    echo "$1: sniffer $(((t[0] - s[0]) / seconds)) us of CPU and $(((t[1] - s[1]) / seconds)) wakeups a second," \
        "dumpingd $(((e[0] - d[0]) / seconds)) us and $(((e[1] - d[1]) / seconds))"
}
measure "idle"
ip netns exec $l target/release/examples/flood eth0 1000 $((seconds + 2)) >/dev/null 2>&1 &
flood=$!
sleep 1
measure "1,000 packets a second"
wait $flood
