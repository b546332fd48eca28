#!/usr/bin/env python3
"""Makes captures of one kind of thing alone, for the figures of docs/foreign-captures.md.

    odd-captures.py connections COUNT OUT   one host, COUNT connections of eight packets with 100,000 peers
    odd-captures.py ports COUNT OUT         the same between two ports, which are used again and again
    odd-captures.py hosts HOSTS OUT         HOSTS hosts with 20 connections each between them
    odd-captures.py KIND COUNT OUT          a copy of the golden terasort, one of whose JVMs says COUNT times more:
                                            phase, rpc, fetch, thread, clock, accept, listen
"""
import json
import os
import random
import shutil
import struct
import subprocess
import sys

FIRST_NS = 1_700_000_000_000_000_000
ETHERNET = b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0"
PCAP = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
SYN, SYN_ACK, ACK, PUSH, FIN = 0x02, 0x12, 0x10, 0x18, 0x11


def frame(t, source, destination, sequence, acknowledgement, flags, payload=b""):
    tcp = struct.pack(">HHIIBBHHH", source[1], destination[1], sequence % 2**32, acknowledgement % 2**32, 0x50, flags, 65535, 0, 0)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp + payload), 0, 0, 64, 6, 0, source[0], destination[0])
    data = ETHERNET + ip + tcp + payload
    return struct.pack("<IIII", t // 10**9, t % 10**9, len(data), len(data)) + data


def connection(client, server, first):
    """What each of its eight packets is: whether it is the client's, and the arguments of its frame."""
    a, b = first + 100, first + 900
    packets = [(1, a, b, SYN, b""), (0, b, a + 1, SYN_ACK, b""), (1, a + 1, b + 1, ACK, b""), (1, a + 1, b + 1, PUSH, b"x" * 50),
               (0, b + 1, a + 51, PUSH, b"y" * 30), (1, a + 51, b + 31, FIN, b""), (0, b + 31, a + 52, FIN, b""), (1, a + 52, b + 32, ACK, b"")]
    return [(mine, (client, server) if mine else (server, client), rest) for mine, *rest in packets]


def manifest(folder, host, address, rack):
    about = {"host": host, "addresses": [address], "rack": rack, "packets": [{"file": "eth0.pcap", "interface": "eth0"}]}
    with open(f"{folder}/manifest.json", "w") as out:
        json.dump(about, out)


def one_host(kind, count, out):
    os.makedirs(f"{out}/w1")
    server = (bytes([10, 0, 0, 1]), 8020)
    with open(f"{out}/w1/eth0.pcap", "wb") as pcap:
        pcap.write(PCAP)
        for number in range(count):
            peer = number % 100_000 if kind == "connections" else 0
            client = (bytes([10, 1 + peer // 62_500, peer // 250 % 250, 1 + peer % 250]), 10_000 + (number // 100_000 if peer or kind == "connections" else 0))
            first = 0 if kind == "connections" else number * 7919 % 2**31
            for place, (_, ends, rest) in enumerate(connection(client, server, first)):
                pcap.write(frame(FIRST_NS + number * 20_000 + place * 10, *ends, *rest))
    manifest(f"{out}/w1", "w1", "10.0.0.1", "/r1")


def many_hosts(count, out):
    random.seed(1)
    packets = [[] for _ in range(count)]
    address = [bytes([10, 1, host // 250, 1 + host % 250]) for host in range(count)]
    for number in range(20 * count):
        here, there = random.sample(range(count), 2)
        client, server = (address[here], 20_000 + number % 40_000), (address[there], 50_010)
        for place, (mine, ends, rest) in enumerate(connection(client, server, 0)):
            t = FIRST_NS + number * 100_000 + place * 60_000
            for host, at in ((here, t), (there, t + 30_000)) if mine else ((there, t), (here, t + 30_000)):
                packets[host].append((at, frame(at, *ends, *rest)))
    for host in range(count):
        folder = f"{out}/h{host:05}"
        os.makedirs(folder)
        with open(f"{folder}/eth0.pcap", "wb") as pcap:
            pcap.write(PCAP + b"".join(data for _, data in sorted(packets[host])))
        manifest(folder, f"h{host:05}", f"10.1.{host // 250}.{1 + host % 250}", f"/r{host // 40}")


def records(kind, count, out):
    shutil.copytree(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden/terasort"), out)
    path = f"{out}/w1/jvm-12763-570479.jsonl"
    subprocess.run(["zstd", "-dq", "--rm", f"{path}.zst"], check=True)
    ends = {"local": "10.86.1.1:8020", "remote": "10.86.1.1:57276"}
    with open(path, "a") as lines:
        for number in range(count):
            t = 1795248201782312146 + number * 1000
            about = {
                "phase": {"t": t, "th": 1, "attempt": f"attempt_{number}_{'x' * 60}", "phase": "map"},
                "rpc": {"received": t, "begin": t, "end": t + 5, "responded": t + 6, "th": 58, "call": number, "client": "e4", "method": f"m{number}_{'y' * 40}", **ends},
                "fetch": {"t0": t, "t1": t + 5, "th": 38, "map": f"attempt_{number}_{'z' * 40}", "reduce": 1, "bytes": 8, "raw": 8, "host": "w1:13562"},
                "thread": {"t": t, "th": 1, "child": number, "name": f"n{number}"},
                "clock": {"t": t, "mono": t, "dropped": 0},
                "accept": {"t": t, "th": 42, "local": f"10.86.1.1:{number % 60_000 + 1}", "remote": f"10.86.1.1:{number % 60_000}"},
                "listen": {"t": t, "local": f"10.{number % 250}.{number // 250 % 250}.{number // 62_500 % 250}:{number % 60_000 + 1}"},
            }[kind]
            lines.write(json.dumps({"k": kind, **about}, separators=(",", ":")) + "\n")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    kind, count, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if kind in ("connections", "ports"):
        one_host(kind, count, out)
    elif kind == "hosts":
        many_hosts(count, out)
    else:
        records(kind, count, out)


main()
