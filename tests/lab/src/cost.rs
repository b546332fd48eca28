//! What recording cost, as the agents account for it themselves, beside the CPU time of the JVMs that were recorded.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::error::{Context, LabError, Result};
use serde::{Deserialize, Serialize};
use trace::jvm::JvmRecord;
use trace::manifest::{DumpingdManifest, SnifferManifest};

/// Sums over the hosts of a capture; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// JVMs that were recorded.
    pub jvms: u64,
    /// Of these, those that ended without a last word (killed, halted): of them only the sum of some seconds before is known.
    pub unended: u64,
    /// CPU time of all these JVMs, what the agent used in them included.
    pub jvm_cpu_ns: u64,
    /// CPU time inside of hooks: the time on the wall, of it the share in which the JVM's runnable threads ran.
    pub hook_ns: u64,
    /// Time inside of hooks, by the clock on the wall.
    pub hook_wall_ns: u64,
    /// The part of it in single hooks of more than 1 ms: first uses, and threads that did not run.
    pub stall_ns: u64,
    /// CPU time of premain.
    pub premain_ns: u64,
    /// The longest premain, by the clock on the wall.
    pub longest_premain_ns: u64,
    /// CPU time in which classes were patched after premain: the time on the wall, of it the share in which threads ran.
    pub patch_ns: u64,
    /// Classes that were patched.
    pub patched: u64,
    /// Of these, those that had been patched beforehand and were only looked up.
    pub prepared: u64,
    /// CPU time of the threads that write.
    pub writer_ns: u64,
    /// Of JVMs without a last word: all of the four.
    pub unended_ns: u64,
    /// CPU time of the packet agents.
    pub sniffer_ns: u64,
    /// CPU time of the socket agents.
    pub dumpingd_ns: u64,
    /// Records that did not fit into a buffer.
    pub dropped: u64,
}

impl Cost {
    /// Sums of two captures.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            jvms: self.jvms + other.jvms,
            unended: self.unended + other.unended,
            jvm_cpu_ns: self.jvm_cpu_ns + other.jvm_cpu_ns,
            hook_ns: self.hook_ns + other.hook_ns,
            hook_wall_ns: self.hook_wall_ns + other.hook_wall_ns,
            stall_ns: self.stall_ns + other.stall_ns,
            longest_premain_ns: if self.longest_premain_ns > other.longest_premain_ns {
                self.longest_premain_ns
            } else {
                other.longest_premain_ns
            },
            premain_ns: self.premain_ns + other.premain_ns,
            patch_ns: self.patch_ns + other.patch_ns,
            patched: self.patched + other.patched,
            prepared: self.prepared + other.prepared,
            writer_ns: self.writer_ns + other.writer_ns,
            unended_ns: self.unended_ns + other.unended_ns,
            sniffer_ns: self.sniffer_ns + other.sniffer_ns,
            dumpingd_ns: self.dumpingd_ns + other.dumpingd_ns,
            dropped: self.dropped + other.dropped,
        }
    }

    /// All that recording cost.
    #[must_use]
    pub const fn all_ns(&self) -> u64 {
        self.hook_ns
            + self.premain_ns
            + self.patch_ns
            + self.writer_ns
            + self.unended_ns
            + self.sniffer_ns
            + self.dumpingd_ns
    }

    /// CPU time of the JVMs without what the agent used in them; see [`Cost::hook_ns`].
    #[must_use]
    pub const fn job_ns(&self) -> u64 {
        let inside = self.hook_ns + self.premain_ns + self.patch_ns + self.writer_ns + self.unended_ns;
        self.jvm_cpu_ns.saturating_sub(inside)
    }

    /// One line each, with its share of the JVMs' CPU time.
    #[must_use]
    pub fn table(&self) -> String {
        let job = self.job_ns().max(1) as f64;
        let line =
            |what: &str, ns: u64| format!("{what:<38}{:>10.2} s{:>9.2}%\n", ns as f64 / 1e9, ns as f64 / job * 100.0);
        let mut text = format!(
            "{} JVMs ({} without a last word), {} records dropped\n{:<38}{:>10.2} s\n",
            self.jvms,
            self.unended,
            self.dropped,
            "CPU time of the JVMs without the agent",
            job / 1e9
        );
        for (what, ns) in [
            ("hooks (CPU, estimated)", self.hook_ns),
            ("  by the clock on the wall", self.hook_wall_ns),
            ("  of that in hooks of more than 1 ms", self.stall_ns),
            ("premain (CPU)", self.premain_ns),
            ("patching classes (CPU, estimated)", self.patch_ns),
            ("writing (CPU)", self.writer_ns),
            ("in JVMs without a last word", self.unended_ns),
            ("sniffer (CPU)", self.sniffer_ns),
            ("dumpingd (CPU)", self.dumpingd_ns),
            ("recording in all", self.all_ns()),
        ] {
            text.push_str(&line(what, ns));
        }
        text.push_str(&format!(
            "longest premain by the clock on the wall: {:.0} ms; of {} patched classes {} were prepared\n",
            self.longest_premain_ns as f64 / 1e6,
            self.patched,
            self.prepared
        ));
        text
    }
}

/// Adds up what the agents of a capture say of their cost.
///
/// # Errors
/// If the folder or a file in it cannot be read, or no JVM was recorded in it.
pub fn of(capture: &Path) -> Result<Cost> {
    let mut cost = Cost::default();
    for host in entries(capture)?.into_iter().filter(|path| path.is_dir()) {
        for path in files(&host)? {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if name.starts_with("jvm-") && name.ends_with(".jsonl") {
                add_jvm(&mut cost, &path)?;
            } else if name == "sniffer.json" {
                cost.sniffer_ns += 1000 * manifest::<SnifferManifest>(&path)?.cpu_us;
            } else if name == "dumpingd.json" {
                cost.dumpingd_ns += 1000 * manifest::<DumpingdManifest>(&path)?.cpu_us;
            }
        }
    }
    if cost.jvms == 0 {
        return Err(LabError::Config(format!(
            "{} has no records of JVMs (HOST/jvm/UID/jvm-*.jsonl, not packed): name the folder of a capture of the agents",
            capture.display()
        )));
    }
    Ok(cost)
}

/// The files of a host: in its folder, and in those of the users that ran JVMs.
fn files(host: &Path) -> Result<Vec<PathBuf>> {
    let mut files = entries(host)?;
    let jvms = host.join("jvm");
    if jvms.is_dir() {
        for user in entries(&jvms)?.into_iter().filter(|path| path.is_dir()) {
            files.extend(entries(&user)?);
        }
    }
    Ok(files)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = fs::read_dir(folder).at("cannot read", folder)?;
    read.map(|entry| Ok(entry.at("cannot read", folder)?.path())).collect()
}

fn manifest<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T> {
    let text = fs::read(path).at("cannot read", path)?;
    serde_json::from_slice(&text).with_context(|| format!("{} is no manifest of this version", path.display()))
}

fn add_jvm(cost: &mut Cost, path: &Path) -> Result<()> {
    let file = File::open(path).at("cannot read", path)?;
    let (mut cpu, mut agent, mut lost, mut ended) = (0, 0, 0, false);
    for line in BufReader::new(file).split(b'\n') {
        // What a kill tore off is no record.
        match serde_json::from_slice(&line.at("cannot read", path)?) {
            Ok(JvmRecord::Clock { cpu_ns, agent_ns, dropped, .. }) => {
                cpu = cpu.max(cpu_ns);
                agent = agent.max(agent_ns);
                lost += dropped;
            }
            Ok(JvmRecord::End {
                dropped,
                hook_ns,
                stall_ns,
                premain_ns,
                premain_cpu_ns,
                patch_ns,
                patched,
                prepared,
                writer_ns,
                cpu_ns,
                ran_ns,
                waited_ns,
                ..
            }) => {
                ended = true;
                cpu = cpu_ns;
                lost = dropped;
                cost.hook_wall_ns += hook_ns;
                cost.hook_ns += running(hook_ns, ran_ns, waited_ns);
                cost.stall_ns += stall_ns;
                cost.premain_ns += premain_cpu_ns;
                cost.longest_premain_ns = cost.longest_premain_ns.max(premain_ns);
                cost.patch_ns += running(patch_ns, ran_ns, waited_ns);
                cost.patched += patched;
                cost.prepared += prepared;
                cost.writer_ns += writer_ns;
            }
            _ => {}
        }
    }
    cost.jvms += 1;
    cost.jvm_cpu_ns += cpu;
    cost.dropped += lost;
    if !ended {
        cost.unended += 1;
        cost.unended_ns += agent;
    }
    Ok(())
}

/// Of a time on the wall the part in which a thread ran, if it fared like the JVM's threads on the whole.
fn running(ns: u64, ran_ns: u64, waited_ns: u64) -> u64 {
    let runnable = u128::from(ran_ns) + u128::from(waited_ns);
    if runnable == 0 {
        return ns;
    }
    u64::try_from(u128::from(ns) * u128::from(ran_ns) / runnable).unwrap_or(ns)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn jvms_that_ended_and_those_that_did_not_are_added_up() {
        let folder = tempfile::tempdir().unwrap();
        let host = folder.path().join("w1");
        fs::create_dir(&host).unwrap();
        let clock = r#"{"k":"clock","t":1,"mono":1,"dropped":2,"cpu_ns":500,"agent_ns":70}"#;
        let end = r#"{"k":"end","t":9,"dropped":3,"hook_ns":40,"premain_ns":25,"premain_cpu_ns":20,"patch_ns":40,"patched":3,"prepared":2,"writer_ns":40,"cpu_ns":1000,"ran_ns":600,"waited_ns":200}"#;
        fs::write(host.join("jvm-1-1.jsonl"), format!("{clock}\n{end}\n")).unwrap();
        // Killed in the middle of a line.
        fs::write(host.join("jvm-2-1.jsonl"), format!("{clock}\n{{\"k\":\"cl")).unwrap();
        let cost = of(folder.path()).unwrap();
        assert_eq!((cost.jvms, cost.unended, cost.dropped), (2, 1, 5));
        // Of 40 ns in hooks its threads ran for three quarters.
        assert_eq!((cost.hook_wall_ns, cost.hook_ns), (40, 30));
        assert_eq!((cost.jvm_cpu_ns, cost.all_ns(), cost.job_ns()), (1500, 190, 1310));
        assert_eq!((cost.patched, cost.prepared), (3, 2));
        assert!(cost.table().contains("recording in all"));
    }

    #[test]
    fn a_folder_without_jvms_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(of(folder.path()).unwrap_err().to_string().contains("jvm-"));
        assert!(of(&folder.path().join("none")).is_err());
    }
}
