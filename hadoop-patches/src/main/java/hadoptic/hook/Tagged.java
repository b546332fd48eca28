package hadoptic.hook;

/** What patched classes of Hadoop implement to carry what the agent knows of an object. */
public interface Tagged {
    /** What was put last, null = nothing. */
    Object hadoptic$tag();

    /** Puts something. */
    void hadoptic$tag(Object tag);
}
