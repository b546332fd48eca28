//! The inputs that fuzzing has kept, for the test suites.

use std::path::Path;

/// Gives each input of a target to its check; says which one it was that failed.
///
/// # Panics
/// If there is none.
pub fn each(target: &str, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/corpus").join(target);
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).expect("the corpus is there").map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no input in {}", folder.display());
    for file in files {
        let input = std::fs::read(&file).expect("an input can be read");
        println!("{}", file.display());
        check(&input);
    }
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
