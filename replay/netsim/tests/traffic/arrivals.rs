//! When messages are handed over: the distributions of the gaps, and that a host's draws are its own.

use netsim::fabric::packet::{LinkTime, Message};
use netsim::time::SimTime;
use netsim::traffic::{
    Admission, Arrivals, Destinations, Drawing, Injection, Plan, Sending, Sources, Span, TrafficConfig,
};
use netsim::units::Rate;

/// 100 Gbit/s, flits of 64 bytes: a cycle is 5,120 ps. Packets have 8 flits.
const LINK: LinkTime = LinkTime {
    rate: Rate::from_bps(100_000_000_000),
    flit: 64,
    mtu: 512,
    headers: 0,
    whole_flits: true,
    whole_messages: false,
};

fn config(arrivals: Arrivals, load: f64) -> TrafficConfig {
    TrafficConfig {
        arrivals: Some(arrivals),
        load: Some(load),
        flits: Some(8),
        warm_up: Some(Span::Cycles(0)),
        measurement: Some(Span::Cycles(400_000)),
        drain: Some(Span::Cycles(0)),
        ..TrafficConfig::default()
    }
}

fn plan(config: &TrafficConfig, hosts: u32) -> Plan {
    config.plan(LINK, hosts, None).unwrap()
}

/// All messages until the end, each with its time.
fn messages(config: &TrafficConfig, hosts: u32, seed: u64) -> Vec<(SimTime, Message)> {
    let plan = plan(config, hosts);
    let drawing = Drawing::new(&plan, Destinations::new(config, hosts).unwrap(), seed);
    let sending = Sending::Drawn(Box::new(drawing));
    let mut sources = Sources::new(&sending, hosts);
    let mut all = Vec::new();
    while let Some(now) = sources.next_time() {
        while let Some(Injection::HandedOver(message)) = sources.next_at(now, |_| Admission::Free) {
            all.push((now, message));
        }
    }
    all
}

/// The gaps of one host in picoseconds.
fn gaps(all: &[(SimTime, Message)], host: u32) -> Vec<f64> {
    let times: Vec<u64> = all.iter().filter(|(_, message)| message.source.0 == host).map(|(at, _)| at.0).collect();
    times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect()
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
    (mean, variance.sqrt())
}

#[test]
fn bernoulli_gaps_are_geometric_and_on_flit_times() {
    for load in [0.05, 0.4, 0.9] {
        let all = messages(&config(Arrivals::Bernoulli, load), 4, 1);
        assert!(all.iter().all(|(at, _)| at.0.is_multiple_of(5_120)));
        let gaps: Vec<f64> = (0..4).flat_map(|host| gaps(&all, host)).map(|gap| gap / 5_120.0).collect();
        let p = load / 8.0;
        let (mean, deviation) = mean_and_deviation(&gaps);
        let error = (1.0 - p).sqrt() / p / (gaps.len() as f64).sqrt();
        assert!((mean - 1.0 / p).abs() < 4.0 * error, "{load}: {mean} for {}", 1.0 / p);
        assert!((deviation / ((1.0 - p).sqrt() / p) - 1.0).abs() < 0.06, "{load}: {deviation}");
        // A gap of one flit time comes with probability p, one above k with (1 - p)^k.
        let share = |least: f64| gaps.iter().filter(|gap| **gap > least).count() as f64 / gaps.len() as f64;
        assert!((share(1.0) - (1.0 - p)).abs() < 0.01 && (share(10.0) - (1.0 - p).powi(10)).abs() < 0.03);
        assert!(gaps.iter().all(|gap| *gap >= 1.0));
    }
}

#[test]
fn a_bernoulli_source_may_send_in_every_flit_time() {
    let all = messages(&config(Arrivals::Bernoulli, 8.0), 2, 1);
    assert_eq!(all.len(), 800_000);
    assert!(gaps(&all, 1).into_iter().all(|gap| gap == 5_120.0));
}

#[test]
fn exponential_gaps_have_the_mean_as_deviation() {
    for load in [0.05, 0.8, 2.0] {
        let all = messages(&config(Arrivals::Exponential, load), 4, 1);
        let gaps: Vec<f64> = (0..4).flat_map(|host| gaps(&all, host)).collect();
        let expected = 8.0 * 5_120.0 / load;
        let (mean, deviation) = mean_and_deviation(&gaps);
        assert!((mean / expected - 1.0).abs() < 4.0 / (gaps.len() as f64).sqrt(), "{load}: {mean}");
        assert!((deviation / expected - 1.0).abs() < 0.06, "{load}: {deviation}");
        let longer = gaps.iter().filter(|gap| **gap > 2.0 * expected).count() as f64 / gaps.len() as f64;
        assert!((longer - libm::exp(-2.0)).abs() < 0.015, "{longer}");
    }
}

#[test]
fn fixed_gaps_are_equal_and_begin_anywhere_in_the_first() {
    let all = messages(&config(Arrivals::Fixed, 0.3), 32, 1);
    let interval = 8.0 * 5_120.0 / 0.3;
    let mut firsts = Vec::new();
    for host in 0..32 {
        let first = all.iter().find(|(_, message)| message.source.0 == host).unwrap().0.0 as f64;
        assert!(first < interval);
        firsts.push(first);
        assert!(gaps(&all, host).into_iter().all(|gap| (gap - interval).abs() <= 1.0));
    }
    let (mean, _) = mean_and_deviation(&firsts);
    assert!((mean / interval - 0.5).abs() < 0.2, "{mean}");
}

#[test]
fn hosts_and_messages_more_shift_nothing() {
    for arrivals in [Arrivals::Bernoulli, Arrivals::Exponential, Arrivals::Fixed] {
        let mut few = config(arrivals, 0.2);
        // Destinations depend on how many hosts there are, times must not.
        let of = |all: Vec<(SimTime, Message)>, host: u32| -> Vec<(SimTime, u64)> {
            let mine = all.into_iter().filter(|(_, message)| message.source.0 == host);
            mine.map(|(at, message)| (at, message.token.0)).collect()
        };
        let (small, large) = (messages(&few, 4, 9), messages(&few, 64, 9));
        assert_eq!(of(small.clone(), 3), of(large, 3));
        few.measurement = Some(Span::Cycles(100_000));
        let shorter = messages(&few, 4, 9);
        assert_eq!(shorter[..], small[..shorter.len()]);
        assert_ne!(of(messages(&few, 4, 10), 3), of(shorter, 3), "another seed");
    }
}

#[test]
fn service_levels_come_in_their_shares() {
    let mut levels = config(Arrivals::Bernoulli, 0.5);
    levels.levels = [("1".to_owned(), 0.25), ("7".to_owned(), 0.75)].into();
    let all = messages(&levels, 4, 1);
    let share = |level: u8| all.iter().filter(|(_, m)| m.level.0 == level).count() as f64 / all.len() as f64;
    assert!((share(1) - 0.25).abs() < 0.01 && (share(7) - 0.75).abs() < 0.01);
}

#[test]
fn loads_count_flits_with_headers_and_filled_up() {
    // 100 bytes with 26 of headers: 126 bytes, 2 flits where they are filled up.
    let link = LinkTime { headers: 26, ..LINK };
    assert_eq!(link.message(100), (1, 128));
    assert_eq!(LinkTime { whole_flits: false, ..link }.message(100), (1, 126));
    // 1,024 bytes: two packets of 538 bytes, 9 flits each. 0 bytes: one packet of headers.
    assert_eq!(link.message(1_024), (2, 2 * 9 * 64));
    assert_eq!(link.message(1_025), (3, 2 * 9 * 64 + 64));
    assert_eq!(link.message(0), (1, 64));
}
