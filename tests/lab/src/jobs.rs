//! What the lab has the cluster do, and whether it did it right.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Context, LabError, Result};
use clap::ValueEnum;
use trace::truth::{BlockPlacement, TruthJob};

use crate::cluster::{ClientRun, Cluster};
use crate::distribution::Client;
use crate::keyed::{KeyedText, Sorted};
use crate::placement;
use crate::progress::Progress;
use crate::text::{self, Counts, Text};
use crate::units::Bytes;

/// Bytes of a row of the sort.
const ROW_BYTES: u64 = 100;

/// A job that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum JobKind {
    /// Generate rows, sort them, check the order and that none was lost.
    Terasort,
    /// Count the words of a generated text and compare with the known counts.
    Wordcount,
    /// Sort lines of few keys by Hadoop's `sort`, most of them for one reduce; check the order and that none was lost.
    SkewedSort,
    /// Copy generated rows within HDFS by a job of maps only, and compare the copies.
    Distcp,
    /// Put a file into HDFS, get it back and compare.
    Putget,
}

/// How jobs are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOptions {
    /// Input of each job.
    pub size: Bytes,
    /// Maps, each with a file of its own.
    pub maps: u32,
    /// Reduces.
    pub reduces: u32,
    /// Replicas of the input.
    pub input_replication: u32,
    /// Replicas of the output.
    pub output_replication: u32,
    /// Input files of the sort that are moved to the first worker, so that their maps read over the network.
    pub remote_maps: u32,
    /// Seed of generated text.
    pub seed: u64,
    /// How long one client may take.
    pub limit: Duration,
}

/// What came of the jobs.
#[derive(Debug, Default)]
pub struct Done {
    /// What ran, in order.
    pub jobs: Vec<TruthJob>,
    /// What was found wrong.
    pub problems: Vec<String>,
}

/// Runs jobs on a cluster.
#[derive(Debug)]
pub struct Runner<'r, 'a> {
    /// The cluster that runs them.
    pub cluster: &'r mut Cluster<'a>,
    /// Sizes, replicas and seed of the jobs.
    pub options: &'r JobOptions,
    /// Where it is said.
    pub progress: &'r Progress,
    /// What came of it so far.
    pub done: Done,
}

impl Runner<'_, '_> {
    /// Runs all of some jobs once, and again until so much time has passed.
    ///
    /// # Errors
    /// As of [`Runner::run`].
    pub fn run_for(&mut self, kinds: &[JobKind], time: Duration) -> Result<()> {
        let began = Instant::now();
        let mut number = 0;
        loop {
            for kind in kinds {
                number += 1;
                self.run(*kind, number)?;
            }
            if began.elapsed() >= time {
                return Ok(());
            }
        }
    }

    /// Runs one job with what it needs before and after; `number` makes its files' names its own.
    ///
    /// # Errors
    /// If a client fails or a signal came. A wrong result is no error but a problem in [`Done`].
    pub fn run(&mut self, kind: JobKind, number: usize) -> Result<()> {
        match kind {
            JobKind::Terasort => self.terasort(number),
            JobKind::Wordcount => self.wordcount(number),
            JobKind::SkewedSort => self.skewed_sort(number),
            JobKind::Distcp => self.distcp(number),
            JobKind::Putget => self.putget(number),
        }
    }

    fn terasort(&mut self, number: usize) -> Result<()> {
        let [input, output, report] = ["in", "out", "report"].map(|part| format!("/terasort-{number}-{part}"));
        let generated = self.generate_rows(&input)?;
        if self.options.remote_maps > 0 {
            self.gather_on_first_worker(&input)?;
        }
        self.sort_rows(&input, &output)?;
        let validated = self.client("teravalidate", Client::TeraValidate, &[output, report.clone()])?;
        let folder = self.cluster.exchange(&format!("terasort-{number}"))?;
        self.get(&format!("{report}/part-*"), &folder)?;
        let report = read_all(&folder, "part-").at("cannot read", &folder)?;
        let checked = if self.cluster.distribution.names().counts_rows {
            check_order(&report, &validated.output, self.rows())
        } else {
            check_sorted(&report, &generated.output)
        };
        if let Err(problem) = checked {
            self.done.problems.push(format!("terasort {number}: {problem}"));
        }
        Ok(())
    }

    fn rows(&self) -> u64 {
        (self.options.size.0 / ROW_BYTES).max(1)
    }

    /// Generates the rows that are to be sorted.
    ///
    /// # Errors
    /// If the client fails or a signal came.
    pub fn generate_rows(&mut self, input: &str) -> Result<ClientRun> {
        let rows = self.rows().to_string();
        let maps = define(self.cluster.distribution.names().maps, self.options.maps);
        let replication = define("dfs.replication", self.options.input_replication);
        self.client("teragen", Client::TeraGen, &[maps, replication, vec![rows, input.to_owned()]].concat())
    }

    /// Sorts rows.
    ///
    /// # Errors
    /// If the client fails or a signal came.
    pub fn sort_rows(&mut self, input: &str, output: &str) -> Result<ClientRun> {
        let names = self.cluster.distribution.names();
        let reduces = define(names.reduces, self.options.reduces);
        let replication =
            names.sort_output_replication.map_or_else(Vec::new, |name| define(name, self.options.output_replication));
        let run =
            self.client("terasort", Client::TeraSort, &[reduces, replication, words(&[input, output])].concat())?;
        if names.sort_output_replication.is_none()
            && let Some(sort) = self.done.jobs.last_mut()
        {
            sort.output_replication = 1;
        }
        Ok(run)
    }

    /// Removes files from HDFS for good.
    ///
    /// # Errors
    /// If the client fails or a signal came.
    pub fn remove(&mut self, paths: &[String]) -> Result<()> {
        self.client("remove", Client::FsShell, &[words(&["-rm", "-r", "-skipTrash"]), paths.to_vec()].concat())?;
        Ok(())
    }

    /// Moves files of the input to the first worker: their maps find no room there and read over the network.
    fn gather_on_first_worker(&mut self, input: &str) -> Result<()> {
        let first = self.cluster.plan.workers()[0].clone();
        let blocks = self.blocks(input)?;
        let elsewhere: Vec<&BlockPlacement> =
            blocks.iter().filter(|block| !block.hosts.contains(&first.name)).collect();
        let wanted = self.options.remote_maps as usize;
        if elsewhere.len() < wanted {
            return Err(LabError::Config(format!(
                "--remote-maps {wanted}: only {} of the input's {} files are not on {} already",
                elsewhere.len(),
                blocks.len(),
                first.name
            )));
        }
        for block in &elsewhere[..wanted] {
            let moved = format!("{}-moved", block.file);
            self.progress.step(&format!("moving {} to {}", block.file, first.name));
            let copy = [define("dfs.replication", 1), words(&["-cp", &block.file, &moved])].concat();
            self.cluster.client(Client::FsShell, &first, &copy, self.options.limit)?;
            let remove = words(&["-rm", "-skipTrash", &block.file]);
            self.cluster.client(Client::FsShell, &first, &remove, self.options.limit)?;
        }
        Ok(())
    }

    fn wordcount(&mut self, number: usize) -> Result<()> {
        let [input, output] = ["in", "out"].map(|part| format!("/wordcount-{number}-{part}"));
        let local = self.cluster.exchange(&format!("wordcount-{number}-in"))?;
        self.progress.step("writing the text");
        let expected = write_text(&local, self.options)?;
        let options = self.options;
        let put =
            [define("dfs.replication", options.input_replication), words(&["-put", &local.to_string_lossy(), &input])];
        self.client("put", Client::FsShell, &put.concat())?;
        self.client(
            "wordcount",
            Client::WordCount,
            &[
                define(self.cluster.distribution.names().reduces, options.reduces),
                define("dfs.replication", options.output_replication),
                vec![input, output.clone()],
            ]
            .concat(),
        )?;
        let folder = self.cluster.exchange(&format!("wordcount-{number}-out"))?;
        self.get(&format!("{output}/part-*"), &folder)?;
        if let Err(problem) = check_counts(&read_all(&folder, "part-").at("cannot read", &folder)?, &expected) {
            self.done.problems.push(format!("wordcount {number}: {problem}"));
        }
        Ok(())
    }

    fn skewed_sort(&mut self, number: usize) -> Result<()> {
        let [input, output] = ["in", "out"].map(|part| format!("/skewed-sort-{number}-{part}"));
        let local = self.cluster.exchange(&format!("skewed-sort-{number}-in"))?;
        self.progress.step("writing lines with skewed keys");
        let options = self.options;
        let mut text = KeyedText::new(options.seed);
        write_files(&local, options, |file, bytes| text.write(file, bytes))?;
        let put =
            [define("dfs.replication", options.input_replication), words(&["-put", &local.to_string_lossy(), &input])];
        self.client("put", Client::FsShell, &put.concat())?;
        let names = self.cluster.distribution.names();
        let (reduces, text_class) = (options.reduces.to_string(), "org.apache.hadoop.io.Text");
        let sort = ["-r", &reduces, "-inFormat", names.key_value_input, "-outFormat", names.text_output]
            .into_iter()
            .chain(["-outKey", text_class, "-outValue", text_class, &input, &output]);
        let replication = define("dfs.replication", options.output_replication);
        let arguments: Vec<String> = replication.into_iter().chain(sort.map(str::to_owned)).collect();
        self.client("skewed-sort", Client::Sort, &arguments)?;
        let folder = self.cluster.exchange(&format!("skewed-sort-{number}-out"))?;
        self.get(&format!("{output}/part-*"), &folder)?;
        let sorted = Sorted::read(&folder, "part-").at("cannot read", &folder)?;
        if let Err(problem) = sorted.and_then(|sorted| sorted.check(text.written())) {
            self.done.problems.push(format!("skewed-sort {number}: {problem}"));
        }
        Ok(())
    }

    fn distcp(&mut self, number: usize) -> Result<()> {
        let [from, to] = ["in", "out"].map(|part| format!("/distcp-{number}-{part}"));
        self.generate_rows(&from)?;
        let replication = define("dfs.replication", self.options.output_replication);
        let maps = words(&["-m", &self.options.maps.to_string()]);
        self.client("distcp", Client::DistCp, &[replication, maps, words(&[&from, &to])].concat())?;
        let mut folders = Vec::new();
        for (part, remote) in [("in", &from), ("out", &to)] {
            let folder = self.cluster.exchange(&format!("distcp-{number}-{part}"))?;
            self.get(&format!("{remote}/part-*"), &folder)?;
            folders.push(folder);
        }
        if let Some(problem) = difference(&folders[0], &folders[1]).at("cannot compare with", &folders[0])? {
            self.done.problems.push(format!("distcp {number}: {problem}"));
        }
        Ok(())
    }

    fn putget(&mut self, number: usize) -> Result<()> {
        let remote = format!("/putget-{number}");
        let folder = self.cluster.exchange(&format!("putget-{number}"))?;
        let (out, back) = (folder.join("out"), folder.join("back"));
        let mut file = BufWriter::new(File::create(&out).at("cannot write", &out)?);
        Text::new(self.options.seed).write(&mut file, self.options.size.0).at("cannot write", &out)?;
        drop(file);
        let put = [
            define("dfs.replication", self.options.output_replication),
            words(&["-put", &out.to_string_lossy(), &remote]),
        ];
        self.client("put", Client::FsShell, &put.concat())?;
        self.get(&remote, &back)?;
        if !same(&out, &back).at("cannot compare what came back with", &out)? {
            self.done.problems.push(format!("putget {number}: what came back is not what was put in"));
        }
        Ok(())
    }

    fn get(&mut self, from: &str, to: &Path) -> Result<()> {
        self.client("get", Client::FsShell, &words(&["-get", from, &to.to_string_lossy()]))?;
        Ok(())
    }

    /// Runs a client on the master and notes it.
    fn client(&mut self, kind: &str, client: Client, arguments: &[String]) -> Result<ClientRun> {
        self.progress.step(&format!("{kind} {}", arguments.join(" ")));
        let host = self.cluster.plan.master();
        let run = self.cluster.client(client, host, arguments, self.options.limit)?;
        let options = self.options;
        let is_job = !matches!(client, Client::FsShell | Client::Fsck);
        let id = job_id(&run.output);
        if is_job && id.is_none() {
            return Err(LabError::Failed(format!("{kind} ended well, but its output names no job")));
        }
        self.done.jobs.push(TruthJob {
            kind: kind.to_owned(),
            id: id.unwrap_or_default(),
            client: host.name.clone(),
            client_start_ns: run.start_ns,
            client_end_ns: run.end_ns,
            size_bytes: options.size.0,
            input_replication: options.input_replication,
            output_replication: options.output_replication,
            ..TruthJob::default()
        });
        Ok(run)
    }

    /// Where the blocks of a path in HDFS are.
    ///
    /// # Errors
    /// If the client fails or its answer is not understood.
    pub fn blocks(&mut self, path: &str) -> Result<Vec<BlockPlacement>> {
        let arguments = words(&[path, "-files", "-blocks", "-locations"]);
        let host = self.cluster.plan.master();
        let run = self.cluster.client(Client::Fsck, host, &arguments, self.options.limit)?;
        placement::parse(&run.output, self.cluster.plan)
    }
}

fn define(key: &str, value: u32) -> Vec<String> {
    vec![format!("-D{key}={value}")]
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The job that a client's log names first.
fn job_id(output: &str) -> Option<String> {
    let at = output.find("Running job: job_")? + "Running job: ".len();
    let id: String = output[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    Some(id)
}

/// Writes one text file for each map; returns the counts of the words in all.
fn write_text(folder: &Path, options: &JobOptions) -> Result<Counts> {
    let mut text = Text::new(options.seed);
    write_files(folder, options, |file, bytes| text.write(file, bytes).map(|_| ()))?;
    Ok(text.counts())
}

/// Writes one file for each map.
fn write_files(
    folder: &Path,
    options: &JobOptions,
    mut write: impl FnMut(&mut BufWriter<File>, u64) -> io::Result<()>,
) -> Result<()> {
    let share = options.size.0.div_ceil(u64::from(options.maps));
    for number in 0..options.maps {
        let path = folder.join(format!("text-{number:05}"));
        let mut file = BufWriter::new(File::create(&path).at("cannot write", &path)?);
        write(&mut file, share).and_then(|()| file.flush()).at("cannot write", &path)?;
    }
    Ok(())
}

/// TeraValidate's report has one line, the checksum of the rows, when they are in order; TeraGen counts the same.
fn check_sorted(report: &str, generator: &str) -> Result<(), String> {
    let checksum = |text: &str| text.trim().strip_prefix("checksum").map(|c| c.trim().to_owned());
    let found = match report.lines().map(checksum).collect::<Vec<_>>().as_slice() {
        [Some(checksum)] => checksum.clone(),
        _ => return Err(format!("the rows are out of order: {}", report.trim())),
    };
    let counted = generator
        .lines()
        .find_map(|line| line.trim().strip_prefix("CHECKSUM="))
        .and_then(|count| count.parse::<i64>().ok())
        .ok_or("the generator tells no checksum")?;
    let expected = format!("{:x}", counted.cast_unsigned());
    let low = &found[found.len().saturating_sub(16)..];
    if low.trim_start_matches('0') == expected {
        Ok(())
    } else {
        Err(format!("rows were changed: their checksum is {found}, the generated ones' {expected}"))
    }
}

/// Without checksums: TeraValidate's report is empty when all is in order, and its maps have counted the rows.
fn check_order(report: &str, validator: &str, rows: u64) -> Result<(), String> {
    if !report.trim().is_empty() {
        return Err(format!("the rows are out of order: {}", report.trim()));
    }
    let count = validator.lines().find_map(|line| line.split_once("Map input records=")).map(|(_, count)| count.trim());
    match count.and_then(|count| count.parse::<u64>().ok()) {
        Some(count) if count == rows => Ok(()),
        Some(count) => Err(format!("{rows} rows were generated, and {count} are there after the sort")),
        None => Err("the validator does not say how many rows it read".to_owned()),
    }
}

fn check_counts(output: &str, expected: &Counts) -> Result<(), String> {
    let mut counted = Counts::new();
    text::read_counts(output, &mut counted)?;
    if counted == *expected {
        return Ok(());
    }
    let words = expected.keys().chain(counted.keys());
    let wrong = words.filter(|word| counted.get(*word) != expected.get(*word));
    let example = wrong.clone().next().map_or("", String::as_str);
    Err(format!(
        "{} words have wrong counts, {example:?} for one: {:?} instead of {:?}",
        wrong.count(),
        counted.get(example),
        expected.get(example)
    ))
}

/// The contents of all files of a folder whose names begin so.
fn read_all(folder: &Path, beginning: &str) -> io::Result<String> {
    let mut names: Vec<_> = fs::read_dir(folder)?.map(|entry| entry.map(|e| e.path())).collect::<io::Result<_>>()?;
    names.sort();
    let mut all = String::new();
    for path in names {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning)) {
            all.push_str(&fs::read_to_string(&path)?);
        }
    }
    Ok(all)
}

/// How two folders of files differ; `None` = not at all. Two empty folders differ: nothing was copied.
fn difference(source: &Path, copy: &Path) -> io::Result<Option<String>> {
    let names = |folder: &Path| -> io::Result<BTreeSet<OsString>> {
        fs::read_dir(folder)?.map(|entry| entry.map(|e| e.file_name())).collect()
    };
    let (from, to) = (names(source)?, names(copy)?);
    if from.is_empty() || from != to {
        return Ok(Some(format!("{from:?} were to be copied, and {to:?} are there")));
    }
    for name in &from {
        if !same(&source.join(name), &copy.join(name))? {
            return Ok(Some(format!("{name:?} is not what was copied")));
        }
    }
    Ok(None)
}

fn same(a: &Path, b: &Path) -> io::Result<bool> {
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let read = a.read(&mut left)?;
        if read == 0 {
            return Ok(true);
        }
        b.read_exact(&mut right[..read])?;
        if left[..read] != right[..read] {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn the_id_of_a_job_is_found_in_its_clients_log() {
        let log = "INFO mapreduce.Job: Running job: job_1699_0001\nINFO ...";
        assert_eq!(job_id(log).as_deref(), Some("job_1699_0001"));
        assert_eq!(job_id("put: nothing"), None);
    }

    #[test]
    fn rows_in_order_with_the_generated_checksum_pass_and_others_do_not() {
        assert_eq!(check_sorted("checksum\tff\n", "\t\tCHECKSUM=255\n"), Ok(()));
        assert_eq!(check_sorted("checksum\t1ffffffffffffffff\n", "CHECKSUM=-1\n"), Ok(()));
        assert!(check_sorted("checksum\tfe\n", "CHECKSUM=255\n").unwrap_err().contains("changed"));
        let misordered = check_sorted("error\tmisorder in part-r-00000\nchecksum\tff\n", "");
        assert!(misordered.unwrap_err().contains("out of order"));
        assert!(check_sorted("", "CHECKSUM=255\n").is_err());
    }

    #[test]
    fn rows_without_checksums_are_counted() {
        let log = "INFO mapred.JobClient:     Map input records=7\n";
        assert_eq!(check_order("", log, 7), Ok(()));
        assert!(check_order("", log, 8).unwrap_err().contains("7 are there"));
        assert!(check_order("misorder", log, 7).unwrap_err().contains("out of order"));
        assert!(check_order("", "", 7).is_err());
    }

    #[test]
    fn a_wrong_count_is_told_with_its_word() {
        let expected = Counts::from([("a".to_owned(), 2), ("b".to_owned(), 1)]);
        assert_eq!(check_counts("b\t1\na\t2\n", &expected), Ok(()));
        assert!(check_counts("b\t1\na\t3\n", &expected).unwrap_err().contains("\"a\""));
        assert!(check_counts("a\t2\n", &expected).unwrap_err().contains("\"b\""));
    }
}
