#!/usr/bin/env python3
"""Where the maps of each trace spend their time: seconds from the container to the first call, to the first byte read, to the last one, and to the end
(means over the maps of a job; needs pandas and pyarrow).

    tests/prediction/map-parts.py NAME TRACE...      NAME of the job, such as sorter
"""

import sys
import pandas as pd

for trace in sys.argv[2:]:
    names = ("steps", "jobs", "tasks", "messages", "connections")
    steps, jobs, tasks, messages, connections = (pd.read_parquet(f"{trace}/{name}.parquet") for name in names)
    job = jobs[jobs.name == sys.argv[1]].iloc[0]
    maps = tasks[(tasks.job == job.job) & (tasks.kind == "map")]
    calls = messages[messages.kind == "rpc-request"].merge(connections[["connection", "client_process"]], on="connection")
    reads = steps[steps.kind == "consume"].groupby("process")
    times = pd.DataFrame({
        "container": maps.start_ns,
        "call": maps.process.map(calls.groupby("client_process").sent_ns.min()),
        "read": maps.process.map(reads.begin_ns.min()),
        "read_all": maps.process.map(reads.end_ns.max()),
        "end": maps.finish_ns,
    })
    print(trace, (times.diff(axis=1).iloc[:, 1:].mean() / 1e9).round(2).to_dict())
