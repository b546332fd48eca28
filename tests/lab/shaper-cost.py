#!/usr/bin/env python3
"""What a TCP stream over links like the lab's costs of the machine's cores, by rate (root).

Two hosts in namespaces hang on a bridge; offloads are off, and both ends of each link have the lab's shaper, or none. A process on each core counts
while the stream runs and while it does not: what they miss is what the stream took, softirqs included.

    tests/lab/shaper-cost.py                    none, 1gbit and 100mbit
    tests/lab/shaper-cost.py 200mbit 20mbit
    tests/lab/shaper-cost.py none@50 1gbit@50   pieces of 64 KiB one by one, at 50 Mbit/s on average, as programs send that compute meanwhile
"""

import multiprocessing
import os
import socket
import subprocess
import sys
import time

SECONDS = 6
BURST_BYTES = 32 * 1024  # as in network.rs
PREFIX = f"cost{os.getpid()}"
CORES = os.cpu_count() or 1


def run(command):
    subprocess.run(command.split(), check=True, stdout=subprocess.DEVNULL)


def shape(namespace, device, rate):
    run(f"tc -n {namespace} qdisc add dev {device} root handle 1: htb default 10")
    run(
        f"tc -n {namespace} class add dev {device} parent 1: classid 1:10 htb rate {rate} ceil {rate} "
        f"burst {BURST_BYTES} cburst {BURST_BYTES} quantum {BURST_BYTES}"
    )
    run(f"tc -n {namespace} qdisc add dev {device} parent 1:10 handle 10: pfifo limit 1000")


def network(rate):
    fabric = f"{PREFIX}-f"
    run(f"ip netns add {fabric}")
    run(f"ip -n {fabric} link add sw0 type bridge")
    run(f"ip -n {fabric} link set sw0 up")
    for number in (1, 2):
        host = f"{PREFIX}-{number}"
        run(f"ip netns add {host}")
        run(f"ip -n {fabric} link add p{number} type veth peer name eth0 netns {host}")
        for namespace, device in ((fabric, f"p{number}"), (host, "eth0")):
            run(f"ip netns exec {namespace} ethtool -K {device} tso off gso off gro off")
        run(f"ip -n {fabric} link set p{number} master sw0 up")
        run(f"ip -n {host} addr add 10.9.0.{number}/24 dev eth0")
        run(f"ip -n {host} link set eth0 up")
        if rate != "none":
            shape(fabric, f"p{number}", rate)
            shape(host, "eth0", rate)


def remove():
    for end in ("1", "2", "f"):
        subprocess.run(["ip", "netns", "del", f"{PREFIX}-{end}"], stderr=subprocess.DEVNULL)


def count(core, counted):
    os.sched_setaffinity(0, {core})
    while True:
        for _ in range(1000):
            pass
        counted.value += 1000


def receive():
    with socket.create_server(("10.9.0.2", 5000)) as server:
        connection, _ = server.accept()
        received = 0
        while data := connection.recv(65536):
            received += len(data)
        print(received)


def send(pace):
    end = time.monotonic() + SECONDS
    data = bytes(65536)
    gap = len(data) * 8e-6 / pace if pace else 0
    due = time.monotonic()
    with socket.create_connection(("10.9.0.2", 5000)) as connection:
        while (now := time.monotonic()) < end:
            if now < due:
                time.sleep(due - now)
            due += gap
            connection.sendall(data)


def within(number, *what, **options):
    command = ["ip", "netns", "exec", f"{PREFIX}-{number}", sys.executable, __file__, *what]
    return subprocess.Popen(command, text=True, **options)


def measured(rate, pace):
    """Bytes of the stream, its seconds, and the seconds of processors that it took. The pace is megabits a second, 0 for as fast as it goes."""
    network(rate)
    counters = [multiprocessing.Value("Q", 0, lock=False) for _ in range(CORES)]
    hogs = [multiprocessing.Process(target=count, args=pair, daemon=True) for pair in enumerate(counters)]
    try:
        for hog in hogs:
            hog.start()
        time.sleep(1)

        def total():
            return sum(counter.value for counter in counters), time.monotonic()

        (before, begin) = total()
        time.sleep(SECONDS)
        (idle, idle_end) = total()
        receiver = within(2, "receive", stdout=subprocess.PIPE)
        time.sleep(1)
        (start, sending) = total()
        within(1, "send", str(pace)).wait()
        received = int(receiver.communicate()[0])
        (end, done) = total()
        alone = (idle - before) / (idle_end - begin)
        return received, done - sending, (1 - (end - start) / (done - sending) / alone) * CORES * (done - sending)
    finally:
        for hog in hogs:
            hog.kill()
        remove()


def main():
    if sys.argv[1:] == ["receive"]:
        return receive()
    if sys.argv[1:2] == ["send"]:
        return send(float(sys.argv[2]))
    print("rate          Mbit/s   s of processors a GB")
    for what in sys.argv[1:] or ["none", "1gbit", "100mbit"]:
        rate, _, pace = what.partition("@")
        received, seconds, took = measured(rate, float(pace or 0))
        print(f"{what:12} {received * 8e-6 / seconds:8.0f} {took / received * 1e9:8.1f}", flush=True)


if __name__ == "__main__":
    main()
