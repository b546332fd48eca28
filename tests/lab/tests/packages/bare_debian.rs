//! A root of Debian's, of this machine's release, with nothing in it but what each has, `man` and libpcap.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{done, is_there, text};

/// What mmdebstrap says where it cannot reach the mirror.
const UNREACHABLE: [&str; 4] =
    ["Temporary failure resolving", "Could not resolve", "Could not connect", "Network is unreachable"];

/// A folder that is a root; gone with this.
pub struct BareDebian {
    folder: tempfile::TempDir,
}

impl BareDebian {
    /// Unpacks it; the packed one is kept between runs. Or why there is none.
    pub fn new() -> Result<Self, String> {
        let packed = packed()?;
        let folder = tempfile::tempdir().unwrap();
        done(Command::new("tar").arg("-xf").arg(packed).arg("-C").arg(folder.path()));
        Ok(Self { folder })
    }

    pub fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside.trim_start_matches('/'))
    }

    /// Runs a command there, among processes of its own.
    pub fn run(&self, command: &[&str]) -> Output {
        let proc = format!("--mount-proc={}", self.path("proc").display());
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--pid", "--fork", &proc, "chroot"]).arg(self.folder.path()).args(command);
        unshare.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C.UTF-8").output().unwrap()
    }

    /// Runs a command there, which has to succeed; what it printed on stdout.
    pub fn done(&self, command: &[&str]) -> String {
        let output = self.run(command);
        assert!(output.status.success(), "{command:?}: {}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// All names, but those of what packages are known and of the index of pages.
    pub fn names(&self) -> BTreeSet<PathBuf> {
        let mut names = BTreeSet::new();
        let mut open = vec![self.folder.path().to_owned()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let name = entry.path().strip_prefix(self.folder.path()).unwrap().to_owned();
                if ["proc", "dev", "var/lib/dpkg", "var/cache/man", "var/log"]
                    .iter()
                    .any(|other| name.starts_with(other))
                {
                    continue;
                }
                if entry.file_type().unwrap().is_dir() {
                    open.push(entry.path());
                }
                names.insert(name);
            }
        }
        names
    }
}

fn packed() -> Result<PathBuf, String> {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let codename = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let is_debian = release.lines().any(|line| line == "ID=debian");
    let codename = codename.filter(|_| is_debian).ok_or("this machine is no Debian with a name")?;
    let packed = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bare-{codename}.tar"));
    if packed.is_file() {
        return Ok(packed);
    }
    if !is_there("mmdebstrap") {
        return Err("no mmdebstrap".to_owned());
    }
    let part = packed.with_extension("part.tar");
    let made = Command::new("mmdebstrap")
        .args(["--quiet", "--variant=minbase", "--include=man-db,libpcap0.8", codename])
        .arg(&part)
        .output()
        .unwrap();
    match text(&made) {
        _ if made.status.success() => fs::rename(part, &packed).unwrap(),
        stated if UNREACHABLE.iter().any(|words| stated.contains(words)) => {
            return Err(format!("Debian's mirror is not reached: {}", stated.lines().last().unwrap_or_default()));
        }
        stated => panic!("{stated}"),
    }
    Ok(packed)
}
