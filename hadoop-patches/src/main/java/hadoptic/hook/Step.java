package hadoptic.hook;

import hadoptic.log.Cpu;
import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import java.net.InetSocketAddress;

/**
 * What one thread did with about a megabyte of a block: sums of its work and of its waiting. One record a step, so that production
 * and consumption are known by bytes, whatever the network made of their times.
 */
final class Step implements Record {
    /** Bytes of data after which a step ends, at the next packet's end. */
    static final long BYTES = 1L << 20;

    private final String op;
    /** First byte within the block. */
    private final long offset;
    private final long begin;
    private final long thread;
    /** Of its thread when it began: {ran, ready}. */
    private final long[] cpuBefore;
    private long[] cpuAfter;
    private long end;
    long bytes;
    long work;
    long readWait;
    long writeWait;
    long disk;
    long sync;
    long checksum;
    private long block;
    private InetSocketAddress local;
    private InetSocketAddress remote;

    /** Begins in the calling thread. */
    Step(String op, long offset, long now) {
        this(op, offset, now, Thread.currentThread().getId(), Cpu.ranAndReady());
    }

    private Step(String op, long offset, long begin, long thread, long[] cpuBefore) {
        this.op = op;
        this.offset = offset;
        this.begin = begin;
        this.end = begin;
        this.thread = thread;
        this.cpuBefore = cpuBefore;
        this.cpuAfter = cpuBefore;
    }

    boolean isFull() {
        return bytes >= BYTES;
    }

    /** Its last work or waiting has ended. Another thread than its own learns nothing of CPU time. */
    void ends(long now) {
        end = now;
        cpuAfter = thread == Thread.currentThread().getId() ? Cpu.ranAndReady() : cpuBefore;
    }

    /** The step after this one, which has ended. */
    Step next(long from) {
        long now = Thread.currentThread().getId();
        return now == thread ? new Step(op, from, end, thread, cpuAfter) : new Step(op, from, end);
    }

    /** Notes it as one of this block. */
    void note(long ofBlock, InetSocketAddress here, InetSocketAddress there) {
        if (bytes > 0) {
            block = ofBlock;
            local = here;
            remote = there;
            Hooks.record(this);
        }
    }

    @Override
    public void write(JsonLine line) {
        line.begin("step").time("t0", begin).time("t1", end).number("th", thread).string("op", op)
                .unsigned("block", block).number("offset", offset).number("bytes", bytes).number("work_ns", work)
                .some("read_wait", readWait).some("write_wait", writeWait)
                .some("disk_ns", disk).some("sync_ns", sync).some("checksum_ns", checksum)
                .some("cpu_ns", Math.max(0, cpuAfter[0] - cpuBefore[0]))
                .some("ready_ns", Math.max(0, cpuAfter[1] - cpuBefore[1]))
                .address("local", local).address("remote", remote).end();
    }
}
