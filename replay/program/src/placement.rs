//! Which host each rank is on: the policies of INSEE.

use std::fmt;
use std::str::FromStr;

use netsim::kernel::random;

/// Where ranks are. Applications of the same number of ranks follow one another: k counts through all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// k on host k.
    Consecutive,
    /// k on host k + so many, round the end.
    Shift(u32),
    /// With so many hosts to a switch: neighbours under different switches.
    Shuffle(u32),
    /// Column by column of a grid of so many hosts along x and y.
    Column(u32, u32),
    /// Each application in a box of half the sides: application bits 0, 1, 2 say which half along x, y, z.
    Quadrant(Vec<u32>),
    /// A random permutation with this seed.
    Random(u64),
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value)));
        let number = |value: &str| value.parse().map_err(|_| format!("\"{value}\" is no number"));
        match (name, value) {
            ("consecutive", None) => Ok(Self::Consecutive),
            ("shift", Some(by)) => Ok(Self::Shift(number(by)?)),
            ("shuffle", Some(each)) => Ok(Self::Shuffle(number(each)?)),
            ("column", Some(grid)) => match sides(grid)?[..] {
                [x, y] => Ok(Self::Column(x, y)),
                _ => Err("column has a grid of 2 sides, as column:8x8".to_owned()),
            },
            ("quadrant", Some(grid)) => Ok(Self::Quadrant(sides(grid)?)),
            ("random", None) => Ok(Self::Random(1)),
            ("random", Some(seed)) => seed.parse().map(Self::Random).map_err(|_| format!("\"{seed}\" is no seed")),
            _ => Err(
                "there are consecutive, shift:N, shuffle:HOSTS_A_SWITCH, column:XxY, quadrant:XxY[xZ] and random[:SEED]"
                    .to_owned(),
            ),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Consecutive => f.write_str("consecutive"),
            Self::Shift(by) => write!(f, "shift:{by}"),
            Self::Shuffle(each) => write!(f, "shuffle:{each}"),
            Self::Column(x, y) => write!(f, "column:{x}x{y}"),
            Self::Quadrant(sides) => {
                let sides: Vec<String> = sides.iter().map(u32::to_string).collect();
                write!(f, "quadrant:{}", sides.join("x"))
            }
            Self::Random(seed) => write!(f, "random:{seed}"),
        }
    }
}

/// The sides of a grid, as `8x4`.
fn sides(text: &str) -> Result<Vec<u32>, String> {
    let side = |word: &str| word.parse().ok().filter(|side| *side > 0);
    let sides: Option<Vec<u32>> = text.split('x').map(side).collect();
    sides.ok_or_else(|| format!("\"{text}\" is no grid: write its sides as 8x4"))
}

impl Placement {
    /// The host of each rank of so many applications of so many ranks each, of `hosts` hosts.
    ///
    /// # Errors
    /// If there are too few hosts, or their grid is another.
    pub fn hosts(&self, applications: u32, ranks: u32, hosts: u32) -> Result<Vec<u32>, String> {
        if applications.checked_mul(ranks).is_none_or(|all| all > hosts) {
            return Err(format!("{applications} x {ranks} ranks do not fit on {hosts} hosts"));
        }
        self.hosts_of(&vec![ranks; applications as usize], hosts)
    }

    /// The same of applications with these numbers of ranks, one behind the other.
    ///
    /// # Errors
    /// As [`Placement::hosts`].
    pub fn hosts_of(&self, applications: &[u32], hosts: u32) -> Result<Vec<u32>, String> {
        let all = applications.iter().try_fold(0u32, |sum, ranks| sum.checked_add(*ranks));
        let all = all.filter(|all| *all <= hosts).ok_or_else(|| {
            let ranks: Vec<String> = applications.iter().map(u32::to_string).collect();
            format!("{} ranks do not fit on {hosts} hosts", ranks.join(" + "))
        })?;
        let whole = |sides: &[u32]| {
            let product = sides.iter().try_fold(1u32, |product, side| product.checked_mul(*side));
            if product == Some(hosts) {
                Ok(())
            } else {
                let sides = sides.iter().map(u32::to_string).collect::<Vec<_>>().join(" x ");
                Err(format!("a grid of {sides} is not {hosts} hosts"))
            }
        };
        match self {
            Self::Consecutive => Ok((0..all).collect()),
            Self::Shift(by) => Ok((0..all).map(|k| wrapped(k, *by, hosts)).collect()),
            Self::Shuffle(each) if *each == 0 || !hosts.is_multiple_of(*each) => {
                Err(format!("{hosts} hosts are no multiple of {each} to a switch"))
            }
            Self::Shuffle(each) => {
                let switches = hosts / each;
                Ok((0..all).map(|k| k / switches + k % switches * each).collect())
            }
            Self::Column(x, y) => {
                whole(&[*x, *y])?;
                Ok((0..all).map(|k| k / y + k % y * x).collect())
            }
            Self::Quadrant(sides) => {
                whole(sides)?;
                quadrants(sides, applications)
            }
            Self::Random(seed) => {
                let mut order: Vec<u32> = (0..hosts).collect();
                for last in (1..order.len()).rev() {
                    let drawn = random::below(random::draw(*seed, 0, last as u64), last as u64 + 1);
                    order.swap(last, usize::try_from(drawn).unwrap_or(0));
                }
                order.truncate(all as usize);
                Ok(order)
            }
        }
    }
}

fn wrapped(k: u32, by: u32, hosts: u32) -> u32 {
    u32::try_from((u64::from(k) + u64::from(by)) % u64::from(hosts)).unwrap_or(0)
}

fn quadrants(sides: &[u32], applications: &[u32]) -> Result<Vec<u32>, String> {
    if sides.len() > 3 || sides.iter().any(|side| !side.is_multiple_of(2)) {
        return Err("quadrants need 2 or 3 even sides".to_owned());
    }
    let boxes = 1u32 << sides.len();
    let half: Vec<u32> = sides.iter().map(|side| side / 2).collect();
    let room: u32 = half.iter().product();
    let ranks = applications.iter().copied().max().unwrap_or(0);
    if applications.len() > boxes as usize || ranks > room {
        let count = applications.len();
        return Err(format!("{count} applications of up to {ranks} ranks: there are {boxes} boxes of {room} hosts"));
    }
    let host = |application: u32, rank: u32| {
        let (mut rest, mut stride, mut host) = (rank, 1, 0);
        for (dimension, half) in half.iter().enumerate() {
            let at = rest % half + (application >> dimension & 1) * half;
            host += at * stride;
            rest /= half;
            stride *= sides[dimension];
        }
        host
    };
    let of_one = |(application, ranks): (u32, &u32)| (0..*ranks).map(move |rank| (application, rank));
    Ok((0..).zip(applications).flat_map(of_one).map(|(application, rank)| host(application, rank)).collect())
}
