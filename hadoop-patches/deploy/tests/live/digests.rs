//! Digests that are made on the hosts: of what was recorded, of all of it that collect would fetch, once, and by nobody's
//! leave but the operator's.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{Kind, Rig, differ, missing, problems, program, sh, wait_until};
use test_support::skip_if;

/// Somebody without any right.
const USER: u32 = 65534;
/// Hosts of the golden terasort that are used.
const WORKERS: [&str; 2] = ["w1", "w2"];

fn lacking() -> Option<String> {
    let lacks_merger = !program("merger").exists();
    missing(Kind::Plain).or_else(|| lacks_merger.then(|| "no merger (`make tables`)".to_owned()))
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/terasort")
}

/// A file as it was recorded, before it was packed to be kept.
fn unpack(from: &Path, to: &Path) {
    let mut bytes = Vec::new();
    trace::files::open(from).unwrap().read_to_end(&mut bytes).unwrap();
    fs::write(to, bytes).unwrap();
}

/// Hosts that are called w1 and w2 and have recorded what those of the golden terasort have: agents in one folder, JVMs of root
/// in another.
fn recorded() -> Rig {
    let rig = Rig::new(WORKERS.len(), "3");
    for (host, worker) in rig.hosts.iter().zip(WORKERS) {
        assert!(rig.on(host, &format!("hostname {worker}")).status.success());
    }
    rig.ok("install", &[]);
    for (host, worker) in rig.hosts.iter().zip(WORKERS) {
        let agents = rig.of(host).join("cap").join(worker);
        let jvms = rig.of(host).join("cap/jvm/0");
        fs::create_dir_all(&jvms).unwrap();
        for entry in fs::read_dir(golden().join(worker)).unwrap() {
            let from = entry.unwrap().path();
            let name = from.file_name().unwrap().to_str().unwrap().trim_end_matches(".zst").to_owned();
            unpack(&from, &if name.starts_with("jvm-") { jvms.join(&name) } else { agents.join(&name) });
        }
        // As the agents leave it.
        let there = rig.there("cap");
        let settle = format!(
            "chown -R --reference={there}/{worker} {there}/{worker} {there}/jvm/0 && chown -R 0 {there}/jvm/0 && chmod 2750 {there}/jvm/0 && chmod 640 {there}/jvm/0/*"
        );
        assert!(rig.on(host, &settle).status.success());
    }
    rig
}

fn host<'a>(report: &'a Value, key: &str) -> &'a Value {
    &report["hosts"][0][key]
}

/// All files of a trace, and its manifest without the folders' names.
fn trace_of(rig: &Rig, capture: &Path) -> BTreeMap<String, Vec<u8>> {
    let job = capture.join("job");
    fs::create_dir_all(&job).unwrap();
    for entry in fs::read_dir(golden().join("job")).unwrap() {
        let from = entry.unwrap().path();
        fs::copy(&from, job.join(from.file_name().unwrap())).unwrap();
    }
    let out = rig.path(&format!("trace-of-{}", capture.file_name().unwrap().display()));
    let built = Command::new(program("merger")).arg("build").arg(capture).arg("--out").arg(&out).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let files = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let mut bytes = fs::read(&path).unwrap();
            if name.ends_with(".json") {
                let mut manifest: Value = serde_json::from_slice(&bytes).unwrap();
                manifest.as_object_mut().unwrap().remove("captures");
                bytes = serde_json::to_vec(&manifest).unwrap();
            }
            (name, bytes)
        })
        .collect()
}

fn same(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>) {
    assert!(a.len() > 5 && a.keys().eq(b.keys()), "{:?} {:?}", a.keys(), b.keys());
    let differing: Vec<_> = a.iter().filter(|(name, bytes)| b[*name] != **bytes).map(|(name, _)| name).collect();
    assert!(differing.is_empty(), "{differing:?} differ");
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn a_trace_of_digests_is_that_of_what_was_recorded_whatever_users_do() {
    skip_if!(lacking());
    let rig = recorded();
    let (raw, digests) = (rig.path("raw"), rig.path("digests"));
    let (raw_out, digests_out) = (raw.to_str().unwrap(), digests.to_str().unwrap());
    // A user of the first host: a file of terabytes with nothing in it, links, a pipe, and a digest that he prepared, his own
    // records among them.
    let own = rig.of("h1").join(format!("cap/jvm/{USER}"));
    sh(&format!(
        "mkdir -p {0}; cd {0}; echo '{{}}' >jvm-6-6.jsonl; truncate -s 3T jvm-1-1.jsonl; ln -s /etc/shadow jvm-2-2.jsonl; \
         ln -s ../0/$(ls ../0 | head -n 1) jvm-3-3.jsonl; mkfifo jvm-4-4.jsonl; head -c 99 /dev/urandom >digest.hdg.zst; \
         cp digest.hdg.zst ../digest.hdg.zst; chown -hR {USER} {0}; chgrp --reference=../0 {0} *.jsonl; chmod 2750 {0}; \
         chmod 640 jvm-6-6.jsonl jvm-1-1.jsonl",
        own.display()
    ));

    let report = rig.wrong("collect", &["--out", raw_out]);
    let left = problems(&report);
    assert!(left.contains("are more than is fetched of one"), "{left}");
    let refused = problems(&rig.wrong("digest", &["--memory", "16MiB"]));
    assert!(refused.contains("allow more with --memory"), "{refused}");
    let report = rig.wrong("digest", &[]);
    assert_eq!(problems(&report), left, "the same stays there, and nothing else is wrong");
    assert_eq!(host(&report, "made"), true);
    let size = host(&report, "digest_bytes").as_u64().unwrap();
    assert!(size * 5 < host(&report, "capture_bytes").as_u64().unwrap(), "{report:#}");
    assert!(host(&report, "packets").as_u64().unwrap() > 100_000, "{report:#}");
    // Nobody but the agents' user and root reads it, and no copy is left.
    let folder = rig.of("h1").join("cap/w1");
    assert_eq!(fs::metadata(folder.join(".digest")).unwrap().permissions().mode() & 0o7777, 0o700);
    assert!(!folder.join("jvm").exists());

    // It is made once of the same files: also if one looks like it, and is another.
    let made = |report: &Value| host(report, "made") == true;
    let digest = |more: &[&str]| rig.run("digest", more).1;
    assert!(!made(&digest(&[])));
    let file = folder.join(".digest/digest.hdg.zst");
    let whole = fs::read(&file).unwrap();
    let mut fake = whole.clone();
    fake[99] ^= 1;
    fs::write(&file, &fake).unwrap();
    assert!(made(&digest(&[])), "a digest that was changed is not taken");
    assert!(fs::read(&file).unwrap() == whole, "the same files make the same digest");
    fs::write(folder.join(".digest/of"), "of something else").unwrap();
    assert!(made(&digest(&[])), "one of unknown files is not taken");
    let record = rig.of("h1").join("cap/jvm/0");
    let record = fs::read_dir(&record).unwrap().next().unwrap().unwrap().path();
    let text = fs::read(&record).unwrap();
    fs::write(&record, &text).unwrap();
    assert!(made(&digest(&[])), "a file that was written again may be another");

    let report = rig.wrong("collect", &["--out", digests_out, "--digest"]);
    assert!(!made(&report) && problems(&report) == left, "{report:#}");
    assert_eq!(host(&report, "had_bytes"), 0);
    let report = rig.wrong("collect", &["--out", digests_out, "--digest"]);
    assert_eq!(host(&report, "had_bytes"), size, "{report:#}");
    same(&trace_of(&rig, &raw), &trace_of(&rig, &digests));

    // One capture holds the one or the other.
    assert!(problems(&rig.wrong("collect", &["--out", raw_out, "--digest"])).contains("without --digest"));
    assert!(problems(&rig.wrong("collect", &["--out", digests_out])).contains("with --digest"));
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn no_digest_is_made_where_it_could_harm() {
    skip_if!(lacking());
    let rig = Rig::new(1, "3");
    let before = rig.tree("h1");
    assert!(problems(&rig.wrong("digest", &[])).contains("nothing was recorded"));
    rig.ok("install", &[]);
    rig.ok("start", &[]);
    let refused = problems(&rig.wrong("digest", &[]));
    assert!(refused.contains("sniffer and dumpingd still run: hadoptic stop first"), "{refused}");
    assert!(!rig.of("h1").join("opt/hadoptic/bin/merger").exists());
    let report = rig.ok("digest", &["--while-recording"]);
    assert_eq!(host(&report, "made"), true);
    rig.ok("stop", &[]);

    // Programs that do not run there, or are none, are not left there.
    let bad = rig.path("bad");
    fs::write(&bad, [b"\x7fELF\x02\x01\x01".as_slice(), &[0; 200]].concat()).unwrap();
    let said = problems(&rig.wrong("digest", &["--merger", bad.to_str().unwrap()]));
    assert!(said.contains("merger does not run on this") && said.contains("collect without --digest"), "{said}");
    let said = problems(&rig.wrong("digest", &["--merger", "/bin/ls"]));
    assert!(said.contains("names no merger"), "{said}");
    let there = fs::read(rig.of("h1").join("opt/hadoptic/bin/merger")).unwrap();
    assert!(there == fs::read(program("merger")).unwrap(), "the one that was there stays");
    assert!(!rig.of("h1").join("opt/hadoptic/new").exists());

    // What stands in the digest's place and is no folder of the agents' user: a link, or another's folder.
    let folder = rig.of("h1").join("cap/h1");
    let victim = rig.of("h1").join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("digest.hdg.zst"), "root's").unwrap();
    for name in [".digest", "jvm"] {
        let _ = fs::remove_dir_all(folder.join(name));
        symlink(rig.there("victim"), folder.join(name)).unwrap();
        let said = problems(&rig.wrong("digest", &[]));
        assert!(said.contains("no folder of the agents' user"), "{said}");
        fs::remove_file(folder.join(name)).unwrap();
        sh(&format!("mkdir {0}; chown {USER} {0}", folder.join(name).display()));
        let said = problems(&rig.wrong("digest", &[]));
        assert!(said.contains("no folder of the agents' user"), "{said}");
        fs::remove_dir(folder.join(name)).unwrap();
    }
    assert_eq!(fs::read_to_string(victim.join("digest.hdg.zst")).unwrap(), "root's");
    // A folder in which others may write holds no digest.
    sh(&format!("chmod 1777 {}", folder.display()));
    let said = problems(&rig.wrong("digest", &[]));
    assert!(said.contains("not the folder of the agents alone"), "{said}");
    sh(&format!("chmod 750 {}; rm -r {}", folder.display(), victim.display()));

    // It goes last in everything, and ends with who wanted it.
    let slow = rig.path("slow");
    fs::write(&slow, "#!/bin/sh\n[ \"$1\" != --version ] || { echo merger slow; exit; }\nexec sleep 4711\n").unwrap();
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).unwrap();
    let mut operator = rig.command("digest", &["--merger", slow.to_str().unwrap()]).spawn().unwrap();
    let process = || {
        let find = "for p in /proc/[0-9]*; do [ \"$(readlink $p/ns/net)\" = \"$(readlink /proc/self/ns/net)\" ] && \
                    grep -q -a 4711 $p/cmdline && [ \"$(cat $p/comm)\" = sleep ] && echo ${p#/proc/}; done; true";
        String::from_utf8(rig.on("h1", find).stdout).unwrap().trim().to_owned()
    };
    wait_until("the program runs", || !process().is_empty());
    let about = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", process())).unwrap();
    let stat = about("stat");
    assert_eq!(stat.rsplit(')').next().unwrap().split_whitespace().nth(16), Some("19"), "{stat}");
    assert_eq!(about("oom_score_adj").trim(), "1000");
    let limits = about("limits");
    assert!(
        limits.lines().any(|line| line.starts_with("Max address space") && !line.contains("unlimited")),
        "{limits}"
    );
    assert!(limits.lines().any(|line| line.starts_with("Max file size") && !line.contains("unlimited")), "{limits}");
    let owner = fs::metadata(format!("/proc/{}", process())).unwrap().uid();
    assert_eq!(owner, fs::metadata(&folder).unwrap().uid(), "the agents' user runs it");
    assert_ne!(owner, 0);
    operator.kill().unwrap();
    operator.wait().unwrap();
    wait_until("it ends", || process().is_empty());
    wait_until("what it left goes", || !folder.join(".digest/tmp").exists());

    rig.ok("digest", &[]);
    rig.ok("remove", &[]);
    assert_eq!(differ(&[before], &[rig.tree("h1")]), [""; 0], "nothing is left");
}

#[test]
#[ignore = "needs root: acts as other users"]
fn a_container_reads_what_its_user_may_read_and_takes_no_other_program() {
    skip_if!((!program("merger").exists()).then_some("no merger (`make tables`)"));
    // HDFS is a folder here.
    let folder = tempfile::Builder::new().prefix("hadoptic-container-").tempdir_in("/tmp").unwrap();
    let at = folder.path().display().to_string();
    let (capture, hdfs, merger) = (format!("{at}/capture"), format!("{at}/hdfs"), program("merger"));
    let host = nix::unistd::gethostname().unwrap().into_string().unwrap();
    let hadoop = "#!/bin/sh\nshift\ncase $1 in -test) [ -e \"$3\" ] ;; -mkdir) shift; mkdir \"$@\" ;; -get | -put) cp \"$2\" \"$3\" ;; esac\n";
    fs::write(folder.path().join("hadoop"), hadoop).unwrap();
    sh(&format!(
        "cd {at}; chmod 755 . hadoop; mkdir -p hdfs/.claims capture/{host} capture/jvm/0 cwd; cp {0} hdfs/.merger; cp {1}/* capture/{host}; \
         mv capture/{host}/jvm-* capture/jvm/0; chmod 750 capture/{host}; chmod 600 capture/{host}/*; chmod 2750 capture/jvm/0; \
         chgrp -R {USER} capture/jvm/0; chown -R {USER}:{USER} capture/{host} hdfs; chmod 777 cwd",
        merger.display(),
        golden().join("w1").display()
    ));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("yarn/digest-on-yarn.sh");
    let sum = deploy::digest::of(&fs::read(&merger).unwrap());
    let container = |uid: u32, sum: &str| {
        let mut call = Command::new("setpriv");
        call.arg(format!("--reuid={uid}")).arg(format!("--regid={USER}")).args(["--clear-groups", "sh", "-s", "--"]);
        call.args(["--in-container", &hdfs, &capture, sum, "256", "no", &format!("{at}/hadoop")]);
        call.current_dir(format!("{at}/cwd")).stdin(fs::File::open(&script).unwrap());
        let output = call.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    // One of the same group, as files are not.
    let (_, said) = container(USER - 1, &sum);
    assert!(said.contains("may not read") && said.contains("dumpingd.json"), "{said}");
    let (done, said) = container(USER, &deploy::digest::of(b"another program"));
    assert!(!done && said.contains("is not the program that was put there"), "{said}");
    let digest = Path::new(&hdfs).join(&host).join("digest.hdg.zst");
    assert!(!digest.exists());
    // It left its host, and whoever calls again clears the claims.
    fs::remove_dir(Path::new(&hdfs).join(".claims").join(&host)).unwrap();
    let (done, said) = container(USER, &sum);
    assert!(done && fs::metadata(&digest).unwrap().len() > 100_000, "{said}");
    assert_eq!(fs::read_dir(format!("{at}/cwd")).unwrap().count(), 0, "nothing is left in the container's folder");
    // Made already: nothing is done, with whatever program.
    let before = fs::metadata(&digest).unwrap().modified().unwrap();
    assert!(container(USER, "").0);
    assert_eq!(fs::metadata(&digest).unwrap().modified().unwrap(), before);
}
