//! Each host lets people in by ssh, as root with all rights, and what is put there is on no other host and not on the machine.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const PREFIX: &str = "tssh";

/// What a login on a host prints; it has to end well.
fn login(run: &Path, host: &str, command: &str) -> String {
    let mut ssh = Command::new("ssh");
    ssh.arg("-F").arg(run.join("ssh/config")).args([host, command]).stdin(Stdio::null());
    let output = ssh.output().unwrap();
    assert!(output.status.success(), "{host}: {command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What is mounted on the machine where hosts have files of their own. (Other labs may come and go in /run/netns.)
fn mounts() -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let ours = |point: &&str| {
        ["/etc", "/opt", "/var/lib"].iter().any(|place| point.starts_with(place))
            || *point == "/run"
            || point.contains("/hadoptic-lab-tssh-")
    };
    points.filter(ours).map(str::to_owned).collect()
}

#[test]
#[ignore = "needs root: hosts in namespaces"]
fn logins_see_their_host_only() {
    let _turn = crate::common::turn();
    let (before, there) = (mounts(), Path::new("/opt/hadoptic-of-a-test").exists());
    let arguments = format!(
        "run --prefix {PREFIX} --workers 1 --size 1MB --output-replication 1 --links unshaped --uplink unshaped"
    );
    // The files of the cluster are there once the first daemon starts.
    let (mut child, said) = crate::common::start_until(&arguments, "starting NameNode");
    let inodes = crate::common::inodes_of(PREFIX);
    let work = crate::common::work_of(PREFIX);

    assert_eq!(fs::read_to_string(work.join("workers")).unwrap(), "w1\n");
    assert_eq!(fs::read_to_string(work.join("masters")).unwrap(), "m1\n");
    for host in ["m1", "w1"] {
        let said =
            login(&work, host, "hostname; id -u; grep CapEff /proc/self/status; ls /etc/hadoop/conf/hadoop-env.sh");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!((lines[0], lines[1]), (host, "0"));
        let capabilities = u64::from_str_radix(lines[2].split_whitespace().last().unwrap(), 16).unwrap();
        // CAP_NET_RAW, CAP_SYS_PTRACE, CAP_SYS_ADMIN: what the agents begin with.
        assert_eq!(capabilities & (1 << 13 | 1 << 19 | 1 << 21), 1 << 13 | 1 << 19 | 1 << 21);
    }
    let own = "mkdir -p /opt/hadoptic-of-a-test /var/lib/hadoptic-of-a-test; touch /etc/hadoptic-of-a-test /run/here ~/hadoptic-of-a-test; ls /opt";
    assert!(login(&work, "w1", own).contains("hadoptic-of-a-test"));
    let nothing = "ls -d /opt/hadoptic-of-a-test /var/lib/hadoptic-of-a-test /etc/hadoptic-of-a-test /run/here ~/hadoptic-of-a-test; true";
    assert_eq!(login(&work, "m1", nothing), "");
    assert_eq!(Path::new("/opt/hadoptic-of-a-test").exists(), there);
    assert!(!Path::new("/var/lib/hadoptic-of-a-test").exists() && !Path::new("/etc/hadoptic-of-a-test").exists());
    let home = std::env::var_os("HOME").unwrap_or_default();
    assert!(
        !Path::new(&home).join("hadoptic-of-a-test").exists(),
        "what is written at home comes to the machine's root"
    );
    let shadow = login(&work, "w1", "cat /etc/shadow");
    assert!(shadow.lines().all(|line| line.contains(":*:")), "no password of the machine's may come here");
    // tracefs can be mounted there, and is not on the machine.
    login(&work, "w1", "unshare -m sh -c 'mount -t tracefs none /mnt && test -e /mnt/events/sock/inet_sock_set_state'");
    assert!(login(&work, "m1", "hadoop version").starts_with("Hadoop 3.4.2"));

    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    drop(said);
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert_eq!(crate::common::traces(PREFIX, &inodes, Some(&work)), crate::common::Traces::default());
    assert_eq!(mounts(), before, "a mount of the lab's stayed on the machine");
}
