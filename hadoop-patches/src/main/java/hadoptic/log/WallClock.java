package hadoptic.log;

import java.time.Clock;
import java.time.Instant;

/**
 * The wall clock beside the monotonic one.
 *
 * <p>Java 8 reads the wall clock in whole milliseconds: the truth lies up to 1 ms after what is read, so the largest
 * difference of the last readings is the nearest. Later versions read nanoseconds.
 */
public final class WallClock {
    private static final int TRIES = 3;
    private static final int REMEMBERED = 256;

    private final Clock clock = Clock.systemUTC();
    private final long[] coarse = new long[REMEMBERED];
    private int coarseReadings;

    /** Monotonic time of the last reading, nanoseconds. */
    public long monotonic;
    /** Wall time of the last reading, nanoseconds since the epoch. */
    public long wall;

    /** Reads both; of a few tries the one with the shortest way counts. Returns wall less monotonic. */
    public long read() {
        long best = Long.MAX_VALUE;
        boolean whole = true;
        for (int i = 0; i < TRIES; i++) {
            long before = System.nanoTime();
            Instant now = clock.instant();
            long after = System.nanoTime();
            whole &= now.getNano() % 1_000_000 == 0;
            if (after - before < best) {
                best = after - before;
                monotonic = before + (after - before) / 2;
                wall = now.getEpochSecond() * 1_000_000_000L + now.getNano();
            }
        }
        if (whole) {
            wall = monotonic + largest(wall - monotonic);
        }
        return wall - monotonic;
    }

    private long largest(long difference) {
        coarse[coarseReadings % REMEMBERED] = difference;
        coarseReadings++;
        long largest = difference;
        for (int i = 0; i < Math.min(coarseReadings, REMEMBERED); i++) {
            // a step of the clock makes older readings worthless
            if (coarse[i] > largest && coarse[i] - difference < 1_000_000) {
                largest = coarse[i];
            }
        }
        return largest;
    }
}
