//! Long messages: what the network took is left to the network, what the processes took is kept.

use crate::scenario::{MS, Scenario};
use merger::joined::Segment;
use merger::network::FullTimes;
use trace::rows::{EventRow, Evidence, MessageKind, On};

/// Who waits for whom, for which moment, and why.
type Edge = (u32, u32, On, Evidence);

/// Block data of `count` segments of 1460 bytes, of which `timing` tells when each left and arrived, what was in
/// flight and how large the window was.
fn block_data(
    loopback: bool,
    bytes: u32,
    count: u64,
    timing: impl Fn(u64) -> (u64, u64, u64, u64),
) -> (Vec<EventRow>, Vec<Edge>) {
    block_data_over(FullTimes::default(), loopback, bytes, count, timing)
}

/// The same, while the link of the sender's host is full at some times.
fn block_data_over(
    full_uplink: FullTimes,
    loopback: bool,
    bytes: u32,
    count: u64,
    timing: impl Fn(u64) -> (u64, u64, u64, u64),
) -> (Vec<EventRow>, Vec<Edge>) {
    let mut s = Scenario::default();
    s.joined.full_uplinks = vec![FullTimes::default(), full_uplink];
    let a = s.host("a");
    let b = if loopback { a } else { s.host("b") };
    let (task, node) = (s.process(a, "YarnChild", (0, 9_000 * MS)), s.process(b, "DataNode", (0, 9_000 * MS)));
    let line = s.connect(task, node, "data-transfer");
    s.message(line, true, MessageKind::BlockRequest, "read", 0, 100, 0);
    let segments: Vec<Segment> = (0..count)
        .map(|number| {
            let (sent_ns, delivered_ns, in_flight_bytes, window_bytes) = timing(number);
            Segment { bytes, sent_ns, delivered_ns, in_flight_bytes, window_bytes, ..Segment::default() }
        })
        .collect();
    let data = s.stream(line, false, MessageKind::BlockData, "read", 0, &segments);
    let inferred = s.build();
    let pieces: Vec<EventRow> = inferred.pieces(data).into_iter().cloned().collect();
    let first = pieces[0].event;
    let edges = inferred
        .causal
        .dependencies
        .iter()
        .filter(|row| row.event > first)
        .map(|row| (row.event.0 - first.0, row.on_event.0.wrapping_sub(first.0), row.on, row.evidence))
        .collect();
    (pieces, edges)
}

const MSS: u32 = 1_460;
/// A full segment at 100 Mbit/s.
const AT_100M: u64 = 121_120;

#[test]
fn what_the_link_took_is_no_thinking() {
    // One megabyte at the link's rate: each segment is still on its way when the next leaves.
    let (pieces, edges) = block_data(false, MSS, 700, |n| {
        let sent = MS + n * AT_100M;
        (sent, sent + 3 * MS, 30_000, 3_000_000)
    });
    assert!(pieces.len() >= 15, "pieces of at most 64 KiB: {}", pieces.len());
    assert!(pieces[1..].iter().all(|piece| piece.delay_ns == 0), "all time was the network's");
    assert!(edges.iter().all(|edge| edge.2 == On::Sent && edge.3 == Evidence::Stream && edge.1 + 1 == edge.0));
    assert_eq!(pieces.iter().map(|piece| piece.bytes).sum::<u64>(), 700 * u64::from(MSS));
}

/// A pause of the sender's behind bytes that the network paced and that are still on their way is not counted from when those were
/// handed over, long before they left.
#[test]
fn what_follows_on_paced_bytes_that_are_under_way_is_paced() {
    let (pieces, _) = block_data(false, MSS, 405, |n| match n {
        0..225 => (MS + n * AT_100M, 4 * MS + n * AT_100M, 30_000, 3_000_000),
        // 64 KiB, a segment each millisecond, of which the last is slow to arrive.
        225..270 => {
            let sent = 30 * MS + (n - 225) * MS;
            (sent, sent + if n == 269 { 3 * MS } else { MS / 5 }, 1_460, 3_000_000)
        }
        _ => {
            let sent = 75 * MS + (n - 270) * AT_100M;
            (sent, sent + 3 * MS, 30_000, 3_000_000)
        }
    });
    let delays: Vec<u64> = pieces[1..].iter().map(|piece| piece.delay_ns).collect();
    assert!(delays.iter().all(|delay| *delay < MS), "{delays:?}");
}

/// Nor is a pause for which the receiver's window is to blame: only what lies between the arrival of the paced bytes and the piece is thinking.
#[test]
fn a_closed_window_behind_paced_bytes_is_thinking_from_their_arrival_on() {
    const SLOW: u64 = 10 * MS;
    let paused = |n: u64| (n - 225) / 45 + 1;
    let (pieces, _) = block_data(false, MSS, 315, |n| match n {
        // Five pieces at 1.2 Mbit/s.
        0..225 => (MS + n * SLOW, 4 * MS + n * SLOW, 30_000, 130_000),
        // Two more at once, each 20 ms after the one before it had arrived.
        _ => {
            let sent = 226 * SLOW + paused(n) * 26 * MS + (n - 225) % 45 * AT_100M;
            (sent, sent + MS / 5, 0, 60_000)
        }
    });
    let delays: Vec<u64> = pieces[1..].iter().map(|piece| piece.delay_ns).collect();
    assert_eq!(delays[..4], [0; 4], "{delays:?}");
    assert!(delays[4..].iter().all(|delay| (15 * MS..45 * MS).contains(delay)), "{delays:?}");
}

/// What waits for its sender's own link is captured when it leaves: bursts of a token bucket, with pauses that nobody thinks.
#[test]
fn pauses_while_the_senders_own_link_is_full_are_no_thinking() {
    let bursts = |n: u64| {
        let sent = MS + n / 45 * 28 * MS + n % 45 * 10_000;
        (sent, sent + 100_000, 1_460, 3_000_000)
    };
    let thought = |full| {
        let (pieces, _) = block_data_over(full, false, MSS, 450, bursts);
        pieces[1..].iter().map(|piece| piece.delay_ns).sum::<u64>()
    };
    assert!(thought(FullTimes::default()) > 200 * MS, "a sender that pauses thinks");
    assert_eq!(thought(FullTimes::between(0, 9_000 * MS)), 0);
}

#[test]
fn a_receiver_that_computes_sets_the_pace_on_any_network() {
    // A map takes 32 MB over loopback in 3.2 s: its window is closed most of the time.
    let (pieces, edges) = block_data(true, 65_483, 500, |n| {
        let sent = MS + n * 6 * MS + (n % 3) * 100_000;
        (sent, sent, 65_483, if n < 4 { 262_144 } else { 90_000 })
    });
    assert_eq!(pieces.len(), 500);
    let thought: u64 = pieces[1..].iter().map(|piece| piece.delay_ns).sum();
    let took = pieces[499].recorded_ns - pieces[0].recorded_ns;
    assert!(thought.abs_diff(took) < took / 50, "thought {thought} of {took}");
    assert!(edges.iter().any(|edge| edge.2 == On::Delivered), "the window is a cause");
}

#[test]
fn a_window_that_the_reader_closes_is_thinking_across_the_network_too() {
    // Bursts of a window each; then nothing until the reader has made room for the next.
    let (pieces, _) = block_data(false, MSS, 2_000, |n| {
        let burst = n / 40;
        let sent = MS + burst * 20 * MS + (n % 40) * AT_100M;
        (sent, sent + 300_000, if n % 40 == 0 { 0 } else { 20_000 }, if n % 40 == 0 { 60_000 } else { 200_000 })
    });
    let last = pieces.last().unwrap();
    let waits: u64 = pieces[1..].iter().map(|piece| piece.delay_ns).sum();
    let took = last.recorded_ns - pieces[0].recorded_ns;
    assert!(waits > took / 2, "the reader's time stays: {waits} of {took}");
}

#[test]
fn a_pause_of_the_sender_is_kept_and_the_way_before_it_is_not() {
    // 64 KiB at the link's rate, then half a second of nothing to send, then again.
    let (pieces, edges) = block_data(false, MSS, 90, |n| {
        let sent = MS + (n / 45) * 500 * MS + (n % 45) * AT_100M;
        (sent, sent + 3 * MS, if n % 45 == 0 { 0 } else { 20_000 }, 3_000_000)
    });
    assert_eq!(pieces.len(), 2);
    let pause = pieces[1].recorded_ns - pieces[0].recorded_ns;
    assert_eq!(pieces[1].delay_ns, pause, "the sender thought while the first piece travelled");
    assert_eq!(edges, [(1, 0, On::Sent, Evidence::Stream)]);
}
