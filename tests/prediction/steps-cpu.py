#!/usr/bin/env python3
"""Seconds of processors that threads took for the bytes of the first job of each trace, by role and kind of step (column `cpu_ns` of `steps`; needs pandas and pyarrow).

    tests/prediction/steps-cpu.py out/predict/3.4.2-skewed/*/run-*/trace
"""

import sys
import pandas as pd
for trace in sys.argv[1:]:
    steps, jobs, processes = (pd.read_parquet(f"{trace}/{table}.parquet") for table in ("steps", "jobs", "processes"))
    job = jobs.iloc[0]
    of_job = steps[steps.begin_ns.between(job.submit_ns, job.finish_ns)]
    print(trace, (of_job.groupby([of_job.process.map(processes.set_index("process").role), "kind"]).cpu_ns.sum() / 1e9).round(2).to_dict())
