//! What held senders up: by the packets of their hosts, and by their kernels.

use merger::built_trace::trace_of;
use merger::check::{check, show};
use merger::progress::Silent;
use trace::packet::flag;
use trace::rows::LimitRow;
use trace::socket::{SocketRecord, TcpCounters};

use crate::world::{DELAY_NS, World, at};

/// The server's window has room for 1,024 bytes, then for 64,256.
fn world() -> World {
    let mut world = World::new(&["w1", "w2"]);
    let mut talk = world.connect((0, 40_000), (1, 8020), [1000, 9000], at(0));
    world.packet(&talk, false, at(5), 9001, flag::ACK, &[], 502);
    world.packet(&talk, false, at(10), 9001, flag::ACK, &[], 8);
    world.say(&mut talk, true, at(20), &[1; 1000]);
    world.say(&mut talk, true, at(30), &[2; 3000]);
    world.say(&mut talk, false, at(40), &[3; 500]);
    world.close(&mut talk, at(50));
    world
}

fn limits(world: &World) -> Vec<LimitRow> {
    world.merged().joined.limits.iter().collect()
}

#[test]
fn bytes_are_under_way_until_they_are_acknowledged_and_a_small_window_is_full() {
    let limits = limits(&world());
    let [client, server] = limits.as_slice() else { panic!("{limits:?}") };
    assert!(client.from_client && !server.from_client);
    // One segment; then three, 12 µs apart, and the last one's acknowledgement.
    assert_eq!(client.busy_ns, Some(2 * DELAY_NS + 24_000 + 2 * DELAY_NS));
    assert_eq!(client.window_limited_ns, Some(2 * DELAY_NS), "1,000 of 1,024 bytes");
    assert_eq!((server.busy_ns, server.window_limited_ns), (Some(2 * DELAY_NS), Some(0)));
    assert_eq!(client.kernel_busy_ns, None);
}

#[test]
fn who_was_not_captured_cannot_tell() {
    let mut world = world();
    world.hosts.remove(0);
    let limits = limits(&world);
    let [server] = limits.as_slice() else { panic!("{limits:?}") };
    assert!(!server.from_client && server.busy_ns == Some(2 * DELAY_NS));
}

#[test]
fn the_kernels_word_stands_beside_that_of_the_packets() {
    let mut world = world();
    let died = |busy_us| SocketRecord::Died {
        t: at(60),
        netns: 0,
        local: "10.0.0.1:40000".parse().unwrap(),
        remote: "10.0.0.2:8020".parse().unwrap(),
        tcp: Some(TcpCounters {
            bytes_sent: 4000,
            busy_us,
            rwnd_limited_us: 90,
            sndbuf_limited_us: 7,
            ..TcpCounters::default()
        }),
    };
    world.hosts[0].sockets.push(died(280));
    let folder = tempfile::tempdir().unwrap();
    world.write(folder.path());
    let trace = trace_of(&[folder.path().to_owned()], &Silent).unwrap().trace;
    let client = &trace.limits[0];
    assert_eq!((client.kernel_busy_ns, client.kernel_window_limited_ns), (Some(280_000), Some(90_000)));
    assert_eq!(client.kernel_buffer_limited_ns, Some(7_000));
    let report = check(&trace);
    let found = &report.detail.limits;
    assert_eq!((found.captured.directions, found.compared.directions), (2, 1));
    assert!((found.busy_error.unwrap() - (224.0 / 280.0 - 1.0)).abs() < 1e-9, "{found:?}");
    let text = show(&report);
    assert!(text.contains("of 1 of them the kernel tells as well") && text.contains("-20.0%"), "{text}");
    // A kernel that does not count it says nothing.
    world.hosts[0].sockets[0] = died(0);
    assert_eq!(limits(&world)[0].kernel_busy_ns, None);
}
