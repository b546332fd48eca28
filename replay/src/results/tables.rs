//! The rows of results, a type for each table: what `replay` writes as Parquet, and what `replay tables` says of it.
//!
//! Sweeps have no type: their first columns are the keys that are swept.

use trace::row;

row! {
    /// A message of the replayed job. Times are nanoseconds since the job's submission.
    MessageResult in "messages" {
        /// Its row in the trace's table `messages`.
        message: u32,
        /// Kind, as in the trace.
        kind: String,
        /// RPC method, data transfer operation or HTTP path, as in the trace.
        name: String,
        /// Name of the sender's host.
        from: String,
        /// Name of the receiver's host.
        to: String,
        /// Payload bytes that were sent during the job.
        bytes: u64,
        /// Sends of which it consists: a message is cut where its sender or receiver thought.
        sends: u32,
        /// Its first byte left in the replay; null = not all of it arrived before the job's end.
        simulated_sent_ns: Option<i64>,
        /// Its last byte had arrived in the replay.
        simulated_delivered_ns: Option<i64>,
        /// Its first byte left in the recording.
        recorded_sent_ns: i64,
        /// Its last byte had arrived in the recording.
        recorded_delivered_ns: i64,
    }
}

row! {
    /// A task attempt of the replayed job. Times are seconds since the job's submission; null = it did not come to that.
    TaskResult in "tasks" {
        /// "attempt_..."
        attempt: String,
        /// "map", "reduce" or "other".
        kind: String,
        /// Name of the host on which it ran.
        host: String,
        /// Whether it succeeded in the recording.
        succeeded: bool,
        /// It began, in the replay.
        simulated_start_s: Option<f64>,
        /// It began, in the recording.
        recorded_start_s: Option<f64>,
        /// Reduce: all map outputs were there, in the replay.
        simulated_shuffle_end_s: Option<f64>,
        /// Reduce: all map outputs were there, in the recording.
        recorded_shuffle_end_s: Option<f64>,
        /// Reduce: they were merged, in the replay.
        simulated_sort_end_s: Option<f64>,
        /// Reduce: they were merged, in the recording.
        recorded_sort_end_s: Option<f64>,
        /// It ended, in the replay.
        simulated_finish_s: Option<f64>,
        /// It ended, in the recording.
        recorded_finish_s: Option<f64>,
    }
}

row! {
    /// A task on a network for which it was predicted: means over captures and seeds, seconds.
    PredictedTaskResult in "predicted_tasks" {
        /// The experiment whose network it is.
        experiment: String,
        /// Kind and number of the task, as in its attempt's id: "m_000003".
        task: String,
        /// How long it runs.
        predicted_s: f64,
        /// The shortest of all replays.
        least_s: f64,
        /// The longest.
        most_s: f64,
        /// How long it ran in the recordings.
        recorded_s: f64,
        /// When it ends, since the job's submission.
        predicted_finish_s: f64,
        /// When it ended in the recordings.
        recorded_finish_s: f64,
    }
}

row! {
    /// A link of the simulated network, in one direction, over the whole replay.
    LinkResult in "links" {
        /// Name: where it begins and where it ends.
        link: String,
        /// Rate, bits per second; 0 = it has none.
        rate_bps: u64,
        /// Bytes that it carried, headers included.
        bytes: u64,
        /// Packets that it carried.
        packets: u64,
        /// Packets that were lost in front of it.
        drops: u64,
        /// The most bytes that waited in front of it.
        queue_max_bytes: u64,
        /// Share of the job's time in which it was busy; null = it has no rate.
        utilisation: Option<f64>,
    }
}

row! {
    /// Bytes of a link in one interval of time; intervals without any are left out.
    TrafficResult in "traffic" {
        /// Link, as in `links`.
        link: String,
        /// When the interval begins, seconds since the job's submission.
        from_s: f64,
        /// Bytes that the link carried in it.
        bytes: u64,
    }
}

row! {
    /// An optical circuit. Times are seconds since the job's submission. Only fabrics with circuits have this table.
    CircuitResult in "circuits" {
        /// Rack from which it leads.
        from: String,
        /// Its input port, counted from 0 at each rack.
        input: u32,
        /// Rack to which it leads.
        to: String,
        /// Its output port, counted from 0 at each rack.
        output: u32,
        /// Wavelength of its input port, counted from 0 on each fibre.
        wavelength: u32,
        /// Its rack first asked for it.
        asked_s: f64,
        /// It was granted: from then on it holds its ports.
        granted_s: f64,
        /// It could be used; null = not before the job's end.
        up_s: Option<f64>,
        /// The last packet that it was given has left its rack; null = it was given none.
        last_used_s: Option<f64>,
        /// It was released; null = not before the job's end.
        released_s: Option<f64>,
        /// Whether it was given up for another one.
        evicted: bool,
        /// Why it ended: "idle" (not used for long), "evicted" (given up for another one), "scheduled" (its time was over); null = not before the job's end.
        end: Option<String>,
        /// Packets that crossed it.
        packets: u64,
        /// Bytes that crossed it.
        bytes: u64,
    }
}

row! {
    /// A piece of the critical path: what the job waited for, in the order of time.
    PathResult in "critical_path" {
        /// "network", "think", "hidden-work", "timer-wait", "timer-pause", "slot" or "outside" (replay.md says what each means).
        kind: String,
        /// What was waited for: the message, the process's work, the timer.
        what: String,
        /// Where: a host, or two with an arrow between them.
        place: String,
        /// From when, seconds since the job's submission.
        from_s: f64,
        /// Until when, seconds since the job's submission.
        to_s: f64,
        /// Steps of the path that the piece puts together.
        steps: u32,
    }
}

row! {
    /// A link of the network under synthetic traffic, in one direction, in one run.
    TrafficLinkResult in "links" {
        /// Combination of the sweep, from 0, in the order of the table `sweep`.
        point: u32,
        /// Seed of the run.
        seed: u64,
        /// Name: where it begins and where it ends.
        link: String,
        /// Rate, bits per second; 0 = it has none.
        rate_bps: u64,
        /// Bytes that it carried in the measurement, flits filled up.
        bytes: u64,
        /// Share of the measurement in which it was busy; null = it has no rate.
        utilisation: Option<f64>,
        /// Packets that it carried in the whole run.
        packets: u64,
        /// Packets that were lost in front of it in the whole run.
        drops: u64,
        /// The most bytes that waited in front of it in the whole run.
        queue_max_bytes: u64,
    }
}

row! {
    /// An optical circuit under synthetic traffic, in one run: the first 65,536 of a run, and no more than 524,288 of all runs together, the same number of each. Times are picoseconds since the run's begin. Only fabrics with circuits have this table.
    TrafficCircuitResult in "circuits" {
        /// Combination of the sweep, from 0, in the order of the table `sweep`.
        point: u32,
        /// Seed of the run.
        seed: u64,
        /// Rack from which it leads.
        from: String,
        /// Its input port, counted from 0 at each rack.
        input: u32,
        /// Rack to which it leads.
        to: String,
        /// Its output port, counted from 0 at each rack.
        output: u32,
        /// Wavelength of its input port, counted from 0 on each fibre.
        wavelength: u32,
        /// Its rack first asked for it.
        asked_ps: u64,
        /// It was granted: from then on it holds its ports.
        granted_ps: u64,
        /// It could be used; null = not before the run's end.
        up_ps: Option<u64>,
        /// The last packet that it was given has left its rack; null = it was given none.
        last_used_ps: Option<u64>,
        /// It was released; null = not before the run's end.
        released_ps: Option<u64>,
        /// Why it ended: "idle" (not used for long), "evicted" (given up for another one), "scheduled" (its time was over); null = not before the run's end.
        end: Option<String>,
        /// Packets that crossed it.
        packets: u64,
        /// Bytes that crossed it.
        bytes: u64,
    }
}

row! {
    /// A virtual lane of a link, in one run. Only fabrics with virtual lanes have this table.
    LaneResult in "lanes" {
        /// Combination of the sweep, from 0, in the order of the table `sweep`.
        point: u32,
        /// Seed of the run.
        seed: u64,
        /// Link, as in `links`.
        link: String,
        /// Virtual lane, from 0.
        vl: u32,
        /// Share of the measurement in which the link sent packets of this lane.
        utilisation: f64,
    }
}

row! {
    /// How many packets or messages of all runs of a combination took so long.
    LatencyResult in "latency" {
        /// Combination of the sweep, from 0, in the order of the table `sweep`.
        point: u32,
        /// "packet": from hand-over to arrival; "network": from when the packet left its host; "message": from hand-over until all of it arrived.
        kind: String,
        /// Least time, picoseconds.
        from_ps: u64,
        /// The times are less than `from_ps` + `width_ps`, picoseconds.
        width_ps: u64,
        /// How many took so long.
        count: u64,
    }
}

row! {
    /// How far packets went that count, of all runs of a combination with `traffic.offered_hops`.
    HopsResult in "hops" {
        /// Combination of the sweep, from 0, in the order of the table `sweep`.
        point: u32,
        /// "offered": on the shortest way, as they were handed over; "accepted": on their way, as they arrived.
        kind: String,
        /// Switches.
        switches: u64,
        /// Packets.
        packets: u64,
    }
}

row! {
    /// How long so many packets lay in the queue at the end of a link, of one virtual lane, in one run with `traffic.occupancy`. Queues in which none ever lay are left out.
    OccupancyResult in "occupancy" {
        /// Combination of the sweep, from 0, in the order of the table `sweep`.
        point: u32,
        /// Seed of the run.
        seed: u64,
        /// Link, as in `links`.
        link: String,
        /// Virtual lane, from 0.
        vl: u32,
        /// Packets, from 0.
        packets: u32,
        /// Share of the measurement in which so many lay there.
        share: f64,
    }
}

row! {
    /// What crossed all links of a run in the measurement on one virtual lane, where there are several.
    VlResult in "vls" {
        /// Combination of the sweep, from 0, in the order of the table `sweep`.
        point: u32,
        /// Seed of the run.
        seed: u64,
        /// Virtual lane, from 0.
        vl: u32,
        /// Flits that crossed links on it, each link counted.
        flits: u64,
        /// Share of the measurement in which a link sent packets of this lane, as a mean over the links; null = no link has a rate.
        utilisation_mean: Option<f64>,
        /// The same of the link that sent most of them; null as before.
        utilisation_max: Option<f64>,
        /// Packets that lay in its queues at the ends of all links to switches, as a mean over time; null = not counted (`traffic.occupancy`).
        queued_mean: Option<f64>,
    }
}

row! {
    /// How packets went that `traffic.log` chose, in the order of time, then of packets.
    LogResult in "log" {
        /// Combination of the sweep, from 0, in the order of the table `sweep`.
        point: u32,
        /// Seed of the run.
        seed: u64,
        /// Source host.
        source: u32,
        /// The packet's number among those of its source, as in `packets`.
        number: u64,
        /// The flit's number in its packet, from 0; null = the row is the packet's.
        flit: Option<u32>,
        /// "leaves": it begins to leave a host or switch over a link, a packet with its first flit; "arrives": it has come to the end of the link, a packet at a switch with its first flit (`spinnaker`: its last), at a host with its last; "lost": it was lost in front of the link.
        event: String,
        /// When, picoseconds since the run's begin.
        at_ps: u64,
        /// Name of the host or switch.
        node: String,
        /// The cable's number among those of the node, from 0.
        port: u32,
        /// Link, as in `links`.
        link: String,
        /// Virtual lane or channel of the link, from 0.
        vl: u32,
    }
}

row! {
    /// What happened in an interval of a run with `traffic.evolution`, in a batch of its measurement or in a burst, to packets whenever they were handed over. Loads are flits per node and flit
    /// time of a host's link.
    IntervalResult in "intervals" {
        /// Combination of the sweep, from 0, in the order of the table `sweep`.
        point: u32,
        /// Seed of the run.
        seed: u64,
        /// "evolution": an interval of the whole run; "batch": a batch of the measurement; "burst": a burst.
        kind: String,
        /// Number among those of its kind, from 0.
        number: u32,
        /// Its begin, picoseconds since the run's.
        from_ps: u64,
        /// Its end; of a burst, when the last packet arrived.
        until_ps: u64,
        /// Packets handed over in it; null = not counted (bursts).
        offered_packets: Option<u64>,
        /// Packets that arrived in it.
        accepted_packets: u64,
        /// Packets that were lost in it.
        lost_packets: u64,
        /// Load that was handed over; null = not counted, or links without a rate.
        offered_load: Option<f64>,
        /// Load that arrived; null as before.
        accepted_load: Option<f64>,
        /// Packets handed over so far that had neither arrived nor been lost at its end; null = only known from the run's begin on.
        under_way_packets: Option<u64>,
        /// Mean number of switches that those which arrived have passed; null = none arrived, or not counted.
        hops_mean: Option<f64>,
        /// Mean time from hand-over to arrival of those which arrived in it, nanoseconds; null as before.
        packet_latency_mean_ns: Option<f64>,
        /// Its standard deviation.
        packet_latency_deviation_ns: Option<f64>,
        /// The longest.
        packet_latency_max_ns: Option<f64>,
        /// Mean time from when the packet left its host, nanoseconds.
        network_latency_mean_ns: Option<f64>,
        /// Its standard deviation.
        network_latency_deviation_ns: Option<f64>,
        /// The longest.
        network_latency_max_ns: Option<f64>,
    }
}

row! {
    /// What a host has sent another one in the whole run (`--pairs`).
    PairResult in "pairs" {
        /// Combination of the sweep, from 0, in the order of the table `sweep`.
        point: u32,
        /// Seed of the run.
        seed: u64,
        /// Number of the sending host.
        source: u32,
        /// Number of the receiving host.
        destination: u32,
        /// Packets handed over.
        offered_packets: u64,
        /// Packets that arrived.
        accepted_packets: u64,
        /// Bytes of these, headers included.
        accepted_bytes: u64,
    }
}

row! {
    /// A packet of synthetic traffic (`--packets`). Times are picoseconds since the run's begin.
    PacketResult in "packets" {
        /// Combination of the sweep, from 0, in the order of the table `sweep`.
        point: u32,
        /// Seed of the run.
        seed: u64,
        /// Number of the sending host.
        source: u32,
        /// Number of the receiving host.
        destination: u32,
        /// Number among the packets of its source.
        number: u64,
        /// Bytes.
        bytes: u32,
        /// Flits.
        flits: u32,
        /// Switches on its way.
        switches: u32,
        /// It was handed over to its host's interface.
        handed_over_ps: u64,
        /// It began to leave its host.
        left_ps: u64,
        /// All of it had arrived.
        arrived_ps: u64,
    }
}

row! {
    /// A coflow under one scheduler, or over one fabric. Times are seconds from time 0 of its file.
    CoflowResult in "coflows" {
        /// Scheduler, or the name of the fabric's experiment.
        scheduler: String,
        /// Coflow, as its file calls it.
        coflow: String,
        /// Flows of which it consists.
        flows: u64,
        /// Bytes of all its flows.
        bytes: f64,
        /// It arrived.
        arrival_s: f64,
        /// From when its completion time counts: its arrival, or the epoch before (`--epoch`).
        start_s: f64,
        /// It was complete.
        end_s: f64,
        /// Completion time: `end_s` - `start_s`.
        cct_s: f64,
        /// The least time that packets need for it: what its busiest port takes.
        packet_bound_s: f64,
        /// The least time that circuits need for it: the same, with a set-up for each flow of a port.
        circuit_bound_s: f64,
    }
}

row! {
    /// A message of a program over one fabric. Times are seconds from the program's begin.
    ProgramMessageResult in "program_messages" {
        /// Name of the fabric's experiment.
        fabric: String,
        /// The send, by its place among the operations of the file, from 0.
        operation: u32,
        /// Rank that sent it.
        from_rank: u32,
        /// Rank to which it was sent.
        to_rank: u32,
        /// Its tag; 0 in a list of flows.
        tag: u64,
        /// Its bytes.
        bytes: u64,
        /// It was handed to the network.
        sent_s: f64,
        /// Its last byte had arrived.
        delivered_s: f64,
    }
}

row! {
    /// A rank of a program over one fabric.
    ProgramRankResult in "program_ranks" {
        /// Name of the fabric's experiment.
        fabric: String,
        /// Rank.
        rank: u32,
        /// Host on which it ran.
        host: u32,
        /// When its last operation had ended, or its last message had arrived; seconds from the program's begin.
        end_s: f64,
    }
}

row! {
    /// A routing, pattern and number of hosts of `replay congestion`, over all its runs.
    CongestionResult in "congestion" {
        /// Routing.
        routing: String,
        /// Pattern.
        pattern: String,
        /// What the ranks do that the pattern leaves over; null = nothing.
        against: Option<String>,
        /// Ranks of the pattern, where others do something else.
        part: Option<u32>,
        /// How many hosts take part.
        hosts: u64,
        /// Messages of all runs that go from one host to another.
        pairs: u64,
        /// Links on all their paths.
        link_visits: u64,
        /// Mean bandwidth of a message, as a share of a link's; null = there was none.
        bandwidth: Option<f64>,
        /// The chain of messages that half of the runs do not exceed; null = there is none.
        dep_max_delay_median: Option<u64>,
        /// Mean of the mean bandwidths of the runs, as a share of a link's; null = there is none.
        bandwidth_of_runs_mean: Option<f64>,
        /// Half the width of the 99% confidence interval of the mean of the mean bandwidths of the runs, as a share of a link's; null = there is none.
        bandwidth_of_runs_half_width_99: Option<f64>,
        /// Standard deviation of the mean bandwidths of the runs, as a share of a link's; null = there is none.
        bandwidth_of_runs_deviation: Option<f64>,
        /// Least of the mean bandwidths of the runs, as a share of a link's; null = there is none.
        bandwidth_of_runs_min: Option<f64>,
        /// Greatest of the mean bandwidths of the runs, as a share of a link's; null = there is none.
        bandwidth_of_runs_max: Option<f64>,
        /// Mean of the sums over levels of the greatest congestion of a run; null = there is none.
        sum_max_cong_mean: Option<f64>,
        /// Half the width of the 99% confidence interval of the mean of the sums over levels of the greatest congestion of a run; null = there is none.
        sum_max_cong_half_width_99: Option<f64>,
        /// Standard deviation of the sums over levels of the greatest congestion of a run; null = there is none.
        sum_max_cong_deviation: Option<f64>,
        /// Least of the sums over levels of the greatest congestion of a run; null = there is none.
        sum_max_cong_min: Option<f64>,
        /// Greatest of the sums over levels of the greatest congestion of a run; null = there is none.
        sum_max_cong_max: Option<f64>,
        /// Mean of the longest chains of messages of a run; null = there is none.
        dep_max_delay_mean: Option<f64>,
        /// Half the width of the 99% confidence interval of the mean of the longest chains of messages of a run; null = there is none.
        dep_max_delay_half_width_99: Option<f64>,
        /// Standard deviation of the longest chains of messages of a run; null = there is none.
        dep_max_delay_deviation: Option<f64>,
        /// Least of the longest chains of messages of a run; null = there is none.
        dep_max_delay_min: Option<f64>,
        /// Greatest of the longest chains of messages of a run; null = there is none.
        dep_max_delay_max: Option<f64>,
        /// Levels' slowest messages, added up, as the loads of links say, seconds, mean over runs; null = nothing was simulated.
        static_slowest_s: Option<f64>,
        /// The same as simulated.
        simulated_slowest_s: Option<f64>,
        /// Mean over messages of the time that the loads on their paths say, seconds.
        static_mean_s: Option<f64>,
        /// The same as simulated.
        simulated_mean_s: Option<f64>,
        /// Mean over messages of |simulated / static - 1|.
        mean_error: Option<f64>,
    }
}

row! {
    /// How often a figure of `replay congestion` had a value, for one routing, pattern and number of hosts.
    HistogramResult in "histograms" {
        /// Routing.
        routing: String,
        /// Pattern.
        pattern: String,
        /// What the ranks do that the pattern leaves over; null = nothing.
        against: Option<String>,
        /// Ranks of the pattern, where others do something else.
        part: Option<u32>,
        /// How many hosts take part.
        hosts: u64,
        /// "hist_max_cong", "sum_max_cong", "dep_max_delay" or "hist_acc_band", as ORCS calls them (congestion.md).
        metric: String,
        /// Least value.
        from: f64,
        /// The values are less than this.
        below: f64,
        /// How often it had one of them.
        count: u64,
    }
}

row! {
    /// A recorded shuffle under one routing (`replay congestion --trace`). Times are those in which the busiest link carries its bytes, over
    /// the runs, each of which places the hosts at random.
    ShuffleResult in "shuffle" {
        /// Routing.
        routing: String,
        /// Mean, over all links, seconds; null = links have no rate.
        links_s: Option<f64>,
        /// Half the width of the 99% confidence interval of that mean, seconds.
        links_half_width_99_s: Option<f64>,
        /// The least of all runs, seconds.
        links_min_s: Option<f64>,
        /// The most of all runs, seconds.
        links_max_s: Option<f64>,
        /// Mean, over hosts' links alone, seconds: what no routing makes shorter.
        host_links_s: Option<f64>,
        /// `links_s` / `host_links_s`.
        slowdown: Option<f64>,
        /// Link with most bytes in all runs; "" = there is none.
        busiest: String,
        /// Its bytes a run, in the mean.
        busiest_bytes: u64,
    }
}
