"""Reads what `merger export` wrote with the libraries of those for whom it is, and compares counts and sums with the tables'.

    exports.py otlp TRACE FILE                # FILE and FILE.json, by opentelemetry-proto
    exports.py perfetto TRACE FILE PAGE       # by Perfetto's protobuf definitions; the page's SQL in DuckDB
    exports.py paraver TRACE FILE.prv         # by a reader that knows only the format: a second one, beside that of merger/tests
    exports.py trace-processor TRACE FILE PAGE    # the page's SQL in Perfetto's own program; exit code 77 if that cannot be had
"""

import base64
import collections
import json
import os
import re
import sys

import duckdb
from google.protobuf.unknown_fields import UnknownFieldSet

CATEGORIES = {
    "rpc": "RPC served",
    "call": "RPC called",
    "block": "Block operation served",
    "block-read": "Block read",
    "block-write": "Block written",
    "shuffle": "Map output served",
    "fetch": "Map output fetched",
}
UNAVAILABLE = 77


def check(what, condition, *values):
    if not condition:
        sys.exit(f"{what}: {values}")


def rows(trace, query):
    """A query over the tables of a trace."""
    names = ["hosts", "processes", "connections", "messages", "spans", "tasks", "jobs"]
    for name in names:
        duckdb.sql(f"CREATE OR REPLACE VIEW {name} AS FROM '{trace}/{name}.parquet'")
    return duckdb.sql(query).fetchall()


def nothing_unknown(message):
    """The definitions know every field."""
    check("unknown fields", len(UnknownFieldSet(message)) == 0, message)
    for field, value in message.ListFields():
        if field.message_type is not None:
            for one in [value] if hasattr(value, "ListFields") else value:
                nothing_unknown(one)


def value_of(attribute):
    return getattr(attribute.value, attribute.value.WhichOneof("value"))


def attributes(of):
    found = {attribute.key: value_of(attribute) for attribute in of.attributes}
    check("a key twice", len(found) == len(of.attributes), of)
    return found


def hexadecimal_to_base64(value):
    """OTLP writes ids in hexadecimal digits, protobuf's JSON in base64."""
    if isinstance(value, list):
        return [hexadecimal_to_base64(one) for one in value]
    if isinstance(value, dict):
        ids = {"traceId", "spanId", "parentSpanId"}
        return {key: base64.b64encode(bytes.fromhex(one)).decode() if key in ids else hexadecimal_to_base64(one) for key, one in value.items()}
    return value


def otlp(trace, path):
    from google.protobuf import json_format
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    request.ParseFromString(open(path, "rb").read())
    nothing_unknown(request)
    told = json_format.ParseDict(hexadecimal_to_base64(json.load(open(path + ".json"))), ExportTraceServiceRequest())
    check("JSON and protobuf", told == request)

    spans, levels, by_kind, by_process, links = {}, collections.Counter(), collections.Counter(), collections.Counter(), collections.Counter()
    for resource_spans in request.resource_spans:
        resource = attributes(resource_spans.resource)
        check("times", resource["hadoptic.times"] == "recorded", resource)
        for scope_spans in resource_spans.scope_spans:
            check("scope", scope_spans.scope.name == "hadoptic" and scope_spans.scope.version)
            for span in scope_spans.spans:
                check("ids", len(span.trace_id) == 16 and len(span.span_id) == 8 and len(span.parent_span_id) in (0, 8), span)
                check("a span id twice", span.span_id not in spans, span)
                check("name", span.name != "", span)
                known = attributes(span)
                spans[span.span_id] = (span, resource, known)
                length = span.end_time_unix_nano - span.start_time_unix_nano
                check("ends before it begins", length >= 0, span)
                level = known["hadoptic.level"]
                levels.update({(level, "count"): 1, (level, "ns"): length})
                if level == "rpc":
                    kind = known["hadoptic.kind"]
                    by_kind.update({(kind, "count"): 1, (kind, "ns"): length, (kind, "queued"): known.get("hadoptic.queued_ns", 0)})
                    by_process[resource["service.name"], resource["host.name"], resource["process.pid"]] += 1
    of_tables = collections.Counter()
    for kind, count, length, queued in rows(trace, """
        SELECT kind, count(*), sum(greatest(end_ns, begin_ns) - begin_ns), sum(greatest(begin_ns - received_ns, 0))
        FROM spans JOIN processes USING (process) WHERE hadoop GROUP BY kind"""):
        serves = kind in ("rpc", "block", "shuffle")
        of_tables.update({(kind, "count"): count, (kind, "ns"): int(length), (kind, "queued"): int(queued) if serves else 0})
    check("spans by kind", by_kind == of_tables, by_kind, of_tables)
    processes = rows(trace, """SELECT role, hosts.name, pid, count(*) FROM spans JOIN processes USING (process)
        JOIN hosts ON processes.host = hosts.host WHERE hadoop GROUP BY ALL""")
    check("spans by process", by_process == {tuple(row[:3]): row[3] for row in processes}, by_process, processes)
    ((count, length),) = rows(trace, "SELECT count(*), sum(finish_ns - submit_ns) FROM jobs")
    check("jobs", (levels["job", "count"], levels["job", "ns"]) == (count, length), levels, count, length)
    ((count, length),) = rows(trace, "SELECT count(*), sum(finish_ns - start_ns) FROM tasks")
    check("tasks", (levels["task", "count"], levels["task", "ns"]) == (count, length), levels, count, length)
    ((count, length),) = rows(trace, "SELECT count(*), sum(finish_ns - start_ns) FROM tasks WHERE shuffle_end_ns IS NOT NULL")
    check("phases", (levels["phase", "count"], levels["phase", "ns"]) == (3 * count, length), levels, count, length)

    jobs = {known["hadoop.job.id"]: span.trace_id for span, _, known in spans.values() if known["hadoptic.level"] == "job"}
    check("a trace each job", len(set(jobs.values())) == len(jobs), jobs)
    served, asked = 0, 0
    for span, resource, known in spans.values():
        if span.parent_span_id:
            check("a parent that there is not", span.parent_span_id in spans, span)
            parent, of_parent, known_of_parent = spans[span.parent_span_id]
            check("a parent of another trace", parent.trace_id == span.trace_id, parent, span)
            if resource.get("service.instance.id") != of_parent.get("service.instance.id") and known["hadoptic.level"] == "rpc":
                kinds = (known_of_parent.get("hadoptic.kind", "job"), known["hadoptic.kind"])
                check("who calls whom", kinds[0] == "job" or (parent.kind, span.kind) == (3, 2), kinds)
                served += span.kind == 2
        # What tasks do belongs to their job.
        if "hadoop.task.attempt" in known:
            job = "job_" + "_".join(known["hadoop.task.attempt"].split("_")[1:3])
            check("a task's job", span.trace_id == jobs[job], span)
        asked += span.kind == 3
        for link in span.links:
            check("a link to nothing", link.span_id in spans and spans[link.span_id][0].trace_id == link.trace_id, link)
            message = attributes(link)
            check("way", message["hadoptic.message.sent_ns"] <= message["hadoptic.message.delivered_ns"], message)
            links.update({(message["hadoptic.message.kind"], "count"): 1, (message["hadoptic.message.kind"], "bytes"): message["hadoptic.message.bytes"]})
    check("calls with what served them", 0 < served <= asked, served, asked)
    of_tables = collections.Counter()
    for kind, count, size in rows(trace, """
        WITH ends AS (SELECT request AS message, process FROM spans JOIN processes USING (process) WHERE hadoop
            UNION SELECT response, process FROM spans JOIN processes USING (process) WHERE hadoop)
        SELECT kind, count(*), sum(bytes) FROM messages JOIN connections USING (connection)
        JOIN ends AS client ON client.message = messages.message AND client.process = client_process
        JOIN ends AS server ON server.message = messages.message AND server.process = server_process
        WHERE client_process <> server_process GROUP BY kind"""):
        of_tables.update({(kind, "count"): count, (kind, "bytes"): int(size)})
    check("links", links == of_tables, links, of_tables)
    # A process that ran a task has no span outside of that task's job.
    attempts = {row[0:2] for row in rows(trace, """SELECT hosts.name, pid FROM tasks JOIN processes USING (process)
        JOIN hosts ON processes.host = hosts.host""")}
    for span, resource, known in spans.values():
        if known["hadoptic.level"] == "rpc" and (resource["host.name"], resource["process.pid"]) in attempts:
            check("a task's work outside of its job", span.trace_id in jobs.values(), span, resource)
    print(f"{len(spans)} spans, {served} calls with what served them, {sum(size for (_, what), size in links.items() if what == 'count')} links")


def queries_of(page):
    section = open(page).read().split("## A trace in Perfetto\n")[1].split("\n## ")[0]
    queries = [query.strip() for block in re.findall(r"```sql\n(.*?)```", section, re.S) for query in block.split(";") if query.strip()]
    check("queries of the page", len(queries) == 3, queries)
    return queries


def tables_of_perfetto(path):
    """The tables that Perfetto's trace processor makes of track events, as far as the page's SQL asks for them."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

    trace = Trace()
    trace.ParseFromString(open(path, "rb").read())
    nothing_unknown(trace)
    process, thread, thread_track, slices, flow, args = {}, {}, {}, [], [], []
    for packet in trace.packet:
        check("sequence", packet.trusted_packet_sequence_id == 1, packet)
        if not packet.HasField("track_descriptor"):
            continue
        track = packet.track_descriptor
        check("a track twice", track.uuid not in thread_track, track)
        if track.HasField("process"):
            check("a process twice", track.process.pid not in process, track)
            process[track.process.pid] = track.process.process_name
        else:
            check("a thread twice", (track.thread.pid, track.thread.tid) not in thread and track.thread.pid in process, track)
            thread[track.thread.pid, track.thread.tid] = track.thread.thread_name
            thread_track[track.uuid] = (track.thread.pid, track.thread.tid)
    events = [packet for packet in trace.packet if packet.HasField("track_event")]
    check("packets", len(events) + len(process) + len(thread) == len(trace.packet))
    # As the trace processor has them: by time, at equal times as in the file.
    events.sort(key=lambda packet: packet.timestamp)
    open_slices, leaving = collections.defaultdict(list), {}
    for packet in events:
        event = packet.track_event
        check("a track without a descriptor", event.track_uuid in thread_track, event)
        if event.type == TrackEvent.TYPE_SLICE_END:
            begun = open_slices[event.track_uuid].pop()
            slices[begun][2] = packet.timestamp - slices[begun][1]
            continue
        check("type", event.type in (TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_INSTANT), event)
        number = len(slices)
        slices.append([number, packet.timestamp, 0, event.track_uuid, ",".join(event.categories), event.name, number])
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            slices[number][2] = -1
            open_slices[event.track_uuid].append(number)
        for annotation in event.debug_annotations:
            args.append((number, "debug." + annotation.name, getattr(annotation, annotation.WhichOneof("value"))))
        for one in event.flow_ids:
            check("a flow begins twice", one not in leaving, one)
            leaving[one] = number
        for one in event.terminating_flow_ids:
            flow.append((leaving.pop(one), number))
    check("slices that do not end", not any(open_slices.values()) and all(row[2] >= 0 for row in slices))
    check("flows that do not end", not leaving, leaving)
    return {
        "process(upid, pid, name)": [(number, pid, name) for number, (pid, name) in enumerate(process.items())],
        "thread(utid, tid, name, upid)": [
            (number, tid, name, list(process).index(pid)) for number, ((pid, tid), name) in enumerate(thread.items())
        ],
        "thread_track(id, utid)": [(uuid, list(thread).index(key)) for uuid, key in thread_track.items()],
        "slice(id, ts, dur, track_id, category, name, arg_set_id)": slices,
        "flow(slice_out, slice_in)": flow,
        "args(arg_set_id, key, value)": [(number, key, value) for number, key, value in args if isinstance(value, int)],
    }


def perfetto(trace, path, page):
    connection = duckdb.connect()
    for head, body in tables_of_perfetto(path).items():
        name, columns = head.rstrip(")").split("(")
        # A list a column, not a statement a row.
        data = {column: [row[number] for row in body] for number, column in enumerate(columns.split(", "))}
        frame = __import__("pandas").DataFrame(data)
        connection.register("frame", frame)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
        connection.unregister("frame")
    connection.execute(
        "CREATE MACRO extract_arg(of, what) AS (SELECT value FROM args WHERE args.arg_set_id = of AND args.key = what)"
    )
    answers_are_the_tables(trace, page, lambda query: connection.sql(query).fetchall())


def trace_processor(trace, path, page):
    try:
        from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

        program = os.environ.get("TRACE_PROCESSOR")
        processor = TraceProcessor(trace=path, config=TraceProcessorConfig(bin_path=program))
    except Exception as error:
        print(f"no trace processor: {error}".splitlines()[0])
        sys.exit(UNAVAILABLE)
    names = [["category", "spans", "ns"], ["kind", "messages", "bytes", "ns"], ["process", "thread", "map", "dur"]]
    of_query = dict(zip(queries_of(page), names))

    def ask(query):
        return [tuple(getattr(row, name) for name in of_query[query]) for row in processor.query(query)]

    try:
        answers_are_the_tables(trace, page, ask)
    finally:
        processor.close()


def answers_are_the_tables(trace, page, ask):
    spans, messages, longest = queries_of(page)
    wanted = {}
    for kind, count, length in rows(trace, """SELECT kind, count(*), sum(greatest(end_ns, begin_ns) - begin_ns)
            FROM spans JOIN processes USING (process) WHERE hadoop GROUP BY kind"""):
        wanted[CATEGORIES[kind]] = (count, int(length))
    ((count, length),) = rows(trace, """SELECT sum(CASE WHEN shuffle_end_ns IS NULL THEN 1 ELSE 3 END), sum(finish_ns - start_ns)
            FROM tasks JOIN processes USING (process) WHERE hadoop""")
    wanted["Phase of a task"] = (int(count), int(length))
    answer = {category: (count, int(length)) for category, count, length in ask(spans)}
    check("spans by category", answer == wanted, answer, wanted)
    wanted = {kind: (count, int(size), int(way)) for kind, count, size, way in rows(trace, """
        SELECT kind, count(*), sum(bytes), sum(delivered_ns - sent_ns) FROM messages JOIN connections USING (connection)
        JOIN processes AS client ON client.process = client_process JOIN processes AS server ON server.process = server_process
        WHERE client.hadoop AND server.hadoop GROUP BY kind""")}
    answer = {kind: (count, int(size), int(way)) for kind, count, size, way in ask(messages)}
    check("messages by kind", answer == wanted, answer, wanted)
    wanted = [row[0] for row in rows(trace, """SELECT end_ns - begin_ns AS dur FROM spans JOIN processes USING (process)
        WHERE hadoop AND kind = 'fetch' ORDER BY dur DESC LIMIT 5""")]
    answer = ask(longest)
    check("longest fetches", [row[3] for row in answer] == wanted and len(wanted) == 5, answer, wanted)
    check("of reduces", all("_r_" in row[0] for row in answer), answer)
    print(f"{sum(count for count, _ in [(row[1], 0) for row in ask(spans)])} spans and phases, {sum(row[1] for row in ask(messages))} messages: as in the tables")


def paraver(trace, path):
    kinds = {"rpc": 60000002, "call": 60000003, "block": 60000004, "block-read": 60000006, "block-write": 60000007, "shuffle": 60000008, "fetch": 60000009}
    phase, waiting_kinds = 60000001, {60000003, 60000006, 60000009}
    labels, of = {}, None
    for line in open(path.removesuffix(".prv") + ".pcf"):
        words = line.split()
        if line == "EVENT_TYPE\n":
            of = {}
        elif of is not None and len(words) > 1 and words[0].isdigit() and len(words[1]) == 8 and words[1].isdigit():
            labels[int(words[1])] = of
        elif of and not words:
            of = None
        elif of is not None and words and words[0].isdigit():
            of[int(words[0])] = " ".join(words[1:])
    names, level = [], None
    for line in open(path.removesuffix(".prv") + ".row"):
        if line.startswith("LEVEL "):
            level = line.split()[1]
        elif level == "TASK" and line.strip():
            names.append(line.rstrip("\n"))
    activities, states, by_events, messages = (collections.Counter() for _ in range(4))
    open_activities, since, free = collections.defaultdict(list), {}, {}
    with open(path) as file:
        header = file.readline()
        check("header", re.fullmatch(r"#Paraver \(\d\d/\d\d/\d\d at \d\d:\d\d\):\d+_ns:\d+\([\d,]+\):1:\d+\([\d:,]+\)\n", header), header)
        until = int(re.search(r":(\d+)_ns:", header).group(1))
        for line in file:
            fields = [int(field) for field in line.split(":")]
            task = names[fields[3] - 1]
            row = (fields[3], fields[4])
            if fields[0] == 1:
                begin, end, state = fields[5:]
                check("states without gaps", free.get(row, 0) == begin < end <= until, line)
                free[row] = end
                states[task, state] += end - begin
            elif fields[0] == 2:
                time, pairs = fields[5], list(zip(fields[6::2], fields[7::2]))
                check("pairs of type and value", len(fields) % 2 == 0 and len(pairs) > 0, line)
                for kind, value in pairs:
                    if kind != phase and kind not in kinds.values():
                        continue
                    inner = open_activities[row]
                    if inner:
                        by_events[task, inner[-1][2]] += time - since[row]
                    since[row] = time
                    if value == 0:
                        of, begin, _ = inner.pop()
                        check("what ends last began last", of == kind, line)
                        activities.update({(task, kind, "count"): 1, (task, kind, "ns"): time - begin})
                    else:
                        check("a label", value in labels[kind], line)
                        waits = kind in waiting_kinds or (kind == phase and labels[kind][value] == "shuffle")
                        inner.append((kind, time, 3 if waits else 1))
            else:
                check("a record of 15 fields", fields[0] == 3 and len(fields) == 15, line)
                sent, received, size, tag = fields[5], fields[12], fields[13], fields[14]
                kind = labels[60000012][tag]
                messages.update({(kind, "count"): 1, (kind, "bytes"): size, (kind, "ns"): received - sent})
    check("all ends", not any(open_activities.values()) and set(free.values()) == {until})
    start = json.load(open(f"{trace}/manifest.json"))["start_ns"]
    process = "hosts.name || ' ' || coalesce(processes.attempt, role) || ' ' || pid"
    wanted = collections.Counter()

    def want(task, kind, begin, end):
        length = max(max(end, begin) - start, 0) - max(begin - start, 0)
        wanted.update({(task, kind, "count"): 1, (task, kind, "ns"): length})

    for task, kind, begin, end in rows(trace, f"""SELECT {process}, kind, begin_ns, end_ns FROM spans JOIN processes USING (process)
            JOIN hosts ON processes.host = hosts.host WHERE hadoop"""):
        want(task, kinds[kind], begin, end)
    for task, *ends in rows(trace, f"""SELECT {process}, start_ns, shuffle_end_ns, sort_end_ns, finish_ns FROM tasks JOIN processes USING (process)
            JOIN hosts ON processes.host = hosts.host WHERE hadoop"""):
        ends = [end for end in ends if end is not None]
        for begin, end in zip(ends, ends[1:]):
            want(task, phase, begin, end)
    check("spans of each process", +activities == +wanted, activities - wanted, wanted - activities)
    running = {key: length for key, length in states.items() if key[1] in (1, 3)}
    check("states of each process", running == dict(+by_events), running, by_events)
    wanted = collections.Counter()
    for kind, count, size, way in rows(trace, """SELECT kind, count(*), sum(bytes), sum(delivered_ns - sent_ns) FROM messages
            JOIN connections USING (connection) JOIN processes AS client ON client.process = client_process
            JOIN processes AS server ON server.process = server_process WHERE client.hadoop AND server.hadoop GROUP BY kind"""):
        wanted.update({(kind, "count"): count, (kind, "bytes"): int(size), (kind, "ns"): int(way)})
    check("messages by kind", messages == wanted, messages, wanted)
    print(f"{len(names)} processes, {sum(count for (_, _, what), count in activities.items() if what == 'count')} spans and phases: as in the tables")


{"otlp": otlp, "paraver": paraver, "perfetto": perfetto, "trace-processor": trace_processor}[sys.argv[1]](*sys.argv[2:])
