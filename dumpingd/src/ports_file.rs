//! Tells whoever records packets what belongs to Hadoop's processes now: `ports.json`.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use trace::agent::write_atomically;
use trace::ports::{FILE, HadoopPorts, OpenConnection};
use trace::socket::Owner;

use crate::diag::{TcpSocket, TcpState};
use crate::processes::ProcessInfo;

/// Connections that are told at most: the file is written anew whenever one comes or goes. Those of one user are no more
/// than half, as anybody may give a process the name of one of Hadoop's.
const MAX_CONNECTIONS: usize = 20_000;
const MAX_CONNECTIONS_OF_USER: usize = MAX_CONNECTIONS / 2;
/// The same of ports on which somebody listens.
const MAX_LISTENERS: usize = 8_192;
const MAX_LISTENERS_OF_USER: usize = MAX_LISTENERS / 2;

/// What a run notes when there were more.
pub const LEFT_OUT: &str = "ports.json does not tell of all ports and connections of Hadoop's processes, as there are too \
                            many: packets of the others may not be recorded where the sniffer follows it";

/// Writes the file when something has changed.
#[derive(Debug)]
pub struct PortsFile {
    path: PathBuf,
    written: Option<HadoopPorts>,
}

impl PortsFile {
    /// Into this folder.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { path: folder.join(FILE), written: None }
    }

    /// Tells what is so at `t`, unless it was told already.
    ///
    /// # Errors
    /// If the file cannot be written; the next call tries again.
    pub fn write(&mut self, t: u64, now: &HadoopPorts) -> io::Result<()> {
        let is_written = self.written.as_ref().is_some_and(|written| {
            written.listen == now.listen && written.connections == now.connections && written.left_out == now.left_out
        });
        if is_written {
            return Ok(());
        }
        let now = HadoopPorts { version: 1, t, ..now.clone() };
        write_atomically(&self.path, &serde_json::to_vec(&now)?)?;
        self.written = Some(now);
        Ok(())
    }
}

/// What belongs to Hadoop among these sockets.
#[must_use]
pub fn hadoops<'a>(
    sockets: &[TcpSocket],
    owner_of: impl Fn(u64) -> Option<Owner>,
    processes: impl Iterator<Item = &'a ProcessInfo>,
) -> HadoopPorts {
    let hadoop: HashMap<Owner, (String, u32)> = processes
        .filter(|process| process.is_hadoop())
        .map(|process| (process.owner, (format!("{} {}", process.role, process.owner.pid), process.uid)))
        .collect();
    let owned = |socket: &TcpSocket| owner_of(socket.inode).and_then(|owner| hadoop.get(&owner)).cloned();
    let mut found = HadoopPorts::default();
    let mut of_user: HashMap<u32, (usize, usize)> = HashMap::new();
    for socket in sockets.iter().filter(|socket| socket.state == TcpState::LISTEN) {
        let Some((who, uid)) = owned(socket) else { continue };
        let (listeners, _) = of_user.entry(uid).or_default();
        if *listeners < MAX_LISTENERS_OF_USER {
            *listeners += usize::from(add_listener(&mut found, socket.local.port(), who));
        } else {
            found.left_out += 1;
        }
    }
    for socket in sockets.iter().filter(|socket| socket.remote.port() != 0) {
        if found.listen.contains_key(&socket.local.port()) {
            continue;
        }
        let Some((owner, uid)) = owned(socket) else { continue };
        let (_, connections) = of_user.entry(uid).or_default();
        if *connections < MAX_CONNECTIONS_OF_USER {
            let connection = OpenConnection { local: socket.local, remote: socket.remote, owner };
            *connections += usize::from(add_connection(&mut found, connection));
        } else {
            found.left_out += 1;
        }
    }
    found
}

/// Adds a connection, or counts it as left out where there are too many. Whether it is told and is new.
pub fn add_connection(ports: &mut HadoopPorts, connection: OpenConnection) -> bool {
    if ports.connections.len() >= MAX_CONNECTIONS && !ports.connections.contains(&connection) {
        ports.left_out += 1;
        return false;
    }
    ports.connections.insert(connection)
}

/// The same of a port on which somebody listens.
pub fn add_listener(ports: &mut HadoopPorts, port: u16, who: String) -> bool {
    if ports.listen.len() >= MAX_LISTENERS && !ports.listen.contains_key(&port) {
        ports.left_out += 1;
        return false;
    }
    ports.listen.insert(port, who).is_none()
}

/// Adds what another network namespace has.
pub fn add(ports: &mut HadoopPorts, more: HadoopPorts) {
    ports.left_out += more.left_out;
    for (port, who) in more.listen {
        add_listener(ports, port, who);
    }
    for connection in more.connections {
        add_connection(ports, connection);
    }
}
