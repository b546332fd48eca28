#!/usr/bin/env python3
"""Measures flows of real Linux TCP that share one link: flows x queue x rate x congestion control.

The network of measure.py, but for its rates: hosts' links are not shaped, the uplink has the cell's rate (htb, burst of
32 kB) and queue (pfifo). Flow i goes from host i mod 3 of one rack to the same of the other; all begin at once and send
equal parts of what the link carries in a second.

    sudo python3 cells.py [--runs 3] [--rates 20 100] > cells.csv

Writes, for each cell, medians over the runs: seconds until the last flow is through, and the mean of all flows' seconds;
with the least and largest of the former. `tests/fabric/ethernet_cells.rs` simulates the same cells. Needs root.
"""

import argparse
import statistics
import sys

import measure

RATES_MBIT = (20, 100, 300, 1000)
QUEUES = (10, 30, 100, 1000)
FLOWS = (1, 2, 8, 32)


def cell(flows, rate):
    """(last, mean) seconds of one run."""
    size = rate * 1_000_000 // 8 // flows
    times = measure.completions([(i % 3, 3 + i % 3, size) for i in range(flows)])
    return max(times), statistics.mean(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rates", type=int, nargs="+", default=RATES_MBIT)
    parser.add_argument("--queues", type=int, nargs="+", default=QUEUES)
    parser.add_argument("--flows", type=int, nargs="+", default=FLOWS)
    parser.add_argument("--congestion", nargs="+", default=("cubic", "bbr"))
    options = parser.parse_args()
    measure.tear_down()
    print("congestion,rate_mbit,queue_packets,flows,last_s,mean_s,least_last_s,largest_last_s", flush=True)
    try:
        for congestion in options.congestion:
            for rate in options.rates:
                for queue in options.queues:
                    measure.set_up(None, f"{rate}mbit", queue, congestion)
                    for flows in options.flows:
                        runs = [cell(flows, rate) for _ in range(options.runs)]
                        last = sorted(run[0] for run in runs)
                        row = [statistics.median(last), statistics.median(run[1] for run in runs), last[0], last[-1]]
                        text = ",".join(f"{value:.6f}" for value in row)
                        print(f"{congestion},{rate},{queue},{flows},{text}", flush=True)
                    measure.tear_down()
    finally:
        measure.tear_down()


if __name__ == "__main__":
    sys.exit(main())
