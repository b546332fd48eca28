package hadoptic.hook;

import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/**
 * How a writer of HDFS makes what it writes: by packet, the time since it queued the one before, and the time for which the queue
 * was full. The thread that sends learns the block's connection later; until then steps wait here (the queue bounds them).
 */
final class Production {
    /** Of the thread that writes. */
    private Step step;
    private long reached;
    private int block;

    /** A block whose pipeline stands. */
    private static final class Opened {
        private final long id;
        private final InetSocketAddress local;
        private final InetSocketAddress remote;

        Opened(long id, InetSocketAddress local, InetSocketAddress remote) {
            this.id = id;
            this.local = local;
            this.remote = remote;
        }

        void note(Step step) {
            step.note(id, local, remote);
        }
    }

    private static final class Early {
        private final int block;
        private final Step step;

        Early(int block, Step step) {
            this.block = block;
            this.step = step;
        }
    }

    /** In the order of the file's blocks; guarded by this. */
    private final List<Opened> opened = new ArrayList<Opened>();
    /** Guarded by this. */
    private final ArrayDeque<Early> early = new ArrayDeque<Early>();

    /**
     * A packet was queued.
     *
     * @param end of its data within the block
     * @param made time in which its data was made
     * @param waited time in which there was no room for it
     * @param last whether its block ends with it
     */
    void queued(long now, long end, long made, long waited, boolean last) {
        if (step == null) {
            // When the making of a file's first packet began nobody knows.
            step = new Step("write", end, now);
        } else {
            step.writeWait += waited;
            if (end > reached) {
                step.work += made;
                step.bytes += end - reached;
            }
        }
        reached = Math.max(reached, end);
        if (step.isFull() || last) {
            step.ends(now);
            note(step);
            reached = last ? 0 : reached;
            block += last ? 1 : 0;
            step = step.next(reached);
        }
    }

    private synchronized void note(Step ended) {
        if (block < opened.size()) {
            opened.get(block).note(ended);
        } else {
            early.add(new Early(block, ended));
        }
    }

    /** A block's pipeline stands, for the first time or again. */
    synchronized void opens(long id, InetSocketAddress local, InetSocketAddress remote) {
        Opened now = new Opened(id, local, remote);
        int last = opened.size() - 1;
        if (last >= 0 && opened.get(last).id == id) {
            opened.set(last, now);
            return;
        }
        opened.add(now);
        for (Iterator<Early> all = early.iterator(); all.hasNext();) {
            Early one = all.next();
            if (one.block == last + 1) {
                now.note(one.step);
                all.remove();
            }
        }
    }
}
