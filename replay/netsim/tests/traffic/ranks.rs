//! Runs by ranks: what they agree on before they begin. That ranks do not show in what is measured is held by `engines` and `tests/tests/ranks.rs`.

use netsim::fabric::FabricConfig;
use netsim::fabric::windows::Carrier;
use netsim::statistics::Cost;
use netsim::traffic::{self, EngineKind, RunOptions, TrafficConfig, TrafficRun, TrafficRunError};
use std::fs;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

const FABRIC: &str = r#"
    kind = "store-and-forward"
    routing = "ecmp-packet"
    [topology]
    shape = "k-ary-n-tree"
    k = 4
    n = 2
    host_link = { rate = "10Gbps", delay = "50ns", buffer = "4 packets" }
    uplink = { rate = "10Gbps", delay = "70ns", buffer = "4 packets" }
"#;

const TRAFFIC: &str = r#"
    pattern = "uniform"
    load = 0.9
    size = "5KB"
    measurement = "30us"
    evolution = "10us"
    offered_hops = true
"#;

/// Ranks that are threads.
struct Threads {
    rank: usize,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

impl Carrier for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.to.len()
    }

    fn give_up(&self, reason: &str) -> ! {
        panic!("{reason}")
    }

    fn exchange(&mut self, letters: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        self.to.iter().zip(letters).for_each(|(to, letter)| to.send(letter).unwrap());
        self.from.iter().map(|from| from.recv().unwrap()).collect()
    }
}

type Outcome = Result<Option<TrafficRun>, TrafficRunError>;

/// What comes of a rank for each traffic and fabric.
fn by_ranks(orders: &[(String, String)]) -> Vec<Outcome> {
    let mut ranks: Vec<_> = (0..orders.len()).map(|rank| Threads { rank, to: Vec::new(), from: Vec::new() }).collect();
    for from in 0..orders.len() {
        for to in 0..orders.len() {
            let (sender, receiver) = channel();
            ranks[from].to.push(sender);
            ranks[to].from.push(receiver);
        }
    }
    let rank = |((traffic, fabric), carrier): (&(String, String), Threads)| {
        let (traffic, fabric): (TrafficConfig, FabricConfig) = (traffic.parse().unwrap(), fabric.parse().unwrap());
        let options = RunOptions { pairs: true, ..RunOptions::default() };
        traffic::run_on_ranks(&traffic, &fabric, 7, options, carrier, &AtomicBool::new(false), &mut |_| {})
    };
    thread::scope(|scope| {
        let running: Vec<_> = orders.iter().zip(ranks).map(|order| scope.spawn(move || rank(order))).collect();
        running.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn order(traffic: &str, fabric: &str) -> (String, String) {
    (traffic.to_owned(), fabric.to_owned())
}

/// Why each rank has no outcome.
fn errors(outcomes: Vec<Outcome>) -> Vec<String> {
    outcomes.into_iter().map(|outcome| outcome.err().map(|error| error.to_string()).unwrap_or_default()).collect()
}

#[test]
fn ranks_measure_what_one_process_does() {
    let (traffic, fabric): (TrafficConfig, FabricConfig) = (TRAFFIC.parse().unwrap(), FABRIC.parse().unwrap());
    let options = RunOptions { pairs: true, engine: EngineKind::Events, ..RunOptions::default() };
    let measured = |mut run: TrafficRun| {
        run.figures.cost = Cost::default();
        format!("{:#?}", run.figures)
    };
    let alone = traffic::run(&traffic, &fabric, 7, options, &AtomicBool::new(false), &mut |_| {}).unwrap();
    assert!(alone.figures.packets > 300 && alone.figures.lost > 0, "{} packets", alone.figures.packets);
    let mut ranks = by_ranks(&[order(TRAFFIC, FABRIC), order(TRAFFIC, FABRIC), order(TRAFFIC, FABRIC)]).into_iter();
    assert_eq!(measured(ranks.next().unwrap().unwrap().unwrap()), measured(alone));
    assert!(ranks.all(|other| other.unwrap().is_none()));
}

#[test]
fn a_rank_that_cannot_run_is_named_by_all_before_they_begin() {
    let folder = tempfile::tempdir().unwrap();
    let table = |name: &str| {
        let path = folder.path().join(name);
        let traffic = format!("pattern = \"table\"\ntable = {path:?}\nmeasurement = \"30us\"");
        (path, traffic)
    };
    let ((mine, traffic), (other, elsewhere)) = (table("mine.csv"), table("other.csv"));
    fs::write(&mine, "at,from,to,bytes\n1us,0,1,500B\n").unwrap();
    let orders = [order(&traffic, FABRIC), order(&elsewhere, FABRIC)];
    let found = errors(by_ranks(&orders));
    assert!(found[0].starts_with("rank 1: traffic.table: ") && found[0].contains("other.csv"), "{found:?}");
    assert!(found[1].starts_with("traffic.table: "), "{found:?}");
    fs::write(&other, "at,from,to,bytes\n1us,0,2,500B\n").unwrap();
    let found = errors(by_ranks(&orders));
    assert!(found.iter().all(|error| error.starts_with("rank 1 has another network or other messages")), "{found:?}");
    fs::copy(&mine, &other).unwrap();
    assert_eq!(errors(by_ranks(&orders)), ["", ""]);
    let slower = FABRIC.replace("70ns", "71ns");
    let found = errors(by_ranks(&[order(TRAFFIC, FABRIC), order(TRAFFIC, &slower)]));
    assert!(found.iter().all(|error| error.starts_with("rank 1 has another network")), "{found:?}");
}

#[test]
fn what_ranks_do_not_run_is_refused_by_all() {
    let refused = |traffic: &str, fabric: &str, ranks: usize| {
        let found = errors(by_ranks(&vec![order(traffic, fabric); ranks]));
        assert!(found.iter().all(|error| *error == found[0]), "{found:?}");
        found[0].clone()
    };
    let credit = FABRIC.replace("store-and-forward", "credit").replace(", buffer = \"4 packets\"", "");
    assert!(refused(TRAFFIC, &credit.replace("ecmp-packet", "ecmp"), 2).contains("store-and-forward"));
    assert!(refused(&format!("{TRAFFIC}\noccupancy = true"), FABRIC, 2).contains("occupancy"));
    // 16 hosts, 8 switches.
    assert!(refused(TRAFFIC, FABRIC, 9).contains("9 ranks"));
}
