//! The rows of a characterisation, a type for each of its tables. "Control" and "data" are those of [`super::plane::Plane`].

use trace::row;

row! {
    /// What processes of one role sent those of another, in one direction. All rows together are the payload.
    #[derive(serde::Serialize)]
    RoleRow in "roles" {
        /// Role of the sender, "unknown" = no owner is known.
        from_role: String,
        /// Role of the receiver.
        to_role: String,
        /// Connections with payload in this direction.
        connections: u64,
        /// Messages.
        messages: u64,
        /// Payload in messages of control.
        control_bytes: u64,
        /// Payload in messages of data.
        data_bytes: u64,
        /// Payload in messages of unknown kind.
        unknown_bytes: u64,
        /// Payload.
        bytes: u64,
        /// Payload over the time that the trace covers, bits per second.
        mean_bps: f64,
        /// The most in one interval of the table `series`, bits per second.
        peak_bps: f64,
    }
}

row! {
    /// Messages of one kind.
    #[derive(serde::Serialize)]
    KindRow in "kinds" {
        /// Kind, as in the trace.
        kind: String,
        /// "control", "data" or "unknown".
        plane: String,
        /// Messages.
        messages: u64,
        /// Payload.
        bytes: u64,
        /// Of it application data.
        app_bytes: u64,
        /// Median of a message's bytes.
        p50_bytes: u64,
        /// The size that 99% do not exceed.
        p99_bytes: u64,
        /// The largest.
        max_bytes: u64,
    }
}

row! {
    /// Calls of one method, operation or path.
    #[derive(serde::Serialize)]
    CallRow in "calls" {
        /// Protocol of the connection, "unknown" = not known.
        protocol: String,
        /// RPC method, operation on a block or HTTP path.
        name: String,
        /// Requests.
        requests: u64,
        /// Their bytes.
        request_bytes: u64,
        /// Median size of a request.
        request_p50_bytes: u64,
        /// The size that 99% of the requests do not exceed.
        request_p99_bytes: u64,
        /// Responses; a request for several map outputs has one for each.
        responses: u64,
        /// Their bytes.
        response_bytes: u64,
        /// Median size of a response.
        response_p50_bytes: u64,
        /// The size that 99% of the responses do not exceed.
        response_p99_bytes: u64,
        /// Median time from a request's delivery to the first byte of its first response, nanoseconds; null = none was seen.
        service_p50_ns: Option<u64>,
        /// The time that 99% do not exceed.
        service_p99_ns: Option<u64>,
        /// Median time between two such requests of one process (of one connection, if its process is unknown).
        gap_p50_ns: Option<u64>,
        /// The time that 99% do not exceed.
        gap_p99_ns: Option<u64>,
    }
}

row! {
    /// What was sent in a phase of a job; every message counts once, by its first byte, for the job that was submitted first.
    #[derive(serde::Serialize)]
    PhaseRow in "phases" {
        /// "job_..."; "" = when no job ran.
        job: String,
        /// "setup" until the first map starts, "map" until the last one has ended, "shuffle" until the last reduce has all map
        /// outputs, "reduce" until the last task has ended, "commit" until the job has, "outside" = no job.
        phase: String,
        /// Seconds that it took.
        seconds: f64,
        /// Messages.
        messages: u64,
        /// Payload in messages of control.
        control_bytes: u64,
        /// Payload in messages of data.
        data_bytes: u64,
        /// Payload in messages of unknown kind.
        unknown_bytes: u64,
    }
}

row! {
    /// Payload by time. A message's bytes are spread evenly from its first byte to its last.
    #[derive(serde::Serialize)]
    SeriesRow in "series" {
        /// Begin of the interval, nanoseconds since the epoch.
        begin_ns: u64,
        /// End of the interval.
        end_ns: u64,
        /// Payload in messages of control.
        control_bytes: u64,
        /// Payload in messages of data.
        data_bytes: u64,
        /// Payload in messages of unknown kind.
        unknown_bytes: u64,
    }
}

row! {
    /// Connections of one protocol.
    #[derive(serde::Serialize)]
    ProtocolRow in "protocols" {
        /// Protocol, "unknown" = not known.
        protocol: String,
        /// Connections.
        connections: u64,
        /// Of these, seen from their first packet to their last.
        whole: u64,
        /// Payload, both directions.
        bytes: u64,
        /// Median payload.
        p50_bytes: u64,
        /// The payload that 99% do not exceed.
        p99_bytes: u64,
        /// The most.
        max_bytes: u64,
        /// Median life of whole ones, nanoseconds; null = there are none.
        life_p50_ns: Option<u64>,
        /// The life that 99% of these do not exceed.
        life_p99_ns: Option<u64>,
        /// The longest life of these.
        life_max_ns: Option<u64>,
    }
}

row! {
    /// Elephants and mice: the distribution of sizes, in steps of a percent.
    #[derive(serde::Serialize)]
    SizeRow in "sizes" {
        /// "connections" (both directions) or "messages"; those without payload are left out.
        unit: String,
        /// So many percent of them are not larger.
        percent: u32,
        /// Size, bytes.
        bytes: u64,
        /// Share of all bytes that these have together.
        share_of_bytes: f64,
    }
}

row! {
    /// How far payload went.
    #[derive(serde::Serialize)]
    LocalityRow in "locality" {
        /// "host" = within one, "rack" = between hosts of one rack, "racks" = between racks, "unknown" = a rack is not known.
        scope: String,
        /// Protocol, "unknown" = not known.
        protocol: String,
        /// Connections.
        connections: u64,
        /// Payload.
        bytes: u64,
    }
}

row! {
    /// With how many others processes of a role speak.
    #[derive(serde::Serialize)]
    FanRow in "fans" {
        /// Role.
        role: String,
        /// Processes of it with connections.
        processes: u64,
        /// Median number of processes to which one opens connections.
        fan_out_p50: u64,
        /// The most.
        fan_out_max: u64,
        /// Median number of processes from which one has connections.
        fan_in_p50: u64,
        /// The most.
        fan_in_max: u64,
    }
}

row! {
    /// What a reduce got of a map.
    #[derive(serde::Serialize)]
    ShuffleRow in "shuffle" {
        /// "job_...", "" = not known.
        job: String,
        /// Map attempt.
        map: String,
        /// Number of the reduce; null = not known.
        reduce: Option<u32>,
        /// Host of the map output.
        from_host: String,
        /// Host that fetched it.
        to_host: String,
        /// Fetches.
        fetches: u64,
        /// Payload, headers included.
        bytes: u64,
        /// Map output.
        app_bytes: u64,
    }
}

row! {
    /// The shuffle of a job.
    #[derive(serde::Serialize)]
    JobShuffleRow in "shuffles" {
        /// "job_...", "" = not known.
        job: String,
        /// Map attempts whose outputs were fetched.
        maps: u64,
        /// Reduces that fetched.
        reduces: u64,
        /// Map output that was fetched.
        app_bytes: u64,
        /// The largest reduce's part over the mean.
        reduce_skew: f64,
        /// The largest map's part over the mean.
        map_skew: f64,
        /// Share of the bytes that stayed on their host.
        local_share: f64,
    }
}

/// The sums of all. Payload is that of connections with an end that is Hadoop's or not known, as in `merger check`.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Totals {
    /// From the trace's first packet to its last.
    pub seconds: f64,
    /// Hosts whose packets were recorded.
    pub hosts: u64,
    /// Connections.
    pub connections: u64,
    /// Messages.
    pub messages: u64,
    /// Payload.
    pub payload_bytes: u64,
    /// Of it in messages of control.
    pub control_bytes: u64,
    /// Of it in messages of data.
    pub data_bytes: u64,
    /// Of it in messages of unknown kind.
    pub unknown_bytes: u64,
    /// Payload of connections between programs that are known not to be Hadoop's: it is in no other figure.
    pub other_bytes: u64,
}

/// What a trace is like. Each list is a table; `shuffle`, a row for each map and reduce, is written as a table only.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Characteristics {
    /// Sums.
    pub totals: Totals,
    /// By role of sender and receiver, the most bytes first.
    pub roles: Vec<RoleRow>,
    /// By kind of message, the most bytes first.
    pub kinds: Vec<KindRow>,
    /// By method, operation or path, the most bytes first.
    pub calls: Vec<CallRow>,
    /// By job and phase, in the order of time.
    pub phases: Vec<PhaseRow>,
    /// By time.
    pub series: Vec<SeriesRow>,
    /// By protocol, the most bytes first.
    pub protocols: Vec<ProtocolRow>,
    /// By how far it went.
    pub locality: Vec<LocalityRow>,
    /// By number of peers.
    pub fans: Vec<FanRow>,
    /// By size.
    pub sizes: Vec<SizeRow>,
    /// By job.
    pub shuffles: Vec<JobShuffleRow>,
    /// By map and reduce.
    #[serde(skip)]
    pub shuffle: Vec<ShuffleRow>,
}
