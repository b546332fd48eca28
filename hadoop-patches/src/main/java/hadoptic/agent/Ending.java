package hadoptic.agent;

import hadoptic.hook.BlockClientHandlers;
import hadoptic.hook.ShutdownHandlers;
import hadoptic.hook.Waits;
import hadoptic.log.Buffer;
import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import hadoptic.log.Writer;

/**
 * Shutdown hook: writes what is left and says that the JVM ends.
 *
 * <p>Hadoop does work in its own shutdown hook (closes file systems, stops services). The JVM waits for that hook anyway,
 * so this one does too before it writes the last record.
 */
final class Ending implements Runnable {
    private static final long MAX_WAIT_MS = 30_000;

    private final Writer writer;
    private final Buffer buffer;
    private final Costs costs;
    private final HostAgents agents;

    /** With the agents of the host that this JVM looks after, null = none. */
    Ending(Writer writer, Buffer buffer, Costs costs, HostAgents agents) {
        this.agents = agents;
        this.writer = writer;
        this.buffer = buffer;
        this.costs = costs;
    }

    @Override
    public void run() {
        try {
            writer.hurry(50);
            if (agents != null) {
                agents.leave();
            }
            ShutdownHandlers.await(MAX_WAIT_MS);
            BlockClientHandlers.sample(true);
            Waits.sample(true);
            writer.close(new End(), 1000);
        } catch (Throwable failure) {
            System.err.println("hadoptic: the end of this JVM is not recorded: " + failure);
        }
    }

    private final class End implements Record {
        @Override
        public void write(JsonLine line) {
            line.begin("end").time("t", System.nanoTime()).number("dropped", buffer.dropped())
                    .some("unwritten", writer.unwritten());
            costs.tellAll(line);
            line.end();
        }
    }
}
