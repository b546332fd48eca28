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

/// What the page says at its top.
fn lead(page: &str) -> &str {
    let from = page.find("<h1>").unwrap();
    &page[from..from + page[from..].find("</section>").unwrap()]
}

#[test]
fn the_headline_says_what_the_job_waits_for_and_what_each_network_costs() {
    let trace = crate::common::map_reduce(&HOSTS, 4, 2);
    let mut details =
        [detail("fast", "1Gbps", &trace), detail("near", "900Mbps", &trace), detail("slow", "1Mbps", &trace)];
    set(
        &mut details[0],
        10.0,
        &[("think", "YarnChild", 7.0), ("timer-wait", "allocate", 2.5), ("network", "block-data", 0.5)],
    );
    set(
        &mut details[1],
        10.4,
        &[("think", "YarnChild", 7.0), ("timer-wait", "allocate", 2.5), ("network", "block-data", 0.9)],
    );
    set(
        &mut details[2],
        30.0,
        &[("think", "YarnChild", 7.5), ("timer-wait", "allocate", 2.5), ("network", "block-data", 20.0)],
    );
    let page = page(&details);
    let printed = lead(&page);
    assert!(
        printed.contains("Even over the fastest network (fast), the job takes 10.00\u{a0}s (recorded: 20.00\u{a0}s)"),
        "{printed}"
    );
    let waits = "waits for computing and disks (70.0%), for heartbeats (25.0%), little for the network (5.0%).";
    assert!(printed.contains(waits), "{printed}");
    assert!(printed.contains("Within 5% of that, and fast enough for it: near (+4.0%)."), "{printed}");
    assert!(printed.contains("Slower: slow (+200.0%, 19.50 s more for HDFS blocks on the network)."), "{printed}");
    assert!(!printed.contains("off by"), "none models the recorded network: {printed}");
    // Half of what it computes.
    assert!(page.contains("<b>−35.0%</b>"), "twice the CPU");
}

fn set(detail: &mut Detail, job_time_s: f64, path: &[(&str, &str, f64)]) {
    detail.summary.job_time_s = job_time_s;
    detail.summary.recorded_job_time_s = 20.0;
    let share = |(kind, what, seconds): &(&str, &str, f64)| replay::results::PathShare {
        kind: (*kind).to_owned(),
        what: (*what).to_owned(),
        seconds: *seconds,
        share: seconds / job_time_s,
    };
    detail.summary.critical_path = path.iter().map(share).collect();
}

#[test]
fn a_difference_is_an_error_only_over_the_recorded_network() {
    let trace = crate::common::map_reduce(&HOSTS, 4, 2);
    let text = "[workload]\nrecorded_network = true\n[fabric]\nkind = 'ideal'\nrate = '20Mbps'";
    let over = |sets: &[&str]| {
        let sets: Vec<_> = sets.iter().map(|set| set.parse().unwrap()).collect();
        let experiment = Experiment::parse(text, "own.toml", &sets).unwrap();
        page(&[run_experiment(&experiment, &trace, |_| ()).unwrap().detail])
    };
    let is_error =
        |page: &str| page.contains("median error") && lead(page).contains("models the network of the recording");
    assert!(is_error(&over(&[])));
    assert!(is_error(&over(&["fabric.rate=30Mbps", "workload.recorded_network=true"])));
    // What the file said of its fabric and of recorded computing does not hold any more.
    for other in ["fabric.rate=30Mbps", "workload.cpu_factor=0.5", "workload.cpu_factors.map=0.5"] {
        let page = over(&[other]);
        assert!(!is_error(&page) && page.contains("median change") && !page.contains("median error"), "{other}");
    }
}

#[test]
fn bars_are_sorted_and_one_that_is_far_longer_is_cut() {
    let trace = crate::common::map_reduce(&HOSTS, 4, 2);
    let mut details =
        [detail("slow", "1Mbps", &trace), detail("mid", "20Mbps", &trace), detail("fast", "1Gbps", &trace)];
    for (detail, seconds) in details.iter_mut().zip([300.0, 24.0, 12.0]) {
        set(detail, seconds, &[("think", "YarnChild", seconds)]);
    }
    let page = page(&details);
    let places: Vec<usize> =
        ["fast", "mid", "slow"].iter().map(|name| page.find(&format!("<b>{name}</b>")).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(page.contains("data-bars=\"25.2"), "the axis ends a little after the second");
    assert!(page.contains("class=\"row cut\" data-seconds=\"300\""));
    assert!(!page.contains("class=\"row cut\" data-seconds=\"24\""));
}

#[test]
fn traffic_says_over_what_it_is_a_mean_and_where_packets_were_lost() {
    let trace = crate::common::map_reduce(&HOSTS, 4, 2);
    let mut one = detail("lossy", "20Mbps", &trace);
    one.summary.drops = 7;
    let link = one.links.iter_mut().find(|link| link.bytes > 0).unwrap();
    let name = link.name.replace("->", " → ");
    (link.drops, link.drops_by_interval) = (7, vec![0, 7]);
    (link.queue_max_bytes, link.queue_by_interval) = (3_000, vec![3_000, 1_500]);
    let page = page(&[one]);
    assert!(page.contains(">mean over 100 ms</button>"));
    assert!(page.contains(&format!("Packets were lost in front of {} (7).", name.replace('>', "&gt;"))), "{name}");
    assert!(page.contains("queue up to 3 kB, 7 lost"));
    assert!(page.contains("class=\"lost\"") && page.contains("class=\"queue\""));
}

#[test]
fn pictures_have_one_title_and_follow_the_theme() {
    let trace = crate::common::map_reduce(&HOSTS, 4, 2);
    let page = page(&[detail("a", "20Mbps", &trace)]);
    for title in ["Bytes that each node sent", "Throughput of the busiest links over time"] {
        assert_eq!(page.matches(&format!(">{title}<")).count(), 1, "{title}");
    }
    assert_eq!(page.matches("fill=\"#ffffff\"").count(), page.matches("class=\"paper\"").count());
    assert!(page.contains(".plotted .paper{fill:none}"));
}

#[test]
fn a_word_of_the_field_opens_what_it_means() {
    let trace = crate::common::map_reduce(&HOSTS, 4, 2);
    let page = page(&[detail("a", "20Mbps", &trace), detail("b", "1Gbps", &trace)]);
    let targets: Vec<&str> =
        page.split("popovertarget=\"").skip(1).map(|rest| &rest[..rest.find('"').unwrap()]).collect();
    assert!(targets.len() > 5);
    for target in targets {
        assert_eq!(page.matches(&format!("id=\"{target}\"")).count(), 1, "{target}");
    }
}
