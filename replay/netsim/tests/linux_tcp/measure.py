#!/usr/bin/env python3
"""Measures transfers of real Linux TCP over the network that fabric/ethernet_against_linux.rs simulates.

Six hosts in two racks, each a network namespace: h0..h2 at bridge r0, h3..h5 at bridge r1, one veth pair as uplink.
Every link end has htb with a pfifo of 170 packets and a burst of 32 kB; offloads are off; congestion control is cubic.

    sudo python3 measure.py [--links 100mbit] [--uplink 50mbit] [--runs 5]

Prints, for each scenario, the median of the runs: seconds from the first send until the last byte of all transfers is
read (for round trips: of one). Needs root, iproute2 and ethtool; leaves nothing behind.
"""

import argparse
import ctypes
import os
import socket
import statistics
import subprocess
import sys
import threading
import time

PREFIX = "rep-"
HOSTS = 6
LIBC = ctypes.CDLL(None, use_errno=True)


def sh(command):
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)


def shape(namespace, device, rate, queue=170):
    sh(f"ip netns exec {namespace} ethtool -K {device} tso off gso off gro off")
    if rate is None:
        return
    sh(f"ip netns exec {namespace} tc qdisc add dev {device} root handle 1: htb default 1")
    sh(f"ip netns exec {namespace} tc class add dev {device} parent 1: classid 1:1 htb rate {rate} ceil {rate} "
       "burst 32k cburst 32k")
    sh(f"ip netns exec {namespace} tc qdisc add dev {device} parent 1:1 handle 10: pfifo limit {queue}")


def set_up(links, uplink, queue=170, congestion="cubic"):
    """The network; `queue` is the uplink's, in packets, and links of hosts are not shaped where `links` is None."""
    fabric = f"{PREFIX}fabric"
    sh("sysctl -q -w net.ipv4.tcp_allowed_congestion_control='reno bbr cubic'")
    sh(f"ip netns add {fabric}")
    for rack in range(2):
        sh(f"ip -n {fabric} link add r{rack} type bridge stp_state 0 forward_delay 0 mcast_snooping 0")
        sh(f"ip -n {fabric} link set r{rack} up")
    sh(f"ip -n {fabric} link add u0 type veth peer name u1")
    for rack in range(2):
        sh(f"ip -n {fabric} link set u{rack} master r{rack} up")
        shape(fabric, f"u{rack}", uplink, queue)
    for host in range(HOSTS):
        namespace = f"{PREFIX}h{host}"
        sh(f"ip netns add {namespace}")
        sh(f"ip -n {fabric} link add p{host} type veth peer name eth0 netns {namespace}")
        sh(f"ip -n {fabric} link set p{host} master r{host // 3} up")
        sh(f"ip -n {namespace} addr add 10.99.0.{host + 1}/24 dev eth0")
        sh(f"ip -n {namespace} link set lo up")
        sh(f"ip -n {namespace} link set eth0 up")
        sh(f"ip netns exec {namespace} sysctl -q -w net.ipv4.tcp_congestion_control={congestion}")
        sh(f"ip netns exec {namespace} sysctl -q -w net.ipv4.tcp_no_metrics_save=1")
        shape(fabric, f"p{host}", links)
        shape(namespace, "eth0", links)


def tear_down():
    for name in [f"h{host}" for host in range(HOSTS)] + ["fabric"]:
        subprocess.run(f"ip netns del {PREFIX}{name}", shell=True, stderr=subprocess.DEVNULL)


def enter(host):
    """Moves the calling thread into the host's namespace."""
    with open(f"/run/netns/{PREFIX}h{host}") as namespace:
        if LIBC.setns(namespace.fileno(), 0x40000000) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def in_host(host, work):
    """Runs work in a thread of the host's namespace; returns the thread."""
    def body():
        enter(host)
        work()
    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    return thread


def connect(source, destination):
    """A connected pair of sockets, (client at source, server at destination)."""
    pair = {}

    def listen():
        listener = socket.create_server(("0.0.0.0", 0), backlog=128)
        pair["port"] = listener.getsockname()[1]
        ready.set()
        pair["server"], _ = listener.accept()
        listener.close()

    ready = threading.Event()
    server = in_host(destination, listen)
    ready.wait(5)

    def dial():
        pair["client"] = socket.create_connection((f"10.99.0.{destination + 1}", pair["port"]))

    in_host(source, dial).join(5)
    server.join(5)
    for end in ("client", "server"):
        pair[end].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return pair["client"], pair["server"]


def read_exactly(end, size):
    buffer = bytearray(1 << 16)
    while size > 0:
        got = end.recv_into(buffer, min(size, len(buffer)))
        if got == 0:
            raise EOFError
        size -= got


def transfers(flows):
    """All (source, destination, bytes) at once: seconds until the last byte of all is read."""
    return max(completions(flows))


def completions(flows, pause=0.0):
    """(source, destination, bytes), each `pause` seconds after the one before: each flow's seconds until its last byte is read, from
    when the first one began."""
    pairs = [connect(source, destination) for source, destination, _ in flows]
    time.sleep(0.3)
    done = [0.0] * len(flows)
    start = threading.Event()

    def send(index):
        start.wait()
        time.sleep(index * pause)
        pairs[index][0].sendall(bytes(flows[index][2]))

    def receive(index):
        read_exactly(pairs[index][1], flows[index][2])
        done[index] = time.monotonic()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(flows)) for work in (send, receive)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    begun = time.monotonic()
    start.set()
    for thread in threads:
        thread.join()
    for pair in pairs:
        pair[0].close()
        pair[1].close()
    return [at - begun for at in done]


def late(first, second, pause=2.0):
    """Seconds that `second` takes when it begins `pause` seconds after `first` (each source, destination, bytes)."""
    pairs = [connect(source, destination) for source, destination, _ in (first, second)]
    done = [0.0, 0.0]

    def receive(index, size):
        read_exactly(pairs[index][1], size)
        done[index] = time.monotonic()

    threads = []
    for index, (_, _, size) in enumerate((first, second)):
        begun = time.monotonic()
        threads.append(threading.Thread(target=pairs[index][0].sendall, args=(bytes(size),)))
        threads.append(threading.Thread(target=receive, args=(index, size)))
        for thread in threads[-2:]:
            thread.start()
        if index == 0:
            time.sleep(pause)
    for thread in threads:
        thread.join()
    for pair in pairs:
        pair[0].close()
        pair[1].close()
    return done[1] - begun


def round_trips(source, destination, request, response, count=20):
    """The median time of request and response on one connection."""
    client, server = connect(source, destination)

    def serve():
        for _ in range(count):
            read_exactly(server, request)
            server.sendall(bytes(response))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    times = []
    for _ in range(count):
        time.sleep(0.02)
        begun = time.monotonic()
        client.sendall(bytes(request))
        read_exactly(client, response)
        times.append(time.monotonic() - begun)
    thread.join(5)
    client.close()
    server.close()
    return statistics.median(times)


MB = 1_000_000
SCENARIOS = {
    "one flow in a rack, 20 MB": lambda: transfers([(0, 1, 20 * MB)]),
    "one flow between racks, 20 MB": lambda: transfers([(0, 3, 20 * MB)]),
    "two senders to one, 10 MB each": lambda: transfers([(0, 2, 10 * MB), (1, 2, 10 * MB)]),
    "four flows of one host, 5 MB each": lambda: transfers([(0, 1, 5 * MB)] * 4),
    "three flows between racks, 5 MB each": lambda: transfers([(0, 3, 5 * MB), (1, 4, 5 * MB), (2, 5, 5 * MB)]),
    "incast of 10, 1 MB each": lambda: transfers([(0, 2, MB), (1, 2, MB)] * 5),
    "incast of 40, 100 kB each": lambda: transfers([(0, 2, MB // 10), (1, 2, MB // 10)] * 20),
    "new connection, 100 kB": lambda: transfers([(0, 1, MB // 10)]),
    "new connection, 1 MB": lambda: transfers([(0, 1, MB)]),
    "shuffle of 2 x 3 x 3, 1 MB each": lambda: transfers(
        [(a, b, MB) for a in range(3) for b in range(3, 6)] + [(b, a, MB) for a in range(3) for b in range(3, 6)]),
    "late flow of 20 MB beside one of 100 MB": lambda: late((0, 2, 100 * MB), (1, 2, 20 * MB)),
    "two flows between racks, 16.6 MB each: the first": lambda: min(completions([(0, 3, 16_600_000), (0, 4, 16_600_000)])),
    "the same 20 ms apart": lambda: min(completions([(0, 3, 16_600_000), (0, 4, 16_600_000)], 0.02)),
    "the same 400 ms apart": lambda: min(completions([(0, 3, 16_600_000), (0, 4, 16_600_000)], 0.4)),
    "round trip of 200 B and 200 B": lambda: round_trips(0, 1, 200, 200),
    "round trip of 200 B and 16 kB": lambda: round_trips(0, 1, 200, 16_000),
    "round trip of 200 B and 64 kB": lambda: round_trips(0, 1, 200, 64_000),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--links", default="100mbit")
    parser.add_argument("--uplink", default="50mbit")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    tear_down()
    try:
        set_up(options.links, options.uplink)
        for name, scenario in SCENARIOS.items():
            times = sorted(scenario() for _ in range(options.runs))
            print(f"{name}: {statistics.median(times):.6f} ({times[0]:.6f} to {times[-1]:.6f})", flush=True)
    finally:
        tear_down()


if __name__ == "__main__":
    sys.exit(main())
