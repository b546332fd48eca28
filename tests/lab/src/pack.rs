//! Packing a capture with zstd, so that it can be kept: packets and records, not the small files that people read.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Context, Result};
use trace::manifest::ForeignManifest;

/// Level of zstd: slow to pack, as quick as any to unpack, and a fifth smaller than the default.
const LEVEL: i32 = 19;
/// Endings of what is packed.
const PACKED: [&str; 4] = ["hpk", "jsonl", "pcap", "txt"];

/// Packs the files of all hosts of a capture, each into one of its name with `.zst` behind. Returns bytes before and
/// after.
///
/// # Errors
/// If a file cannot be read or written; the message names it.
pub fn capture(folder: &Path, hosts: &[String]) -> Result<(u64, u64)> {
    let (mut before, mut after) = (0, 0);
    for host in hosts {
        let folder = folder.join(host);
        for path in files(&folder)? {
            let (from, to) = file(&path).at("cannot pack", &path)?;
            before += from;
            after += to;
        }
        rename_in_manifest(&folder.join("manifest.json"))?;
    }
    Ok((before, after))
}

/// What is packed of a host: files in its folder, and those of its JVMs in `jvm` and each user's folder there.
fn files(host: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![host.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).at("cannot read", &folder)? {
            let entry = entry.at("cannot read", &folder)?;
            let (path, kind) = (entry.path(), entry.file_type().at("cannot look at", &entry.path())?);
            let is_of_jvms = folder != host || entry.file_name() == "jvm";
            if kind.is_dir() && is_of_jvms {
                folders.push(path);
            } else if kind.is_file() && path.extension().and_then(OsStr::to_str).is_some_and(|e| PACKED.contains(&e)) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn file(path: &Path) -> io::Result<(u64, u64)> {
    let mut packed = path.as_os_str().to_owned();
    packed.push(".zst");
    let from = File::open(path)?;
    let to = File::create(&packed)?;
    let permissions = from.metadata()?.permissions();
    to.set_permissions(permissions)?;
    let before = from.metadata()?.len();
    let mut encoder = zstd::Encoder::new(&to, LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(Some(before))?;
    io::copy(&mut &from, &mut encoder)?;
    encoder.finish()?;
    fs::remove_file(path)?;
    Ok((before, to.metadata()?.len()))
}

/// A capture of other tools is described by its manifest alone: it has to name the packed files.
fn rename_in_manifest(path: &Path) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let text = fs::read(path).at("cannot read", path)?;
    let mut manifest: ForeignManifest =
        serde_json::from_slice(&text).with_context(|| format!("{} is of no use", path.display()))?;
    let packets = manifest.packets.iter_mut().map(|packets| &mut packets.file);
    for file in packets.chain(manifest.sockets.iter_mut().map(|sockets| &mut sockets.file)) {
        file.push_str(".zst");
    }
    fs::write(path, serde_json::to_vec_pretty(&manifest).at("cannot write", path)?).at("cannot write", path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use trace::manifest::{ForeignPackets, ForeignSockets, SocketListing};

    use super::*;

    #[test]
    fn packed_files_hold_the_same_and_the_manifest_names_them() {
        let folder = tempfile::tempdir().unwrap();
        let host = folder.path().join("w1");
        fs::create_dir(&host).unwrap();
        fs::write(host.join("eth0.pcap"), vec![7; 100_000]).unwrap();
        fs::write(host.join("ss.txt"), "# 1\n").unwrap();
        let manifest = ForeignManifest {
            host: "w1".into(),
            packets: vec![ForeignPackets { file: "eth0.pcap".into(), interface: "eth0".into() }],
            sockets: vec![ForeignSockets { file: "ss.txt".into(), format: SocketListing::Ss }],
            ..ForeignManifest::default()
        };
        fs::write(host.join("manifest.json"), serde_json::to_vec(&manifest).unwrap()).unwrap();

        let (before, after) = capture(folder.path(), &["w1".to_owned()]).unwrap();

        assert_eq!(before, 100_004);
        assert!(after < 1000);
        let text = fs::read(host.join("manifest.json")).unwrap();
        let manifest: ForeignManifest = serde_json::from_slice(&text).unwrap();
        assert_eq!(manifest.packets[0].file, "eth0.pcap.zst");
        assert_eq!(manifest.sockets[0].file, "ss.txt.zst");
        let packed = File::open(host.join("eth0.pcap.zst")).unwrap();
        assert_eq!(zstd::decode_all(packed).unwrap(), vec![7; 100_000]);
        assert!(!host.join("eth0.pcap").exists());
    }

    #[test]
    fn records_of_jvms_are_packed_in_their_users_folders_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let host = folder.path().join("w1");
        let user = host.join("jvm/1000");
        fs::create_dir_all(&user).unwrap();
        fs::write(user.join("jvm-1-1.jsonl"), "{}\n").unwrap();
        fs::write(host.join("sockets.000001.jsonl"), "{}\n").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", user.join("jvm-2-2.jsonl")).unwrap();

        let (before, _) = capture(folder.path(), &["w1".to_owned()]).unwrap();

        assert_eq!(before, 6);
        assert!(user.join("jvm-1-1.jsonl.zst").exists() && host.join("sockets.000001.jsonl.zst").exists());
        assert!(user.join("jvm-2-2.jsonl").is_symlink() && !user.join("jvm-2-2.jsonl.zst").exists());
    }
}
