//! `merger tables`: what all tables mean, as a page. docs/tables.md is that page.

use trace_tables::describe::TableDescription;

const HEAD: &str = "\
# Tables

Made by `merger tables` from the definition of the rows; the same text stands in each file's metadata (`hadoptic.table`, `hadoptic.columns`).
`merger tables NAME` shows one, `--json` is for programs.

Every table is a Parquet file, packed with zstd, `NAME.parquet` in the trace's folder. An id is the number of the row in its table, from 0: `events.message` is a
row of `messages`. Columns that end in `_ns` are nanoseconds, times since the epoch by the reference host's clock; sizes are bytes.
Numbers of 64 bits are signed, so that differences can fall below zero; a block id of Hadoop 1.x is negative.

In DuckDB only `messages.offset` and `dependencies.on` want quotes; other dialects have other words of their own. In the trace's folder:

```sql
-- Bytes by role of sender and receiver.
SELECT sender.role, receiver.role, sum(bytes) AS bytes
FROM 'messages.parquet'
JOIN 'processes.parquet' AS sender ON sender.process = from_process
JOIN 'processes.parquet' AS receiver ON receiver.process = to_process
GROUP BY ALL ORDER BY bytes DESC;

-- How long calls were under way: until the request had arrived, and until the response had.
SELECT request.name, count(*) AS calls, median(request.delivered_ns - request.sent_ns) AS there_ns,
       median(response.delivered_ns - request.sent_ns) AS back_ns
FROM 'messages.parquet' AS request
JOIN 'messages.parquet' AS response USING (connection, call)
WHERE request.kind = 'rpc-request' AND response.kind = 'rpc-response'
GROUP BY ALL ORDER BY calls DESC;
```

The same sums with pandas (pyarrow reads the files) and with polars:

```python
import pandas
messages, processes = pandas.read_parquet('messages.parquet'), pandas.read_parquet('processes.parquet').set_index('process')
roles = messages.assign(sender=messages.from_process.map(processes.role), receiver=messages.to_process.map(processes.role))
print(roles.groupby(['sender', 'receiver']).bytes.sum().sort_values(ascending=False))
```

```python
import polars
messages, processes = polars.read_parquet('messages.parquet'), polars.read_parquet('processes.parquet')
roles = messages.join(processes, left_on='from_process', right_on='process').join(processes, left_on='to_process', right_on='process', suffix='_to')
print(roles.group_by('role', 'role_to').agg(polars.col('bytes').sum()).sort('bytes', descending=True))
```

# Of a trace

";

const MIDDLE: &str = "
# Of `merger characterise`

Each of these is also there as `NAME.csv` ([characterise.md](characterise.md)).

";

/// The page of all tables, in Markdown.
#[must_use]
pub fn page(of_trace: &[TableDescription], of_characterise: &[TableDescription]) -> String {
    let sections =
        |tables: &[TableDescription]| tables.iter().map(TableDescription::to_markdown).collect::<Vec<_>>().join("\n");
    format!("{HEAD}{}{MIDDLE}{}", sections(of_trace), sections(of_characterise))
}
