//! The project's agents as files: where they are, copies of them, and what the Java agent is told.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Context, LabError, Result};

use crate::lease::check_plain;

/// Where the JVMs of a host write, in its folder; each user has one of his own in it.
pub const JVM_FOLDER: &str = "jvm";

/// What agents leave free on the disk, bytes. The machine's disk is not the cluster's: a tenth of it would be too much to ask.
pub(crate) const KEEP_FREE_BYTES: u64 = 64 << 20;

/// Where the agents are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agents {
    /// The Java agent.
    pub jar: PathBuf,
    /// The packet agent.
    pub sniffer: PathBuf,
    /// The socket agent.
    pub dumpingd: PathBuf,
}

impl Agents {
    /// Makes the paths absolute and checks that the files are there.
    ///
    /// # Errors
    /// If one is missing; the message says how to build it.
    pub fn found(jar: &Path, sniffer: &Path, dumpingd: &Path) -> Result<Self> {
        let find = |path: &Path, build: &str| -> Result<PathBuf> {
            let found = path.canonicalize().with_context(|| {
                format!(
                    "the agent {} is not there: build it with `{build}`, name another file, or record with --tcpdump or --no-agents",
                    path.display()
                )
            })?;
            check_plain(&found)?;
            Ok(found)
        };
        Ok(Self {
            jar: find(jar, "mvn -q -f hadoop-patches/pom.xml package")?,
            sniffer: find(sniffer, "cargo build --release -p sniffer")?,
            dumpingd: find(dumpingd, "cargo build --release -p dumpingd")?,
        })
    }

    /// Copies the agents into a folder and names the copies: a JVM breaks when a jar that it has open is built anew.
    ///
    /// # Errors
    /// If they cannot be copied.
    pub fn copied(&self, into: &Path) -> Result<Self> {
        fs::create_dir_all(into).at("cannot make", into)?;
        let copy = |from: &Path, name: &str| -> Result<PathBuf> {
            let to = into.join(name);
            fs::copy(from, &to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
            Ok(to)
        };
        Ok(Self {
            jar: copy(&self.jar, "hadoptic-agent.jar")?,
            sniffer: copy(&self.sniffer, "sniffer")?,
            dumpingd: copy(&self.dumpingd, "dumpingd")?,
        })
    }

    /// Writes what daemons start beside the agents: scripts that give them the lab's options.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(crate) fn write_launchers(&self) -> Result<()> {
        for agent in [&self.sniffer, &self.dumpingd] {
            let path = launcher(agent);
            let script = format!("#!/bin/sh\nexec {} \"$@\" --keep-free {KEEP_FREE_BYTES}\n", agent.display());
            let written =
                fs::write(&path, script).and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755)));
            written.at("cannot write", &path)?;
        }
        Ok(())
    }

    /// What the Java agent is told. The lab's hosts share the folder of the capture.
    pub(crate) fn options(&self, capture: &Path) -> String {
        let capture = capture.display();
        let [sniffer, dumpingd] = [&self.sniffer, &self.dumpingd].map(|agent| launcher(agent));
        format!(
            "out={capture}/%h/{JVM_FOLDER},agents={capture}/%h,sniffer={},dumpingd={},keep_free={KEEP_FREE_BYTES}",
            sniffer.display(),
            dumpingd.display()
        )
    }

    /// Patches the classes of Java and of Hadoop beforehand, beside the jar, as `hadoptic install` does.
    ///
    /// # Errors
    /// If that Java or the jar does not do it; the message has its words.
    pub(crate) fn prepare(&self, java_home: &Path, jars: &Path) -> Result<()> {
        let mut command = Command::new(java_home.join("bin/java"));
        command.arg(format!("-javaagent:{}=prepare", self.jar.display())).arg("-cp").arg(&self.jar);
        command.arg("hadoptic.agent.Prepare").arg(jars);
        let done = command.output().with_context(|| format!("cannot run {}", command.get_program().display()))?;
        if !done.status.success() {
            return Err(LabError::command(format!("{command:?}"), &done));
        }
        Ok(())
    }
}

/// The script that starts an agent.
fn launcher(agent: &Path) -> PathBuf {
    let name = agent.file_name().unwrap_or_default().to_string_lossy();
    agent.with_file_name(format!("start-{name}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_missing_agent_is_an_error_that_says_how_to_build_it() {
        let error = Agents::found(Path::new("no.jar"), Path::new("x"), Path::new("y")).unwrap_err();
        let said = format!("{error}");
        assert!(said.contains("no.jar") && said.contains("mvn"), "{said}");
    }
}
