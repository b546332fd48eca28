//! Files of workers, and words that survive a shell.

use deploy::hosts::{HostsError, all, host_name, parse};
use deploy::quote::{plain_path, script, word};
use proptest::prelude::*;
use std::process::Command;

#[test]
fn a_workers_file_is_read_as_hadoop_reads_it() {
    let text = "# the cluster\n\n  w1 \nw2 # rack 2\nw1\n10.0.0.3\nfe80::1%eth0\n#w9\n";
    assert_eq!(parse(text, "workers").unwrap(), ["w1", "w2", "w1", "10.0.0.3", "fe80::1%eth0"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("workers");
    std::fs::write(&file, text).unwrap();
    assert_eq!(
        all(Some(&file), &["m".to_owned(), "w2".to_owned()]).unwrap(),
        ["w1", "w2", "10.0.0.3", "fe80::1%eth0", "m"]
    );
    assert_eq!(all(None, &[]), Err(HostsError::None));
}

#[test]
fn what_is_no_host_is_told_with_its_line() {
    for bad in ["-oProxyCommand=x", "w1 w2", "w1;rm", "$(id)", "a/b", "w1'"] {
        let error = parse(&format!("w1\n{bad}\n"), "workers").unwrap_err().to_string();
        assert!(error.starts_with("workers:2: "), "{error}");
        assert!(host_name(bad, "--also").is_err());
    }
}

#[test]
fn paths_that_java_options_would_break_on_are_refused() {
    assert_eq!(plain_path("/opt/hadoptic/").unwrap(), "/opt/hadoptic");
    for bad in ["opt", "/", "/a b", "/a,b", "/a=b", "/a'b", "/a/../b", "/a<b", "/a\nb"] {
        assert!(plain_path(bad).is_err(), "{bad}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_quoted_word_is_the_text_again(text in "[^\0]{0,30}", argument in "[^\0]{0,30}") {
        let echo = |script: &str| Command::new("sh").args(["-c", script]).output().unwrap().stdout;
        prop_assert_eq!(echo(&format!("printf %s {}", word(&text))), text.as_bytes());
        let variables = [("WHAT", text.as_str())];
        let whole = script(&variables, std::slice::from_ref(&argument), "printf '%s|%s' \"$WHAT\" \"$1\"");
        prop_assert_eq!(echo(&whole), format!("{text}|{argument}").into_bytes());
    }
}
