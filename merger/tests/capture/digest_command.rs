//! `merger digest`: what a merge makes of digests is what it makes of the capture, byte for byte; a digest that is not whole is
//! refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::foreign_captures::write_tcpdump_capture;
use crate::world::wire::{rpc_preamble, rpc_request, rpc_response};
use crate::world::{World, at, golden_captures};

const DIGEST: &str = "digest.hdg.zst";

fn merger(arguments: &[&str], paths: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_merger")).args(arguments).args(paths).output().unwrap()
}

fn succeeds(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

fn digest(capture: &Path, out: &Path) -> Value {
    let output = merger(&["digest", "--json", "--out"], &[out, capture]);
    succeeds(&output);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The files of the trace of these captures.
fn trace(captures: &[&Path]) -> BTreeMap<String, Vec<u8>> {
    let out = tempfile::tempdir().unwrap();
    let paths: Vec<&Path> = std::iter::once(out.path()).chain(captures.iter().copied()).collect();
    succeeds(&merger(&["build", "--memory", "8GiB", "--out"], &paths));
    let files = fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut trace: BTreeMap<String, Vec<u8>> =
        files.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap())).collect();
    // All but the folders that it was made of.
    let mut manifest: Value = serde_json::from_slice(&trace["manifest.json"]).unwrap();
    assert_eq!(manifest.as_object_mut().unwrap().remove("captures").unwrap().as_array().unwrap().len(), captures.len());
    trace.insert("manifest.json".into(), manifest.to_string().into_bytes());
    trace
}

fn assert_same(captures: &[&Path], digests: &[&Path]) {
    let (expected, found) = (trace(captures), trace(digests));
    assert!(expected.len() > 5 && expected.keys().eq(found.keys()));
    for (name, bytes) in &expected {
        assert!(bytes == &found[name], "{name} of {captures:?} is another one of {digests:?}");
    }
}

fn golden(name: &str) -> PathBuf {
    golden_captures().into_iter().find(|path| path.ends_with(name)).unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

/// Two hosts and a little talk.
fn talk(folder: &Path) {
    let mut world = World::new(&["m1", "w1"]);
    let mut talk = world.connect((1, 40_000), (0, 8020), [100, 200], at(0));
    world.own(&talk, at(0), (50, "DataNode"), (60, "NameNode"));
    world.say(&mut talk, true, at(1), &rpc_preamble());
    world.say(&mut talk, true, at(2), &rpc_request(0, "sendHeartbeat", 30));
    world.say(&mut talk, false, at(3), &rpc_response(0, 30));
    world.hosts[0].recorded_ns = Some((at(0), at(9)));
    world.write(folder);
}

#[test]
fn digests_of_golden_captures_make_the_same_traces() {
    for capture in golden_captures() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("digests");
        let stated = digest(&capture, &out);
        let hosts = stated["hosts"].as_array().unwrap();
        assert!(hosts.len() >= 3 && stated["job_files"].as_u64().unwrap() >= 2);
        for host in hosts {
            let file = Path::new(host["file"].as_str().unwrap());
            assert_eq!(fs::metadata(file).unwrap().len(), host["digest_bytes"].as_u64().unwrap());
            assert!(host["digest_bytes"].as_u64() < host["capture_bytes"].as_u64(), "{host}");
        }
        assert_same(&[&capture], &[&out]);
    }
}

#[test]
fn digests_of_captures_without_payload_make_the_same_traces() {
    for capture in golden_captures() {
        let folder = tempfile::tempdir().unwrap();
        let (stripped, out) = (folder.path().join("stripped"), folder.path().join("digests"));
        succeeds(&merger(&["strip", "--out"], &[&stripped, &capture]));
        digest(&stripped, &out);
        assert_same(&[&stripped], &[&out]);
    }
}

#[test]
fn digests_and_folders_of_hosts_may_lie_beside_each_other() {
    let capture = golden("wordcount");
    let folder = tempfile::tempdir().unwrap();
    let (out, mixed, rest) = (folder.path().join("digests"), folder.path().join("mixed"), folder.path().join("rest"));
    digest(&capture, &out);
    copy(&out, &mixed);
    for host in ["m1", "w3"] {
        fs::remove_dir_all(mixed.join(host)).unwrap();
        copy(&capture.join(host), &mixed.join(host));
    }
    assert_same(&[&capture], &[&mixed]);
    // One host by itself, beside a capture without it.
    let alone = folder.path().join("alone");
    digest(&capture.join("w2"), &alone);
    copy(&capture, &rest);
    fs::remove_dir_all(rest.join("w2")).unwrap();
    assert_same(&[&capture], &[&rest, &alone]);
    assert_same(&[&capture], &[&rest, &alone.join("w2")]);
}

#[test]
fn a_host_may_have_a_digest_and_folders_in_several_captures() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second, digests] = ["first", "second", "digests"].map(|name| folder.path().join(name));
    let mut world = World::new(&["m1", "w1"]);
    let mut talk = world.connect((1, 40_000), (0, 8020), [100, 200], at(0));
    world.say(&mut talk, true, at(1), &rpc_preamble());
    world.write(&first);
    for host in &mut world.hosts {
        host.eth0.clear();
    }
    world.say(&mut talk, true, at(2), &rpc_request(0, "sendHeartbeat", 3000));
    world.write(&second);
    digest(&first, &digests);
    assert_same(&[&first, &second], &[&digests, &second]);
}

#[test]
fn digests_of_what_other_tools_recorded_make_the_same_traces() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, out) = (folder.path().join("capture"), folder.path().join("digests"));
    write_tcpdump_capture(&capture);
    digest(&capture, &out);
    assert_same(&[&capture], &[&out]);
}

#[test]
fn what_was_lost_on_the_host_is_said_and_stands_in_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, out) = (folder.path().join("capture"), folder.path().join("digests"));
    talk(&capture);
    let packets = capture.join("w1/packets-eth0.hpk");
    let whole = fs::read(&packets).unwrap();
    fs::write(&packets, &whole[..whole.len() - 7]).unwrap();
    fs::write(capture.join("m1/sockets.jsonl"), "no record\n").unwrap();
    let stated = digest(&capture, &out);
    let lost = |host: usize| stated["hosts"][host]["losses"][0].as_str().unwrap().to_owned();
    assert!(lost(0).contains("m1/sockets.jsonl") && lost(1).contains("w1/packets-eth0.hpk"), "{stated}");
    assert_same(&[&capture], &[&out]);
}

#[test]
fn what_is_no_file_among_the_histories_is_said_and_stands_in_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, out) = (folder.path().join("capture"), folder.path().join("digests"));
    talk(&capture);
    let (job, stranger) = (capture.join("job"), folder.path().join("stranger"));
    fs::create_dir_all(job.join("job_1_0001.jhist")).unwrap();
    // A folder that is none of a job's is nobody's loss.
    fs::create_dir(job.join("old")).unwrap();
    fs::write(&stranger, "secret").unwrap();
    std::os::unix::fs::symlink(&stranger, job.join("job_1_0001_conf.xml")).unwrap();
    assert!(Command::new("mkfifo").arg(job.join("counters.json")).status().unwrap().success());
    fs::write(job.join("job_1_0002_conf.xml"), "<configuration/>").unwrap();
    let output = merger(&["digest", "--out"], &[&out, &capture]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let refused: Vec<&str> = said.lines().filter(|line| line.starts_with("refused: ")).collect();
    assert_eq!(refused.len(), 3, "{said}");
    for name in ["job_1_0001.jhist: it is a folder", "job_1_0001_conf.xml: it is a link", "counters.json: it is "] {
        assert!(refused.iter().any(|line| line.contains(name)), "{name}: {said}");
    }
    assert!(fs::symlink_metadata(out.join("job/job_1_0001_conf.xml")).is_err());
    assert_same(&[&capture], &[&out]);
    // What cannot be understood of it is a loss, and no failure: of a digest, of a capture, and of what is made of that.
    fs::write(out.join("job/left-out.json"), "[").unwrap();
    let notes = String::from_utf8(trace(&[&out])["manifest.json"].clone()).unwrap();
    assert!(notes.contains("job/left-out.json"), "{notes}");
    fs::write(capture.join("job/left-out.json"), "[").unwrap();
    fs::remove_dir_all(&out).unwrap();
    assert_eq!(merger(&["digest", "--out"], &[&out, &capture]).status.code(), Some(1));
    assert_same(&[&capture], &[&out]);
}

#[test]
fn what_is_no_folder_among_the_hosts_is_said_and_stands_in_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, out) = (folder.path().join("capture"), folder.path().join("digests"));
    talk(&capture);
    std::os::unix::fs::symlink(capture.join("w1"), capture.join("w9")).unwrap();
    fs::create_dir(capture.join("jvm")).unwrap();
    let output = merger(&["digest", "--out"], &[&out, &capture]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("capture/w9: it is a link") && said.contains("capture/jvm: "), "{said}");
    let notes = String::from_utf8(trace(&[&out])["manifest.json"].clone()).unwrap();
    assert!(notes.contains("w9") && notes.contains("it is a link"), "{notes}");
    assert_same(&[&capture], &[&out]);
    // What cannot be understood of the list is a loss.
    fs::write(out.join("left-out.json"), "[").unwrap();
    let notes = String::from_utf8(trace(&[&out])["manifest.json"].clone()).unwrap();
    assert!(notes.contains("left-out.json"), "{notes}");
}

#[test]
fn a_digest_that_is_cut_off_or_changed_anywhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, out) = (folder.path().join("capture"), folder.path().join("digests"));
    talk(&capture);
    let packets = digest(&capture, &out)["hosts"][1]["packets"].as_u64().unwrap();
    let file = out.join("w1").join(DIGEST);
    let whole = fs::read(&file).unwrap();
    let refused = |bytes: &[u8], what: &str| {
        fs::write(&file, bytes).unwrap();
        let output = merger(&["build", "--out"], &[&folder.path().join("trace"), &out]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{what}: {said}");
        assert!(said.contains("w1/digest.hdg.zst") && said.contains("merger digest"), "{what}: {said}");
        assert!(!said.contains("panicked") && said.lines().count() == 1, "{what}: {said}");
    };
    for length in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
        refused(&whole[..length], &format!("{length} bytes of {}", whole.len()));
    }
    for place in (0..whole.len()).step_by(101) {
        let mut changed = whole.clone();
        changed[place] ^= 0x10;
        refused(&changed, &format!("byte {place} changed"));
    }
    refused(&[&whole[..], b"more"].concat(), "more behind it");
    refused(&[&whole[..], &whole[..]].concat(), "twice");
    // What has no checksum is none.
    let plain = zstd::decode_all(whole.as_slice()).unwrap();
    refused(&plain, "not packed");
    let with = |from: &str, to: &str| {
        let at = plain.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        let changed = [&plain[..at], to.as_bytes(), &plain[at + from.len()..]].concat();
        zstd::encode_all(changed.as_slice(), 3).unwrap()
    };
    refused(&with("\"version\":1", "\"version\":2"), "another version");
    refused(&with("\"host\":\"w1\"", "\"host\":\"w2\""), "another host");
    refused(&with(&format!("\"packets\":{packets}"), &format!("\"packets\":{}", packets + 1)), "other numbers");
    refused(&with("END\n", "END!"), "no end");
    fs::write(&file, &whole).unwrap();
    assert_same(&[&capture], &[&out]);
}

#[test]
fn what_cannot_be_digested_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, out) = (folder.path().join("capture"), folder.path().join("digests"));
    talk(&capture);
    let refused = |arguments: &[&str], paths: &[&Path], word: &str| {
        let output = merger(arguments, paths);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(word) && !said.contains("panicked"), "{said}");
    };
    digest(&capture, &out);
    let other = folder.path().join("other");
    refused(&["digest", "--out"], &[&out, &capture], "not empty");
    refused(&["digest", "--out"], &[&other, &out], "a digest already");
    refused(&["digest", "--out"], &[&other, &folder.path().join("nowhere")], "nowhere");
    refused(&["strip", "--out"], &[&other, &out], "strip the capture");
    // Digest and files of one host in one folder: each packet would count twice.
    fs::copy(out.join("w1").join(DIGEST), capture.join("w1").join(DIGEST)).unwrap();
    refused(&["build", "--out"], &[&other, &capture], "count twice");
}

#[test]
fn a_merge_of_digests_is_estimated_as_one_of_the_capture() {
    for capture in golden_captures() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("digests");
        digest(&capture, &out);
        let estimate = |capture: &Path, trace: &str| {
            let output =
                merger(&["build", "--json", "--memory", "8GiB", "--out"], &[&folder.path().join(trace), capture]);
            let stated: Value = serde_json::from_slice(&output.stdout).unwrap();
            let of = |name: &str| stated[name].as_u64().unwrap();
            assert!(of("memory_peak_bytes") <= of("memory_estimate_bytes"), "{stated}");
            of("memory_estimate_bytes") as f64
        };
        let (raw, digested) = (estimate(&capture, "raw"), estimate(&out, "digested"));
        assert!((digested / raw - 1.0).abs() < 0.1, "{}: {digested} and {raw}", capture.display());
    }
}

#[test]
fn a_digest_that_takes_too_much_memory_is_refused_before_it_begins_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, out) = (folder.path().join("capture"), folder.path().join("digests"));
    talk(&capture);
    let output = merger(&["digest", "--memory", "1MiB", "--out"], &[&out, &capture]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("more than the 1024KiB") && !out.exists(), "{said}");
    let enough = said.split("--memory ").nth(1).unwrap().split([',', ' ']).next().unwrap();
    succeeds(&merger(&["digest", "--memory", enough, "--out"], &[&out, &capture]));
    assert_same(&[&capture], &[&out]);
}
