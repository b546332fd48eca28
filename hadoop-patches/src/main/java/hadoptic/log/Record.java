package hadoptic.log;

/** Something that happened. Times in it are of the monotonic clock; it is formatted later, by the writer's thread. */
public interface Record {
    /** Writes itself as one line. */
    void write(JsonLine line);
}
