"""Opens every table of a trace and of a characterisation with pyarrow, pandas, DuckDB and polars, and runs the examples of
docs/tables.md. Usage: tables.py TRACE CHARACTERISATION TABLES.json TABLES.md, where TABLES.json is what `merger tables --json` prints."""

import io
import json
import os
import re
import sys
from contextlib import redirect_stdout

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

trace, characterisation, tables, page = (os.path.abspath(path) for path in sys.argv[1:])
TYPES = {"bool": "bool", "u32": "uint32", "i64": "int64", "f64": "double", "string": "string"}
# Words of SQL, as the page says.
QUOTED = {("messages", "offset"), ("dependencies", "on")}


def check(what, condition, *values):
    if not condition:
        sys.exit(f"{what}: {values}")


def open_everywhere(table, path):
    """One table, in all four."""
    name, columns = table["name"], [column["name"] for column in table["columns"]]
    arrow = pyarrow.parquet.read_table(path)
    check(f"{name}: columns", arrow.column_names == columns, arrow.column_names, columns)
    for column in table["columns"]:
        kind = str(arrow.schema.field(column["name"]).type)
        check(f"{name}.{column['name']}: type", kind == TYPES[column["type"]], kind)
        nulls = arrow[column["name"]].null_count
        check(f"{name}.{column['name']}: nulls", column["nullable"] or nulls == 0, nulls)
        if column["words"]:
            words = set(arrow[column["name"]].to_pylist()) - {None} - set(column["words"])
            check(f"{name}.{column['name']}: words", not words, words)
    metadata = pyarrow.parquet.read_metadata(path).metadata
    check(f"{name}: meaning", metadata[b"hadoptic.table"].decode() == table["meaning"])
    meanings = json.loads(metadata[b"hadoptic.columns"])
    check(f"{name}: meanings", meanings == {c["name"]: c["meaning"] for c in table["columns"]}, meanings)
    # Text can be compared, sorted, joined and written.
    texts = [column["name"] for column in table["columns"] if column["type"] == "string"]
    for column in texts[:1]:
        arrow.filter(pyarrow.compute.equal(arrow[column], "x")).sort_by(column)
        arrow.join(arrow.select([column]).group_by(column).aggregate([]), column)
    pyarrow.csv.write_csv(arrow, io.BytesIO())

    frame, lazy = pandas.read_parquet(path), polars.read_parquet(path)
    rows = duckdb.sql(f"SELECT count(*) FROM '{path}'").fetchall()[0][0]
    check(f"{name}: rows", len(frame) == len(lazy) == rows == arrow.num_rows, len(frame), len(lazy), rows, arrow.num_rows)
    for column in table["columns"]:
        if column["type"] in ("u32", "i64"):
            quoted = f'"{column["name"]}"'
            sums = [
                int(frame[column["name"]].dropna().astype(object).sum()),
                sum(value for value in lazy[column["name"]].to_list() if value is not None),
                int(duckdb.sql(f"SELECT coalesce(sum({quoted}), 0) FROM '{path}'").fetchall()[0][0]),
                sum(value for value in arrow[column["name"]].to_pylist() if value is not None),
            ]
            # pandas holds numbers with nulls as floating point.
            first = sums.pop(0)
            check(f"{name}.{column['name']}: sums", len(set(sums)) == 1 and abs(first - sums[0]) <= abs(sums[0]) * 1e-9, first, sums)
        try:
            duckdb.sql(f"SELECT {column['name']} FROM '{path}' LIMIT 1").fetchall()
            is_word = False
        except duckdb.ParserException:
            is_word = True
        check(f"{name}.{column['name']}: a word of SQL", is_word == ((name, column["name"]) in QUOTED), is_word)


def differences_are_right():
    """Times can be subtracted: nothing wraps around."""
    os.chdir(trace)
    way = "delivered_ns - sent_ns"
    low, high = duckdb.sql(f"SELECT min({way}), max({way}) FROM 'messages.parquet'").fetchall()[0]
    check("ways", 0 <= low <= high < 10**12, low, high)
    back = duckdb.sql(f"SELECT min(sent_ns - delivered_ns) FROM 'messages.parquet'").fetchall()[0][0]
    check("differences below zero", back == -high, back, high)
    messages = pandas.read_parquet("messages.parquet")
    check("pandas", (messages.delivered_ns - messages.sent_ns).max() == high)
    check("polars", polars.read_parquet("messages.parquet").select((polars.col("sent_ns") - polars.col("delivered_ns")).min()).item() == back)


def examples():
    """The page's examples, word by word, give the bytes by role that `merger characterise` gives."""
    os.chdir(trace)
    text = open(page).read()
    wanted = {}
    roles = pandas.read_parquet(os.path.join(characterisation, "roles.parquet"))
    for row in roles.itertuples():
        wanted[(row.from_role, row.to_role)] = row.control_bytes + row.data_bytes + row.unknown_bytes
    wanted = {roles: size for roles, size in wanted.items() if "unknown" not in roles and size > 0}
    queries = [query for block in re.findall(r"```sql\n(.*?)```", text, re.S) for query in block.split(";") if query.strip()]
    check("queries of the page", len(queries) == 2, len(queries))
    by_role = {(sender, receiver): int(size) for sender, receiver, size in duckdb.sql(queries[0]).fetchall()}
    check("DuckDB's bytes by role", by_role == wanted, by_role, wanted)
    calls = duckdb.sql(queries[1]).fetchall()
    check("DuckDB's calls", all(0 <= there <= back for _, _, there, back in calls) and len(calls) > 10, calls)
    programs = re.findall(r"```python\n(.*?)```", text, re.S)
    check("programs of the page", len(programs) == 2, len(programs))
    for program in programs:
        scope, printed = {}, io.StringIO()
        with redirect_stdout(printed):
            exec(program, scope)
        check("what the program prints", "DataNode" in printed.getvalue(), printed.getvalue())
        roles = scope["roles"]
        if hasattr(roles, "groupby"):
            sums = roles.groupby(["sender", "receiver"]).bytes.sum().to_dict()
        else:
            sums = {(row[0], row[1]): row[2] for row in roles.group_by("role", "role_to").agg(polars.col("bytes").sum()).rows()}
        check("bytes by role", {pair: int(size) for pair, size in sums.items() if size} == wanted, sums, wanted)


for table in json.load(open(tables)):
    path = [os.path.join(folder, table["name"] + ".parquet") for folder in (trace, characterisation)]
    path = [path for path in path if os.path.exists(path)]
    check(f"{table['name']}: a file", len(path) == 1, path)
    open_everywhere(table, path[0])
differences_are_right()
examples()
print(f"pyarrow {pyarrow.__version__}, pandas {pandas.__version__}, DuckDB {duckdb.__version__}, polars {polars.__version__}: all tables open")
