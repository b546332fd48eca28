//! What all commands share: the programs that go out, and the reports of all hosts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trace::folder::read_named;

use crate::digest;
use crate::elf;
use crate::fleet::{Fleet, Outcome};
use crate::report::HostReport;
use crate::versions::JAR;

/// The largest program, bytes.
const MAX_PROGRAM: u64 = 1 << 30;

/// Why the programs cannot go out.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// One is not where it is looked for.
    #[error("{path} is not there: build it with `make {build}`, or name another file", path = path.display())]
    Missing {
        /// Where it would be.
        path: PathBuf,
        /// What makes it.
        build: &'static str,
    },
    /// One cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Unreadable {
        /// The file that the error is about.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// What goes out.
pub struct Programs {
    /// The packet agent.
    pub sniffer: Vec<u8>,
    /// The socket agent.
    pub dumpingd: Vec<u8>,
    /// The Java agent.
    pub jar: Vec<u8>,
    /// Where the two agents were found, and how they are linked, in words.
    pub described: String,
}

impl Programs {
    /// Reads them from this machine: each file as it is named, else from the folder that is named, else from beside this
    /// program.
    ///
    /// # Errors
    /// If one is missing; says how to build it.
    pub fn read(
        folder: Option<&Path>,
        sniffer: Option<&Path>,
        dumpingd: Option<&Path>,
        jar: Option<&Path>,
    ) -> Result<Self, ProgramError> {
        let beside = std::env::current_exe().ok().and_then(|exe| exe.parent().map(PathBuf::from)).unwrap_or_default();
        let read = |given: Option<&Path>, candidates: Vec<PathBuf>, build: &'static str| {
            let path = given.map(PathBuf::from).or_else(|| candidates.iter().find(|path| path.is_file()).cloned());
            let path = path.ok_or_else(|| ProgramError::Missing { path: candidates[0].clone(), build })?;
            match read_named(&path, MAX_PROGRAM) {
                Ok(bytes) => Ok((path, bytes)),
                Err(source) => Err(ProgramError::Unreadable { path, source }),
            }
        };
        let jars = vec![
            beside.join(JAR),
            // As a package has it.
            beside.join("../share/hadoptic").join(JAR),
            beside.join("../../hadoop-patches/target/hadoptic-agent.jar"),
            PathBuf::from("hadoop-patches/target/hadoptic-agent.jar"),
        ];
        let build = if folder.is_some() { "static" } else { "agents" };
        let program = |given: Option<&Path>, name: &str| read(given, vec![folder.unwrap_or(&beside).join(name)], build);
        let (sniffer, dumpingd) = (program(sniffer, "sniffer")?, program(dumpingd, "dumpingd")?);
        let described = [&sniffer, &dumpingd]
            .map(|(path, bytes)| format!("{} ({})", path.display(), elf::linking(bytes).name()))
            .join(" and ");
        let (_, jar) = read(jar, jars, "agents")?;
        Ok(Self { sniffer: sniffer.1, dumpingd: dumpingd.1, jar, described })
    }

    /// Each with its name on the hosts.
    #[must_use]
    pub fn all(&self) -> [(&'static str, &[u8]); 3] {
        [("sniffer", &self.sniffer), ("dumpingd", &self.dumpingd), (JAR, &self.jar)]
    }

    /// Their checksums, in the same order.
    #[must_use]
    pub fn sums(&self) -> [String; 3] {
        [digest::of(&self.sniffer), digest::of(&self.dumpingd), digest::of(&self.jar)]
    }
}

/// The program that makes digests on hosts.
pub struct Merger {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where it was found, and how it is linked, in words.
    pub described: String,
}

impl Merger {
    /// Reads it from this machine: the file that is named, else the one beside this program.
    ///
    /// # Errors
    /// If it is not there; says how to build it.
    pub fn read(file: Option<&Path>) -> Result<Self, ProgramError> {
        let beside =
            || std::env::current_exe().ok().and_then(|exe| exe.parent().map(PathBuf::from)).unwrap_or_default();
        let path = file.map_or_else(|| beside().join("merger"), PathBuf::from);
        match read_named(&path, MAX_PROGRAM) {
            Ok(bytes) => {
                let described = format!("{} ({})", path.display(), elf::linking(&bytes).name());
                Ok(Self { bytes, described })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(ProgramError::Missing { path, build: "tables" })
            }
            Err(source) => Err(ProgramError::Unreadable { path, source }),
        }
    }
}

/// A report for each host; those of which nothing came say why.
#[must_use]
pub fn reports<T>(fleet: &Fleet, outcomes: &[Outcome<T>], names: impl Fn(&T) -> String) -> Vec<HostReport> {
    fleet
        .hosts
        .iter()
        .zip(outcomes)
        .map(|((host, _), outcome)| {
            let mut report = HostReport::of(host);
            match outcome {
                Ok(value) => report.name = names(value),
                Err(reason) => report.problem(reason.clone()),
            }
            report
        })
        .collect()
}

/// Two hosts that call themselves the same would write into one folder.
#[must_use]
pub fn same_names(reports: &[HostReport]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for report in reports.iter().filter(|report| !report.name.is_empty()) {
        by_name.entry(&report.name).or_default().push(&report.host);
    }
    by_name
        .into_iter()
        .filter(|(_, hosts)| hosts.len() > 1)
        .map(|(name, hosts)| {
            format!(
                "{} are one host, or all call themselves {name} (uname -n): name each host once, by one name",
                hosts.join(", ")
            )
        })
        .collect()
}
