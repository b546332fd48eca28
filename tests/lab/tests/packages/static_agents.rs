//! `make dist` packages agents that are linked statically: of glibc they need nothing, and the packaging says so.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use test_support::{skip, skip_if};

use super::{PROGRAMS, built, is_there, not_built, repository, text};

/// A static program that does what `program` does, by running it.
fn static_wrapper(of: &std::path::Path, out: &std::path::Path) -> bool {
    let source = out.with_extension("c");
    let code = format!(
        "#include <unistd.h>\nint main(int argc, char **argv) {{ (void)argc; execv({of:?}, argv); return 127; }}\n"
    );
    fs::write(&source, code).unwrap();
    let compiled = Command::new("cc").args(["-static", "-o"]).arg(out).arg(&source).status();
    fs::remove_file(source).unwrap();
    compiled.is_ok_and(|status| status.success())
}

#[test]
fn static_programs_are_packaged_and_told_apart() {
    skip_if!(not_built());
    if !is_there("dpkg-shlibdeps") {
        skip!("no dpkg-shlibdeps: apt-get install dpkg-dev");
    }
    let folder = tempfile::tempdir().unwrap();
    let (programs, out) = (folder.path().join("programs"), folder.path().join("out"));
    fs::create_dir(&programs).unwrap();
    for name in PROGRAMS {
        let (program, there) = (fs::canonicalize(built().join(name)).unwrap(), programs.join(name));
        if name == "sniffer" {
            if !static_wrapper(&program, &there) {
                skip!("no C compiler that links statically");
            }
        } else {
            symlink(program, there).unwrap();
        }
    }
    let jar = folder.path().join("agent.jar");
    fs::write(&jar, "").unwrap();
    let packaged = Command::new(repository().join("tests/dist.sh"))
        .arg("--programs")
        .arg(&programs)
        .arg("--jar")
        .arg(&jar)
        .arg("--out")
        .arg(&out)
        .output()
        .unwrap();
    let said = text(&packaged);
    assert!(packaged.status.success(), "{said}");
    let line = |name: &str| said.lines().find(|line| line.starts_with(&format!("{name}: "))).unwrap_or_default();
    assert!(line("sniffer").ends_with(" bytes, static"), "{said}");
    assert!(line("replay").contains(" bytes, needs GLIBC_"), "{said}");
    assert_eq!(fs::read_to_string(out.join("SHA256SUMS")).unwrap().lines().count(), 2, "{said}");
}
