//! Who sends to whom: every pattern against its definition, host by host.

use netsim::traffic::{Destinations, Neighbour, Pattern, TrafficConfig};

fn config(pattern: Pattern) -> TrafficConfig {
    TrafficConfig { pattern, ..TrafficConfig::default() }
}

/// The only destination of each host; `None` for silent ones.
fn fixed(config: &TrafficConfig, hosts: u32) -> Vec<Option<u32>> {
    let destinations = Destinations::new(config, hosts).unwrap();
    (0..hosts)
        .map(|source| {
            let first = destinations.destination(1, source, 0);
            assert!(
                (1..20).all(|count| destinations.destination(7, source, count) == first),
                "{source} is not faithful"
            );
            assert_eq!(destinations.is_silent(source), first.is_none());
            first
        })
        .collect()
}

/// The number of a host as its bits, the lowest first.
fn bits(number: u32, count: usize) -> Vec<u32> {
    (0..count).map(|bit| number >> bit & 1).collect()
}

fn number(bits: &[u32]) -> u32 {
    bits.iter().enumerate().map(|(place, bit)| bit << place).sum()
}

#[test]
fn permutations_of_bits_are_those_of_their_definitions() {
    type Rule = fn(&[u32], usize) -> u32;
    // INSEE's table 2: bit i of the destination from the bits of the source.
    let rules: [(Pattern, Rule); 5] = [
        (Pattern::BitComplement, |s, i| 1 - s[i]),
        (Pattern::BitReversal, |s, i| s[s.len() - i - 1]),
        (Pattern::Transpose, |s, i| s[(i + s.len() / 2) % s.len()]),
        (Pattern::Shuffle, |s, i| s[(i + s.len() - 1) % s.len()]),
        (Pattern::Butterfly, |s, i| {
            if i == 0 {
                s[s.len() - 1]
            } else if i == s.len() - 1 {
                s[0]
            } else {
                s[i]
            }
        }),
    ];
    for (pattern, rule) in rules {
        for count in [2usize, 3, 4, 5, 6, 7, 8, 10] {
            let hosts = 1 << count;
            let own = TrafficConfig { self_traffic: true, ..config(pattern) };
            let (with, without) = (fixed(&own, hosts), fixed(&config(pattern), hosts));
            let mut seen = vec![false; hosts as usize];
            for source in 0..hosts {
                let source_bits = bits(source, count);
                let expected = number(&(0..count).map(|i| rule(&source_bits, i)).collect::<Vec<_>>());
                assert_eq!(with[source as usize], Some(expected), "{pattern:?}: {source} of {hosts}");
                assert_eq!(without[source as usize], Some(expected).filter(|to| *to != source));
                seen[expected as usize] = true;
            }
            assert!(seen.into_iter().all(|seen| seen), "{pattern:?} is a permutation");
        }
    }
}

#[test]
fn the_examples_of_insee_come_out() {
    let of = |pattern, source: u32| fixed(&config(pattern), 256)[source as usize].unwrap();
    assert_eq!(of(Pattern::BitReversal, 0b1101_1000), 0b0001_1011);
    assert_eq!(of(Pattern::Transpose, 0b1101_1000), 0b1000_1101);
    assert_eq!(of(Pattern::Butterfly, 0b1101_1000), 0b0101_1001);
    assert_eq!(of(Pattern::Shuffle, 0b1101_1000), 0b1011_0001);
    let tornado = TrafficConfig { radix: Some(8), ..config(Pattern::Tornado) };
    // <3, 2> of 8 x 8 goes to <7, 2>.
    assert_eq!(fixed(&tornado, 64)[3 + 8 * 2], Some(7 + 8 * 2));
}

#[test]
fn tornado_turns_the_first_dimension_only() {
    for (radix, shift, turned) in [(8, None, 4), (8, Some(3), 3), (5, None, 2), (12, Some(11), 11)] {
        let hosts = radix * 6;
        let tornado = TrafficConfig { radix: Some(radix), shift, ..config(Pattern::Tornado) };
        for (source, to) in (0..).zip(fixed(&tornado, hosts)) {
            assert_eq!(to, Some(source / radix * radix + (source % radix + turned) % radix), "{radix} {shift:?}");
        }
    }
    // Without a radix all hosts are one ring.
    assert_eq!(fixed(&config(Pattern::Tornado), 10)[7], Some(2));
}

#[test]
fn neighbours_are_the_other_of_the_pair_and_the_same_of_the_next() {
    let of = |neighbour| {
        let config = TrafficConfig { neighbour: Some(neighbour), ..config(Pattern::NearestNeighbour) };
        Destinations::new(&config, 12).unwrap()
    };
    for source in 0..12 {
        let pair = source / 2 * 2;
        let nearest = pair + (1 - source % 2);
        let second = source / 4 * 4 + (source % 4 + 2) % 4;
        assert_eq!(of(Neighbour::Nearest).destination(1, source, 5), Some(nearest));
        assert_eq!(of(Neighbour::SecondNearest).destination(1, source, 5), Some(second));
        let either = of(Neighbour::Either);
        let to_nearest = (0..4_000).filter(|count| either.destination(1, source, *count) == Some(nearest)).count();
        let to_second = (0..4_000).filter(|count| either.destination(1, source, *count) == Some(second)).count();
        assert_eq!(to_nearest + to_second, 4_000);
        // 2,000 expected, standard deviation 32.
        assert!((1_850..2_150).contains(&to_nearest), "{to_nearest}");
    }
}

#[test]
fn in_turn_each_other_host_gets_as_many() {
    for hosts in [2u32, 3, 7, 16] {
        for (pattern, self_traffic) in [
            (Pattern::Distribute, false),
            (Pattern::RandomDistribute, false),
            (Pattern::Distribute, true),
            (Pattern::RandomDistribute, true),
        ] {
            let destinations = Destinations::new(&TrafficConfig { self_traffic, ..config(pattern) }, hosts).unwrap();
            for source in 0..hosts {
                let turn = u64::from(hosts) - u64::from(!self_traffic);
                let to: Vec<u32> =
                    (0..2 * turn).map(|count| destinations.destination(3, source, count).unwrap()).collect();
                assert_eq!(to[..to.len() / 2], to[to.len() / 2..], "each turn is the same");
                let mut once = to[..to.len() / 2].to_vec();
                once.sort_unstable();
                let others: Vec<u32> = (0..hosts).filter(|host| self_traffic || *host != source).collect();
                assert_eq!(once, others, "{pattern:?} of {source}");
                // One after the other, itself skipped.
                for two in to.windows(2) {
                    let next = (two[0] + 1) % hosts;
                    let skipped = !self_traffic && next == source;
                    assert_eq!(two[1], if skipped { (next + 1) % hosts } else { next });
                }
                let drawn = pattern == Pattern::RandomDistribute;
                assert!(drawn || to[0] == (source + 1) % hosts);
            }
        }
    }
    // Where the turn begins is drawn.
    let begins = Destinations::new(&config(Pattern::RandomDistribute), 16).unwrap();
    let mut counts = [0u32; 16];
    (0..1_500).for_each(|seed| counts[begins.destination(seed, 4, 0).unwrap() as usize] += 1);
    // 100 each expected, standard deviation 9.7.
    assert!(
        counts[4] == 0 && (0..16).filter(|host| *host != 4).all(|host| (60..140).contains(&counts[host])),
        "{counts:?}"
    );
}

/// How often each host is drawn by all others together.
fn counts(config: &TrafficConfig, hosts: u32, each: u64) -> Vec<Vec<u32>> {
    let destinations = Destinations::new(config, hosts).unwrap();
    (0..hosts)
        .map(|source| {
            let mut counts = vec![0; hosts as usize];
            for count in 0..each {
                counts[destinations.destination(3, source, count).unwrap() as usize] += 1;
            }
            counts
        })
        .collect()
}

#[test]
fn uniform_reaches_all_hosts_evenly_and_itself_only_where_asked() {
    for (pattern, to_self) in [(Pattern::Uniform, false), (Pattern::Uniform, true), (Pattern::RandomDestination, false)]
    {
        let config = TrafficConfig { self_traffic: to_self, ..config(pattern) };
        for (source, counts) in counts(&config, 9, 18_000).into_iter().enumerate() {
            for (to, count) in counts.into_iter().enumerate() {
                let expected = if to == source && !to_self { 0 } else { 18_000 / if to_self { 9 } else { 8 } };
                // Standard deviation at most 45.
                assert!(count == expected || (expected > 0 && count.abs_diff(expected) < 250), "{source} {to} {count}");
            }
        }
    }
}

#[test]
fn hot_spots_get_their_share_beside_the_rest() {
    let config = TrafficConfig { spots: Some(vec![2, 5]), share: Some(0.5), ..config(Pattern::HotSpot) };
    for (source, counts) in counts(&config, 10, 18_000).into_iter().enumerate() {
        for (to, count) in counts.into_iter().enumerate() {
            // Half goes anywhere else (1,000 each), half to the hot ones: 4,500 each, or 9,000 to the only other one.
            let hot = match (to, source) {
                _ if to == source => 0,
                (2 | 5, 2 | 5) => 9_000,
                (2 | 5, _) => 4_500,
                _ => 0,
            };
            let expected: u32 = if to == source { 0 } else { hot + 1_000 };
            assert!(count == expected || (expected > 0 && count.abs_diff(expected) < 400), "{source} {to} {count}");
        }
    }
}

#[test]
fn hosts_that_do_not_fit_are_refused_with_what_would() {
    let wrong = |config: TrafficConfig, hosts: u32| Destinations::new(&config, hosts).unwrap_err().to_string();
    for pattern in
        [Pattern::BitComplement, Pattern::BitReversal, Pattern::Transpose, Pattern::Shuffle, Pattern::Butterfly]
    {
        let message = wrong(config(pattern), 12);
        assert!(message.starts_with("traffic.pattern = ") && message.contains("a power of "), "{message}");
    }
    assert!(wrong(config(Pattern::Distribute), 1).contains("at least 2"));
    assert!(wrong(config(Pattern::NearestNeighbour), 6).contains("a multiple of 4"));
    let tornado = |radix, shift| TrafficConfig { radix: Some(radix), shift, ..config(Pattern::Tornado) };
    assert!(wrong(tornado(7, None), 64).contains("traffic.radix = 7"));
    assert!(wrong(tornado(0, None), 64).contains("at least 2"));
    assert!(wrong(tornado(8, Some(8)), 64).contains("1 to 7"));
    assert!(wrong(tornado(8, Some(0)), 64).contains("1 to 7"));
    let spots = |spots: Vec<u32>| TrafficConfig { spots: Some(spots), ..config(Pattern::HotSpot) };
    assert!(wrong(spots(vec![64]), 64).contains("0 to 63"));
    assert!(wrong(spots(vec![1, 1]), 64).contains("once"));
    assert!(wrong(spots(vec![]), 64).contains("at least one"));
    assert!(wrong(config(Pattern::Uniform), 1).contains("at least 2"));
    assert!(wrong(config(Pattern::Butterfly), 1).contains("at least 2"));
}
