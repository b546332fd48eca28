#!/usr/bin/env python3
"""Tells a capture of the agents as tcpdump and ss would have left it, with what goes wrong in such captures.

    foreign-capture.py CAPTURE OUT [KEY=VALUE...]

    snap=256        bytes of a frame that are kept
    link=eth        eth, vlan, qinq, sll, sll2, raw, null, vxlan; sll-on-eth, sll2-on-eth: Ethernet's frames under these types
    drop=0          share of packets that is left out, each at random (seed 1)
    twice=no        yes: every packet again, 3 us later
    unit=ns         ns, us: of the files' stamps
    time=ns         ns, s, decimals, iso, iso-local: how lines with a time are written
    processes=yes   yes: roles as in the capture; no: none

Packets get a time stamp option, and no payload that the capture does not hold. IPv4 only. Needs zstd.
"""

import datetime
import glob
import json
import os
import random
import shutil
import struct
import subprocess
import sys

DEFAULTS = {"snap": "256", "link": "eth", "drop": "0", "twice": "no", "unit": "ns", "time": "ns", "processes": "yes"}
LINK_TYPES = {"sll": 113, "sll-on-eth": 113, "sll2": 276, "sll2-on-eth": 276, "raw": 101, "null": 0}
MACS = b"\2" * 12
BEFORE_IP = {
    "eth": MACS + b"\x08\x00",
    "vlan": MACS + b"\x81\x00\x00\x07\x08\x00",
    "qinq": MACS + b"\x88\xa8\x00\x07\x81\x00\x00\x09\x08\x00",
    "sll": bytes([0, 4, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0, 8, 0]),
    "sll2": bytes([8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 4, 6]) + b"\2" * 8,
    "raw": b"",
    "null": b"\2\0\0\0",
}


def unpacked(path):
    return subprocess.run(["zstd", "-dcf", path], stdout=subprocess.PIPE, check=True).stdout


def records(path):
    """Bodies of the packets of an .hpk file (trace/src/packet.rs)."""
    data = unpacked(path)
    at = 8

    def behind_header(at):
        return at + 4 + struct.unpack_from("<I", data, at)[0]

    at = behind_header(at)
    while at + 2 <= len(data):
        length = struct.unpack_from("<H", data, at)[0]
        at += 2
        if length == 0:
            at = behind_header(at)
            continue
        if data[at + 8] & 15 == 4:
            yield data[at : at + length]
        at += length


def frame(link, ip):
    if link == "vxlan":
        inner = BEFORE_IP["eth"] + ip
        udp = struct.pack(">HHHH", 50_000, 4789, 16 + len(inner), 0) + b"\x08\0\0\0\0\0\1\0"
        outer = struct.pack(">BBHHHBBH8x", 0x45, 0, 20 + len(udp) + len(inner), 1, 0, 64, 17, 0)
        return BEFORE_IP["eth"] + outer + udp + inner
    return BEFORE_IP[link if link in BEFORE_IP else "eth"] + ip


def write_packets(path, out, options, chance, numbers):
    nanoseconds = options["unit"] == "ns"
    snap, link = int(options["snap"]), options["link"]
    with open(out, "wb") as file:
        magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
        file.write(struct.pack("<IHHiIII", magic, 2, 4, 0, 0, snap, LINK_TYPES.get(link, 1)))
        for body in records(path):
            time_ns, kind, flags, window = struct.unpack_from("<QBBH", body)
            source, destination = body[12:16], body[16:20]
            ports_and_more = struct.unpack_from("<HHIIII", body, 20)
            source_port, destination_port, _, length, sequence, acknowledgement = ports_and_more
            payload = body[41 + 8 * body[40] if kind & 0x40 else 40 :]
            number = numbers.pop() + 1
            numbers.append(number)
            if chance.random() < float(options["drop"]):
                continue
            stamp = b"\1\1\x08\x0a" + struct.pack(">II", time_ns // 1_000_000 & 0xFFFFFFFF, 1)
            total = 20 + 20 + len(stamp) + length
            ip = struct.pack(">BBHHHBBH", 0x45, 0, total if total < 65_536 else 0, number & 0xFFFF, 0x4000, 64, 6, 0)
            tcp = struct.pack(">HHII", source_port, destination_port, sequence, acknowledgement)
            tcp += struct.pack(">BBHHH", (20 + len(stamp)) // 4 << 4, flags, window, number & 0xFFFF, 0) + stamp
            whole = frame(link, ip + source + destination + tcp + payload)
            wire = len(whole) - len(payload) + length
            for later in (0, 3_000) if options["twice"] == "yes" else (0,):
                seconds, rest = divmod(time_ns + later, 1_000_000_000)
                kept = whole[:snap]
                file.write(struct.pack("<IIII", seconds, rest if nanoseconds else rest // 1000, len(kept), wire) + kept)


def time_text(style, time_ns):
    seconds, rest = divmod(time_ns, 1_000_000_000)
    iso = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat()
    texts = {"ns": f"{time_ns}", "s": f"{seconds}", "decimals": f"{seconds}.{rest:09}", "iso": iso, "iso-local": iso[:19]}
    return texts[style]


def write_sockets(path, out, style):
    """Each scan of dumpingd as a call of `ss -tanpeiO`. Returns the roles of processes."""
    listeners, sockets, roles = {}, {}, {}
    counters = ("bytes_sent", "bytes_retrans", "bytes_acked", "bytes_received")

    def users(record):
        return f' users:(("java",pid={record["pid"]},fd=9))' if "pid" in record else ""

    with open(out, "w") as file:
        for line in unpacked(path).decode().splitlines():
            record = json.loads(line)
            kind = record["k"]
            if kind == "process":
                roles[record["pid"]] = record["role"]
            elif kind == "listen":
                listeners[record["local"]] = record
            elif kind == "socket":
                sockets[record["local"], record["remote"]] = record
            elif kind == "died":
                sockets.pop((record["local"], record["remote"]), None)
            elif kind == "scan":
                file.write(f"# {time_text(style, record['t'])}\n")
                file.write("State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n")
                for local, listener in listeners.items():
                    file.write(f"LISTEN 0 256 {local.replace('0.0.0.0', '*')} *:*{users(listener)} ino:1 sk:1\n")
                for (local, remote), socket in list(sockets.items()):
                    state = "ESTAB" if socket["state"] == "ESTABLISHED" else socket["state"].replace("_", "-")
                    tcp = socket.get("tcp") or {}
                    told = "".join(f" {name}:{tcp[name]}" for name in counters if name in tcp)
                    file.write(f"{state} 0 0 {local} {remote}{users(socket)} ino:1 sk:1 cubic wscale:7,7{told}\n")
                    if socket["state"] == "TIME_WAIT":
                        del sockets[local, remote]
    return roles


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    capture, out = sys.argv[1:3]
    options = DEFAULTS | dict(argument.split("=", 1) for argument in sys.argv[3:])
    if options.keys() != DEFAULTS.keys():
        sys.exit(f"unknown: {', '.join(options.keys() - DEFAULTS.keys())}; there are {', '.join(DEFAULTS)}")
    chance, numbers = random.Random(1), [0]
    shutil.copytree(f"{capture}/job", f"{out}/job")
    for host in sorted(os.path.dirname(path) for path in glob.glob(f"{capture}/*/sniffer.json")):
        to = f"{out}/{os.path.basename(host)}"
        os.makedirs(to)
        with open(f"{host}/sniffer.json") as file:
            interfaces = json.load(file)["interfaces"]
        addresses = {address.split("/")[0] for one in interfaces for address in one["addresses"]}
        packets = []
        for path in sorted(glob.glob(f"{host}/packets-*.hpk*")):
            interface = os.path.basename(path)[len("packets-") :].split(".")[0]
            write_packets(path, f"{to}/{interface}.pcap", options, chance, numbers)
            packets.append({"file": f"{interface}.pcap", "interface": interface})
        roles = write_sockets(glob.glob(f"{host}/sockets.jsonl*")[0], f"{to}/ss.txt", options["time"])
        manifest = {
            "host": os.path.basename(host),
            "addresses": sorted(a for a in addresses if ":" not in a and not a.startswith("127.")),
            "packets": packets,
            "sockets": [{"file": "ss.txt", "format": "ss"}],
        }
        if options["processes"] == "yes":
            named = ((pid, role or "other") for pid, role in roles.items())
            manifest["processes"] = [{"pid": pid, "role": role, "hadoop": role != "other"} for pid, role in named]
        with open(f"{to}/manifest.json", "w") as file:
            json.dump(manifest, file, indent=1)


if __name__ == "__main__":
    main()
