//! Each end of a connection gets the owner for whom the evidence is best.

use std::net::SocketAddr;

use crate::world::{SECOND, T0, Talk, World, at, connections};
use merger::merged::Merged;
use trace::ids::ProcessId;
use trace::jvm::JvmRecord;
use trace::rows::OwnerEvidence::{self, Inferred, Jvm, Listener, Scan, Unknown};
use trace::socket::{Owner, SocketRecord, TcpCounters};

fn owner(pid: u32) -> Owner {
    Owner { pid, start_ticks: u64::from(pid) * 10 }
}

fn process(t: u64, pid: u32, role: &str) -> SocketRecord {
    SocketRecord::Process {
        t,
        owner: owner(pid),
        netns: 0,
        main: format!("org.apache.hadoop.{role}"),
        role: role.into(),
        uid: 0,
        ns_pid: None,
    }
}

fn socket(t: u64, local: SocketAddr, remote: SocketAddr, pid: Option<u32>, tcp: Option<TcpCounters>) -> SocketRecord {
    SocketRecord::Socket {
        t,
        netns: 0,
        local,
        remote,
        state: "ESTABLISHED".into(),
        inode: 5,
        owner: pid.map(owner),
        tcp,
    }
}

fn listen(t: u64, local: &str, pid: u32) -> SocketRecord {
    SocketRecord::Listen { t, netns: 0, local: local.parse().unwrap(), inode: 9, owner: Some(owner(pid)) }
}

fn opened() -> (World, Talk) {
    let mut world = World::new(&["w1", "m1"]);
    let mut talk = world.connect((0, 40_000), (1, 8020), [100, 200], at(0));
    world.say(&mut talk, true, at(10), &[1; 50]);
    (world, talk)
}

fn ends(merged: &Merged) -> Vec<[(Option<u32>, OwnerEvidence); 2]> {
    let pid = |process: Option<ProcessId>| process.map(|process| merged.joined.processes[process.index()].pid);
    let rows = connections(merged).into_iter();
    rows.map(|c| [(pid(c.client_process), c.client_evidence), (pid(c.server_process), c.server_evidence)]).collect()
}

#[test]
fn a_port_alone_tells_nobody() {
    let (world, _) = opened();
    assert_eq!(ends(&world.merged()), [[(None, Unknown), (None, Unknown)]]);
}

#[test]
fn scans_listeners_and_jvms_in_the_order_of_their_weight() {
    let (mut world, talk) = opened();
    world.hosts[1].sockets = vec![process(at(0), 60, "NameNode"), listen(at(0), "0.0.0.0:8020", 60)];
    world.hosts[0].sockets =
        vec![process(at(1), 50, "DataNode"), socket(at(5), talk.client, talk.server, Some(50), None)];
    assert_eq!(ends(&world.merged()), [[(Some(50), Scan), (Some(60), Listener)]]);
    // What a JVM did on the connection counts less than a scan, that it opened it counts more.
    let called = |pid| JvmRecord::Call {
        t: at(9),
        sent: at(10),
        received: at(11),
        th: 1,
        call: 1,
        client: String::new(),
        method: format!("m{pid}"),
        local: talk.client.to_string(),
        remote: talk.server.to_string(),
    };
    world.jvm(0, 70, "YarnChild", vec![called(70)]);
    assert_eq!(ends(&world.merged())[0][0], (Some(50), Scan));
    world.hosts[0].sockets.clear();
    assert_eq!(ends(&world.merged())[0][0], (Some(70), Inferred));
    world.own(&talk, at(0), (80, "MRAppMaster"), (60, "NameNode"));
    assert_eq!(ends(&world.merged()), [[(Some(80), Jvm), (Some(60), Jvm)]]);
}

#[test]
fn a_port_used_again_has_the_owner_of_its_time() {
    let mut world = World::new(&["w1", "m1"]);
    for (number, pid) in [51, 52, 53].into_iter().enumerate() {
        let t = T0 + number as u64 * 2 * SECOND;
        let mut talk = world.connect((0, 40_000), (1, 8020), [100 + pid, 200 + pid], t);
        world.say(&mut talk, true, t + SECOND, &[1; 50]);
        world.close(&mut talk, t + SECOND + SECOND / 2);
        world.own(&talk, t + 1000, (pid, "YarnChild"), (60, "NameNode"));
    }
    let clients: Vec<_> = ends(&world.merged()).iter().map(|ends| ends[0].0).collect();
    assert_eq!(clients, [Some(51), Some(52), Some(53)]);
}

#[test]
fn a_listener_that_was_replaced_owns_only_what_came_in_its_time() {
    let mut world = World::new(&["w1", "m1"]);
    for (port, t) in [(40_000, T0), (40_001, T0 + 100 * SECOND)] {
        let mut talk = world.connect((0, port), (1, 50_100), [1, 2], t);
        world.say(&mut talk, true, t + 1000, &[1; 50]);
    }
    world.hosts[1].sockets = vec![
        process(T0, 60, "MRAppMaster"),
        listen(T0, "10.0.0.2:50100", 60),
        process(T0 + 90 * SECOND, 61, "MRAppMaster"),
        listen(T0 + 90 * SECOND, "10.0.0.2:50100", 61),
    ];
    let servers: Vec<_> = ends(&world.merged()).iter().map(|ends| ends[1].0).collect();
    assert_eq!(servers, [Some(60), Some(61)]);
}

#[test]
fn another_network_namespace_is_another_socket() {
    let (mut world, talk) = opened();
    world.jvm(0, 50, "DataNode", Vec::new());
    if let JvmRecord::Header { netns, .. } = &mut world.hosts[0].jvms[0].1[0] {
        *netns = 111;
    }
    let mut foreign = socket(at(5), talk.client, talk.server, Some(90), None);
    if let SocketRecord::Socket { netns, .. } = &mut foreign {
        *netns = 222;
    }
    world.hosts[0].sockets = vec![foreign];
    assert_eq!(ends(&world.merged())[0][0], (None, Unknown));
}

#[test]
fn processes_that_are_not_hadoops_are_known_as_such() {
    let (mut world, talk) = opened();
    world.hosts[0].sockets = vec![socket(at(5), talk.client, talk.server, Some(90), None)];
    let merged = world.merged();
    assert_eq!((merged.joined.processes[0].role.as_str(), merged.joined.processes[0].hadoop), ("other", false));
}

#[test]
fn the_kernels_counters_stand_beside_what_was_captured() {
    let (mut world, talk) = opened();
    let tcp = |sent, again| Some(TcpCounters { bytes_sent: sent, bytes_retrans: again, ..TcpCounters::default() });
    let client = process(at(1), 50, "DataNode");
    world.hosts[0].sockets = vec![client.clone(), socket(at(5), talk.client, talk.server, Some(50), tcp(0, 0))];
    // Still open: what was captured after the last scan is added.
    assert_eq!(connections(&world.merged())[0].client_kernel_bytes, Some(50));
    // It died: its last word counts.
    world.hosts[0].sockets.push(SocketRecord::Died {
        t: at(20),
        netns: 0,
        local: talk.client,
        remote: talk.server,
        tcp: tcp(170, 100),
    });
    assert_eq!(connections(&world.merged())[0].client_kernel_bytes, Some(70));
    // Nobody recorded packets any more when it died, nor before the first: what it sent then is not in the capture.
    world.hosts[0].recorded_ns = Some((at(1), at(10)));
    world.hosts[1].recorded_ns = Some((at(1), at(9)));
    assert_eq!(connections(&world.merged())[0].client_kernel_bytes, Some(50));
    world.hosts[0].recorded_ns = Some((at(6), at(30)));
    world.hosts[1].recorded_ns = Some((at(7), at(30)));
    assert_eq!(connections(&world.merged())[0].client_kernel_bytes, Some(70));
}
