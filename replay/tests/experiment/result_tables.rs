//! Tables of results: each is what its definition says, within the file and on the page.

use std::fs;
use std::path::Path;
use std::process::Command;

use replay::results::descriptions::describe;
use replay::results::tables::{
    CircuitResult, CoflowResult, CongestionResult, HistogramResult, HopsResult, LaneResult, LatencyResult, LinkResult,
    LogResult, MessageResult, OccupancyResult, PacketResult, PathResult, TaskResult, TrafficLinkResult, TrafficResult,
    VlResult,
};
use trace::rows::Row;
use trace_tables::describe::TableDescription;
use trace_tables::{read_rows, write_trace};

fn replay(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_replay")).args(arguments).current_dir(folder).output().unwrap();
    let message = String::from_utf8(if output.status.success() { output.stdout } else { output.stderr }).unwrap();
    (output.status.code().unwrap(), message)
}

/// The rows of a table, whose file says what it means.
fn rows<R: Row>(folder: &Path) -> Vec<R> {
    means(folder, &TableDescription::of::<R>());
    read_rows(folder).unwrap()
}

fn means(folder: &Path, table: &TableDescription) {
    let bytes = fs::read(folder.join(format!("{}.parquet", table.name))).unwrap();
    let footer = String::from_utf8_lossy(&bytes);
    for (key, text) in table.metadata() {
        assert!(footer.contains(&key) && footer.contains(&text), "{} has no {key}", table.name);
    }
}

#[test]
fn tables_hold_what_their_definition_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_trace(&path.join("trace"), &crate::common::map_reduce(&["m1", "w1", "w2"], 4, 2)).unwrap();
    let file = |name: &str, text: &str| fs::write(path.join(name), text).unwrap();
    file("ocs.toml", "[workload]\ntrace = \"trace\"\n[fabric]\nkind = \"lightness\"\ndecision = \"ocs\"\n");
    file("tree.toml", "[traffic]\n[fabric]\nkind = \"credit\"\nvls = 2\n[fabric.topology]\nshape = \"k-ary-n-tree\"\n");
    file("coflows.txt", "2 1\n1 0 1 0 1 1:1.0\n");
    let run = |arguments: &[&str]| assert_eq!(replay(path, arguments).0, 0, "{arguments:?}");
    run(&["run", "ocs.toml", "--out", "job"]);
    let job = path.join("job");
    let messages: Vec<MessageResult> = rows(&job);
    assert!(messages.iter().any(|row| row.simulated_delivered_ns > row.simulated_sent_ns && row.bytes > 0));
    let tasks: Vec<TaskResult> = rows(&job);
    assert!(tasks.iter().all(|row| row.simulated_finish_s >= row.simulated_start_s) && tasks.len() == 6);
    let (links, traffic): (Vec<LinkResult>, Vec<TrafficResult>) = (rows(&job), rows(&job));
    let all = |bytes: &mut dyn Iterator<Item = u64>| bytes.sum::<u64>();
    assert_eq!(all(&mut links.iter().map(|row| row.bytes)), all(&mut traffic.iter().map(|row| row.bytes)));
    assert!(rows::<CircuitResult>(&job).iter().all(|row| row.up_s.is_none_or(|up| up >= row.granted_s)));
    assert!(rows::<PathResult>(&job).windows(2).all(|pair| pair[0].from_s <= pair[1].from_s));
    let counts = ["--set", "traffic.offered_hops=true", "--set", "traffic.occupancy=true"];
    let log = ["--set", "traffic.log={ packets = 3, hosts = [1] }"];
    let short =
        [&["--set", "traffic.warm_up=1us", "--set", "traffic.measurement=10us", "--packets"][..], &counts, &log]
            .concat();
    run(&[&["run", "tree.toml", "--out", "traffic", "--set", "traffic.load=[0.1, 0.2]"][..], &short].concat());
    let traffic = path.join("traffic");
    assert!(rows::<TrafficLinkResult>(&traffic).iter().any(|row| row.point == 1 && row.bytes > 0));
    let of_kind = |hops: &[HopsResult], kind: &str| {
        let mine = hops.iter().filter(|row| row.kind == kind && row.point == 1);
        mine.map(|row| (row.switches, row.packets)).collect::<Vec<_>>()
    };
    let hops: Vec<HopsResult> = rows(&traffic);
    assert_eq!(
        of_kind(&hops, "offered"),
        of_kind(&hops, "accepted"),
        "ways of trees are shortest, and all have arrived"
    );
    assert!(of_kind(&hops, "offered").iter().all(|(switches, packets)| [1, 3, 5].contains(switches) && *packets > 0));
    let queues: Vec<OccupancyResult> = rows(&traffic);
    let first = queues.iter().take_while(|row| (&row.link, row.vl) == (&queues[0].link, queues[0].vl));
    assert!((first.map(|row| row.share).sum::<f64>() - 1.0).abs() < 1e-9, "shares of a queue add up");
    assert!(rows::<LaneResult>(&traffic).iter().all(|row| row.vl < 2));
    let vls: Vec<VlResult> = rows(&traffic);
    assert_eq!(vls.iter().map(|row| (row.point, row.vl)).collect::<Vec<_>>(), [(0, 0), (0, 1), (1, 0), (1, 1)]);
    assert!(vls.iter().all(|row| (row.flits > 0) == (row.vl == 0) && row.queued_mean.is_some()));
    let log: Vec<LogResult> = rows(&traffic);
    let packets: Vec<PacketResult> = rows(&traffic);
    assert!(log.iter().all(|row| row.source == 1) && log.is_sorted_by_key(|row| (row.point, row.at_ps)));
    for packet in packets.iter().filter(|packet| packet.source == 1 && packet.number < 3) {
        let of = |row: &&LogResult| (row.point, row.number) == (packet.point, packet.number);
        let way: Vec<&LogResult> = log.iter().filter(of).collect();
        assert_eq!((way[0].event.as_str(), way[0].at_ps, way[0].port), ("leaves", packet.left_ps, 0));
        let last = way[way.len() - 1];
        assert_eq!((last.event.as_str(), last.at_ps), ("arrives", packet.arrived_ps));
        assert_eq!(way.len() as u32, 2 * (packet.switches + 1));
    }
    assert!(rows::<LatencyResult>(&traffic).iter().all(|row| row.width_ps > 0));
    assert!(rows::<PacketResult>(&traffic).iter().all(|row| row.arrived_ps > row.left_ps));
    run(&["coflow", "coflows.txt", "--out", "coflows"]);
    let coflows: Vec<CoflowResult> = rows(&path.join("coflows"));
    assert!(coflows.iter().all(|row| row.cct_s + 1e-9 >= row.packet_bound_s));
    run(&["congestion", "--shape", "k-ary-n-tree", "-p", "rand", "--runs", "2", "--out", "congestion"]);
    assert_eq!(rows::<CongestionResult>(&path.join("congestion")).len(), 1);
    assert!(rows::<HistogramResult>(&path.join("congestion")).iter().all(|row| row.from < row.below));
    // Sweeps of both kinds.
    run(&["run", "ocs.toml", "--out", "jobs", "--set", "workload.cpu_factor=[1.0, 2.0]"]);
    let groups = describe();
    for (group, folder) in [("Of a replayed job", "jobs"), ("Of synthetic traffic", "traffic")] {
        let (_, tables) = groups.iter().find(|(name, _)| *name == group).unwrap();
        let sweep = tables.iter().find(|table| table.name == "sweep").unwrap();
        means(&path.join(folder), sweep);
        let csv = fs::read_to_string(path.join(folder).join("sweep.csv")).unwrap();
        let written: Vec<&str> = csv.lines().next().unwrap().split(',').skip(1).collect();
        assert_eq!(written, sweep.columns.iter().map(|column| column.name).collect::<Vec<_>>(), "{group}");
    }
}

#[test]
fn the_page_is_what_the_program_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/result-tables.md");
    let (code, message) = replay(Path::new("."), &["tables"]);
    assert_eq!(code, 0);
    assert!(
        fs::read_to_string(page).unwrap() == message,
        "it is old: target/release/replay tables > docs/result-tables.md"
    );
    for (_, tables) in describe() {
        for table in tables {
            assert!(message.contains(&table.to_markdown()) && !table.meaning.is_empty());
            assert!(
                table.columns.iter().all(|column| column.meaning.ends_with('.')
                    || column.meaning.ends_with('"')
                    || column.meaning.ends_with(')')),
                "{}",
                table.name
            );
        }
    }
    let (_, links) = replay(Path::new("."), &["tables", "links"]);
    assert_eq!(links.matches("## links").count(), 2);
    let (code, none) = replay(Path::new("."), &["tables", "link"]);
    assert!(code == 2 && none.contains("link: no such table; there are circuits, coflows"), "{none}");
}
