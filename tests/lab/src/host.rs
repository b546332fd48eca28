//! A host of the lab: what it has of its own beside a network, and the sshd that keeps it and lets people in.
//!
//! A host is a network namespace, a name, and a mount namespace in which `/etc` is a copy, `/opt` and `/var/lib` have what the
//! machine has and take what is put there for this host alone (root's home among it), and `/run` is empty. The mount namespace
//! lives as long as its processes do, first of all its sshd: it has no name that could stay behind, and ends with them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::error::{Context, LabError, Result};

use crate::distribution::Distribution;
use crate::launcher;
use crate::layout::{CONF, HOME, root};
use crate::network;
use crate::plan::{HostPlan, Plan};
use crate::process::{Process, listens};
use crate::ssh::{self, Logins};
use crate::stop::Stop;
use crate::tool;

/// How long an sshd may take to listen.
const START_LIMIT: Duration = Duration::from_secs(20);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// The home of root on a host. That of the machine's root is no host's own, and its start files may be slow, or talk.
const ROOT_HOME: &str = "/var/lib/root";

/// Run in a mount namespace of its own: puts the host's files over the machine's, then becomes the program that it is given.
/// Its arguments: the host's name, the folder of its files, the program with its arguments.
const SETTLE: &str = r#"
set -e
name=$1
root=$2
shift 2
# Nothing of what follows may reach the machine's own mounts.
mount --make-rprivate /
hostname "$name"
shadow() {
    for entry in "$1"/* "$1"/.[!.]*; do
        own=$root$entry
        if [ -e "$own" ] || [ -L "$own" ]; then
            continue
        elif [ -L "$entry" ]; then
            cp -P "$entry" "$own"
        elif [ -d "$entry" ]; then
            mkdir "$own"
            mount --rbind "$entry" "$own"
        elif [ -e "$entry" ]; then
            : >"$own"
            mount --bind "$entry" "$own"
        fi
    done
    mount --rbind "$root$1" "$1"
}
shadow /opt
shadow /var/lib
mount --bind "$root/etc" /etc
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs /run
mkdir -m 755 /run/sshd
exec "$@"
"#;

/// The hosts of a lab, settled.
#[derive(Debug)]
pub struct Hosts {
    /// How to log in.
    pub logins: Logins,
    keepers: Vec<Process>,
}

impl Hosts {
    /// Settles all hosts: their files, Hadoop in its place, an sshd each.
    ///
    /// # Errors
    /// If files cannot be made, an sshd does not begin, or a signal came.
    pub fn settle(plan: &Plan, distribution: Distribution, cache: &Path, run: &Path, stop: &Stop) -> Result<Self> {
        let sshd = tool::find("sshd")
            .ok_or_else(|| LabError::Missing("sshd is not installed: `apt-get install openssh-server`".to_owned()))?;
        let logins = Logins::make(plan, run)?;
        let mut keepers = Vec::new();
        for host in &plan.hosts {
            let root = root(run, host);
            copy_etc(plan, &root)?;
            for folder in ["/opt", "/var/lib", ROOT_HOME, CONF] {
                let folder = root.join(folder.trim_start_matches('/'));
                fs::create_dir_all(&folder).at("cannot make", &folder)?;
            }
            launcher::install(distribution, cache, &root)?;
            keepers.push(start_sshd(&sshd, host, &root, &logins.server_config(host)?)?);
        }
        let mut hosts = Self { logins, keepers };
        hosts.wait_until_they_listen(stop)?;
        Ok(hosts)
    }

    fn wait_until_they_listen(&mut self, stop: &Stop) -> Result<()> {
        let end = Instant::now() + START_LIMIT;
        for keeper in &mut self.keepers {
            while !listens(keeper.pid(), ssh::PORT) {
                if let Some(status) = keeper.ended()? {
                    return Err(keeper.ended_badly(status));
                }
                if Instant::now() > end {
                    return Err(keeper.failure(&format!("does not listen within {} s", START_LIMIT.as_secs())));
                }
                stop.sleep(LOOK)?;
            }
        }
        Ok(())
    }

    /// The mount namespace of a host, by inode.
    ///
    /// # Errors
    /// If there is no such host.
    pub fn mounts(&self, host: &HostPlan) -> Result<u64> {
        let path = format!("/proc/{}/ns/mnt", self.keeper(host)?.pid());
        Ok(fs::metadata(&path).with_context(|| format!("cannot look at {path}"))?.ino())
    }

    fn keeper(&self, host: &HostPlan) -> Result<&Process> {
        let keeper = self.keepers.iter().find(|keeper| keeper.host() == host.name);
        keeper.ok_or_else(|| LabError::Config(format!("there is no host {}", host.name)))
    }

    /// A command on a host as a login would start it, in a folder: in its namespaces, with an environment of its own.
    ///
    /// # Errors
    /// If there is no such host.
    pub fn command(&self, host: &HostPlan, folder: &Path, program: &str) -> Result<Command> {
        let keeper = self.keeper(host)?;
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", keeper.pid())).args(["--mount", "--net", "--uts", "--"]);
        // Each hands over to the next, so that the process that is started is the program itself.
        command.args(["sh", "-c", "cd \"$0\" && exec \"$@\""]).arg(folder).arg(program);
        command.env_clear().env("PATH", format!("{HOME}/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
        command.env("HOME", ROOT_HOME);
        for name in ["LANG", "LC_ALL", "TZ"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        Ok(command)
    }
}

/// A host's `/etc`: the machine's, without its secrets and with the lab's names.
fn copy_etc(plan: &Plan, root: &Path) -> Result<()> {
    let etc = root.join("etc");
    fs::create_dir_all(&etc).at("cannot make", &etc)?;
    tool::run("cp", &["-a", "/etc/.", &*etc.to_string_lossy()])?;
    for name in ["shadow", "shadow-", "gshadow", "gshadow-", "ssh", "hadoop", "hosts", "resolv.conf", "nsswitch.conf"] {
        let path = etc.join(name);
        let is_folder = path.symlink_metadata().is_ok_and(|there| there.is_dir());
        let removed = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).at("cannot remove", &path);
            }
            _ => {}
        }
    }
    let passwd = fs::read_to_string(etc.join("passwd")).context("cannot read /etc/passwd")?;
    fs::write(etc.join("passwd"), with_home(&passwd, "root", ROOT_HOME)).at("cannot write passwd in", &etc)?;
    // Nobody has a password here, and nobody is locked out.
    let users = passwd.lines().filter_map(|line| line.split(':').next());
    let shadow: String = users.map(|user| format!("{user}:*:19000:0:99999:7:::\n")).collect();
    fs::write(etc.join("shadow"), shadow).at("cannot write shadow in", &etc)?;
    for (name, contents) in network::etc_files(plan) {
        let path = etc.join(name);
        fs::write(&path, contents).at("cannot write", &path)?;
    }
    Ok(())
}

/// The lines of a passwd file, with another home for a user.
fn with_home(passwd: &str, user: &str, home: &str) -> String {
    let mut lines = String::new();
    for line in passwd.lines() {
        let mut fields: Vec<&str> = line.split(':').collect();
        if fields[0] == user && fields.len() == 7 {
            fields[5] = home;
        }
        lines.push_str(&fields.join(":"));
        lines.push('\n');
    }
    lines
}

fn start_sshd(sshd: &Path, host: &HostPlan, root: &Path, config: &Path) -> Result<Process> {
    let log = root.parent().unwrap_or(root).join("sshd.log");
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", &host.namespace, "unshare", "--uts", "--mount", "--propagation", "private"])
        .args(["sh", "-c", SETTLE, "settle", &host.name])
        .arg(root)
        .arg(sshd)
        .args(["-D", "-e", "-f"])
        .arg(config);
    let process = Process::start("sshd", &host.name, command, &log)?;
    if process.pid() <= 1 {
        return Err(LabError::Failed("the system gave no process id".to_owned()));
    }
    Ok(process)
}
