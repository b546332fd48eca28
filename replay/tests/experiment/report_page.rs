//! The report shows every fabric, needs nothing from elsewhere, and shows foreign names as text.

use replay::experiment::Experiment;
use replay::report::page;
use replay::results::Detail;
use replay::run::run_experiment;
use trace::rows::Trace;

const HOSTS: [&str; 3] = ["m1", "w1", "w2"];

fn detail(name: &str, rate: &str, trace: &Trace) -> Detail {
    let text = format!("name = '{name}'\n[fabric]\nkind = \"ideal\"\nrate = \"{rate}\"");
    let experiment = Experiment::parse(&text, "test.toml", &[]).unwrap();
    run_experiment(&experiment, trace, |_| ()).unwrap().detail
}

#[test]
fn every_experiment_is_shown_with_its_time_its_tasks_and_its_configuration() {
    let trace = crate::common::map_reduce(&HOSTS, 4, 2);
    let details = [detail("slow", "20Mbps", &trace), detail("fast", "1Gbps", &trace)];
    let page = page(&details);
    for detail in &details {
        assert!(page.contains(&format!("<b>{}</b>", detail.summary.name)), "no bar for {}", detail.summary.name);
        assert!(page.contains(&format!("{:.2} s", detail.summary.job_time_s)));
        for task in &detail.tasks {
            assert!(page.contains(&task.attempt));
        }
    }
    assert!(page.contains("recorded") && page.contains("nothing changes"));
    assert!(page.contains("rate = &quot;20Mbps&quot;") && page.contains("rate = &quot;1Gbps&quot;"));
    for host in HOSTS {
        assert!(page.contains(&format!("title=\"{host}\"")), "no row for {host}");
    }
}

#[test]
fn nothing_is_fetched_from_elsewhere() {
    let trace = crate::common::map_reduce(&HOSTS, 2, 1);
    let page = page(&[detail("a", "20Mbps", &trace)]);
    for foreign in ["http:", "https:", "//cdn", "src=", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[test]
fn names_with_markup_are_shown_as_text() {
    let evil = "<script>alert(1)</script>\"onload=\"x";
    let mut trace = crate::common::map_reduce(&[evil, "w1", "w2"], 2, 1);
    for process in &mut trace.processes {
        process.role = evil.to_owned();
    }
    for message in &mut trace.messages {
        message.name = evil.to_owned();
    }
    for task in &mut trace.tasks {
        task.attempt = format!("{evil}{}", task.task);
    }
    trace.timers[0].name = evil.to_owned();
    trace.jobs[0].name = evil.to_owned();
    let page = page(&[detail(evil, "20Mbps", &trace), detail("other", "1Gbps", &trace)]);
    assert!(page.contains("&lt;script&gt;alert(1)"));
    assert_eq!(page.matches("<script").count(), 1, "a script that is not the page's own");
    assert!(!page.contains("\"onload="));
}

#[test]
fn all_elements_are_closed_in_order() {
    let trace = crate::common::map_reduce(&HOSTS, 4, 2);
    let page = page(&[detail("a", "20Mbps", &trace), detail("b", "30Mbps", &trace)]);
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page.as_str();
    while let Some(start) = rest.find('<') {
        let after = &rest[start + 1..];
        let tag = &after[..after.find('>').unwrap()];
        rest = &after[tag.len() + 1..];
        let name = tag.trim_start_matches('/').split(' ').next().unwrap();
        if matches!(name, "!doctype" | "meta" | "link" | "br" | "input") {
            continue;
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else {
            open.push(name);
        }
        if matches!(name, "script" | "style") && !tag.starts_with('/') {
            rest = &rest[rest.find("</").unwrap()..];
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_report_of_nothing_says_so() {
    assert!(page(&[]).contains("No experiment came to a result"));
}

#[test]
fn the_same_results_give_the_same_page() {
    let trace = crate::common::map_reduce(&HOSTS, 4, 2);
    let mut first = detail("a", "20Mbps", &trace);
    let mut second = detail("a", "20Mbps", &trace);
    first.summary.wall_s = 0.0;
    second.summary.wall_s = 0.0;
    assert_eq!(page(&[first]), page(&[second]));
}
