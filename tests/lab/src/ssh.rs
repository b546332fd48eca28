//! Logins on the lab's hosts: keys for the run, what `ssh` has to be told, and the way into the lab's network.
//!
//! Nobody outside can reach the hosts' addresses: they are in namespaces. The operator's machine is therefore plugged into the
//! switch of rack 1, as `OPERATOR`; `ssh` gets there by `lab connect`, which joins its standard streams to a connection.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::error::{Context, Result};

use crate::layout;
use crate::netns;
use crate::network::bridge;
use crate::plan::{HostPlan, Plan};
use crate::tool::{self, run_words};

/// Port of the hosts' sshd.
pub const PORT: u16 = 22;
/// How long a connection may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Ports from which the operator's machine connects. Among them is none on which Hadoop listens by its configuration: a login
/// from such a port would be recorded as Hadoop's.
const OPERATOR_PORTS: &str = "61000 65000";
/// What a login finds without a path.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Files of the run's logins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logins {
    folder: PathBuf,
    /// What `ssh -F` gets.
    pub config: PathBuf,
    /// The workers, a name a line, as Hadoop's own `workers` (`slaves`).
    pub workers: PathBuf,
    /// The masters, likewise.
    pub masters: PathBuf,
}

impl Logins {
    /// Plugs the operator in, makes keys for the run, and writes `ssh/config`, `workers` and `masters` into a folder.
    ///
    /// # Errors
    /// If files cannot be made or a tool fails.
    pub fn make(plan: &Plan, run: &Path) -> Result<Self> {
        let folder = run.join("ssh");
        fs::create_dir_all(&folder).at("cannot make", &folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).at("cannot close", &folder)?;
        let logins =
            Self { config: folder.join("config"), workers: run.join("workers"), masters: run.join("masters"), folder };
        run_words(&format!("ip -n {} addr add {}/16 broadcast + dev {}", plan.fabric(), operator(plan), bridge(0)))?;
        netns::within(&plan.fabric(), || {
            fs::write("/proc/sys/net/ipv4/ip_local_port_range", OPERATOR_PORTS)
                .context("cannot choose the ports of the operator's connections")
        })?;
        let client = logins.key("id")?;
        write(&logins.authorized_keys(), &client, 0o600)?;
        let mut known = String::new();
        for host in &plan.hosts {
            let key = logins.key(&host_key(host))?;
            known.push_str(&format!("{},{} {key}", host.name, host.address));
        }
        write(&logins.folder.join("known_hosts"), &known, 0o600)?;
        write(&logins.config, &logins.client_config(plan)?, 0o600)?;
        let names = |master: bool| {
            let hosts = plan.hosts.iter().filter(|host| host.master == master);
            hosts.map(|host| format!("{}\n", host.name)).collect::<String>()
        };
        write(&logins.workers, &names(false), 0o644)?;
        write(&logins.masters, &names(true), 0o644)?;
        Ok(logins)
    }

    /// Makes a pair of keys; returns the line of the public one.
    fn key(&self, name: &str) -> Result<String> {
        let path = self.folder.join(name);
        let file = path.to_string_lossy();
        tool::run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", &*file])?;
        let public = self.folder.join(format!("{name}.pub"));
        fs::read_to_string(&public).at("cannot read", &public)
    }

    fn authorized_keys(&self) -> PathBuf {
        self.folder.join("authorized_keys")
    }

    fn client_config(&self, plan: &Plan) -> Result<String> {
        let lab = std::env::current_exe().context("the lab does not find its own program")?;
        let names: Vec<&str> = plan.hosts.iter().map(|host| host.name.as_str()).collect();
        let mut text = String::new();
        for host in &plan.hosts {
            text.push_str(&format!("Host {}\n    HostName {}\n", host.name, host.address));
            text.push_str(&format!("    HostKeyAlias {}\n", host.name));
        }
        text.push_str(&format!(
            "Host {}\n    User root\n    IdentityFile {folder}/id\n    IdentitiesOnly yes\n    \
             UserKnownHostsFile {folder}/known_hosts\n    GlobalKnownHostsFile /dev/null\n    StrictHostKeyChecking yes\n    \
             BatchMode yes\n    LogLevel ERROR\n    ProxyCommand {} connect --prefix {} %h %p\n",
            names.join(" "),
            lab.display(),
            plan.prefix,
            folder = self.folder.display(),
        ));
        Ok(text)
    }

    /// Writes what a host's sshd is told; returns its path.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn server_config(&self, host: &HostPlan) -> Result<PathBuf> {
        let path = self.folder.join(format!("sshd-{}", host.name));
        let text = format!(
            "ListenAddress {}:{PORT}\nHostKey {folder}/{key}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\n\
             StrictModes no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nX11Forwarding no\nPrintMotd no\nMaxStartups 100\nMaxSessions 100\n\
             Subsystem sftp internal-sftp\nSetEnv PATH={}/bin:{PATH}\n",
            host.address,
            self.authorized_keys().display(),
            layout::HOME,
            folder = self.folder.display(),
            key = host_key(host),
        );
        write(&path, &text, 0o600)?;
        Ok(path)
    }
}

fn host_key(host: &HostPlan) -> String {
    format!("host-{}", host.name)
}

/// Address of the operator's machine.
#[must_use]
pub fn operator(plan: &Plan) -> Ipv4Addr {
    Ipv4Addr::new(10, plan.subnet, 0, 1)
}

fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    fs::write(path, text).at("cannot write", path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).at("cannot set the rights of", path)
}

/// Joins standard input and output to a connection from the operator's machine of a lab to one of its hosts.
///
/// # Errors
/// If the lab or the host is not there.
pub fn connect(prefix: &str, address: IpAddr, port: u16) -> Result<()> {
    let fabric = format!("{prefix}-fabric");
    let stream = netns::within(&fabric, move || {
        TcpStream::connect_timeout(&SocketAddr::new(address, port), CONNECT_LIMIT)
            .with_context(|| format!("cannot connect to {address} port {port}"))
    })?;
    let both = stream.set_nodelay(true).and_then(|()| stream.try_clone());
    let mut there = both.with_context(|| format!("cannot use the connection to {address} port {port}"))?;
    thread::spawn(move || {
        // Either end may hang up at any time; that ends this direction and is no failure.
        let _ = pass(&mut io::stdin().lock(), &mut there);
        let _ = there.shutdown(Shutdown::Write);
    });
    let _ = pass(&mut &stream, &mut io::stdout().lock());
    Ok(())
}

/// Copies without waiting for more than what is there.
fn pass(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut block = vec![0; 1 << 16];
    loop {
        let read = from.read(&mut block)?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(&block[..read])?;
        to.flush()?;
    }
}
