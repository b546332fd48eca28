package hadoptic.agent;

import hadoptic.hook.Hooks;
import hadoptic.log.Cpu;
import hadoptic.log.JsonLine;
import hadoptic.patch.Patcher;

/**
 * What the agent costs its JVM: its start, its hooks, its patching, its thread that writes, beside the CPU time of the
 * process. All in nanoseconds; time in hooks and with patching is by the clock on the wall, so on a busy machine too much.
 */
public final class Costs {
    /** The CPU time is told so often: a process of many threads takes the kernel a while to add up. */
    private static final long TELL_EVERY_NS = 5_000_000_000L;

    private final long cpuBefore = Cpu.ofThread();
    private volatile long premainNs;
    private volatile long premainCpuNs;
    /** Patching that premain counts. */
    private volatile long patchedBefore;
    private long reportedAt;

    /** Premain ends, which began then, in the thread that made this object. */
    void started(long begin) {
        patchedBefore = Patcher.nanoseconds();
        premainCpuNs = Cpu.ofThread() - cpuBefore;
        premainNs = System.nanoTime() - begin;
    }

    /** Adds to a record what it cost so far, if that is due; in the writer's thread. */
    void tell(JsonLine line) {
        long now = System.nanoTime();
        if (premainNs != 0 && now - reportedAt >= TELL_EVERY_NS) {
            reportedAt = now;
            long patching = Patcher.nanoseconds() - patchedBefore;
            line.some("cpu_ns", Cpu.ofProcess())
                    .some("agent_ns", premainCpuNs + patching + Hooks.nanoseconds() + Cpu.ofThread());
        }
    }

    /** Adds all of it to the last record; in the writer's thread. */
    void tellAll(JsonLine line) {
        long[] threads = Cpu.ranAndWaited();
        line.number("ran_ns", threads[0]).number("waited_ns", threads[1]);
        line.number("hook_ns", Hooks.nanoseconds()).number("stall_ns", Hooks.stalled())
                .number("premain_ns", premainNs).number("premain_cpu_ns", premainCpuNs)
                .number("patch_ns", Patcher.nanoseconds() - patchedBefore)
                .number("patched", Patcher.patched()).number("prepared", Patcher.preparedBefore())
                .number("writer_ns", Cpu.ofThread()).number("cpu_ns", Cpu.ofProcess());
    }
}
