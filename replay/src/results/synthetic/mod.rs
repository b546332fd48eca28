//! What synthetic traffic leaves behind.
//!
//! | file | what |
//! |---|---|
//! | `summary.json` | a [`TrafficSummary`]; of a sweep, a [`SweepSummary`](super::SweepSummary) |
//! | `effective.toml` | the experiment with every key; running it again gives the same result |
//! | `sweep.parquet`, `sweep.csv` | of a sweep: a row for each combination |
//! | `links.parquet` | each link of each run |
//! | `lanes.parquet` | each virtual lane of each link, where there are several |
//! | `latency.parquet` | how latencies are distributed |
//! | `cdf.csv`, `cdf.svg` | the same as shares of the packets that took no longer |
//! | `hops.parquet` | how far packets went, if that was asked for |
//! | `vls.parquet` | each virtual lane of each run, all links together, where there are several |
//! | `log.parquet` | how packets went, if that was asked for |
//! | `occupancy.parquet` | how many packets lay in queues, if that was asked for |
//! | `circuits.parquet` | optical circuits, where the fabric has some |
//! | `intervals.parquet` | intervals, batches and bursts, if there are any |
//! | `pairs.parquet` | what each host has sent each other one, if that was asked for |
//! | `packets.parquet` | every packet, if that was asked for |
//! | `latency.svg`, `accepted.svg` | of a sweep over loads: latency and accepted load over offered load |
//! | `lost.svg`, `nacks.svg` | of a sweep over loads: the shares of the packets lost, and of the attempts that an optical packet switch refused |
//! | `latency-grouped.svg`, `accepted-grouped.svg` | of a sweep over a size of packets, or another key: the same as bars, grouped by it |
//! | `traffic.json` | what the report is drawn from |
//! | `report.html` | the report |

mod circuits;
mod counts;
mod intervals;
mod levels;
mod parallel;
mod store;
mod summary;

pub use circuits::CircuitsDrawn;
pub use levels::LevelFigure;
pub use parallel::{Optimistic, Parallel};
pub(super) use store::COLUMNS;
pub use store::{read_traffic, write_traffic};
pub use summary::{BatchFigure, PointDetail, TrafficDetail, TrafficResults, TrafficSummary};
