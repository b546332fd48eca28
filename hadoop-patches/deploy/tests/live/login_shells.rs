//! Login shells that say something of their own: a greeting is no answer, and who does not run what is asked is heard.

use std::fs;
use std::process::Command;

use crate::support::{Kind, Rig, differ, missing, problems, sh};
use test_support::skip_if;

const GREETING: &str = "echo 'Welcome to the cluster.'\necho 'Be good.' >&2\nprintf 'No end of line'\n";

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn greetings_are_no_answers() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    fs::write(rig.path("home/.bashrc"), GREETING).unwrap();
    let mut ssh = Command::new("ssh");
    let heard = ssh.arg("-F").arg(rig.path("config")).args(["-o", "LogLevel=ERROR", "h1", "true"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&heard.stdout), "Welcome to the cluster.\nNo end of line");

    let before = rig.tree("h1");
    let checked = rig.ok("check", &[]);
    assert!(checked["hosts"][0]["clock"]["uncertainty_ns"].as_i64().unwrap() > 0, "{checked:#}");
    rig.ok("install", &[]);
    rig.ok("start", &[]);
    rig.ok("status", &[]);
    rig.ok("stop", &[]);
    let out = rig.path("capture");
    rig.ok("collect", &["--out", out.to_str().unwrap()]);
    let there = rig.of("h1").join("cap/h1/sniffer.json");
    assert_eq!(fs::read(out.join("h1/sniffer.json")).unwrap(), fs::read(there).unwrap());
    rig.ok("remove", &[]);
    assert_eq!(differ(&[before], &[rig.tree("h1")]), [""; 0], "nothing is left");
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn an_account_that_is_closed_says_so() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    let passwd = rig.etc("h1", "passwd");
    let closed = fs::read_to_string(&passwd).unwrap().replacen("/bin/bash", "/usr/sbin/nologin", 1);
    fs::write(&passwd, closed).unwrap();
    sh(&format!("grep -q ^root:.*nologin$ {}", passwd.display()));
    let said = problems(&rig.wrong("check", &["--quick"]));
    assert!(said.contains("This account is currently not available"), "{said}");
}
