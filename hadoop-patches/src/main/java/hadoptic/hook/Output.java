package hadoptic.hook;

/** The tag of a stream into HDFS: what is made for it, and the block that is sent. */
final class Output {
    final Production production = new Production();
    /** When the last packet was queued; of the thread that writes. */
    long queuedAt;
    /** When the packet that is being filled was begun (Hadoop 1.x). */
    long begunAt;
    /** The block whose pipeline stands, null = none: a record of the thread that sends. */
    volatile Object writing;

    private Output() {}

    /** Of its DataStreamer, or of a DFSOutputStream of Hadoop 1.x; made when one is first asked for. */
    static Output of(Object stream) {
        Object tag = Tags.get(stream);
        if (tag instanceof Output) {
            return (Output) tag;
        }
        // The thread that writes and the one that sends may come at once.
        synchronized (Output.class) {
            tag = Tags.get(stream);
            if (!(tag instanceof Output)) {
                tag = new Output();
                Tags.put(stream, tag);
            }
            return (Output) tag;
        }
    }
}
