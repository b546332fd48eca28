//! The shuffle is cut into one message for each map and reduce; other HTTP into requests and responses.

use crate::world::wire::{map_output, shuffle_head, shuffle_request};
use crate::world::{MS, World, assert_bytes_are_conserved, at, connections, messages};
use trace::jvm::JvmRecord;
use trace::rows::MessageKind::{HttpRequest, HttpResponse, ShuffleRequest, ShuffleResponse};
use trace::rows::StepKind;

fn map(number: usize) -> String {
    format!("attempt_1700000000000_0001_m_{number:06}_0")
}

fn opened() -> (World, crate::world::Talk) {
    let mut world = World::new(&["w1", "w2"]);
    world.keep = (256, 256);
    let talk = world.connect((0, 40_000), (1, 13_562), [100, 200], at(0));
    (world, talk)
}

/// Serves maps of these sizes, and returns what both JVMs say of it.
fn fetch(
    world: &mut World,
    talk: &mut crate::world::Talk,
    t: u64,
    first: usize,
    sizes: &[usize],
) -> [Vec<JvmRecord>; 2] {
    let maps: Vec<String> = (first..first + sizes.len()).map(map).collect();
    let body: Vec<u8> = maps.iter().zip(sizes).flat_map(|(map, &size)| map_output(map, 2, size)).collect();
    world.say(talk, true, t, &shuffle_request(2, &maps));
    let mut answer = shuffle_head(body.len());
    answer.extend(body);
    let arrived = world.say(talk, false, t + 2 * MS, &answer);
    let served = maps.iter().zip(sizes).map(|(map, &bytes)| JvmRecord::ShuffleServed {
        t0: t + MS,
        t1: t + 2 * MS,
        job: "job_1700000000000_0001".into(),
        map: map.clone(),
        reduce: 2,
        bytes: bytes as u64,
        read_ns: bytes as u64 + 7,
        local: "10.0.0.2:13562".into(),
        remote: "10.0.0.1:40000".into(),
    });
    let fetched = maps.iter().zip(sizes).map(|(map, &bytes)| JvmRecord::Fetch {
        t0: t,
        t1: arrived,
        th: 4,
        map: map.clone(),
        reduce: 2,
        bytes: bytes as u64,
        raw: bytes as u64 - 4,
        host: "w2:13562".into(),
        read_wait: 0,
    });
    [fetched.collect(), served.collect()]
}

#[test]
fn each_map_is_a_message_with_its_size() {
    let (mut world, mut talk) = opened();
    let sizes = [40_000, 130, 70_000, 1_000_000, 5];
    let [fetched, served] = fetch(&mut world, &mut talk, at(10), 0, &sizes);
    world.jvm(0, 50, "YarnChild", fetched);
    world.jvm(1, 60, "NodeManager", served);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    assert_eq!(connections(&merged)[0].protocol, "shuffle");
    let asked: Vec<_> = messages(&merged, true).iter().map(|m| (m.kind, m.name, m.reduce)).collect();
    assert_eq!(asked, [(ShuffleRequest, "/mapOutput", Some(2))]);
    let stated: Vec<_> =
        messages(&merged, false).iter().map(|m| (m.kind, m.map.map(str::to_owned), m.reduce, m.app_bytes)).collect();
    let wanted: Vec<_> = sizes
        .iter()
        .enumerate()
        .map(|(number, &size)| (ShuffleResponse, Some(map(number)), Some(2), size as u64))
        .collect();
    assert_eq!(stated, wanted);
    // Both JVMs' spans are about these messages.
    let joined = merged.joined.spans.iter().filter(|span| span.request.is_some() && span.response.is_some()).count();
    assert_eq!(joined, 2 * sizes.len());
    // And so are the steps of both: what the one read, and what the other took.
    let steps = &merged.joined.steps;
    let served: Vec<_> = steps.iter().filter(|row| row.kind == StepKind::Serve).collect();
    assert_eq!(served.iter().map(|row| row.bytes).collect::<Vec<_>>(), sizes.map(|size| size as u64));
    assert!(served.iter().all(|row| row.work_ns == row.bytes + 7));
    assert_eq!(steps.iter().filter(|row| row.kind == StepKind::Fetch).count(), sizes.len());
    assert!(steps.iter().all(|row| merged.joined.message(row.message).app_bytes == row.bytes));
}

#[test]
fn without_jvms_the_headers_that_were_kept_are_followed() {
    let (mut world, mut talk) = opened();
    world.keep = (usize::MAX, usize::MAX);
    let sizes = [40_000, 130, 70_000];
    fetch(&mut world, &mut talk, at(10), 0, &sizes);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let stated: Vec<_> = messages(&merged, false).iter().map(|m| m.app_bytes).collect();
    assert_eq!(stated, [40_000, 130, 70_000]);
}

#[test]
fn without_jvms_and_headers_the_rest_is_one_message() {
    let (mut world, mut talk) = opened();
    fetch(&mut world, &mut talk, at(10), 0, &[40_000, 130, 70_000]);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let stated: Vec<_> = messages(&merged, false).iter().map(|m| (m.kind, m.evidence)).collect();
    assert_eq!(stated, [(ShuffleResponse, "framing"), (ShuffleResponse, "headers")]);
}

#[test]
fn a_connection_kept_alive_serves_several_requests() {
    let (mut world, mut talk) = opened();
    let mut records = [Vec::new(), Vec::new()];
    for round in 0..3 {
        let [fetched, served] =
            fetch(&mut world, &mut talk, at(10 + round as u64 * 500), round * 10, &[30_000, 20_000]);
        records[0].extend(fetched);
        records[1].extend(served);
    }
    let [fetched, served] = records;
    world.jvm(0, 50, "YarnChild", fetched);
    world.jvm(1, 60, "NodeManager", served);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let stated: Vec<_> = messages(&merged, false).iter().map(|m| (m.call, m.app_bytes)).collect();
    assert_eq!(stated, [(0, 30_000), (0, 20_000), (1, 30_000), (1, 20_000), (2, 30_000), (2, 20_000)]);
}

#[test]
fn other_http_is_known_too() {
    let (mut world, mut talk) = opened();
    let body = vec![b'{'; 5000];
    world.say(&mut talk, true, at(1), b"GET /jmx?qry=x HTTP/1.1\r\nHost: m1\r\n\r\n");
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    answer.extend(&body);
    world.say(&mut talk, false, at(2), &answer);
    world.say(&mut talk, true, at(20), b"PUT /webhdfs/v1/x?op=CREATE HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd");
    world.say(&mut talk, false, at(21), b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let asked: Vec<_> = messages(&merged, true).iter().map(|m| (m.kind, m.name, m.call)).collect();
    assert_eq!(asked, [(HttpRequest, "/jmx", 0), (HttpRequest, "/webhdfs/v1/x", 1)]);
    let answered: Vec<_> = messages(&merged, false).iter().map(|m| (m.kind, m.call, m.evidence)).collect();
    assert_eq!(answered, [(HttpResponse, 0, "framing"), (HttpResponse, 1, "counted")]);
}
