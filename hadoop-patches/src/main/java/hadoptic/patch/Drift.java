package hadoptic.patch;

import hadoptic.log.JsonLine;
import hadoptic.log.Record;

/** A class is not as expected: another version. */
final class Drift implements Record {
    private final long t;
    private final String owner;
    private final String method;

    Drift(long t, String owner, String method) {
        this.t = t;
        this.owner = owner;
        this.method = method;
    }

    @Override
    public void write(JsonLine line) {
        line.begin("drift").time("t", t).string("class", owner.replace('/', '.')).string("method", method).end();
    }
}
