package hadoptic.agent;

import hadoptic.hook.Hooks;
import hadoptic.log.JsonLine;
import hadoptic.patch.Patcher;
import java.io.IOException;

/**
 * What the agent costs its JVM, in nanoseconds: its start, the time in its hooks and in patching classes (both by the
 * clock on the wall, so never too little), and the CPU time of the thread that writes; beside the CPU time of the process.
 */
public final class Costs {
    /** Ticks of /proc: the kernel counts 100 a second for programs, on every machine. */
    private static final long NS_PER_TICK = 10_000_000L;
    /** The CPU time is told so often, in nanoseconds. */
    private static final long TELL_EVERY_NS = 1_000_000_000L;

    private volatile long premainNs;
    /** Patching that premain counts. */
    private volatile long patchedBefore;
    private long told;

    /** Premain ends, which began then. */
    void started(long begin) {
        premainNs = System.nanoTime() - begin;
        patchedBefore = Patcher.nanoseconds();
    }

    /** Adds to a record what it cost so far, if that is due; in the writer's thread. */
    void tell(JsonLine line) {
        long now = System.nanoTime();
        if (premainNs != 0 && now - told >= TELL_EVERY_NS) {
            told = now;
            long writer = threadNs();
            line.some("cpu_ns", processNs()).some("agent_ns", premainNs + patching() + Hooks.nanoseconds() + writer);
        }
    }

    /** Adds all of it to the last record; in the writer's thread. */
    void tellAll(JsonLine line) {
        line.number("hook_ns", Hooks.nanoseconds()).number("premain_ns", premainNs).number("patch_ns", patching())
                .number("writer_ns", threadNs()).number("cpu_ns", processNs());
    }

    private long patching() {
        return Patcher.nanoseconds() - patchedBefore;
    }

    /** CPU time of this process, in steps of 10 ms; 0 = unknown. */
    static long processNs() {
        try {
            String stat = Identity.text("/proc/self/stat");
            return NS_PER_TICK * (Identity.afterCommand(stat, 11) + Identity.afterCommand(stat, 12));
        } catch (IOException | RuntimeException unreadable) {
            return 0;
        }
    }

    /** CPU time of the calling thread; 0 = unknown. */
    static long threadNs() {
        try {
            String text = Identity.text("/proc/thread-self/schedstat");
            return Long.parseLong(text.substring(0, text.indexOf(' ')));
        } catch (IOException | RuntimeException unreadable) {
            return 0;
        }
    }
}
