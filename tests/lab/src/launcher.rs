//! Hadoop's scripts, which no jar holds: a launcher of the lab's own, and the `*-env.sh` from which it takes options.
//!
//! Daemons, tools and jobs are started by `launcher.sh` under the names `hadoop`, `hdfs`, `yarn` and `mapred`. It reads
//! `hadoop-env.sh`, `yarn-env.sh` and `mapred-env.sh` with the variables of each version, in the order of the version's own
//! scripts, so that whatever is deployed by lines in these files works here as it does on a real cluster.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use anyhow::{Context, Result};

use crate::distribution::{ConfFile, DaemonKind, Distribution, Settings};
use crate::hadoop3::{CLIENT_HEAP_MIB, LEAN_JVM, OPEN_JAVA_LANG};
use crate::plan::HostPlan;

/// Where Hadoop is on a host.
pub const HOME: &str = "/opt/hadoop";
/// Where its configuration is on a host.
pub const CONF: &str = "/etc/hadoop/conf";
/// The names under which the launcher is called.
const PROGRAMS: [&str; 4] = ["hadoop", "hdfs", "yarn", "mapred"];

/// A program of Hadoop's and its first arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `hadoop`, `hdfs`, `yarn` or `mapred`.
    pub program: &'static str,
    /// What it is told first.
    pub arguments: Vec<String>,
}

impl Call {
    /// A call of a program with a subcommand.
    #[must_use]
    pub fn new(program: &'static str, arguments: &[&str]) -> Self {
        Self { program, arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect() }
    }

    /// The program's path on a host.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{HOME}/bin/{}", self.program)
    }
}

/// Puts Hadoop in its place on a host of which `root` is what differs from the machine: the launcher, and links to the jars.
///
/// # Errors
/// If files cannot be made.
pub fn install(distribution: Distribution, cache: &Path, root: &Path) -> Result<()> {
    let home = root.join(HOME.trim_start_matches('/'));
    let (bin, libexec) = (home.join("bin"), home.join("libexec"));
    for folder in [&bin, &libexec] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    for program in PROGRAMS.iter().filter(|program| distribution.major() > 1 || **program == "hadoop") {
        let path = bin.join(program);
        fs::write(&path, include_str!("launcher.sh")).with_context(|| format!("cannot write {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    let layout = format!(
        "LAYOUT_MAJOR={}\nLAYOUT_CLASS_PATH='{}'\n",
        distribution.major(),
        distribution.class_path(cache).join(":")
    );
    let path = libexec.join("layout.sh");
    fs::write(&path, layout).with_context(|| format!("cannot write {}", path.display()))?;
    symlink(distribution.jars(cache), home.join("lib")).with_context(|| format!("cannot fill {}", home.display()))?;
    Ok(())
}

/// The `*-env.sh` of a host: where Java and the logs are, the memory of each daemon, what all JVMs of the lab get.
#[must_use]
pub fn environment_files(distribution: Distribution, settings: &Settings, host: &HostPlan) -> Vec<ConfFile> {
    let folder = settings.host_folder(host);
    let logs = folder.join("logs");
    let mut general: Vec<String> = Vec::new();
    if distribution.major() > 1 {
        // The NodeManager reaches into java.lang, in 2.x the ResourceManager as well.
        general.extend(OPEN_JAVA_LANG.iter().map(|option| (*option).to_owned()));
    }
    general.extend(LEAN_JVM.iter().map(|option| (*option).to_owned()));
    // Else all hosts of the machine share these folders.
    general.push(format!("-Djava.io.tmpdir={}", folder.join("tmp").display()));
    general.extend(settings.jvm_options.iter().cloned());
    let general = general.join(" ");

    let mut hadoop = EnvFile::new("hadoop-env.sh");
    hadoop.set("JAVA_HOME", &settings.java_home.display().to_string());
    hadoop.set("HADOOP_LOG_DIR", &logs.display().to_string());
    hadoop.add("HADOOP_OPTS", &general);
    hadoop.add("HADOOP_CLIENT_OPTS", &format!("-Xmx{CLIENT_HEAP_MIB}m"));
    let mut yarn = EnvFile::new("yarn-env.sh");
    if distribution.major() == 2 {
        // Of this version, YARN's scripts look at variables of their own only.
        yarn.set("YARN_LOG_DIR", &logs.display().to_string());
        yarn.add("YARN_OPTS", &general);
        yarn.add("YARN_CLIENT_OPTS", &format!("-Xmx{CLIENT_HEAP_MIB}m"));
    }
    let mut mapred = EnvFile::new("mapred-env.sh");
    for DaemonKind { program, options, heap_mib, .. } in distribution.daemons() {
        let file = match *program {
            "yarn" => &mut yarn,
            "mapred" => &mut mapred,
            _ => &mut hadoop,
        };
        file.add(options, &format!("-Xmx{heap_mib}m"));
    }
    let files = [hadoop, yarn, mapred];
    let wanted = if distribution.major() > 1 { 3 } else { 1 };
    files.into_iter().take(wanted).map(|file| file.file).collect()
}

/// A file of variables.
struct EnvFile {
    file: ConfFile,
}

impl EnvFile {
    fn new(name: &'static str) -> Self {
        Self { file: ConfFile { name, contents: "# What the lab sets.\n".to_owned() } }
    }

    fn set(&mut self, variable: &str, value: &str) {
        self.file.contents.push_str(&format!("export {variable}=\"{value}\"\n"));
    }

    /// In front of what is there, as Hadoop's own files do: whoever sets it before wins.
    fn add(&mut self, variable: &str, value: &str) {
        self.set(variable, &format!("{value} ${variable}"));
    }
}
