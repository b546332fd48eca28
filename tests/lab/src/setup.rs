//! What a machine needs for the lab: tools from its packages, and Hadoop's jars from Maven Central.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Context, LabError, Result};

use crate::cluster::java_home;
use crate::distribution::Distribution;
use crate::lease::check_plain;
use crate::progress::Progress;
use crate::tool;

/// Programs that have to be there, and the Debian packages that have them.
const TOOLS: [(&str, &str); 10] = [
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("ss", "iproute2"),
    ("ethtool", "ethtool"),
    ("sshd", "openssh-server"),
    ("ssh", "openssh-client"),
    ("ssh-keygen", "openssh-client"),
    ("nsenter", "util-linux"),
    ("java", "default-jdk-headless"),
    ("mvn", "maven"),
];

/// Folder of what is fetched, by default: `hadoptic` in the user's cache folder.
///
/// # Errors
/// If there is neither `XDG_CACHE_HOME` nor `HOME`.
pub fn default_cache() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .ok_or_else(|| {
            LabError::Config("neither XDG_CACHE_HOME nor HOME is set: name a folder with --cache".to_owned())
        })?;
    Ok(base.join("hadoptic"))
}

/// Installs the tools that are missing.
///
/// # Errors
/// If some are missing and cannot be installed here.
pub fn tools(progress: &Progress) -> Result<()> {
    let mut missing: Vec<&str> =
        TOOLS.iter().filter(|(program, _)| tool::find(program).is_none()).map(|(_, package)| *package).collect();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.join(" ");
    if !(tool::find("apt-get").is_some() && nix::unistd::geteuid().is_root()) {
        return Err(LabError::Missing(format!(
            "these packages are missing: {packages}; install them (here there is no apt-get, or no root)"
        )));
    }
    progress.step(&format!("installing {packages}"));
    tool::run_words("apt-get update -qq")?;
    let mut arguments = vec!["install", "-y", "-qq", "--no-install-recommends"];
    arguments.extend(missing);
    tool::run("apt-get", &arguments)?;
    Ok(())
}

/// Finds the Java that runs a version of Hadoop: `JAVA_HOME`, or `java` on the path. Returns its home and version.
///
/// # Errors
/// If there is none or it is too old or too new.
pub fn java(distribution: Distribution) -> Result<(PathBuf, String)> {
    let launcher = match std::env::var_os("JAVA_HOME") {
        Some(home) if !home.is_empty() => PathBuf::from(home).join("bin/java"),
        _ => tool::find("java")
            .ok_or_else(|| LabError::Missing("no Java: run `lab setup`, or set JAVA_HOME".to_owned()))?,
    };
    let home = java_home(&launcher)?;
    tool::run(&home.join("bin/java").to_string_lossy(), &["-version"])
        .with_context(|| format!("{} does not run", launcher.display()))?;
    let version = java_version(&home)?;
    let major = major_version(&version)
        .ok_or_else(|| LabError::Parse(format!("{version:?} is no version of Java that is known")))?;
    let (oldest, newest) = distribution.java_versions();
    if !(oldest..=newest).contains(&major) {
        return Err(LabError::Missing(format!(
            "Hadoop {} runs on Java {oldest} to {newest}, and {} is Java {version}: set JAVA_HOME to another",
            distribution.version(),
            home.display()
        )));
    }
    Ok((home, version))
}

fn java_version(home: &Path) -> Result<String> {
    // Java 8's launcher can be in jre/bin.
    let places = [home.join("release"), home.join("../release")];
    let text = places
        .iter()
        .find_map(|path| fs::read_to_string(path).ok())
        .ok_or_else(|| LabError::Missing(format!("{} has no file `release`", home.display())))?;
    text.lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION="))
        .map(|version| version.trim_matches('"').to_owned())
        .ok_or_else(|| LabError::Parse(format!("{} names no JAVA_VERSION", places[0].display())))
}

/// 8 of "1.8.0_402", 17 of "17.0.15".
#[must_use]
pub fn major_version(version: &str) -> Option<u32> {
    let mut parts = version.split(['.', '_', '-', '+']);
    let first = parts.next()?.parse().ok()?;
    if first == 1 { parts.next()?.parse().ok() } else { Some(first) }
}

/// Fetches a version of Hadoop where it is not complete; `java` is the home of the JDK. Returns the folder of its files.
///
/// # Errors
/// If Maven fails or does not bring what the list of jars names.
pub fn fetch(
    distribution: Distribution,
    cache: &Path,
    java: &Path,
    fresh: bool,
    progress: &Progress,
) -> Result<PathBuf> {
    let folder = cache.join(format!("hadoop-{}", distribution.version()));
    fs::create_dir_all(&folder).at("cannot make", &folder)?;
    let folder = folder.canonicalize().at("cannot find", &folder)?;
    check_plain(&folder)?;
    // Two labs that start at once fetch once: the second waits here.
    let lock = File::create(folder.join("fetch.lock")).at("cannot write fetch.lock in", &folder)?;
    lock.lock().at("cannot lock", &folder)?;
    let jars = distribution.jars(&folder);
    let wanted = jar_list(distribution.jar_list())?;
    if fresh || difference(&wanted, &jars)?.is_some() {
        progress.step(&format!(
            "fetching Hadoop {} from Maven Central ({} jars) into {}",
            distribution.version(),
            wanted.len(),
            folder.display()
        ));
        let partial = folder.join("lib.partial");
        maven(distribution, &folder, &partial)?;
        if let Some(difference) = difference(&wanted, &partial)? {
            return Err(LabError::Missing(format!(
                "Maven brought other jars for Hadoop {} than the lab knows: {difference}; they are in {}",
                distribution.version(),
                partial.display()
            )));
        }
        if jars.exists() {
            fs::remove_dir_all(&jars).at("cannot remove", &jars)?;
        }
        fs::rename(&partial, &jars).at("cannot make", &jars)?;
    }
    if let Some(jar) = distribution.web_jar() {
        unpack_pages(&jars.join(jar), &folder.join("web"), java)?;
    }
    for (name, contents) in distribution.web_files() {
        let path = folder.join("web").join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).at("cannot make", parent)?;
        }
        fs::write(&path, contents).at("cannot write", &path)?;
    }
    Ok(folder)
}

/// Unpacks the web pages of a jar: daemons look for them as files.
fn unpack_pages(jar: &Path, into: &Path, java: &Path) -> Result<()> {
    if into.join("webapps").is_dir() {
        return Ok(());
    }
    let partial = into.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).at("cannot remove", &partial)?;
    }
    fs::create_dir_all(&partial).at("cannot make", &partial)?;
    let tool = java.join("bin/jar");
    let output = Command::new(&tool)
        .arg("xf")
        .arg(jar)
        .arg("webapps")
        .current_dir(&partial)
        .output()
        .with_context(|| format!("cannot run {}: a JDK is needed, a JRE is not enough", tool.display()))?;
    if !output.status.success() {
        return Err(LabError::command(format!("unpacking {}", jar.display()), &output));
    }
    if into.exists() {
        fs::remove_dir_all(into).at("cannot remove", into)?;
    }
    fs::rename(&partial, into).at("cannot make", into)
}

fn maven(distribution: Distribution, folder: &Path, into: &Path) -> Result<()> {
    if into.exists() {
        fs::remove_dir_all(into).at("cannot remove", into)?;
    }
    let pom = folder.join("pom.xml");
    fs::write(&pom, distribution.pom()).at("cannot write", &pom)?;
    let arguments = [
        "-q".to_owned(),
        "-B".to_owned(),
        "-f".to_owned(),
        pom.display().to_string(),
        "dependency:copy-dependencies".to_owned(),
        "-DincludeScope=runtime".to_owned(),
        format!("-DoutputDirectory={}", into.display()),
    ];
    tool::run("mvn", &arguments).with_context(|| {
        format!("cannot fetch the jars of Hadoop {}: is Maven Central within reach?", distribution.version())
    })?;
    Ok(())
}

/// Reads a list of jars: a name and a number of bytes a line.
fn jar_list(text: &str) -> Result<BTreeMap<String, u64>> {
    text.lines()
        .map(|line| {
            let (name, bytes) =
                line.split_once(' ').ok_or_else(|| LabError::Parse(format!("{line:?} is no jar and size")))?;
            Ok((name.to_owned(), bytes.parse().with_context(|| format!("{line:?} is no jar and size"))?))
        })
        .collect()
}

/// How a folder of jars differs from the list, in words; `None` = not at all.
fn difference(wanted: &BTreeMap<String, u64>, folder: &Path) -> Result<Option<String>> {
    if !folder.is_dir() {
        return Ok(Some(format!("{} is not there", folder.display())));
    }
    let mut there = BTreeMap::new();
    for entry in fs::read_dir(folder).at("cannot read", folder)? {
        let entry = entry.at("cannot read", folder)?;
        there.insert(
            entry.file_name().to_string_lossy().into_owned(),
            entry.metadata().at("cannot look at", &entry.path())?.len(),
        );
    }
    let missing = wanted.iter().find(|(name, bytes)| there.get(*name) != Some(bytes));
    let extra = there.keys().find(|name| !wanted.contains_key(*name));
    Ok(match (missing, extra) {
        (Some((name, bytes)), _) => Some(format!("{name} with {bytes} bytes is not there")),
        (None, Some(name)) => Some(format!("{name} is too many")),
        (None, None) => None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn java_versions_old_and_new_are_understood() {
        assert_eq!(major_version("1.8.0_402"), Some(8));
        assert_eq!(major_version("17.0.15"), Some(17));
        assert_eq!(major_version("25-ea"), Some(25));
        assert_eq!(major_version("x"), None);
    }

    #[test]
    fn the_list_of_jars_can_be_read_and_has_hadoop_in_it() {
        let list = jar_list(Distribution::V3_4_2.jar_list()).unwrap();
        assert!(list.contains_key("hadoop-hdfs-3.4.2.jar"));
        assert!(list.contains_key("hadoop-mapreduce-examples-3.4.2.jar"));
    }

    #[test]
    fn a_jar_that_is_cut_off_or_too_many_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = jar_list("a.jar 3\n").unwrap();
        assert!(difference(&wanted, folder.path()).unwrap().is_some());
        fs::write(folder.path().join("a.jar"), "ab").unwrap();
        assert!(difference(&wanted, folder.path()).unwrap().unwrap().contains("a.jar"));
        fs::write(folder.path().join("a.jar"), "abc").unwrap();
        assert_eq!(difference(&wanted, folder.path()).unwrap(), None);
        fs::write(folder.path().join("b.jar"), "").unwrap();
        assert!(difference(&wanted, folder.path()).unwrap().unwrap().contains("b.jar"));
    }
}
