package hadoptic.hook;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import hadoptic.log.Buffer;
import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Production and consumption are added up by bytes: work and waiting apart, each byte once, under its own block. */
class StepTest {
    private static final InetSocketAddress HERE = new InetSocketAddress("10.0.0.1", 40000);
    private static final InetSocketAddress THERE = new InetSocketAddress("10.0.0.2", 9866);
    private static final long PACKET = 64_512;

    private final Buffer records = new Buffer(1000);

    @BeforeEach
    void install() {
        Hooks.install(new Handler[0], records);
    }

    private List<String> stated() {
        List<String> lines = new ArrayList<>();
        for (Record r = records.poll(); r != null; r = records.poll()) {
            JsonLine line = new JsonLine();
            r.write(line);
            lines.add(line.take());
        }
        return lines;
    }

    private static long number(String line, String key) {
        return line.contains("\"" + key + "\":") ? Long.parseLong(line.replaceAll("(?s).*\"" + key + "\":(\\d+).*", "$1")) : 0;
    }

    private static long sum(List<String> lines, String key) {
        return lines.stream().mapToLong(line -> number(line, key)).sum();
    }

    /** Queues the packets of a block; each is made in 3 ns and waits 2 ns for room. */
    private static void write(Production production, int packets) {
        for (int packet = 1; packet <= packets; packet++) {
            production.queued(packet * 5L, packet * PACKET, 3, 2, false);
        }
        production.queued(packets * 5L + 1, packets * PACKET, 1, 0, true);
    }

    @Test
    void aWritersWorkAndItsWaitForRoomAreToldByAboutAMegabyte() {
        Production production = new Production();
        production.opens(7, HERE, THERE);
        write(production, 100);
        List<String> steps = stated();
        assertEquals(6, steps.size(), steps.toString());
        // when the making of the first packet began is not known
        assertEquals(99 * PACKET, sum(steps, "bytes"));
        assertEquals(99 * 3, sum(steps, "work_ns"));
        assertEquals(99 * 2, sum(steps, "write_wait"));
        long offset = PACKET;
        for (String step : steps) {
            assertTrue(step.startsWith("{\"k\":\"step\""), step);
            assertTrue(step.contains("\"op\":\"write\"") && step.contains("\"local\":\"10.0.0.1:40000\""), step);
            assertEquals(7, number(step, "block"));
            assertEquals(offset, number(step, "offset"));
            offset += number(step, "bytes");
        }
    }

    @Test
    void whatIsMadeBeforeItsPipelineStandsIsToldWhenItDoesAndUnderItsOwnBlock() {
        Production production = new Production();
        write(production, 40);
        assertEquals(0, stated().size());
        write(production, 20);
        production.opens(7, HERE, THERE);
        List<String> first = stated();
        assertEquals(39 * PACKET, sum(first, "bytes"));
        assertTrue(first.stream().allMatch(step -> number(step, "block") == 7), first.toString());
        // a pipeline that is built anew for the same block
        production.opens(7, HERE, THERE);
        assertEquals(0, stated().size());
        production.opens(8, HERE, THERE);
        List<String> second = stated();
        assertEquals(20 * PACKET, sum(second, "bytes"));
        assertTrue(second.stream().allMatch(step -> number(step, "block") == 8), second.toString());
    }

    @Test
    void aPacketThatRepeatsTheLastChunkCountsItsNewBytesOnly() {
        Production production = new Production();
        production.opens(7, HERE, THERE);
        production.queued(1, 100, 1, 0, false);
        production.queued(2, 300, 1, 0, false);
        production.queued(3, 300, 1, 0, false);
        production.queued(4, 900, 1, 0, true);
        List<String> steps = stated();
        assertEquals(800, sum(steps, "bytes"));
        assertEquals(2, sum(steps, "work_ns"));
    }

    @Test
    void aReadersWorkIsWhatPassesBetweenAPacketAndItsQuestionForTheNext() {
        Consumption consumption = new Consumption(9, 4096, HERE, THERE);
        long now = 0;
        for (int packet = 0; packet < 40; packet++) {
            consumption.asks(now);
            now += 10;
            consumption.gets(now, 65_536);
            now += 4;
        }
        consumption.ends(now + 1_000_000);
        List<String> steps = stated();
        // what was done with the last packet is not known, nor how long the first one took to come
        assertEquals(39 * 65_536L, sum(steps, "bytes"));
        assertEquals(39 * 4, sum(steps, "work_ns"));
        assertEquals(39 * 10, sum(steps, "read_wait"));
        assertEquals(4096, number(steps.get(0), "offset"));
        assertEquals(4096 + (1L << 20), number(steps.get(1), "offset"));
    }

    @Test
    void whereOnlyAPacketsBeginIsSeenItsWaitIsTakenOffTheWork() {
        Consumption consumption = new Consumption(9, 0, HERE, THERE);
        for (int packet = 0; packet < 17; packet++) {
            consumption.asksAndGets(packet * 10L, 65_536, 6);
        }
        List<String> steps = stated();
        assertEquals(1, steps.size());
        assertEquals(16 * 4, sum(steps, "work_ns"));
        assertEquals(15 * 6, sum(steps, "read_wait"));
    }
}
