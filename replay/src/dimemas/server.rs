//! Serves clients side by side: lines from a socket, bounded in length and in the time that is waited for them.

use super::mapping::TaskMapping;
use super::protocol::shortened;
use super::session::{Answer, Session, SessionError, SessionFigures};
use netsim::fabric::{self, FabricConfig, FabricError, FabricKind};
use netsim::topology::HostPlace;
use netsim::units::DurationPs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A longer line is none of the protocol.
const MAX_LINE: usize = 2_048;
/// So many malformed lines of a client are shown; the others are counted.
const SHOWN_LINES: u64 = 20;

/// What a server serves.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The network; each client gets a new one.
    pub fabric: FabricConfig,
    /// Its hosts.
    pub hosts: Vec<HostPlace>,
    /// Which of them a task is on.
    pub mapping: TaskMapping,
    /// How long it waits for a client's next line, or for a client to take an answer.
    pub timeout: Duration,
    /// Whether clients are told when the simulation has come to their stop.
    pub answers_stops: bool,
}

/// How a client's connection came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With FINISH.
    Finished {
        /// What was counted.
        figures: SessionFigures,
        /// Lines that were none of the protocol and were passed over.
        malformed: u64,
    },
    /// In another way, which is described.
    Broken(String),
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    config: ServerConfig,
}

impl Server {
    /// Listens on `address`. The fabric is built once, so that what is wrong with it is found before a client comes.
    ///
    /// # Errors
    /// When the fabric cannot be built, or the address cannot be listened on.
    pub fn bind(address: SocketAddr, mut config: ServerConfig) -> Result<Self, BindError> {
        fabric::build(&config.fabric, &config.hosts)?;
        // Nobody asks for traffic over time here, and a client may name times far apart.
        config.fabric.set_interval(DurationPs(u64::MAX));
        let listener = TcpListener::bind(address).map_err(|reason| BindError::Listen { address, reason })?;
        Ok(Self { listener, config })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Waits for a client, and serves it to its end. `log` is given what people should know, line by line.
    ///
    /// # Errors
    /// When no client can be accepted any more. What goes wrong with a client is no error, but how it ended.
    pub fn serve_one(&self, log: impl Fn(&str)) -> io::Result<Ended> {
        let (stream, peer) = self.accept()?;
        Ok(self.serve_client(stream, peer, &log))
    }

    /// Serves clients as they come, `most` at once, until none can be accepted any more. One beyond those is turned away.
    /// `log` is given what people should know, line by line.
    ///
    /// # Errors
    /// Why no client can be accepted any more; only then does it return, when those that are there have ended.
    pub fn serve(&self, most: usize, log: impl Fn(&str) + Sync) -> io::Result<std::convert::Infallible> {
        let served = AtomicUsize::new(0);
        thread::scope(|scope| {
            loop {
                let (stream, peer) = self.accept()?;
                if served.fetch_add(1, Ordering::Relaxed) >= most {
                    served.fetch_sub(1, Ordering::Relaxed);
                    log(&format!("{peer}: turned away: as many as --clients allows ({most}) are being served"));
                    continue;
                }
                let (served, log) = (&served, &log);
                let serve = move || {
                    self.serve_client(stream, peer, log);
                    served.fetch_sub(1, Ordering::Relaxed);
                };
                if let Err(error) = thread::Builder::new().spawn_scoped(scope, serve) {
                    served.fetch_sub(1, Ordering::Relaxed);
                    log(&format!("{peer}: turned away: no thread for it: {error}"));
                }
            }
        })
    }

    fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        loop {
            match self.listener.accept() {
                // The client left while it waited for its turn.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                other => return other,
            }
        }
    }

    /// Serves a client to its end.
    fn serve_client(&self, stream: TcpStream, peer: SocketAddr, log: &impl Fn(&str)) -> Ended {
        log(&format!("{peer}: connected"));
        let ended = match fabric::build(&self.config.fabric, &self.config.hosts) {
            Ok(network) => {
                let session =
                    Session::new(network, self.config.mapping.clone()).answering_stops(self.config.answers_stops);
                Client { stream, buffer: Vec::new(), timeout: self.config.timeout, lines: 0, malformed: 0 }
                    .serve(session, &|text| log(&format!("{peer}: {text}")))
            }
            Err(error) => Ended::Broken(error.to_string()),
        };
        match &ended {
            Ended::Finished { figures, malformed } => log(&format!(
                "{peer}: finished: {} messages with {} bytes in {} turns, {} completed, up to {}; {} late, {malformed} lines \
                 passed over",
                figures.messages, figures.bytes, figures.turns, figures.completed, figures.reached, figures.late
            )),
            Ended::Broken(reason) => log(&format!("{peer}: {reason}")),
        }
        ended
    }
}

/// Why a server cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The fabric cannot be built.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {reason} (--listen chooses another address)")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        reason: io::Error,
    },
}

/// What reading a line came to.
enum Line {
    Text(String),
    /// Too long, or no text; its beginning.
    Garbage(String),
    Closed,
    TimedOut,
    Failed(io::Error),
}

struct Client {
    stream: TcpStream,
    /// What was read and is not yet a line.
    buffer: Vec<u8>,
    timeout: Duration,
    /// Lines read so far.
    lines: u64,
    malformed: u64,
}

impl Client {
    fn serve<N: netsim::network::Network>(mut self, mut session: Session<N>, log: &dyn Fn(&str)) -> Ended {
        let prepared = self.stream.set_nodelay(true).and_then(|()| self.stream.set_write_timeout(Some(self.timeout)));
        if let Err(error) = prepared {
            return Ended::Broken(format!("the connection cannot be set up: {error}"));
        }
        // The first line of the turn that is being read; 0 while none is.
        let mut turn_began = 0;
        loop {
            let text = match self.read_line() {
                Line::Text(text) if text.trim().is_empty() => continue,
                Line::Text(text) => text,
                Line::Garbage(beginning) => {
                    let longest = format!("\"{beginning}\" is no line of text of at most {MAX_LINE} bytes");
                    self.pass_over(&longest, log);
                    continue;
                }
                Line::Closed => return self.broken("closed by the client without FINISH", &session),
                Line::TimedOut => {
                    let awaited = match (self.lines, turn_began) {
                        (0, _) => "its first line".to_owned(),
                        (_, 0) => "its next turn or FINISH".to_owned(),
                        (_, line) => format!("END of the turn that began with line {line}"),
                    };
                    let reason = format!("timed out: waited {:?} for {awaited}", self.timeout);
                    return self.broken(&reason, &session);
                }
                Line::Failed(error) => return self.broken(&format!("reading failed: {error}"), &session),
            };
            if turn_began == 0 {
                turn_began = self.lines;
            }
            match session.line(&text) {
                Ok(Answer::Listen) => {}
                Ok(Answer::Say(answer)) => {
                    turn_began = 0;
                    if let Err(error) = self.stream.write_all(answer.as_bytes()) {
                        let reason = format!("the client did not take an answer: {error}");
                        return self.broken(&reason, &session);
                    }
                }
                Ok(Answer::Finished) => {
                    return Ended::Finished { figures: session.figures(), malformed: self.malformed };
                }
                Err(SessionError::Line(error)) => self.pass_over(&error.to_string(), log),
                Err(error) => {
                    return self.broken(&format!("cannot go on: \"{}\": {error}", shortened(&text)), &session);
                }
            }
        }
    }

    fn pass_over(&mut self, reason: &str, log: &dyn Fn(&str)) {
        self.malformed += 1;
        if self.malformed <= SHOWN_LINES {
            log(&format!("line {}: {reason}; passed over", self.lines));
        }
        if self.malformed == SHOWN_LINES {
            log("further lines that are passed over are only counted");
        }
    }

    fn broken<N: netsim::network::Network>(&self, reason: &str, session: &Session<N>) -> Ended {
        let open = session.open_messages();
        let reached = session.figures().reached;
        Ended::Broken(format!(
            "{reason} (behind line {}, at {reached}, {open} messages not completed, {} lines passed over)",
            self.lines, self.malformed
        ))
    }

    /// The next line, waited for as long as the time-out, however slowly it trickles in.
    fn read_line(&mut self) -> Line {
        let deadline = Instant::now() + self.timeout;
        let mut searched = 0;
        let mut too_long = None;
        loop {
            if let Some(end) = self.buffer[searched..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=searched + end).collect();
                self.lines += 1;
                return match too_long {
                    Some(beginning) => Line::Garbage(beginning),
                    None => line_of(&line[..line.len() - 1]),
                };
            }
            if self.buffer.len() > MAX_LINE {
                too_long.get_or_insert_with(|| shortened(&String::from_utf8_lossy(&self.buffer)));
                self.buffer.clear();
            }
            searched = self.buffer.len();
            match self.read_more(deadline) {
                Ok(0) => return Line::Closed,
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Line::TimedOut;
                }
                Err(error) => return Line::Failed(error),
            }
        }
    }

    fn read_more(&mut self, deadline: Instant) -> io::Result<usize> {
        let mut chunk = [0; 4_096];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(&mut chunk) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(read) => {
                    self.buffer.extend_from_slice(&chunk[..read]);
                    return Ok(read);
                }
            }
        }
    }
}

fn line_of(bytes: &[u8]) -> Line {
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.len() <= MAX_LINE => Line::Text(text.to_owned()),
        _ => Line::Garbage(shortened(&String::from_utf8_lossy(bytes))),
    }
}
