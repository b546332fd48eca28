package hadoptic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import hadoptic.log.Buffer;
import hadoptic.log.Record;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The buffer is bounded: it keeps the order, and what it has no room for is counted, none is lost uncounted. */
class BufferTest {
    private static final Record RECORD = line -> line.begin("x").end();

    @Test
    void dropsAndCountsWhatDoesNotFit() {
        Buffer buffer = new Buffer(3);
        for (int i = 0; i < 10; i++) {
            buffer.add(RECORD);
        }
        assertEquals(7, buffer.dropped());
        for (int i = 0; i < 3; i++) {
            assertEquals(RECORD, buffer.poll());
        }
        assertNull(buffer.poll());
        buffer.add(RECORD);
        assertEquals(RECORD, buffer.poll());
        assertEquals(7, buffer.dropped());
    }

    @Test
    void countsExactlyWithManyThreadsAddingAtOnce() throws InterruptedException {
        Buffer buffer = new Buffer(100);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            threads.add(new Thread(() -> {
                for (int n = 0; n < 10_000; n++) {
                    buffer.add(RECORD);
                }
            }));
        }
        threads.forEach(Thread::start);
        long taken = 0;
        while (threads.stream().anyMatch(Thread::isAlive)) {
            taken += buffer.poll() == null ? 0 : 1;
        }
        while (buffer.poll() != null) {
            taken++;
        }
        assertEquals(80_000, taken + buffer.dropped());
    }
}
