//! A job file grown: more machines, more data, faster machines.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use netsim::units::{Bytes, DurationPs, Rate};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::config::JobFile;
use crate::error::JobError;
use crate::job::Job;

/// A new amount, or how many times the old one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount<T> {
    /// So much.
    Of(T),
    /// So many times as much.
    Times(f64),
}

impl<T: fmt::Display> fmt::Display for Amount<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(amount) => amount.fmt(f),
            Self::Times(times) => write!(f, "{times}x"),
        }
    }
}

impl<T> Default for Amount<T> {
    fn default() -> Self {
        Self::Times(1.0)
    }
}

/// So many times, as `8x` or `0.5x`.
fn times(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix(['x', 'X']).ok_or_else(|| format!("{text} is no multiple such as 8x"))?;
    match number.trim().parse::<f64>() {
        Ok(times) if times > 0.0 && times <= 1e9 => Ok(times),
        _ => Err(format!("{text} is no multiple such as 8x, above 0x and at most 1000000000x")),
    }
}

impl FromStr for Amount<u32> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<u32>() {
            Ok(0) => Err("at least 1".to_owned()),
            Ok(number) => Ok(Self::Of(number)),
            Err(_) => times(text)
                .map(Self::Times)
                .map_err(|_| format!("{text} is no number such as 256, and no multiple such as 8x")),
        }
    }
}

impl FromStr for Amount<Bytes> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.ends_with(['x', 'X']) {
            return times(text).map(Self::Times);
        }
        match text.parse::<Bytes>() {
            Ok(bytes) if bytes.0 > 0 => Ok(Self::Of(bytes)),
            _ => Err(format!("{text} is no size such as 8GiB, and no multiple such as 64x")),
        }
    }
}

/// So many times as fast: `8x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(pub f64);

impl Default for Speed {
    fn default() -> Self {
        Self(1.0)
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        times(text).map(Self)
    }
}

/// Reads a value of a file as it is written on a command line; numbers may stand without quotes.
struct AsWritten<T>(PhantomData<T>);

impl<T: FromStr<Err = String>> Visitor<'_> for AsWritten<T> {
    type Value = T;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an amount, or a multiple such as \"8x\"")
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

impl<'de, T> Deserialize<'de> for Amount<T>
where
    Self: FromStr<Err = String>,
{
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AsWritten(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Speed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AsWritten(PhantomData))
    }
}

impl<T: Serialize> Serialize for Amount<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Of(amount) => amount.serialize(to),
            Self::Times(times) => to.serialize_str(&format!("{times}x")),
        }
    }
}

impl Serialize for Speed {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{}x", self.0))
    }
}

/// What is to grow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Growth {
    /// Workers.
    pub nodes: Amount<u32>,
    /// Racks of these. Default: as many as there were, but no more than nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub racks: Option<u32>,
    /// Input of each job that reads a file of its own.
    pub data: Amount<Bytes>,
    /// Reduces of each job. Default: as many times as nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduces: Option<Amount<u32>>,
    /// Speed of the cores: of computing, sorting, merging, starts and of the daemons' answers.
    pub cpu: Speed,
    /// Speed of the disks.
    pub disk: Speed,
}

/// `number`, so many times, at least 1.
fn grown(number: u32, by: Amount<u32>, key: &str) -> Result<u32, JobError> {
    match by {
        Amount::Of(number) => Ok(number),
        Amount::Times(times) => {
            let grown = (f64::from(number) * times).round().max(1.0);
            if grown > f64::from(u32::MAX) {
                return Err(JobError::value(
                    key,
                    format!("{times}x"),
                    format!("{number} of them cannot be so many times more"),
                ));
            }
            Ok(grown as u32)
        }
    }
}

fn faster(rate: Rate, times: f64) -> Rate {
    match rate.bps() {
        Some(bps) => Rate::from_bps(((bps as f64 * times).round() as u64).max(8)),
        None => rate,
    }
}

fn shorter(time: DurationPs, times: f64) -> DurationPs {
    DurationPs((time.ps() as f64 / times).round() as u64)
}

impl JobFile {
    /// The file with more machines, more data or faster machines. Blocks keep their size, so that more data are more maps; on as
    /// many nodes as recorded they lie where they lay, on others as HDFS places them.
    ///
    /// # Errors
    /// If nothing of a kind is there that could grow, or the result is no job file.
    pub fn grow(&self, growth: &Growth) -> Result<Self, JobError> {
        let mut file = self.clone();
        let nodes = grown(file.cluster.nodes, growth.nodes, "--nodes")?;
        let more_nodes = Amount::Times(f64::from(nodes) / f64::from(file.cluster.nodes));
        let without_reduces = file.jobs.iter().all(|job| job.reduces == 0);
        if let Some(reduces) = growth.reduces.filter(|_| without_reduces) {
            let reason = "the job has no reduces, and nothing tells what they would do; leave it out";
            return Err(JobError::value("--reduces", reduces, reason));
        }
        for job in &mut file.jobs {
            job.recorded_nodes.get_or_insert(file.cluster.nodes);
            if nodes != file.cluster.nodes {
                place_anew(job);
            }
            if job.reduces > 0 {
                job.reduces = grown(job.reduces, growth.reduces.unwrap_or(more_nodes), "--reduces")?;
            }
            if let Some(input) = &mut job.input {
                input.0 = match growth.data {
                    Amount::Of(bytes) => bytes.0,
                    Amount::Times(times) => (input.0 as f64 * times).round() as u64,
                };
            }
            speed_up(job, growth.cpu.0);
        }
        file.cluster.racks = growth.racks.unwrap_or(file.cluster.racks).min(nodes);
        file.cluster.nodes = nodes;
        file.speed_up_cluster(growth)?;
        // Checks it as well.
        Self::parse(&file.to_toml()?)
    }

    fn speed_up_cluster(&mut self, growth: &Growth) -> Result<(), JobError> {
        let cpu = growth.cpu.0;
        let cluster = &mut self.cluster;
        for time in [
            &mut cluster.container_start,
            &mut cluster.task_start,
            &mut cluster.master_start,
            &mut cluster.localization,
            &mut cluster.output_start,
            &mut cluster.output_commit,
            &mut cluster.job_commit,
        ] {
            *time = shorter(*time, cpu);
        }
        let of_reduces = [&mut cluster.reduce_container_start, &mut cluster.reduce_task_start];
        for time in of_reduces.into_iter().flatten() {
            *time = shorter(*time, cpu);
        }
        for call in self.calls.values_mut() {
            call.service = shorter(call.service, cpu);
        }
        let disk = growth.disk.0;
        if disk != 1.0 && cluster.disk_read.bps().is_none() && cluster.disk_write.bps().is_none() {
            let reason = "the job has disks without a limit: what a recorded disk took cannot be told from computing; give \
                          rates with --set cluster.disk_read=200MB/s --set cluster.disk_write=200MB/s";
            return Err(JobError::value("--disk", format!("{disk}x"), reason));
        }
        (cluster.disk_read, cluster.disk_write) = (faster(cluster.disk_read, disk), faster(cluster.disk_write, disk));
        cluster.disk_seek = shorter(cluster.disk_seek, disk);
        Ok(())
    }
}

/// Blocks of other nodes than the recorded ones lie as HDFS places them.
fn place_anew(job: &mut Job) {
    for map in &mut job.map_samples {
        map.node = None;
    }
}

fn speed_up(job: &mut Job, cpu: f64) {
    for rate in [&mut job.map_rate, &mut job.reduce_rate, &mut job.sort_rate, &mut job.merge_rate] {
        *rate = faster(*rate, cpu);
    }
    for service in job.fetch_samples.iter_mut().flatten() {
        *service = shorter(*service, cpu);
    }
    for map in &mut job.map_samples {
        (map.rate, map.sort_rate) = (faster(map.rate, cpu), faster(map.sort_rate, cpu));
        for time in [&mut map.localization, &mut map.container_start, &mut map.task_start] {
            *time = shorter(*time, cpu);
        }
    }
    for reduce in &mut job.reduce_samples {
        (reduce.rate, reduce.merge_rate) = (faster(reduce.rate, cpu), faster(reduce.merge_rate, cpu));
        (reduce.container_start, reduce.task_start) =
            (shorter(reduce.container_start, cpu), shorter(reduce.task_start, cpu));
    }
}
