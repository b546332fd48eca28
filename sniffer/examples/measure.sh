#!/usr/bin/env bash
# Measures the sniffer beside tcpdump on a veth pair: packets lost, CPU time of each a packet, while both record the same
# flood into memory. Needs root, tcpdump, and:  cargo build --release -p sniffer --example flood --bin sniffer
#   sniffer/examples/measure.sh [PACKETS_PER_SECOND [SECONDS [STALL_SECONDS [RING [SNAP]]]]]
# STALL_SECONDS: the sniffer is stopped (SIGSTOP) for so long in the middle. PROFILE=dist: the programs of that profile.
set -euo pipefail
cd "$(dirname "$0")/../.."
rate=${1:-300000} seconds=${2:-60} stall=${3:-1} ring=${4:-128MiB} snap=${5:-96}
export RUST_BACKTRACE=0
l=hm$$l r=hm$$r dir=$(mktemp -d)
mount -t tmpfs -o size=8g none "$dir"
finish() {
    kill "${dump:-}" "${sniff:-}" 2>/dev/null || true
    ip netns del $l 2>/dev/null || true
    ip netns del $r 2>/dev/null || true
    umount -l "$dir"
    rmdir "$dir"
}
trap finish EXIT
ip netns add $l
ip netns add $r
ip link add eth0 netns $l type veth peer name eth0 netns $r
for n in $l $r; do
    ip netns exec $n sysctl -qw net.ipv6.conf.all.disable_ipv6=1
    ip -n $n link set eth0 up
done
ip -n $r addr add 10.98.0.8/24 dev eth0
cpu_ms() { awk '{ print ($14 + $15) * 10 }' "/proc/$1/stat"; }
passed() { ip netns exec $r awk '/eth0:/ { print $3 + $11 }' /proc/net/dev; }
ip netns exec $r nice -n -10 tcpdump -i eth0 -s "$snap" -B 131072 -w "$dir/tcpdump.pcap" tcp 2>"$dir/tcpdump.txt" &
dump=$!
ip netns exec $r nice -n -10 target/${PROFILE:-release}/sniffer run --out "$dir/sniffer" --interface eth0 --ring "$ring" \
    --snap-length "$snap" --payload 32 --full-payload 32 --json >"$dir/sniffer.json" 2>"$dir/sniffer.txt" &
sniff=$!
sleep 3
before=$(passed) dump_before=$(cpu_ms $dump) sniff_before=$(cpu_ms $sniff)
(
    sleep "$(awk "BEGIN { print $seconds / 2 }")"
    kill -STOP $sniff
    sleep "$stall"
    kill -CONT $sniff
) &
ip netns exec $l nice -n -10 target/${PROFILE:-release}/examples/flood eth0 "$rate" "$seconds"
wait $!
sleep 3
packets=$(($(passed) - before))
dump_cpu=$(($(cpu_ms $dump) - dump_before)) sniff_cpu=$(($(cpu_ms $sniff) - sniff_before))
kill -INT $sniff
wait $sniff || true
kill -INT $dump
wait $dump || true
echo "$packets packets through the interface, $((packets / ${seconds%.*})) a second"
awk "BEGIN { printf \"CPU a packet: sniffer %.0f ns, tcpdump %.0f ns, ratio %.2f\n\", $sniff_cpu * 1e6 / $packets, $dump_cpu * 1e6 / $packets, $sniff_cpu / $dump_cpu }"
cat "$dir/sniffer.txt"
tail -n 3 "$dir/tcpdump.txt"
python3 - "$dir/sniffer.json" <<'PYTHON' 2>/dev/null || true
import json, sys
i = json.load(open(sys.argv[1]))["interfaces"][0]
told = sum(i[k] for k in ("packets", "other", "unparsed", "unfollowed", "undecided", "kernel_drops", "filtered"))
print(f"accounted for: {told} of {i['interface_packets']} that the interface counted")
PYTHON
