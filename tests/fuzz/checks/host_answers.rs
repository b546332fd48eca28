//! What a host answers is anybody's: whatever it says, it is read without a panic, and names no file outside of its folder.

use deploy::answer::HostAnswer;
use deploy::collect::choose::{self, Limits};
use deploy::facts::Facts;
use deploy::installed::Installed;
use deploy::report::HostReport;
use deploy::status::{self, HostState};

/// What must hold for any input.
pub fn check(input: &[u8]) {
    let _ = Installed::parse(input);
    let answer = |script: &str| [input, format!("\nend\t{script}\n").as_bytes()].concat();
    if let Ok(facts) = Facts::parse(&answer("probe")) {
        assert!(!facts.name.contains('/'));
        let _ = facts.hadoop();
        let kept: usize = facts.answer.files.values().flatten().map(|file| file.bytes.len()).sum();
        assert!(kept <= input.len());
    }
    let states = [
        HostState::parse(&answer("status"), Ok(answer("records"))),
        HostState::parse(&answer("status"), Err(String::new())),
    ];
    for seen in states.into_iter().flatten() {
        let mut host = HostReport::of("h");
        status::judge(&mut host, &seen, &Err("not asked".to_owned()));
        assert!(host.cells.len() <= 10);
    }
    if let Ok(answer) = HostAnswer::parse("list", &answer("list")) {
        listed(&answer);
    }
}

fn listed(answer: &HostAnswer) {
    let all = choose::listed(answer);
    for (folder, files) in &all {
        assert!(folder.is_empty() || folder.starts_with("jvm/") && !folder.contains(".."), "{folder}");
        assert!(files.keys().all(|name| !name.contains('/') && !name.starts_with('.')), "{files:?}");
    }
    for limits in [Limits::of(None, None, 1 << 30), Limits::of(Some(1 << 20), Some(1 << 30), 0), Limits::default()] {
        let mut chosen = all.clone();
        let left = choose::within(&mut chosen, limits);
        let count: usize = chosen.values().map(|files| files.len()).sum();
        let stays: u64 = left.folders.values().map(|(files, _)| *files).sum();
        assert_eq!(
            count + usize::try_from(stays).unwrap_or(usize::MAX),
            all.values().map(|files| files.len()).sum::<usize>()
        );
        let bytes =
            chosen.values().flat_map(|files| files.values()).fold(0_u64, |sum, file| sum.saturating_add(file.size));
        assert!(limits.host.is_none_or(|most| bytes <= most));
    }
}
