//! The `*-env.sh` of a version of Hadoop (the first number of its version), from which the launcher takes options.

use crate::conf_file::ConfFile;
use crate::daemon::DaemonKind;
use crate::hadoop3::{CLIENT_HEAP_MIB, LEAN_JVM, OPEN_JAVA_LANG};
use crate::plan::HostPlan;
use crate::settings::Settings;

/// The `*-env.sh` of a host: where Java and the logs are, the memory of each daemon, what all JVMs of the lab get.
#[must_use]
pub fn files(major: u8, daemons: &[DaemonKind], settings: &Settings, host: &HostPlan) -> Vec<ConfFile> {
    let folder = settings.host_folder(host);
    let logs = folder.join("logs");
    let mut general: Vec<String> = Vec::new();
    if major > 1 {
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
    if major == 2 {
        // Of this version, YARN's scripts look at variables of their own only.
        yarn.set("YARN_LOG_DIR", &logs.display().to_string());
        yarn.add("YARN_OPTS", &general);
        yarn.add("YARN_CLIENT_OPTS", &format!("-Xmx{CLIENT_HEAP_MIB}m"));
    }
    let mut mapred = EnvFile::new("mapred-env.sh");
    for DaemonKind { program, options, heap_mib, .. } in daemons {
        let file = match *program {
            "yarn" => &mut yarn,
            "mapred" => &mut mapred,
            _ => &mut hadoop,
        };
        file.add(options, &format!("-Xmx{heap_mib}m"));
    }
    let files = [hadoop, yarn, mapred];
    let wanted = if major > 1 { 3 } else { 1 };
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
