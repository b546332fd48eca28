package hadoptic.log;

import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Bounded and lock-free way from Hadoop's threads to the writer: what does not fit is dropped and counted. */
public final class Buffer {
    private final ConcurrentLinkedQueue<Record> waiting = new ConcurrentLinkedQueue<Record>();
    private final AtomicInteger size = new AtomicInteger();
    private final AtomicLong dropped = new AtomicLong();
    private final int capacity;

    /** A buffer for so many records. */
    public Buffer(int capacity) {
        this.capacity = capacity;
    }

    /** Adds a record or counts it as dropped; never waits. Returns how many wait now. */
    public int add(Record record) {
        int now = size.incrementAndGet();
        if (now > capacity) {
            size.decrementAndGet();
            dropped.incrementAndGet();
        } else {
            waiting.add(record);
        }
        return now;
    }

    /** Takes the oldest record; null = none. */
    public Record poll() {
        Record record = waiting.poll();
        if (record != null) {
            size.decrementAndGet();
        }
        return record;
    }

    /** Counts records that got lost behind the buffer. */
    public void addDropped(long records) {
        dropped.addAndGet(records);
    }

    /** Records dropped so far. */
    public long dropped() {
        return dropped.get();
    }
}
