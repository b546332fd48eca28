//! One connection to each host over the system's OpenSSH client; commands share it.
//!
//! The master connection runs `cat` on the host and reads from a pipe of ours: when this program ends, however it ends,
//! the pipe closes and the connection with it. Nothing is left behind on either side.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::{banner, quote};

const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long the output of a command that has ended is waited for.
const LINGER: Duration = Duration::from_secs(1);
/// What an error message of a host is cut to.
const MAX_MESSAGE: usize = 2000;
/// Longer answers of a script are none, bytes: lists of files are the longest.
const MAX_ANSWER: usize = 64 << 20;

/// How hosts are reached.
#[derive(Clone, Debug, Default)]
pub struct SshSettings {
    /// `ssh -F`.
    pub config: Option<PathBuf>,
    /// `ssh -o`, each.
    pub options: Vec<String>,
    /// `ssh -l`.
    pub user: Option<String>,
    /// `ssh -C`.
    pub compress: bool,
    /// Longest time to connect, seconds.
    pub connect_s: u64,
    /// Longest time of a script, seconds.
    pub script_s: u64,
}

/// Why something on a host could not be done.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// No connection.
    #[error(
        "cannot be reached: {0}. Try `ssh HOST true` by hand: keys, known_hosts, name and network have to be right without a question"
    )]
    Unreachable(String),
    /// Neither root nor sudo.
    #[error(
        "the user {user} is not root and may not `sudo -n sh` ({said}): log in as root (--user root), or allow that user sudo \
         without a password"
    )]
    NoRoot {
        /// Who logged in.
        user: String,
        /// What sudo said.
        said: String,
    },
    /// A script failed.
    #[error("{what}: {message}")]
    Failed {
        /// What was to be done.
        what: String,
        /// What the host said.
        message: String,
    },
    /// It would not stop.
    #[error("{what}: the host's answer is longer than {MAX_ANSWER} bytes: that is none of this program's scripts")]
    TooLong {
        /// What was to be done.
        what: String,
    },
    /// It took too long.
    #[error("{what}: no answer within {seconds} s (--timeout)")]
    Late {
        /// What was to be done.
        what: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The user wants an end.
    #[error("interrupted")]
    Interrupted,
    /// An error that an earlier step has reported.
    #[error("{0}")]
    Reported(String),
    /// Something on this machine.
    #[error("{what}: {source}")]
    Local {
        /// What was to be done.
        what: String,
        /// Why it could not.
        source: io::Error,
    },
}

fn local(what: impl Into<String>) -> impl FnOnce(io::Error) -> SshError {
    let what = what.into();
    move |source| SshError::Local { what, source }
}

/// What all sessions share: settings, the folder of their sockets, whether the user wants an end.
pub struct Ssh {
    settings: SshSettings,
    sockets: tempfile::TempDir,
    next: AtomicU64,
    /// Set by SIGINT and SIGTERM.
    pub interrupted: Arc<AtomicBool>,
}

impl Ssh {
    /// Makes the private folder of the connections' sockets.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(settings: SshSettings) -> Result<Self, SshError> {
        // A socket's path has at most 107 bytes: not below a long TMPDIR.
        let there = std::env::temp_dir();
        let there = if there.as_os_str().len() > 60 { PathBuf::from("/tmp") } else { there };
        let sockets = tempfile::Builder::new()
            .prefix("hadoptic-")
            .tempdir_in(&there)
            .map_err(local(format!("cannot make a folder for the connections in {}", there.display())))?;
        Ok(Self { settings, sockets, next: AtomicU64::new(0), interrupted: Arc::default() })
    }

    fn command(&self, socket: &Path) -> Command {
        let mut command = Command::new("ssh");
        if let Some(config) = &self.settings.config {
            command.arg("-F").arg(config);
        }
        for option in &self.settings.options {
            command.arg("-o").arg(option);
        }
        for option in [
            "BatchMode=yes",
            "ControlPersist=no",
            "ForwardX11=no",
            "ForwardAgent=no",
            "ClearAllForwardings=yes",
            "PermitLocalCommand=no",
            "RequestTTY=no",
            "ServerAliveInterval=15",
            "ServerAliveCountMax=4",
            "LogLevel=ERROR",
        ] {
            command.args(["-o", option]);
        }
        command.arg("-o").arg(format!("ConnectTimeout={}", self.settings.connect_s.max(1)));
        if let Some(user) = &self.settings.user {
            command.arg("-l").arg(user);
        }
        if self.settings.compress {
            command.arg("-C");
        }
        command.arg("-S").arg(socket);
        // Ctrl-C is for this program, which ends what it started in order.
        command.process_group(0);
        command
    }

    /// Connects to a host and finds out how to be root there.
    ///
    /// # Errors
    /// If it cannot be reached, or nobody may be root.
    pub fn connect(self: &Arc<Self>, host: &str) -> Result<Session, SshError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let socket = self.sockets.path().join(format!("{number}"));
        let mut command = self.command(&socket);
        command.args(["-o", "ControlMaster=yes", "--", host, "exec cat >/dev/null"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut master = command.spawn().map_err(local("cannot start ssh (is the OpenSSH client installed?)"))?;
        let pipe = master.stdin.take();
        // What a login shell says that does not run commands comes on its output.
        let said = CommandOutput::default();
        said.listen(master.stdout.take());
        said.listen(master.stderr.take());
        let mut session = Session {
            ssh: Arc::clone(self),
            host: host.to_owned(),
            socket,
            master,
            pipe,
            sudo: false,
            user: String::new(),
        };
        let until = Instant::now() + Duration::from_secs(self.settings.connect_s.max(1) + 5);
        while !session.socket.exists() {
            if let Ok(Some(status)) = session.master.try_wait() {
                let message = said.words();
                let message = if message.is_empty() { status.to_string() } else { message };
                return Err(SshError::Unreachable(message));
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(SshError::Interrupted);
            }
            if Instant::now() > until {
                return Err(SshError::Unreachable(format!("no answer within {} s", self.settings.connect_s)));
            }
            thread::sleep(LOOK_EVERY);
        }
        session.become_root()?;
        Ok(session)
    }
}

/// The last that a command said, kept while it runs.
#[derive(Default)]
struct CommandOutput {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Each holds one until its output ends.
    listening: Arc<()>,
}

impl CommandOutput {
    fn listen(&self, output: Option<impl Read + Send + 'static>) {
        let Some(mut output) = output else { return };
        let (bytes, listening) = (Arc::clone(&self.bytes), Arc::clone(&self.listening));
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = output.read(&mut buffer) {
                if let Ok(mut bytes) = bytes.lock() {
                    bytes.extend_from_slice(&buffer[..n]);
                    let more = bytes.len().saturating_sub(MAX_MESSAGE);
                    bytes.drain(..more);
                }
            }
            drop(listening);
        });
    }

    /// In one line, when the command has ended. A helper that it leaves behind, such as that of a `ProxyCommand`, may keep its
    /// output open: it is not waited for long.
    fn words(&self) -> String {
        let until = Instant::now() + LINGER;
        while Arc::strong_count(&self.listening) > 1 && Instant::now() < until {
            thread::sleep(LOOK_EVERY);
        }
        self.bytes.lock().map(|bytes| last_words(&bytes)).unwrap_or_default()
    }
}

/// A message in one line.
fn last_words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ").chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A connection to a host.
pub struct Session {
    ssh: Arc<Ssh>,
    /// As the operator named it.
    pub host: String,
    socket: PathBuf,
    master: Child,
    /// Closing it ends the connection.
    pipe: Option<ChildStdin>,
    sudo: bool,
    /// Who logs in there.
    pub user: String,
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.pipe.take());
        for _ in 0..100 {
            if !matches!(self.master.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(LOOK_EVERY);
        }
        let _ = self.master.kill();
        let _ = self.master.wait();
    }
}

/// What a script printed.
#[derive(Debug)]
pub struct Printed {
    /// Standard output.
    pub out: Vec<u8>,
    /// Its last words on standard error, in one line.
    pub message: String,
    /// How it ended.
    pub status: ExitStatus,
}

impl Session {
    fn become_root(&mut self) -> Result<(), SshError> {
        let script = "id -u; id -un; [ \"$(id -u)\" = 0 ] || { said=$(sudo -n true 2>&1) && echo sudo || echo \"$said\"; }; true";
        let printed = self.run("ask who I am there", &[], &[], script)?;
        let text = String::from_utf8_lossy(&printed).into_owned();
        let mut lines = text.lines();
        let uid = lines.next().unwrap_or_default().to_owned();
        self.user = lines.next().unwrap_or_default().to_owned();
        let said = last_words(lines.collect::<Vec<_>>().join("\n").as_bytes());
        self.sudo = uid != "0" && said == "sudo";
        if uid == "0" || self.sudo { Ok(()) } else { Err(SshError::NoRoot { user: self.user.clone(), said }) }
    }

    /// Whether root is reached by sudo.
    #[must_use]
    pub fn by_sudo(&self) -> bool {
        self.sudo
    }

    /// A command of root's on the host.
    fn remote(&self, command: &str) -> Command {
        let mut ssh = self.ssh.command(&self.socket);
        let sudo = if self.sudo { "sudo -n " } else { "" };
        // Understood by every login shell, csh and fish too.
        let command = format!("echo {}; exec {sudo}{command}", quote::word(banner::MARK));
        ssh.args(["-o", "ControlMaster=no", "--", &self.host]).arg(command);
        ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        ssh
    }

    /// Runs a script as root; its variables and arguments are set first. Returns what it printed.
    ///
    /// # Errors
    /// If it does not end with 0 in time; the message is what it said on standard error.
    pub fn run(
        &self,
        what: &str,
        variables: &[(&str, &str)],
        arguments: &[String],
        body: &str,
    ) -> Result<Vec<u8>, SshError> {
        let printed = self.try_run(what, variables, arguments, body)?;
        if printed.status.success() { Ok(printed.out) } else { Err(failed(what, &printed)) }
    }

    /// The same, whatever the script ends with.
    ///
    /// # Errors
    /// If it does not end in time, or the connection breaks.
    pub fn try_run(
        &self,
        what: &str,
        variables: &[(&str, &str)],
        arguments: &[String],
        body: &str,
    ) -> Result<Printed, SshError> {
        let script = quote::script(variables, arguments, body);
        let limit = Duration::from_secs(self.ssh.settings.script_s.max(1));
        let printed = self.exchange(what, self.remote("/bin/sh -s"), script.into_bytes(), Some(limit))?;
        if printed.status.code() == Some(255) { Err(failed(what, &printed)) } else { Ok(printed) }
    }

    /// The same with the rights of another user and no others: what users put in its way leads only where he may go.
    ///
    /// # Errors
    /// As `run`.
    pub fn run_as(&self, who: Reader, what: &str, variables: &[(&str, &str)], body: &str) -> Result<Vec<u8>, SshError> {
        let script = quote::script(variables, &[], body);
        let limit = Duration::from_secs(self.ssh.settings.script_s.max(1));
        let command = self.remote(&format!("{}/bin/sh -s", who.prefix()));
        let printed = self.exchange(what, command, script.into_bytes(), Some(limit))?;
        if printed.status.success() { Ok(printed.out) } else { Err(failed(what, &printed)) }
    }

    /// Writes a file, which has to lie in a folder that only root writes to. One that is there keeps its mode and owner.
    ///
    /// # Errors
    /// If it cannot be written whole.
    pub fn put(&self, bytes: &[u8], path: &str) -> Result<(), SshError> {
        self.put_as(0, bytes, path)
    }

    /// The same with the rights of another user, where he may write on the way to the file.
    ///
    /// # Errors
    /// If it cannot be written whole.
    pub fn put_as(&self, uid: u32, bytes: &[u8], path: &str) -> Result<(), SshError> {
        let what = format!("write {path}");
        let write = "umask 077 && exec cat >\"$0\"";
        let as_other = "gid=$(getent passwd \"$0\" | cut -d: -f4); exec setpriv --reuid=\"$0\" --regid=\"${gid:-$0}\" --clear-groups \
                        --no-new-privs /bin/sh -c \"$@\"";
        let command = match uid {
            0 => format!("/bin/sh -c {} {}", quote::word(write), quote::word(path)),
            _ => format!("/bin/sh -c {} {uid} {} {}", quote::word(as_other), quote::word(write), quote::word(path)),
        };
        let command = self.remote(&command);
        let printed = self.exchange(&what, command, bytes.to_vec(), None)?;
        if printed.status.success() { Ok(()) } else { Err(failed(&what, &printed)) }
    }

    /// Keeps others from changing the host until what is returned goes.
    ///
    /// # Errors
    /// If another one changes it just now; says which.
    pub fn lock(&self, command: &str) -> Result<HostLock, SshError> {
        let what = "lock the host";
        let here = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let who = format!("hadoptic {command}, process {} on {here}, logged in as {}", std::process::id(), self.user);
        let lines = crate::scripts::LOCK.lines().filter(|line| !line.starts_with('#'));
        let lock = lines.collect::<Vec<_>>().join("; ");
        let mut child = Guard(
            self.remote(&format!("/bin/sh -c {} lock {}", quote::word(&lock), quote::word(&who)))
                .spawn()
                .map_err(local("cannot start ssh"))?,
        );
        let said = CommandOutput::default();
        said.listen(child.0.stderr.take());
        let mut answer = Vec::new();
        if let Some(mut stdout) = child.0.stdout.take() {
            banner::skip(&mut stdout).map_err(|banner| not_begun(what, &banner, &said.words()))?;
            let mut byte = [0];
            while answer.len() < 400 && !answer.ends_with(b"\n") && matches!(stdout.read(&mut byte), Ok(1)) {
                answer.push(byte[0]);
            }
        }
        let answer = last_words(&answer);
        match answer.as_str() {
            "locked" | "unlocked" => Ok(HostLock { session: child }),
            _ => {
                let message = match answer.strip_prefix("busy ") {
                    Some(other) => format!("another one changes this host ({other}): wait until it has ended"),
                    None => said.words(),
                };
                Err(SshError::Failed { what: what.to_owned(), message })
            }
        }
    }

    /// A shell's loop that answers each line with the host's time, after a greeting: see `clock`.
    pub(crate) fn clock(&self) -> Command {
        self.remote(&format!("/bin/sh -c {}", quote::word("while read -r x; do date +%s%N; done")))
    }

    /// Runs a script as that user and hands what it prints to `take` while it comes.
    ///
    /// # Errors
    /// If the script fails, or `take` does.
    pub fn stream(
        &self,
        who: Reader,
        what: &str,
        variables: &[(&str, &str)],
        arguments: &[String],
        body: &str,
        take: impl FnOnce(&mut dyn Read) -> Result<(), SshError>,
    ) -> Result<(), SshError> {
        let remote = format!("{}/bin/sh -s", who.prefix());
        let mut child = Guard(self.remote(&remote).spawn().map_err(local("cannot start ssh"))?);
        let script = quote::script(variables, arguments, body);
        if let Some(mut stdin) = child.0.stdin.take() {
            stdin.write_all(script.as_bytes()).map_err(local(what))?;
        }
        let said = CommandOutput::default();
        said.listen(child.0.stderr.take());
        let taken = match child.0.stdout.take() {
            Some(mut stdout) => match banner::skip(&mut stdout) {
                Ok(()) => take(&mut stdout),
                Err(banner) => Err(not_begun(what, &banner, "")),
            },
            None => Ok(()),
        };
        if taken.is_err() {
            let _ = child.0.kill();
        }
        let status = child.0.wait().map_err(local(what))?;
        let message = said.words();
        match taken {
            Err(SshError::Interrupted) => Err(SshError::Interrupted),
            // The host knows better why nothing more came.
            Err(_) if !message.is_empty() => Err(SshError::Failed { what: what.to_owned(), message }),
            Err(error) => Err(error),
            Ok(()) if status.success() => Ok(()),
            Ok(()) => Err(failed(what, &Printed { out: Vec::new(), message, status })),
        }
    }

    /// Whether the user wants an end.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.ssh.interrupted.load(Ordering::Relaxed)
    }

    fn exchange(
        &self,
        what: &str,
        mut command: Command,
        input: Vec<u8>,
        limit: Option<Duration>,
    ) -> Result<Printed, SshError> {
        let mut child = Guard(command.spawn().map_err(local("cannot start ssh"))?);
        let writer = child.0.stdin.take().map(|mut stdin| {
            // That the host does not want all of it shows in how the command ends.
            thread::spawn(move || stdin.write_all(&input).is_ok())
        });
        let too_long = Arc::new(AtomicBool::new(false));
        let reader = child.0.stdout.take().map(|mut stdout| {
            let too_long = Arc::clone(&too_long);
            thread::spawn(move || {
                banner::skip(&mut stdout)?;
                let mut out = Vec::new();
                let most = u64::try_from(MAX_ANSWER).unwrap_or(u64::MAX);
                let _ = stdout.take(most + 1).read_to_end(&mut out);
                too_long.store(out.len() > MAX_ANSWER, Ordering::Relaxed);
                Ok(out)
            })
        });
        let said = CommandOutput::default();
        said.listen(child.0.stderr.take());
        let until = limit.map(|limit| Instant::now() + limit);
        let status = loop {
            if let Some(status) = child.0.try_wait().map_err(local(what))? {
                break status;
            }
            if too_long.load(Ordering::Relaxed) {
                return Err(SshError::TooLong { what: what.to_owned() });
            }
            if until.is_some_and(|until| Instant::now() > until) {
                let seconds = limit.unwrap_or_default().as_secs();
                return Err(SshError::Late { what: what.to_owned(), seconds });
            }
            thread::sleep(LOOK_EVERY);
        };
        let whole = writer.is_none_or(|writer| writer.join().unwrap_or(false));
        let out = reader.and_then(|reader| reader.join().ok()).unwrap_or(Err(Vec::new()));
        let mut message = said.words();
        let out = match out {
            Ok(out) if out.len() > MAX_ANSWER => return Err(SshError::TooLong { what: what.to_owned() }),
            Ok(out) => out,
            // 255: ssh itself failed, and has said why.
            Err(_) if status.code() == Some(255) => Vec::new(),
            Err(banner) => return Err(not_begun(what, &banner, &message)),
        };
        if !whole && message.is_empty() {
            message = "the host did not take all of it".to_owned();
        }
        Ok(Printed { out, message, status })
    }
}

/// As whom a host's files are read: root, or who the agents' folder there belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reader {
    /// 0 = root.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

impl Reader {
    /// As a script tells: "UID GID".
    #[must_use]
    pub fn from_answer(answer: &crate::answer::HostAnswer) -> Self {
        let numbers: Vec<u32> = answer.numbers("reader").into_iter().filter_map(|n| n.try_into().ok()).collect();
        match numbers[..] {
            [uid, gid] => Self { uid, gid },
            [uid] => Self { uid, gid: uid },
            _ => Self::default(),
        }
    }

    fn prefix(self) -> String {
        let Self { uid, gid } = self;
        if uid == 0 {
            return String::new();
        }
        format!("setpriv --reuid={uid} --regid={gid} --clear-groups --no-new-privs ")
    }
}

/// While it lives, nobody else changes the host.
pub struct HostLock {
    /// Ends with its input.
    session: Guard,
}

impl Drop for HostLock {
    fn drop(&mut self) {
        drop(self.session.0.stdin.take());
        let until = Instant::now() + LINGER;
        // The next command finds the host free.
        while matches!(self.session.0.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(LOOK_EVERY);
        }
    }
}

fn failed(what: &str, printed: &Printed) -> SshError {
    let message = match (printed.message.is_empty(), printed.status.code()) {
        (false, _) => printed.message.clone(),
        (true, Some(255)) => "the connection broke".to_owned(),
        (true, _) => printed.status.to_string(),
    };
    SshError::Failed { what: what.to_owned(), message }
}

/// The login shell did something else than what it was asked: what it printed, and said on standard error.
fn not_begun(what: &str, printed: &[u8], said: &str) -> SshError {
    let words: String = last_words(printed).chars().take(MAX_MESSAGE).collect();
    let message =
        format!("the login shell there did not run it and said \"{words}{said}\": try `ssh HOST true` by hand");
    SshError::Failed { what: what.to_owned(), message }
}

/// A process of ours that does not outlive what waits for it.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}
