//! Hosts, processes, connections and messages of a cluster.

use std::collections::HashMap;

use netsim::network::FlowKind;
use trace::ids::{ConnectionId, HostId, ProcessId, TaskId};
use trace::rows::MessageKind;

use crate::cluster::Cluster;
use crate::kernel::DraftId;

/// A worker, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Its host; host 0 has the masters.
    pub(crate) const fn host(self) -> HostId {
        HostId(self.0 + 1)
    }
}

pub(crate) const NAME_NODE: ProcessId = ProcessId(0);
pub(crate) const RESOURCE_MANAGER: ProcessId = ProcessId(1);
pub(crate) const CLIENT: ProcessId = ProcessId(2);
const MASTERS: u32 = 3;

/// The DataNode of a worker.
pub(crate) const fn data_node(node: NodeId) -> ProcessId {
    ProcessId(MASTERS + 2 * node.0)
}

/// The NodeManager of a worker.
pub(crate) const fn node_manager(node: NodeId) -> ProcessId {
    ProcessId(MASTERS + 2 * node.0 + 1)
}

/// A process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) host: HostId,
    pub(crate) role: &'static str,
    pub(crate) main: &'static str,
    pub(crate) task: Option<TaskId>,
}

/// Application protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Protocol {
    Rpc,
    DataTransfer,
    Shuffle,
}

impl Protocol {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rpc => "rpc",
            Self::DataTransfer => "data-transfer",
            Self::Shuffle => "shuffle",
        }
    }

    /// What a network is told of its connections.
    pub(crate) const fn kind(self) -> FlowKind {
        match self {
            Self::Rpc => FlowKind::Calls,
            Self::DataTransfer => FlowKind::Storage,
            Self::Shuffle => FlowKind::Shuffle,
        }
    }
}

/// A connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    pub(crate) client: ProcessId,
    pub(crate) server: ProcessId,
    pub(crate) protocol: Protocol,
}

/// What a message is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageNote {
    pub(crate) kind: MessageKind,
    pub(crate) name: &'static str,
    /// Payload on the wire.
    pub(crate) bytes: u64,
    /// Of these, application data.
    pub(crate) app_bytes: u64,
    /// Number of the call, operation or fetch to which it belongs.
    pub(crate) call: u32,
    pub(crate) block: Option<u64>,
    pub(crate) task: Option<TaskId>,
    pub(crate) map: Option<TaskId>,
    pub(crate) reduce: Option<u32>,
    pub(crate) hop: Option<u32>,
}

impl MessageNote {
    pub(crate) const fn new(kind: MessageKind, name: &'static str, bytes: u64) -> Self {
        Self { kind, name, bytes, app_bytes: 0, call: 0, block: None, task: None, map: None, reduce: None, hop: None }
    }
}

#[derive(Debug)]
pub(crate) struct World {
    racks: u32,
    pub(crate) processes: Vec<Process>,
    pub(crate) connections: Vec<Connection>,
    kept_open: HashMap<(ProcessId, ProcessId), ConnectionId>,
    /// By number of the message; none for those of timers.
    pub(crate) notes: Vec<Option<MessageNote>>,
}

impl World {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let daemon = |host, role, main| Process { host, role, main, task: None };
        let master = HostId(0);
        let mut processes = vec![
            daemon(master, "NameNode", "org.apache.hadoop.hdfs.server.namenode.NameNode"),
            daemon(master, "ResourceManager", "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"),
            daemon(master, "Client", "org.apache.hadoop.util.RunJar"),
        ];
        for node in (0..cluster.nodes).map(NodeId) {
            processes.push(daemon(node.host(), "DataNode", "org.apache.hadoop.hdfs.server.datanode.DataNode"));
            processes.push(daemon(node.host(), "NodeManager", "org.apache.hadoop.yarn.server.nodemanager.NodeManager"));
        }
        Self { racks: cluster.racks, processes, connections: Vec::new(), kept_open: HashMap::new(), notes: Vec::new() }
    }

    /// The rack of a worker, counted from 0: workers are dealt over racks in turn.
    pub(crate) const fn rack(&self, node: NodeId) -> u32 {
        node.0 % self.racks
    }

    pub(crate) fn start_process(
        &mut self,
        node: NodeId,
        role: &'static str,
        main: &'static str,
        task: Option<TaskId>,
    ) -> ProcessId {
        self.processes.push(Process { host: node.host(), role, main, task });
        ProcessId(self.processes.len() as u32 - 1)
    }

    /// The connection for calls from one process to another, which stays open.
    pub(crate) fn rpc(&mut self, client: ProcessId, server: ProcessId) -> ConnectionId {
        if let Some(known) = self.kept_open.get(&(client, server)) {
            return *known;
        }
        let connection = self.connect(client, server, Protocol::Rpc);
        self.kept_open.insert((client, server), connection);
        connection
    }

    /// A new connection.
    pub(crate) fn connect(&mut self, client: ProcessId, server: ProcessId, protocol: Protocol) -> ConnectionId {
        self.connections.push(Connection { client, server, protocol });
        ConnectionId(self.connections.len() as u32 - 1)
    }

    pub(crate) fn note(&mut self, DraftId(message): DraftId, note: MessageNote) {
        let index = message as usize;
        if self.notes.len() <= index {
            self.notes.resize(index + 1, None);
        }
        self.notes[index] = Some(note);
    }

    /// Source and destination of what is sent on a connection.
    pub(crate) fn ends(&self, connection: ConnectionId) -> (HostId, HostId) {
        let connection = self.connections[connection.index()];
        (self.processes[connection.client.index()].host, self.processes[connection.server.index()].host)
    }
}
