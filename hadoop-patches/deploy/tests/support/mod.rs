//! Hosts for tests: each a network, mount and UTS namespace with a real sshd in it, and a folder of its own that all see
//! under one path. Nothing outside of a temporary folder is written, and nothing outlives a test.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// No wait in a test is longer.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn jar() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/hadoptic-agent.jar")
}

pub fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_hadoptic")).with_file_name(name)
}

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

pub fn sh(command: &str) {
    let output = Command::new("sh").args(["-ec", command]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "`{command}`: {}", String::from_utf8_lossy(&output.stderr));
}

/// A version's configuration as people have it.
pub fn conf(generation: &str) -> BTreeMap<&'static str, Vec<u8>> {
    let site = |properties: &str| {
        format!("<?xml version=\"1.0\"?>\n<configuration>\n{properties}</configuration>\n").into_bytes()
    };
    let core = ("core-site.xml", b"<configuration/>".to_vec());
    let odd = b"# \xff\xfe not UTF-8\nexport JAVA_LIBRARY_PATH=\\\n/usr/lib\n".to_vec();
    match generation {
        "1" => BTreeMap::from([
            core,
            ("hadoop-env.sh", [odd, b"export HADOOP_JOBTRACKER_OPTS=-Xmx1g".to_vec()].concat()),
            (
                "mapred-site.xml",
                site(
                    "  <property><name>mapred.job.tracker</name><value>m:8021</value></property>\n  \
                      <!-- tuned -->\n  <property>\n    <name>mapred.child.java.opts</name>\n    \
                      <value>-Xmx512m</value>\n    <final>true</final>\n  </property>\n",
                ),
            ),
        ]),
        "2" => BTreeMap::from([
            core,
            (
                "hadoop-env.sh",
                [odd, b"export HADOOP_NAMENODE_OPTS=\"-Xmx1g $HADOOP_NAMENODE_OPTS\"\n".to_vec()].concat(),
            ),
            ("yarn-env.sh", b"YARN_NODEMANAGER_OPTS=-Xmx512m".to_vec()),
            ("mapred-env.sh", Vec::new()),
            (
                "mapred-site.xml",
                site(
                    "  <property><name>mapreduce.framework.name</name><value>yarn</value></property>\n  <property><name>\
                      mapreduce.admin.map.child.java.opts</name><value>-Da=b</value></property>\n",
                ),
            ),
        ]),
        // No mapred-site.xml, as in a distribution, and one env file for all.
        "3" => BTreeMap::from([
            core,
            ("hadoop-env.sh", b"export HADOOP_OS_TYPE=${HADOOP_OS_TYPE:-$(uname -s)}\n".to_vec()),
        ]),
        other => panic!("{other}"),
    }
}

/// What kind of hosts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Root logs in.
    Plain,
    /// So may `OPERATOR`, who becomes root by sudo.
    Sudo,
    /// The first process is a systemd.
    Systemd,
}

/// Who logs in on hosts with sudo.
pub const OPERATOR: &str = "rig-operator";

pub struct Rig {
    pub folder: tempfile::TempDir,
    sshds: Vec<Child>,
    /// Control groups of hosts with a systemd.
    groups: Vec<PathBuf>,
    pub hosts: Vec<String>,
}

impl Rig {
    /// Hosts h1, h2, ...
    pub fn new(hosts: usize, generation: &str) -> Self {
        Self::of_kind(Kind::Plain, hosts, generation)
    }

    /// The same, of some kind.
    pub fn of_kind(kind: Kind, hosts: usize, generation: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("hadoptic-rig-").tempdir_in("/tmp").unwrap();
        let at = folder.path().display().to_string();
        sh(&format!(
            "chmod 755 {at}; mkdir {at}/host {at}/etc {at}/home; ssh-keygen -q -t ed25519 -N '' -f {at}/key; ssh-keygen -q -t ed25519 -N '' -f {at}/hostkey"
        ));
        let mut rig = Self { folder, sshds: Vec::new(), groups: Vec::new(), hosts: Vec::new() };
        rig.give_root_a_home();
        if kind == Kind::Sudo {
            rig.add_operator();
        }
        // What goes either way ends with the other.
        let proxy = "exec 3<>/dev/tcp/127.0.0.1/22\ncat <&3 &\ntrap \"kill $!\" EXIT\ncat >&3\n";
        fs::write(rig.path("proxy"), proxy).unwrap();
        let mut config = String::new();
        for number in 1..=hosts {
            let host = format!("h{number}");
            fs::create_dir_all(rig.of(&host).join("conf")).unwrap();
            for (name, text) in conf(generation) {
                fs::write(rig.of(&host).join("conf").join(name), text).unwrap();
            }
            rig.start_host(kind, &host);
            let pid = rig.sshds.last().unwrap().id();
            config.push_str(&format!(
                "Host {host}\n  User root\n  IdentityFile {at}/key\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n  \
                 UserKnownHostsFile {at}/known_hosts\n  ProxyCommand nsenter -t {pid} -n bash {at}/proxy\n"
            ));
            rig.hosts.push(host);
        }
        fs::write(rig.path("config"), config).unwrap();
        fs::write(rig.path("workers"), format!("# the cluster\n{}\n", rig.hosts.join("\n"))).unwrap();
        rig
    }

    /// A home of its own for root: the start files of the machine's shells say nothing about the program.
    fn give_root_a_home(&self) {
        let home = self.path("home").display().to_string();
        sh(&format!(
            "awk -F: -v OFS=: -v home={home} '$1 == \"root\" {{ $6 = home; $7 = \"/bin/bash\" }} 1' /etc/passwd >{}",
            self.path("etc/passwd").display()
        ));
    }

    /// Files of /etc with one more user, who may become root. The machine's own are not touched: hosts get these in their
    /// place.
    fn add_operator(&self) {
        let etc = self.path("etc");
        sh(&format!(
            "cd {}; cp -a /etc/group .; echo '{OPERATOR}:x:4242:4242::/:/bin/sh' >>passwd; \
             echo '{OPERATOR}:x:4242:' >>group; cut -d: -f1 passwd | sed 's/$/:*:19000:0:99999:7:::/' >shadow; \
             chmod 600 shadow; printf 'Defaults env_reset,use_pty\nDefaults secure_path=/usr/sbin:/usr/bin:/sbin:/bin\n\
             {OPERATOR} ALL=(ALL) NOPASSWD: ALL\n' >sudoers; chmod 440 sudoers",
            etc.display()
        ));
    }

    fn start_host(&mut self, kind: Kind, host: &str) {
        let at = self.folder.path().display().to_string();
        fs::write(
            self.path(&format!("{host}.sshd")),
            format!(
                "Port 22\nListenAddress 127.0.0.1\nHostKey {at}/hostkey\nAuthorizedKeysFile {at}/key.pub\nPidFile none\n\
                 PermitRootLogin prohibit-password\nPasswordAuthentication no\nUsePAM no\nStrictModes no\nMaxStartups 100\n"
            ),
        )
        .unwrap();
        // Files of its own: users are made and removed there.
        let over =
            format!("cp -a /etc {at}/{host}.etc; cp -a {at}/etc/. {at}/{host}.etc/; mount --bind {at}/{host}.etc /etc");
        let setup = format!(
            "{over}; ip link set lo up; mount -t tmpfs tmpfs /run; mkdir /run/sshd; mount --bind {at}/{host} {at}/host; \
             hostname {host}; exec /usr/sbin/sshd -D -E {at}/{host}.log -f {at}/{host}.sshd"
        );
        let log = self.path(&format!("{host}.log"));
        let mut command = match kind {
            Kind::Systemd => {
                // A group of its own, which systemd divides as it likes.
                let group = groups().unwrap().join(self.folder.path().file_name().unwrap()).join(host);
                fs::create_dir_all(&group).unwrap();
                let mut command = Command::new("sh");
                let own = "echo $$ >\"$0/cgroup.procs\"; exec unshare --cgroup --pid --fork --kill-child --mount --net \
                           --uts --ipc sh -e \"$@\"";
                let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/systemd_host.sh");
                command.args(["-ec", own]).arg(&group).arg(script).args([&at, host]);
                self.groups.push(group);
                command
            }
            _ => {
                let mut command = Command::new("unshare");
                command.args(["-n", "-m", "-u", "sh", "-ec", &setup]);
                command
            }
        };
        let said = fs::File::create(self.path(&format!("{host}.said"))).unwrap();
        let child = command.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said).spawn().unwrap();
        self.sshds.push(child);
        wait_until("sshd listens", || fs::read_to_string(&log).is_ok_and(|text| text.contains("Server listening")));
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A host's folder, as the test sees it.
    pub fn of(&self, host: &str) -> PathBuf {
        self.path(host)
    }

    /// The same as the host sees it.
    pub fn there(&self, name: &str) -> String {
        self.path("host").join(name).display().to_string()
    }

    /// A command of the program; the programs themselves have to be named where they are sent.
    pub fn command(&self, command: &str, more: &[&str]) -> Command {
        let mut hadoptic = Command::new(env!("CARGO_BIN_EXE_hadoptic"));
        hadoptic.arg(command).arg("--workers").arg(self.path("workers")).arg("--ssh-config").arg(self.path("config"));
        hadoptic.args(["--prefix", &self.there("opt/hadoptic"), "--capture-dir", &self.there("cap")]);
        hadoptic.args(["--conf-dir", &self.there("conf")]);
        if ["check", "install"].contains(&command) {
            hadoptic
                .arg("--jar")
                .arg(jar())
                .arg("--sniffer")
                .arg(program("sniffer"))
                .arg("--dumpingd")
                .arg(program("dumpingd"));
        }
        // This machine's disk is not the hosts'.
        match command {
            "check" => drop(hadoptic.args(["--need-free", "64MiB"])),
            "install" => drop(hadoptic.args(["--keep-free", "64MiB"])),
            _ => (),
        }
        // What a kill leaves goes with the test.
        hadoptic.args(more).env("TMPDIR", self.folder.path()).stdin(Stdio::null());
        hadoptic
    }

    pub fn run(&self, command: &str, more: &[&str]) -> (i32, Value) {
        let output = self.command(command, more).arg("--json").output().unwrap();
        report(command, &output)
    }

    /// It must do without a problem.
    pub fn ok(&self, command: &str, more: &[&str]) -> Value {
        let (code, report) = self.run(command, more);
        assert_eq!((code, &report["ok"]), (0, &Value::Bool(true)), "{command}: {report:#}");
        report
    }

    /// It must run and find something wrong.
    pub fn wrong(&self, command: &str, more: &[&str]) -> Value {
        let (code, report) = self.run(command, more);
        assert_eq!((code, &report["ok"]), (1, &Value::Bool(false)), "{command}: {report:#}");
        report
    }

    /// Runs something on a host, in its namespaces.
    pub fn on(&self, host: &str, command: &str) -> Output {
        self.enter(host, command).output().unwrap()
    }

    /// The same, not started yet.
    pub fn enter(&self, host: &str, command: &str) -> Command {
        let number: usize = host[1..].parse().unwrap();
        let first = self.sshds[number - 1].id().to_string();
        let mut enter = Command::new("nsenter");
        if self.groups.is_empty() {
            enter.args(["-t", &first, "-n", "-m", "-u"]);
        } else {
            // What was started waits for the host's first process, and is not among the host's processes itself.
            let child = fs::read_to_string(format!("/proc/{first}/task/{first}/children")).unwrap();
            enter.args(["-t", child.trim(), "-n", "-m", "-u", "-i", "-p", "-C"]);
        }
        enter.args(["sh", "-ec", command]);
        enter.stdin(Stdio::null());
        enter
    }

    /// A file of a host's /etc; not on hosts with a systemd.
    pub fn etc(&self, host: &str, name: &str) -> PathBuf {
        self.path(&format!("{host}.etc")).join(name)
    }

    /// Everything below a host's folder: mode, owner and checksum by path.
    pub fn tree(&self, host: &str) -> Tree {
        let mut found = BTreeMap::new();
        walk(&self.of(host), &self.of(host), &mut found);
        found
    }
}

pub fn report(command: &str, output: &Output) -> (i32, Value) {
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{command}: {error}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    });
    (output.status.code().unwrap_or(-1), report)
}

/// All problems of a report, in one text.
pub fn problems(report: &Value) -> String {
    let texts = |value: &Value| -> Vec<String> {
        value["problems"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut all = texts(report);
    all.extend(report["hosts"].as_array().unwrap().iter().flat_map(texts));
    all.join("\n")
}

pub type Tree = BTreeMap<String, (u32, u32, String)>;

/// All that differs.
pub fn differ(before: &[Tree], after: &[Tree]) -> Vec<String> {
    let mut report = Vec::new();
    for (host, (before, after)) in before.iter().zip(after).enumerate() {
        let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names.into_iter().filter(|name| before.get(*name) != after.get(*name)) {
            report.push(format!("h{}/{name}: {:?} -> {:?}", host + 1, before.get(name), after.get(name)));
        }
    }
    report
}

fn walk(root: &Path, at: &Path, found: &mut Tree) {
    for entry in fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        let about = fs::symlink_metadata(&path).unwrap();
        let bytes = if about.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        let name = path.strip_prefix(root).unwrap().display().to_string();
        found.insert(name, (about.permissions().mode(), about.uid(), deploy::digest::of(&bytes)));
        if about.is_dir() {
            walk(root, &path, found);
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        for sshd in &mut self.sshds {
            // Whatever runs in the host's network namespace was started by this test.
            let space = fs::read_link(format!("/proc/{}/ns/net", sshd.id())).ok();
            for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
                let pid = process.file_name().to_string_lossy().parse::<i32>();
                let same = fs::read_link(process.path().join("ns/net")).ok();
                if let (Ok(pid), true) = (pid, space.is_some() && same == space) {
                    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
                }
            }
            let _ = sshd.kill();
            let _ = sshd.wait();
        }
        for group in &self.groups {
            // Innermost first, once the last process has gone.
            let tidy = "until find \"$0\" -depth -type d -exec rmdir {} + 2>/dev/null; do sleep 0.05; done";
            let _ = Command::new("timeout").args(["10", "sh", "-c", tidy]).arg(group).status();
            let _ = group.parent().map(fs::remove_dir);
        }
    }
}

/// Where control groups of the second version are, if they are: systemd wants them.
fn groups() -> Option<PathBuf> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = table.lines().find(|line| line.contains(" - cgroup2 "))?;
    Some(PathBuf::from(line.split(' ').nth(4)?))
}

/// What tests with hosts of this kind lack here, if they lack something.
pub fn missing(kind: Kind) -> Option<String> {
    let lacks = |path: &str| !Path::new(path).exists();
    for (path, package) in [("/usr/sbin/sshd", "openssh-server"), ("/usr/bin/ssh", "openssh-client")] {
        if lacks(path) {
            return Some(format!("no {path} (package {package})"));
        }
    }
    if let Some(path) = [jar(), program("sniffer"), program("dumpingd")].iter().find(|path| !path.exists()) {
        return Some(format!("no {} (`make agents`)", path.display()));
    }
    if Command::new("java").arg("-version").output().is_err() {
        return Some("no Java".to_owned());
    }
    match kind {
        Kind::Sudo if lacks("/usr/bin/sudo") => Some("no sudo (package sudo)".to_owned()),
        Kind::Systemd if lacks("/usr/lib/systemd/systemd") => Some("no systemd (package systemd)".to_owned()),
        Kind::Systemd if groups().is_none() => Some("no control groups of the second version".to_owned()),
        _ => None,
    }
}
