package hadoptic.hook;

import java.net.InetSocketAddress;

/** How a reader of HDFS takes what it reads: by packet, the time in which it waited for it, and the time until it asked for the next. */
final class Consumption {
    private final long block;
    private final InetSocketAddress local;
    private final InetSocketAddress remote;
    private long reached;
    private Step step;
    private long inHand;
    private long gotAt;
    private long waitsSince;

    Consumption(long block, long offset, InetSocketAddress local, InetSocketAddress remote) {
        this.block = block;
        this.reached = offset;
        this.local = local;
        this.remote = remote;
    }

    /** All of the packet before has been taken: the next one is waited for. */
    void asks(long now) {
        took(now, step == null ? 0 : now - gotAt);
        waitsSince = now;
    }

    /** A packet is there. */
    void gets(long now, long bytes) {
        gets(now, bytes, now - waitsSince);
    }

    /** As both, where only the begin of a packet is seen, and how long its thread had waited for it. */
    void asksAndGets(long now, long bytes, long waited) {
        took(now, step == null ? 0 : Math.max(0, now - gotAt - waited));
        gets(now, bytes, waited);
    }

    private void took(long now, long work) {
        if (step == null) {
            return;
        }
        step.work += work;
        step.bytes += inHand;
        reached += inHand;
        inHand = 0;
        if (step.isFull()) {
            step.ends(now);
            step.note(block, local, remote);
            step = step.next(reached);
        }
    }

    private void gets(long now, long bytes, long waited) {
        if (step == null) {
            step = new Step("read", reached, now);
        } else {
            step.readWait += waited;
        }
        inHand = bytes;
        gotAt = now;
    }

    /** The reader was closed. What it did with its last packet nobody knows: it may have been idle. */
    void ends(long now) {
        if (step != null) {
            step.ends(now);
            step.note(block, local, remote);
            step = null;
        }
    }
}
