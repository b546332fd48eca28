//! Two hosts that are network namespaces joined by a veth pair, and an agent that runs in one of them.
#![allow(dead_code, unused_imports, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// No wait in a test is longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a command to its end.
pub fn sh(command: &str) {
    let output = Command::new("sh").args(["-ec", command]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "`{command}`: {}", String::from_utf8_lossy(&output.stderr));
}

/// Copies a program to a place that another user may read, which the build's folder need not be. A process of its own
/// does it: a child that another test forks meanwhile would hold our file open for writing, and it could not be run.
pub fn copy_program(from: &str, to: &Path) {
    sh(&format!("install -m 755 {from} {}", to.display()));
}

/// Waits until `is_so` holds.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Two namespaces, `left` with `eth0` 10.98.0.1 and `right` with `eth0` 10.98.0.2.
pub struct Pair {
    pub left: String,
    pub right: String,
}

impl Pair {
    pub const LEFT: &str = "10.98.0.1";
    pub const RIGHT: &str = "10.98.0.2";

    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let id = format!("hpt{}x{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let pair = Self { left: format!("{id}l"), right: format!("{id}r") };
        let (l, r) = (&pair.left, &pair.right);
        sh(&format!(
            "ip netns add {l}; ip netns add {r}
             ip link add eth0 netns {l} type veth peer name eth0 netns {r}
             ip -n {l} addr add {}/24 dev eth0; ip -n {r} addr add {}/24 dev eth0
             for n in {l} {r}; do ip -n $n link set lo up; ip -n $n link set eth0 up; done",
            Self::LEFT,
            Self::RIGHT
        ));
        pair
    }

    /// Runs `work` in a thread that has moved into a namespace.
    pub fn within<T: Send + 'static>(
        namespace: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> thread::JoinHandle<T> {
        let file = File::open(Path::new("/var/run/netns").join(namespace)).unwrap();
        thread::spawn(move || {
            setns(file, CloneFlags::CLONE_NEWNET).unwrap();
            work()
        })
    }

    /// Packets that went through `eth0` on the left, either way, by the interface's own counters.
    pub fn interface_packets(&self) -> u64 {
        let output = Command::new("ip").args(["-n", &self.left, "-j", "-s", "link", "show", "eth0"]).output().unwrap();
        let links: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of = |way: &str| links[0]["stats64"][way]["packets"].as_u64().unwrap();
        of("rx") + of("tx")
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in [&self.left, &self.right] {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

/// An agent that runs in a namespace.
pub struct Agent {
    child: Child,
    said: File,
    pub out: PathBuf,
    manifest: &'static str,
}

impl Agent {
    /// Starts it and waits until its manifest says that it is ready.
    pub fn start(program: &str, namespace: &str, manifest: &'static str, out: &Path, options: &[&str]) -> Self {
        let began = trace::agent::now_ns();
        let said = tempfile::tempfile().unwrap();
        // Unless it is about them, a test needs no room on this machine's disk.
        let limits = ["--disk-limit", "--keep-free"].into_iter().filter(|limit| !options.contains(limit));
        let unlimited = limits.flat_map(|limit| [limit, "0"]);
        let child = Command::new("ip")
            .args(["netns", "exec", namespace, program, "run", "--out"])
            .arg(out)
            .args(options)
            .args(unlimited)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said.try_clone().unwrap())
            .spawn()
            .unwrap();
        let mut agent = Self { child, said, out: out.to_owned(), manifest };
        wait_until("an agent that is ready", || {
            if let Some(status) = agent.child.try_wait().unwrap() {
                panic!("{program} ended early, {status}: {}", agent.said());
            }
            let manifest = agent.manifest();
            manifest["ready"] == true && manifest["started_ns"].as_u64().is_some_and(|t| t >= began)
        });
        agent
    }

    pub fn manifest(&self) -> Value {
        let text = fs::read(self.out.join(self.manifest)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or(Value::Null)
    }

    /// What it wrote to its standard error so far.
    pub fn said(&mut self) -> String {
        let mut text = String::new();
        self.said.rewind().unwrap();
        self.said.read_to_string(&mut text).unwrap();
        text
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Its process id (`ip netns exec` becomes the program).
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Ends it in order; its exit code and last manifest.
    pub fn stop(mut self) -> (i32, Value) {
        if !self.has_ended() {
            self.signal(Signal::SIGTERM);
        }
        let status = self.wait();
        (status.code().unwrap_or(-1), self.manifest())
    }

    /// Kills it.
    pub fn kill(mut self) {
        self.signal(Signal::SIGKILL);
        self.wait();
    }

    fn wait(&mut self) -> ExitStatus {
        let mut ended = None;
        wait_until("an agent that ends", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What one connection carried, by the program that used it.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    pub client: SocketAddr,
    pub server: SocketAddr,
}

/// The server of an [`Exchange`]: accepts one connection, reads until the end, answers `answer` bytes, and closes.
pub fn serve(listener: &TcpListener, answer: usize) -> u64 {
    let (mut stream, _) = listener.accept().unwrap();
    let mut buffer = vec![0u8; 1 << 16];
    let mut received = 0;
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => break,
            n => received += n as u64,
        }
    }
    stream.write_all(&vec![b'a'; answer]).unwrap();
    received
}

/// The client: sends `pieces` writes of `piece` bytes, ends its side, reads the answer to its end.
pub fn request(server: SocketAddr, pieces: usize, piece: usize) -> (Exchange, u64) {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_nodelay(true).unwrap();
    let exchange = Exchange { client: stream.local_addr().unwrap(), server };
    let bytes = vec![b'q'; piece];
    for _ in 0..pieces {
        stream.write_all(&bytes).unwrap();
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    (exchange, answer.len() as u64)
}

/// A client on the left sends to a server on the right and gets an answer.
pub fn exchange(pair: &Pair, pieces: usize, piece: usize, answer: usize) -> Exchange {
    let (tell, stated) = std::sync::mpsc::channel();
    let server = Pair::within(&pair.right, move || {
        let listener = TcpListener::bind((Pair::RIGHT, 0)).unwrap();
        tell.send(listener.local_addr().unwrap()).unwrap();
        serve(&listener, answer)
    });
    let address = stated.recv_timeout(PATIENCE).unwrap();
    let (exchange, answered) = Pair::within(&pair.left, move || request(address, pieces, piece)).join().unwrap();
    assert_eq!(server.join().unwrap(), (pieces * piece) as u64);
    assert_eq!(answered, answer as u64);
    exchange
}

/// A file system of its own, that is full soon.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    pub fn mount(at: &Path, size: &str) -> Self {
        sh(&format!("mount -t tmpfs -o size={size},mode=750 none {}", at.display()));
        Self(at.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
