//! What of the outputs that a reduce has fetched lies in its memory when the last one is there.

/// `mapreduce.reduce.memory.mb`: memory of a reduce's container, MiB.
pub(super) const CONTAINER_MB: u64 = 1_024;
/// `mapreduce.job.heap.memory-mb.ratio`: share of it that is heap.
const HEAP_RATIO: f64 = 0.8;
/// Heap of a reduce by these two, bytes.
pub(super) const DEFAULT_HEAP: u64 = (CONTAINER_MB << 20) * 8 / 10;
/// `mapreduce.reduce.shuffle.input.buffer.percent`: share of the heap for outputs.
const BUFFER: f64 = 0.70;
/// `mapreduce.reduce.shuffle.merge.percent`: share of that buffer at which all in it is merged to the disk.
const MERGE: f64 = 0.66;
/// `mapreduce.reduce.shuffle.memory.limit.percent`: share of that buffer above which an output goes to the disk at once.
const SINGLE: f64 = 0.25;

/// Of outputs of so many bytes, fetched one after the other, what a reduce has in memory in the end: what its sort merges
/// (`MergeManagerImpl.finalMerge`). `heap` and sizes are bytes.
pub(super) fn left_in_memory(heap: u64, outputs: impl IntoIterator<Item = u64>) -> u64 {
    let buffer = heap as f64 * BUFFER;
    let mut left = 0u64;
    for bytes in outputs.into_iter().filter(|bytes| *bytes as f64 <= buffer * SINGLE) {
        left = left.saturating_add(bytes);
        if left as f64 >= buffer * MERGE {
            left = 0;
        }
    }
    left
}

/// Reads the heap of a reduce, bytes.
///
/// # Errors
/// In words, if it is no size, or none that a reduce has.
pub fn parse_heap(text: &str) -> Result<u64, String> {
    let heap = trace::quantity::parse_bytes(text)?;
    let allowed = (1 << 20)..=(1 << 40);
    if allowed.contains(&heap) { Ok(heap) } else { Err(format!("\"{text}\": 1MiB to 1TiB, such as 320MiB")) }
}

/// A container of tasks whose heap has so many bytes, MiB, and the share of it that is heap.
pub(super) fn container_of(heap: u64) -> (u64, f64) {
    let mb = heap as f64 / f64::from(1 << 20);
    let container_mb = CONTAINER_MB.max((mb / HEAP_RATIO).ceil() as u64);
    (container_mb, mb / container_mb as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_no_smaller_than_hadoop_s_and_its_heap_no_larger_than_its_share() {
        assert_eq!(container_of(320 << 20), (1_024, 0.3125));
        assert_eq!(container_of(4_096 << 20), (5_120, 0.8));
    }

    #[test]
    fn outputs_stay_until_the_buffer_is_full_enough_and_large_ones_never_do() {
        // A buffer of 700 bytes: merged at 462, and nothing above 175 stays.
        let left = |outputs: &[u64]| left_in_memory(1_000, outputs.iter().copied());
        assert_eq!(left(&[]), 0);
        assert_eq!(left(&[100, 100, 100, 100]), 400);
        assert_eq!(left(&[100, 100, 100, 100, 100]), 0);
        assert_eq!(left(&[100, 100, 100, 100, 62]), 0);
        assert_eq!(left(&[100, 100, 100, 100, 61]), 461);
        assert_eq!(left(&[100, 100, 100, 100, 100, 7]), 7);
        assert_eq!(left(&[175, 176, 7_000]), 175);
    }
}
