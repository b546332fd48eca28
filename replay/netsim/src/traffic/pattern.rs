//! Where messages go.

use std::hint::select_unpredictable;

use super::config::{Pattern, TrafficConfig, TrafficError, Wrap};
use super::ping_pong::Partner;
use super::torus::{Distances, Local, Torus};
use super::{Drawn, draw, unit};
use crate::kernel::random::below;

/// Where the messages of each host go.
#[derive(Clone, Debug, PartialEq)]
pub enum Destinations {
    /// To any host, all alike.
    Uniform {
        /// How many hosts there are.
        hosts: u32,
        /// Whether a host may send to itself.
        to_self: bool,
    },
    /// Always to the same host; a host that would send to itself is silent if `to_self` is false.
    Fixed {
        /// The destination of each host.
        to: Vec<u32>,
        /// Whether a host may send to itself.
        to_self: bool,
    },
    /// To one of two hosts, drawn each time.
    OneOfTwo {
        /// The destinations of each host.
        to: Vec<[u32; 2]>,
    },
    /// To one host after the other in the order of numbers, each as often as any other.
    InTurn {
        /// How many hosts there are.
        hosts: u32,
        /// Whether the first of them is drawn; else it is the next one.
        drawn: bool,
        /// Whether a host's turn comes at itself, too.
        to_self: bool,
    },
    /// A share of the messages to one of some hosts, the rest anywhere.
    HotSpot {
        /// How many hosts there are.
        hosts: u32,
        /// The hosts that get more.
        spots: Vec<u32>,
        /// The share that they get together, beside what is drawn for them anyway.
        share: f64,
        /// Whether a host may send to itself.
        to_self: bool,
    },
    /// Nearby, on a torus.
    Local(Local),
    /// At distances that have weights, on a torus.
    Distances(Distances),
}

impl Destinations {
    /// The destinations of a pattern over `hosts` hosts.
    ///
    /// # Errors
    /// When the pattern does not fit the number of hosts.
    pub fn new(config: &TrafficConfig, hosts: u32) -> Result<Self, TrafficError> {
        let to_self = config.self_traffic;
        if hosts < 2 && !to_self {
            return Err(TrafficError::value(
                "hosts",
                hosts,
                "at least 2 are needed (or traffic.self_traffic = true, with which a host sends to itself)",
            ));
        }
        let fixed = |to: Vec<u32>| {
            let silent = !to_self && (0..).zip(&to).all(|(source, to)| source == *to);
            if silent {
                return Err(TrafficError::value(
                    "pattern",
                    config.pattern.name(),
                    &format!(
                        "with {hosts} hosts every host would send to itself; take more hosts, another pattern, or \
                         traffic.self_traffic = true"
                    ),
                ));
            }
            Ok(Self::Fixed { to, to_self })
        };
        match config.pattern {
            Pattern::Uniform | Pattern::RandomDestination => Ok(Self::Uniform { hosts, to_self }),
            Pattern::BitComplement => fixed(permutation(config, hosts, |s, bits| !s & mask(bits))?),
            Pattern::BitReversal => {
                fixed(permutation(
                    config,
                    hosts,
                    |s, bits| if bits == 0 { 0 } else { s.reverse_bits() >> (32 - bits) },
                )?)
            }
            Pattern::Transpose => {
                // The lower half of an odd number of bits is the smaller one.
                let turned = |s: u32, bits: u32| (s >> (bits / 2) | s << bits.div_ceil(2)) & mask(bits);
                fixed(permutation(config, hosts, turned)?)
            }
            Pattern::Shuffle => {
                fixed(permutation(
                    config,
                    hosts,
                    |s, bits| {
                        if bits == 0 { 0 } else { (s << 1 | s >> (bits - 1)) & mask(bits) }
                    },
                )?)
            }
            Pattern::Butterfly => fixed(permutation(config, hosts, |s, bits| {
                if bits == 0 {
                    return 0;
                }
                let (first, last) = (s & 1, s >> (bits - 1) & 1);
                s & !(1 | 1 << (bits - 1)) | first << (bits - 1) | last
            })?),
            Pattern::Tornado => fixed(tornado(config, hosts)?),
            Pattern::NearestNeighbour => neighbours(config, hosts),
            Pattern::PingPong => partners(config, hosts),
            Pattern::HotSpot => hot_spot(config, hosts),
            Pattern::HotRegion => Ok(hot_region(config, hosts)),
            Pattern::Local => Ok(Self::Local(Local::new(Torus::new(config.sides.as_deref(), hosts)?)?)),
            Pattern::Histogram | Pattern::Population => {
                let torus = Torus::new(config.sides.as_deref(), hosts)?;
                let file = config.distances.as_deref().unwrap_or(std::path::Path::new(""));
                Ok(Self::Distances(Distances::read(file, config.pattern == Pattern::Population, torus)?))
            }
            Pattern::Distribute => Ok(Self::InTurn { hosts, drawn: false, to_self }),
            Pattern::RandomDistribute => Ok(Self::InTurn { hosts, drawn: true, to_self }),
            Pattern::Table => Ok(Self::Uniform { hosts, to_self: true }),
        }
    }

    /// Where message `count` of `source` goes; `None` where the source is silent.
    #[must_use]
    #[inline(always)]
    pub fn destination(&self, seed: u64, source: u32, count: u64) -> Option<u32> {
        match self {
            Self::Uniform { hosts, to_self } => Some(anywhere(*hosts, *to_self, (seed, source, count))),
            _ => self.destination_by_pattern(seed, source, count),
        }
    }

    /// The same of patterns that look at more than the number of hosts.
    #[inline(never)]
    fn destination_by_pattern(&self, seed: u64, source: u32, count: u64) -> Option<u32> {
        let anywhere = |hosts: u32, to_self: bool| Some(anywhere(hosts, to_self, (seed, source, count)));
        match self {
            Self::Uniform { hosts, to_self } => anywhere(*hosts, *to_self),
            Self::Fixed { to, to_self } => Some(to[source as usize]).filter(|to| *to_self || *to != source),
            Self::OneOfTwo { to } => {
                let second = draw(seed, Drawn::Destination, source, count) >> 63;
                Some(to[source as usize][usize::from(second == 1)])
            }
            Self::InTurn { hosts, drawn, to_self } => {
                let others = u64::from(if *to_self { *hosts } else { hosts - 1 });
                let first = if *drawn { below(draw(seed, Drawn::First, source, 0), others) } else { 0 };
                // Host `source` + 1 is the first of the others, itself the last.
                let turn = (u128::from(first) + u128::from(count)) % u128::from(others);
                let to = (u128::from(source) + 1 + turn) % u128::from(*hosts);
                Some(u32::try_from(to).unwrap_or(0))
            }
            Self::Local(local) => Some(local.destination(seed, source, count)),
            Self::Distances(distances) => Some(distances.destination(seed, source, count)),
            Self::HotSpot { hosts, spots, share, to_self } => {
                if unit(draw(seed, Drawn::Share, source, count)) >= *share {
                    return anywhere(*hosts, *to_self);
                }
                // A hot host that may not send to itself draws among the others.
                let own = if *to_self { None } else { spots.binary_search(&source).ok() };
                let among = spots.len() - usize::from(own.is_some());
                if among == 0 {
                    return anywhere(*hosts, *to_self);
                }
                let bits = draw(seed, Drawn::Destination, source, count);
                let drawn = usize::try_from(below(bits, among as u64)).unwrap_or(0);
                Some(spots[if own.is_some_and(|own| drawn >= own) { drawn + 1 } else { drawn }])
            }
        }
    }

    /// Whether `source` never sends.
    #[must_use]
    #[inline]
    pub fn is_silent(&self, source: u32) -> bool {
        matches!(self, Self::Fixed { to, to_self: false } if to[source as usize] == source)
    }
}

/// One of `hosts` hosts for message `count` of `source`, each as likely as the other, itself only with `to_self`.
#[inline(always)]
fn anywhere(hosts: u32, to_self: bool, (seed, source, count): (u64, u32, u64)) -> u32 {
    let bits = draw(seed, Drawn::Destination, source, count);
    let among = if to_self { hosts } else { hosts - 1 };
    let drawn = u32::try_from(below(bits, u64::from(among))).unwrap_or(0);
    // Without itself: the numbers from its own on move up by one.
    select_unpredictable(drawn < source || to_self, drawn, drawn.wrapping_add(1))
}

const fn mask(bits: u32) -> u32 {
    if bits >= 32 { u32::MAX } else { (1 << bits) - 1 }
}

fn misfit(config: &TrafficConfig, hosts: u32, needs: &str) -> TrafficError {
    TrafficError::value("pattern", config.pattern.name(), &format!("{hosts} hosts do not fit: it needs {needs}"))
}

/// The permutation of the bits of the host's number.
fn permutation(config: &TrafficConfig, hosts: u32, of: impl Fn(u32, u32) -> u32) -> Result<Vec<u32>, TrafficError> {
    if !hosts.is_power_of_two() {
        return Err(misfit(config, hosts, "a power of 2, such as 16 or 64"));
    }
    let bits = hosts.trailing_zeros();
    Ok((0..hosts).map(|source| of(source, bits)).collect())
}

/// Half-way around the ring of the first dimension, or as far as `shift` says.
fn tornado(config: &TrafficConfig, hosts: u32) -> Result<Vec<u32>, TrafficError> {
    let all = config.wrap == Some(Wrap::All);
    if let (Some(sides), false) = (&config.sides, all) {
        let torus = Torus::new(Some(sides), hosts)?;
        return torus.tornado(config.dimensions.as_deref().unwrap_or(&[0]), config.shift);
    }
    if all {
        let torus = Torus::new(config.sides.as_deref(), hosts)?;
        let ring = config.radix.unwrap_or(torus.sides()[0]);
        let shift = config.shift.unwrap_or(ring.saturating_sub(1) / 2);
        if shift == 0 || shift >= hosts {
            return Err(TrafficError::value("shift", shift, &format!("1 to {}", hosts - 1)));
        }
        let to = |source: u32| (u64::from(source) + u64::from(shift)) % u64::from(hosts);
        return Ok((0..hosts).map(|source| u32::try_from(to(source)).unwrap_or(0)).collect());
    }
    let radix = config.radix.unwrap_or(hosts);
    if radix < 2 || !hosts.is_multiple_of(radix) {
        return Err(TrafficError::value(
            "radix",
            radix,
            &format!("at least 2, and the {hosts} hosts must be a multiple of it (the hosts of one ring)"),
        ));
    }
    let shift = config.shift.unwrap_or(radix / 2);
    if shift == 0 || shift >= radix {
        return Err(TrafficError::value("shift", shift, &format!("1 to {} (traffic.radix = {radix})", radix - 1)));
    }
    let turned = |source: u32| {
        let x = source % radix;
        let to = (u64::from(x) + u64::from(shift)) % u64::from(radix);
        source - x + u32::try_from(to).unwrap_or(0)
    };
    Ok((0..hosts).map(turned).collect())
}

/// `FatTreeSim`'s nearest neighbours, by the hosts' numbers: the other one of a pair; the second nearest is the same place
/// in the next pair, so that the ratio of what passes each level of a tree is fixed.
fn neighbours(config: &TrafficConfig, hosts: u32) -> Result<Destinations, TrafficError> {
    if !hosts.is_multiple_of(4) {
        return Err(misfit(config, hosts, "a multiple of 4 (hosts stand in pairs, and pairs in pairs)"));
    }
    let nearest = (0..hosts).map(|source| source ^ 1);
    let second = (0..hosts).map(|source| source ^ 2);
    Ok(match config.neighbour.unwrap_or_default() {
        super::config::Neighbour::Nearest => Destinations::Fixed { to: nearest.collect(), to_self: false },
        super::config::Neighbour::SecondNearest => Destinations::Fixed { to: second.collect(), to_self: false },
        super::config::Neighbour::Either => {
            Destinations::OneOfTwo { to: nearest.zip(second).map(|(nearest, second)| [nearest, second]).collect() }
        }
    })
}

/// Whom hosts of a ping-pong ask.
fn partners(config: &TrafficConfig, hosts: u32) -> Result<Destinations, TrafficError> {
    let (bit, needs) = match config.partner.unwrap_or_default() {
        Partner::Random => return Ok(Destinations::Uniform { hosts, to_self: false }),
        Partner::Nearest => (1, "an even number of hosts"),
        Partner::SecondNearest => (2, "a multiple of 4 (hosts stand in pairs, and pairs in pairs)"),
    };
    if !hosts.is_multiple_of(2 * bit) {
        return Err(misfit(config, hosts, needs));
    }
    Ok(Destinations::Fixed { to: (0..hosts).map(|host| host ^ bit).collect(), to_self: false })
}

fn hot_spot(config: &TrafficConfig, hosts: u32) -> Result<Destinations, TrafficError> {
    let mut spots = config.spots.clone().unwrap_or_else(|| vec![0]);
    if let Some(spot) = spots.iter().find(|spot| **spot >= hosts) {
        return Err(TrafficError::value("spots", spot, &format!("hosts are numbered from 0 to {}", hosts - 1)));
    }
    let given = spots.len();
    spots.sort_unstable();
    spots.dedup();
    if spots.is_empty() || spots.len() != given {
        return Err(TrafficError::value("spots", format!("{spots:?}"), "at least one host, each of them once"));
    }
    let share = config.share.unwrap_or(DEFAULT_SHARE);
    Ok(Destinations::HotSpot { hosts, spots, share, to_self: config.self_traffic })
}

/// The first hosts get more.
fn hot_region(config: &TrafficConfig, hosts: u32) -> Destinations {
    let region = (config.region.unwrap_or(DEFAULT_REGION) * f64::from(hosts)).round().max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the number of hosts")]
    let spots = (0..(region as u32).min(hosts)).collect();
    let share = config.share.unwrap_or(DEFAULT_REGION_SHARE);
    Destinations::HotSpot { hosts, spots, share, to_self: config.self_traffic }
}

/// The share of the hosts that a hot region is, and that of the messages it gets, where none is given: INSEE's.
const DEFAULT_REGION: f64 = 0.125;
const DEFAULT_REGION_SHARE: f64 = 0.25;

/// The share of a hot spot where none is given.
pub(super) const DEFAULT_SHARE: f64 = 0.1;
