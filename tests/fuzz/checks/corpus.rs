//! The inputs that fuzzing has kept, for the test suites: chosen ones by name, and packed, what reached something new.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Gives each input of a target to its check; says which one it was that failed.
///
/// # Panics
/// If there is none.
pub fn each(target: &str, check: impl Fn(&[u8])) {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let corpus = above
        .map(|folder| folder.join("tests/fuzz/corpus"))
        .find(|corpus| corpus.is_dir())
        .expect("the corpus is there");
    let reached = tempfile::tempdir().expect("a folder");
    let pack = corpus.join(target).with_extension("tar.gz");
    let status = Command::new("tar").arg("-xzf").arg(&pack).arg("-C").arg(reached.path()).status().expect("tar runs");
    assert!(status.success(), "{} can be unpacked", pack.display());
    for folder in [corpus.join(target).as_path(), reached.path()] {
        for file in files(folder) {
            let input = std::fs::read(&file).expect("an input can be read");
            println!("{}", file.display());
            check(&input);
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the corpus is there").map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no input in {}", folder.display());
    files
}

/// The same for a target that takes text; other inputs are none.
#[allow(dead_code)]
pub fn each_text(target: &str, check: impl Fn(&str)) {
    each(target, |input| {
        if let Ok(text) = std::str::from_utf8(input) {
            check(text);
        }
    });
}
