//! What links did over time takes no more memory the longer a run is.

use netsim::fabric::figures::LinkMeter;
use netsim::network::NetworkFigures;
use netsim::time::SimTime;
use netsim::units::Rate;

/// A hundred seconds in steps of a millisecond, and minutes later a packet: a link keeps 65,536 intervals at most, and nothing is forgotten.
#[test]
fn intervals_grow_with_time() {
    let mut meter = LinkMeter::default();
    let at = |ms: u64| SimTime(ms * 1_000_000_000);
    for ms in 0..100_000 {
        meter.crossed(at(ms), 10, 1_000_000_000);
        meter.queued(at(ms), ms, 1_000_000_000);
    }
    meter.dropped(at(300_001), 1_000_000_000);
    meter.crossed(at(300_000), 7, 1_000_000_000);
    let figures = meter.figures("a->b", Rate::from_bps(8));
    let intervals = figures.intervals.as_ref().unwrap();
    assert_eq!(intervals.doublings, 3);
    let bytes = &intervals.bytes;
    assert_eq!((bytes.len(), bytes.iter().sum::<u64>()), (37_501, 1_000_007));
    assert_eq!((bytes[0], bytes[12_499], bytes[12_500], bytes[37_500]), (80, 80, 0, 7));
    assert_eq!((intervals.queue[0], intervals.queue[1]), (7, 15));
    assert_eq!((intervals.drops[37_500], intervals.drops.len()), (1, 37_501));
    let mut all = NetworkFigures { interval_ps: 1_000_000_000, ..Default::default() };
    let mut short = LinkMeter::default();
    (0..16).for_each(|ms| short.crossed(at(ms), 1, 1_000_000_000));
    all.links = vec![figures, short.figures("b->a", Rate::from_bps(8))];
    all.equalise_intervals();
    assert_eq!(all.interval_ps, 8_000_000_000);
    assert_eq!((all.links[0].bytes_by_interval().len(), all.links[1].bytes_by_interval()), (37_501, &[8, 8][..]));
}
