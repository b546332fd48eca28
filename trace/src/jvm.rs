//! What the Java agent writes: `jvm-PID-STARTTICKS.jsonl`, one JSON object a line, the first one a [`JvmRecord::Header`].
//!
//! Times are nanoseconds since the epoch, taken from the JVM's monotonic clock and anchored to the wall clock once a
//! batch. `th` is the Java thread id (`Thread.getId()`). Addresses are `"ip:port"`.

use serde::{Deserialize, Serialize};

/// One line of a JVM's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum JvmRecord {
    /// Who this JVM is.
    Header {
        /// When the agent started in it.
        t: u64,
        /// Format version, 1.
        version: u32,
        /// Process id as its /proc counts (/proc/self): the machine's, or that of a process namespace.
        pid: u32,
        /// Its ids in the process namespaces from that of its /proc to the innermost, if there are several.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ns_pid: Vec<u32>,
        /// Start time in clock ticks since boot (field 22 of /proc/self/stat), as outside of any time namespace.
        start_ticks: u64,
        /// Network namespace, by inode (/proc/self/ns/net); 0 = unknown.
        netns: u64,
        /// Host name, as the JVM sees it.
        host: String,
        /// Addresses of the host's interfaces.
        addresses: Vec<String>,
        /// Main class, without arguments.
        main: String,
        /// Role (`trace::role`).
        role: String,
        /// Version of Hadoop, "" = not told.
        hadoop: String,
        /// Version of Java.
        java: String,
        /// Container id, where it runs in one (environment `CONTAINER_ID`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        container: Option<String>,
    },
    /// Wall and monotonic clock read together, with each batch; says also that the JVM lived.
    Clock {
        /// Wall clock.
        t: u64,
        /// `System.nanoTime()`.
        mono: i64,
        /// Records that had to be dropped since the last batch because the buffer was full.
        #[serde(default)]
        dropped: u64,
        /// Records that were not written since the last batch, because there was no room left for them on the disk.
        #[serde(default, skip_serializing_if = "is_zero")]
        unwritten: u64,
        /// CPU time of the process so far, nanoseconds in steps of 10 ms; 0 = not told: only every 5 s.
        #[serde(default, skip_serializing_if = "is_zero")]
        cpu_ns: u64,
        /// What the agent cost in it so far, nanoseconds: its start, its hooks, its patching, its writing.
        #[serde(default, skip_serializing_if = "is_zero")]
        agent_ns: u64,
    },
    /// This process runs this task attempt from now on.
    Attempt {
        /// When it happened, nanoseconds since the epoch.
        t: u64,
        /// "attempt_..."
        attempt: String,
        /// Container id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        container: Option<String>,
    },
    /// A TCP connection was opened by this process.
    Open {
        /// When it was established.
        t: u64,
        /// Java thread id.
        th: u64,
        /// This side.
        local: String,
        /// The other side.
        remote: String,
    },
    /// A TCP connection was accepted by this process.
    Accept {
        /// When it happened, nanoseconds since the epoch.
        t: u64,
        /// Java thread id.
        th: u64,
        /// This side.
        local: String,
        /// The other side.
        remote: String,
    },
    /// This process listens.
    Listen {
        /// When it began.
        t: u64,
        /// Address and port.
        local: String,
        /// "rpc", "transfer" or "http", "" = not known.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        purpose: String,
    },
    /// What a connection is for, once that is known. Of several such records of a connection the last counts.
    Use {
        /// When it became known.
        t: u64,
        /// This side.
        local: String,
        /// The other side.
        remote: String,
        /// "rpc", "umbilical" (of a task and its master), "read", "write" (of a client of HDFS, or of a DataNode in the
        /// middle of a pipeline), "pipeline" (from a DataNode to the next), "copy", "replace", "transfer", "checksum",
        /// "shuffle", "http".
        purpose: String,
        /// "client" opened it, "server" accepted it.
        #[serde(default)]
        side: String,
        /// Protocol of its calls by its class, "" = none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        protocol: String,
    },
    /// How long threads were blocked in reads and writes of a connection since the last such record of it; one a second
    /// at most. What does not block (selectors, Netty) is not in it.
    Wait {
        /// The first of these reads and writes began.
        t0: u64,
        /// The last of them ended.
        t1: u64,
        /// This side.
        local: String,
        /// The other side.
        remote: String,
        /// Blocked in reads, nanoseconds, of all threads.
        read_ns: u64,
        /// Blocked in writes, nanoseconds.
        write_ns: u64,
        /// Reads that blocked.
        reads: u64,
        /// Writes that blocked.
        writes: u64,
    },
    /// An RPC call that this process served (one record a call, when its response was sent).
    Rpc {
        /// The whole request was received.
        received: u64,
        /// A handler took it: processing begins.
        begin: u64,
        /// Processing ended.
        end: u64,
        /// The response was handed to the socket; 0 = not seen.
        responded: u64,
        /// Handler thread.
        th: u64,
        /// Call id.
        call: i64,
        /// Client id, hex, "" = unknown.
        client: String,
        /// Method.
        method: String,
        /// This side of the connection.
        local: String,
        /// The caller's side.
        remote: String,
        /// Caller context, "" = none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        context: String,
        /// It was understood and handed to the queue of calls; 0 = not told.
        #[serde(default, skip_serializing_if = "is_zero")]
        queued: u64,
        /// Ids of containers or attempts of which the call, or its response, says that they have ended.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        completed: Vec<String>,
        /// Ids of containers, attempts or commands that its response assigns.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        assigned: Vec<String>,
    },
    /// An RPC call that this process made (one record a call, when it ended).
    Call {
        /// The caller handed it over.
        t: u64,
        /// The request was written to the socket; 0 = not seen.
        sent: u64,
        /// The response had been read; 0 = none came.
        received: u64,
        /// Calling thread (not the connection's).
        th: u64,
        /// Call id.
        call: i64,
        /// Client id, hex, "" = unknown.
        client: String,
        /// Method.
        method: String,
        /// This side, "" = unknown.
        local: String,
        /// The server's side.
        remote: String,
    },
    /// A DataNode served an operation of the data transfer protocol.
    Block {
        /// When it began, nanoseconds since the epoch.
        t0: u64,
        /// When it ended, nanoseconds since the epoch.
        t1: u64,
        /// Java thread id.
        th: u64,
        /// "read", "write", "copy", "replace", "transfer", ...
        op: String,
        /// Block id.
        block: u64,
        /// First byte asked for (0 for writes).
        offset: u64,
        /// Bytes asked for (0 for writes).
        length: u64,
        /// Data bytes moved, without checksums and headers.
        bytes: u64,
        /// Client name (`DFSClient_attempt_...`).
        client: String,
        /// This side.
        local: String,
        /// The requester's side.
        remote: String,
        /// The next DataNode of the pipeline, "" = none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        mirror: String,
        /// Its thread was blocked in reads of sockets so long, nanoseconds.
        #[serde(default, skip_serializing_if = "is_zero")]
        read_wait: u64,
        /// Its thread was blocked in writes to sockets so long, nanoseconds.
        #[serde(default, skip_serializing_if = "is_zero")]
        write_wait: u64,
    },
    /// A client's use of one block reader, when it was closed.
    BlockRead {
        /// Opened.
        t0: u64,
        /// Closed.
        t1: u64,
        /// Java thread id.
        th: u64,
        /// Block id.
        block: u64,
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        length: u64,
        /// Bytes that the application took.
        consumed: u64,
        /// This side.
        local: String,
        /// The DataNode's side.
        remote: String,
        /// Its thread was blocked in reads of sockets so long, nanoseconds.
        #[serde(default, skip_serializing_if = "is_zero")]
        read_wait: u64,
    },
    /// A client's writing of one block, when its stream ended.
    BlockWrite {
        /// When it began, nanoseconds since the epoch.
        t0: u64,
        /// When it ended, nanoseconds since the epoch.
        t1: u64,
        /// Java thread id.
        th: u64,
        /// Block id.
        block: u64,
        /// Data bytes.
        bytes: u64,
        /// This side.
        local: String,
        /// The first DataNode's side.
        remote: String,
        /// Addresses of all DataNodes of the pipeline.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pipeline: Vec<String>,
        /// Its thread was blocked in writes to sockets so long, nanoseconds.
        #[serde(default, skip_serializing_if = "is_zero")]
        write_wait: u64,
    },
    /// What one thread did with about a megabyte of a block, in whole packets: production and consumption by bytes.
    Step {
        /// Begin: its first packet was there, or the step before ended.
        t0: u64,
        /// End of its last packet's work.
        t1: u64,
        /// Java thread id.
        th: u64,
        /// "write": a client makes data; "read": a client takes it; "receive", "send": a DataNode's end of that.
        op: String,
        /// Block id.
        block: u64,
        /// First byte within the block.
        offset: u64,
        /// Data bytes, without checksums and headers.
        bytes: u64,
        /// "write": from a packet's entry into the queue until the next one is full; "read": from a packet's arrival until the next
        /// is asked for; "receive", "send": with packets, but for the waits below. Nanoseconds.
        work_ns: u64,
        /// "read": until the packets that were asked for were there; "receive": blocked in reads of the sender's socket.
        #[serde(default, skip_serializing_if = "is_zero")]
        read_wait: u64,
        /// "write": until the queue of packets had room; "receive", "send": blocked in writes to sockets.
        #[serde(default, skip_serializing_if = "is_zero")]
        write_wait: u64,
        /// Of `work_ns`, in writes of data to the disk.
        #[serde(default, skip_serializing_if = "is_zero")]
        disk_ns: u64,
        /// Of `work_ns`, in flushes and syncs.
        #[serde(default, skip_serializing_if = "is_zero")]
        sync_ns: u64,
        /// Of `work_ns`, in checks of checksums.
        #[serde(default, skip_serializing_if = "is_zero")]
        checksum_ns: u64,
        /// CPU time of its thread from `t0` to `t1`, to the kernel's tick; 0 = not known.
        #[serde(default, skip_serializing_if = "is_zero")]
        cpu_ns: u64,
        /// Time in which its thread could have run and had no processor, from `t0` to `t1`.
        #[serde(default, skip_serializing_if = "is_zero")]
        ready_ns: u64,
        /// This side.
        local: String,
        /// The other side.
        remote: String,
    },
    /// A map's output for one reduce was served (a record for each map of a request).
    ShuffleServed {
        /// The request was received.
        t0: u64,
        /// The output was handed to the socket; equal to `t0` = not seen.
        t1: u64,
        /// Job id.
        job: String,
        /// Map attempt.
        map: String,
        /// Number of the reduce.
        reduce: u32,
        /// Bytes of the output as sent, headers apart.
        bytes: u64,
        /// Of that, time in reads of the output's file and in writes of it to the socket, which do not wait; nanoseconds.
        #[serde(default, skip_serializing_if = "is_zero")]
        read_ns: u64,
        /// This side.
        local: String,
        /// The fetcher's side.
        remote: String,
    },
    /// A reduce fetched a map's output.
    Fetch {
        /// When it began, nanoseconds since the epoch.
        t0: u64,
        /// When it ended, nanoseconds since the epoch.
        t1: u64,
        /// Fetcher thread.
        th: u64,
        /// Map attempt.
        map: String,
        /// Number of the reduce.
        reduce: u32,
        /// Bytes as transferred.
        bytes: u64,
        /// Bytes after decompression.
        raw: u64,
        /// "host:port" as the fetcher names it.
        host: String,
        /// Its thread was blocked in reads of sockets so long, nanoseconds.
        #[serde(default, skip_serializing_if = "is_zero")]
        read_wait: u64,
    },
    /// A phase of a task begins: "map", "sort", "shuffle", "merge", "reduce", "commit", "end".
    Phase {
        /// When it happened, nanoseconds since the epoch.
        t: u64,
        /// Java thread id.
        th: u64,
        /// Task attempt.
        attempt: String,
        /// Phase.
        phase: String,
    },
    /// A part of a task with a begin and an end: "spill" of a map's buffer, "merge" of spills or of fetched outputs.
    Work {
        /// When it began, nanoseconds since the epoch.
        t0: u64,
        /// When it ended, nanoseconds since the epoch.
        t1: u64,
        /// Java thread id.
        th: u64,
        /// Task attempt, "" = unknown.
        attempt: String,
        /// Kind of work.
        work: String,
    },
    /// A thread was started by another: whatever it does first is because of that one.
    Thread {
        /// When it happened, nanoseconds since the epoch.
        t: u64,
        /// The thread that started it.
        th: u64,
        /// The new thread.
        child: u64,
        /// Its name.
        name: String,
    },
    /// A method that the agent wanted to follow is not in this version of Hadoop.
    Drift {
        /// When it was noticed.
        t: u64,
        /// Class.
        class: String,
        /// Method, "" = the class itself was refused.
        method: String,
    },
    /// The JVM ends in an orderly way.
    End {
        /// When it happened, nanoseconds since the epoch.
        t: u64,
        /// Records dropped in all.
        dropped: u64,
        /// Records that were not written in all, because there was no room left for them on the disk.
        #[serde(default, skip_serializing_if = "is_zero")]
        unwritten: u64,
        /// Time inside the agent's hooks by the clock on the wall, nanoseconds, 0 = not measured.
        #[serde(default)]
        hook_ns: u64,
        /// The part of it that passed in single hooks of more than 1 ms: classes that were loaded for the first time, and
        /// threads that the machine or a garbage collection kept from running.
        #[serde(default)]
        stall_ns: u64,
        /// Time of the agent's premain, nanoseconds, without waiting for the agents of the host.
        #[serde(default)]
        premain_ns: u64,
        /// CPU time of it, nanoseconds, in steps of the kernel's tick.
        #[serde(default)]
        premain_cpu_ns: u64,
        /// Time in which classes were patched after premain, by the clock on the wall, nanoseconds.
        #[serde(default)]
        patch_ns: u64,
        /// Classes that were patched.
        #[serde(default)]
        patched: u64,
        /// Of these, those that had been patched beforehand and were only looked up.
        #[serde(default)]
        prepared: u64,
        /// CPU time of the agent's thread, nanoseconds.
        #[serde(default)]
        writer_ns: u64,
        /// CPU time of the whole process, nanoseconds in steps of 10 ms.
        #[serde(default)]
        cpu_ns: u64,
        /// Of the threads that lived then: nanoseconds in which they ran.
        #[serde(default)]
        ran_ns: u64,
        /// Of the same: nanoseconds in which they could have run and had no processor. What the clock on the wall shows of
        /// a hook is longer than its CPU time in the same proportion.
        #[serde(default)]
        waited_ns: u64,
    },
}

impl JvmRecord {
    /// Reads a line. Most lines tell of clocks, threads and calls: by how they begin these are read without the detour on which others
    /// find out what they are.
    ///
    /// # Errors
    /// If it is no record.
    pub fn of_line(line: &[u8]) -> serde_json::Result<Self> {
        /// Of a line that begins like that, by the fields of the variant.
        macro_rules! plain {
            ($begin:literal, $variant:ident { $($(#[$meta:meta])* $field:ident: $type:ty),* }) => {
                if line.starts_with($begin) {
                    #[derive(Deserialize)]
                    struct Plain { $($(#[$meta])* $field: $type),* }
                    if let Ok(Plain { $($field),* }) = serde_json::from_slice(line) {
                        return Ok(Self::$variant { $($field),* });
                    }
                }
            };
        }
        plain!(b"{\"k\":\"thread\",", Thread { t: u64, th: u64, child: u64, name: String });
        plain!(
            b"{\"k\":\"clock\",",
            Clock {
                t: u64,
                mono: i64,
                #[serde(default)]
                dropped: u64,
                #[serde(default)]
                unwritten: u64,
                #[serde(default)]
                cpu_ns: u64,
                #[serde(default)]
                agent_ns: u64
            }
        );
        plain!(
            b"{\"k\":\"rpc\",",
            Rpc {
                received: u64,
                begin: u64,
                end: u64,
                responded: u64,
                th: u64,
                call: i64,
                client: String,
                method: String,
                local: String,
                remote: String,
                #[serde(default)]
                context: String,
                #[serde(default)]
                queued: u64,
                #[serde(default)]
                completed: Vec<String>,
                #[serde(default)]
                assigned: Vec<String>
            }
        );
        plain!(
            b"{\"k\":\"call\",",
            Call {
                t: u64,
                sent: u64,
                received: u64,
                th: u64,
                call: i64,
                client: String,
                method: String,
                local: String,
                remote: String
            }
        );
        plain!(b"{\"k\":\"open\",", Open { t: u64, th: u64, local: String, remote: String });
        plain!(b"{\"k\":\"accept\",", Accept { t: u64, th: u64, local: String, remote: String });
        serde_json::from_slice(line)
    }
}

/// Numbers that are left out where they are 0.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}
