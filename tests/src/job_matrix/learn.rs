//! The job file of another setting, learned from a recorded run.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use toml::{Table, Value};

use super::plan::{By, Setting};
use crate::lab_runs::text;
use crate::run;

/// `mapreduce.reduce.java.opts` of the lab.
const REDUCE_HEAP: &str = "320MiB";

/// What the other setting has, beside what is learned.
#[derive(Clone, Copy, Debug)]
pub struct Target<'s> {
    /// The setting.
    pub setting: &'s Setting,
    /// Bytes of the job's input there.
    pub input_bytes: u64,
    /// Its maps there: blocks have a largest size.
    pub maps: u32,
    /// Cores of the machine on which all hosts of the lab run.
    pub cores: u32,
}

/// Learns the job of a trace, and makes of it the job file of another setting. `scratch` is an empty folder.
///
/// # Errors
/// If a program fails, or a job file has another shape than expected.
pub fn job_file(by: By, trace: &Path, target: &Target, scratch: &Path) -> Result<Table> {
    let (trace, cores, out) = (text(trace)?, target.cores.to_string(), scratch.join("learned"));
    let shared = ["--cores", cores.as_str(), "--shared", "--reduce-heap", REDUCE_HEAP, "--out", text(&out)?];
    let setting = target.setting;
    let (workers, reduces) = (setting.workers.to_string(), setting.reduces.to_string());
    let data = format!("{}B", target.input_bytes);
    let (program, arguments) = match by {
        By::Like => ("merger", vec!["characterise", trace]),
        By::Grow => ("replay", vec!["grow", trace, "--nodes", &workers, "--data", &data, "--reduces", &reduces]),
    };
    let done = run(program, &[&arguments[..], &shared[..]].concat())?;
    ensure!(done.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    let path = out.join("job.toml");
    let place = || path.display().to_string();
    let mut file: Table = toml::from_str(&fs::read_to_string(&path).with_context(place)?).with_context(place)?;
    if by == By::Like {
        set(&mut file, target).with_context(place)?;
    }
    fs::remove_dir_all(&out)?;
    Ok(file)
}

/// Puts a setting into the job file of another.
fn set(file: &mut Table, target: &Target) -> Result<()> {
    let setting = target.setting;
    let cluster = file.get_mut("cluster").and_then(Value::as_table_mut).context("no [cluster]")?;
    cluster.insert("nodes".to_owned(), i64::from(setting.workers).into());
    let block_bytes = target.input_bytes.div_ceil(u64::from(target.maps.max(1)));
    let hadoop = file.get_mut("hadoop").and_then(Value::as_table_mut).context("no [hadoop]")?;
    let dfs = hadoop.get_mut("dfs").and_then(Value::as_table_mut).context("no dfs.blocksize")?;
    dfs.insert("blocksize".to_owned(), i64::try_from(block_bytes)?.into());
    let job = file.get_mut("job").and_then(|jobs| jobs.get_mut(0)).and_then(Value::as_table_mut).context("no job")?;
    job.insert("input".to_owned(), format!("{}B", target.input_bytes).into());
    job.insert("reduces".to_owned(), i64::from(setting.reduces).into());
    job.insert("output_replication".to_owned(), i64::from(setting.replication).into());
    Ok(())
}

/// The same job with other draws.
#[must_use]
pub fn with_seed(file: &Table, seed: u32) -> String {
    let mut file = file.clone();
    file.insert("seed".to_owned(), i64::from(seed).into());
    file.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_setting_is_put_into_the_file_of_another() {
        let text = "[cluster]\nnodes = 4\nracks = 2\n[hadoop]\ndfs.blocksize = 32000000\ndfs.replication = 1\n\
                    [[job]]\nname = \"job\"\ninput = \"128000000B\"\nreduces = 4\n";
        let mut file: Table = toml::from_str(text).unwrap();
        let setting = Setting { workers: 8, maps: 16, reduces: 2, replication: 3, ..Setting::default() };
        set(&mut file, &Target { setting: &setting, input_bytes: 64_000_001, maps: 16, cores: 2 }).unwrap();
        let text = with_seed(&file, 7);
        let read: Table = toml::from_str(&text).unwrap();
        assert_eq!(read["seed"].as_integer(), Some(7));
        assert_eq!(read["cluster"]["nodes"].as_integer(), Some(8));
        assert_eq!(read["hadoop"]["dfs"]["blocksize"].as_integer(), Some(4_000_001));
        assert_eq!(read["hadoop"]["dfs"]["replication"].as_integer(), Some(1));
        let job = &read["job"][0];
        assert_eq!((job["input"].as_str(), job["reduces"].as_integer()), (Some("64000001B"), Some(2)));
        assert_eq!(job["output_replication"].as_integer(), Some(3));
    }
}
