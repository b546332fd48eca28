//! Any text is read as a job file or refused; what is read says the same when it is written; small ones run for a while, on a network and
//! on none, and whatever they come to is a trace whose causes come before their effects; never a panic.
use mapreduce::{JobFile, Model};
use netsim::engine::Workload;
use netsim::fabric;
use netsim::network::Simulation as _;

/// So many steps of a job are run.
const STEPS: usize = 3_000;

/// What must hold for any input.
pub fn check(text: &str) {
    let Ok(file) = JobFile::parse(text) else { return };
    let written = file.to_toml().map(|text| JobFile::parse(&text));
    assert_eq!(written.as_ref().map(Result::as_ref), Ok(Ok(&file)), "{written:?}");
    // Recorded maps have sizes of their own: as many of them as are needed, all in turn.
    let blocks = file.jobs.iter().map(|job| {
        let input = job.input.map_or(0, |input| input.0);
        let samples = job.map_samples.iter().map(|map| map.input.0).fold(0, u64::saturating_add);
        match job.map_samples.len() as u64 {
            0 => input / file.hadoop.block_bytes,
            count => input.div_ceil(samples).saturating_mul(count),
        }
    });
    let tasks = blocks.chain(file.jobs.iter().map(|job| job.reduces.into())).fold(0u64, u64::saturating_add);
    let samples = file.jobs.iter().flat_map(|job| &job.map_samples).map(|map| map.input.0);
    let pieces = samples.chain([file.hadoop.block_bytes]).max().unwrap_or(0) / file.cluster.piece.0;
    if file.cluster.nodes > 64 || tasks > 200 || pieces > 1_000 {
        return;
    }
    for network in ["kind = \"ideal\"", "kind = \"ideal\"\nrate = \"1Gbps\"\nlatency = \"5us\""] {
        let Ok(network) = network.parse() else { return };
        let Ok(mut network) = fabric::build(&network, &mapreduce::places(&file.cluster)) else { return };
        let mut model = Model::new(file.clone());
        let mut deliveries = Vec::new();
        for _ in 0..STEPS {
            let next = model.next_tick(&network).into_iter().chain(network.next_event()).min();
            let Some(at) = next.filter(|_| !model.is_complete()) else { break };
            network.advance(at, &mut deliveries);
            let is_idle = deliveries.is_empty();
            deliveries.drain(..).for_each(|delivery| model.delivered(&delivery, &mut network));
            if is_idle {
                model.tick(at, &mut network);
            }
        }
        let trace = model.into_trace();
        assert!(trace.dependencies.iter().all(|dependency| dependency.on_event < dependency.event));
    }
}
