package hadoptic;

import static org.junit.jupiter.api.Assertions.assertEquals;

import hadoptic.log.JsonLine;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** A record is one line of JSON, whatever stands in its texts. */
class JsonLineTest {
    private static String of(String value) {
        JsonLine line = new JsonLine();
        line.begin("k").string("s", value).end();
        return line.take();
    }

    @Test
    void escapesWhatWouldEndTheTextOrTheLine() {
        assertEquals("{\"k\":\"k\",\"s\":\"a\\\"b\\\\c\"}\n", of("a\"b\\c"));
        assertEquals("{\"k\":\"k\",\"s\":\"\\u000a\\u0000\\u001f\\u007f\"}\n", of("\n\0\u001f\u007f"));
    }

    @Test
    void keepsOtherLettersAndReplacesBrokenOnes() {
        assertEquals("{\"k\":\"k\",\"s\":\"ä😀\"}\n", of("ä😀"));
        assertEquals("{\"k\":\"k\",\"s\":\"\uFFFDx\uFFFD\"}\n", of("\uD83Dx\uDE00"));
        String text = of("\uD83D");
        assertEquals(text, new String(text.getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8));
    }

    @Test
    void timesMoveToTheWallClockAndZeroStaysZero() {
        JsonLine line = new JsonLine();
        line.clock(1_000);
        line.begin("k").time("a", 5).time("b", 0).number("n", -1).end();
        assertEquals("{\"k\":\"k\",\"a\":1005,\"b\":0,\"n\":-1}\n", line.take());
    }

    @Test
    void numbersOfAnySize() {
        JsonLine line = new JsonLine();
        line.begin("k").number("a", Long.MIN_VALUE).number("b", Long.MAX_VALUE).unsigned("c", -1).unsigned("d", 7).end();
        assertEquals("{\"k\":\"k\",\"a\":-9223372036854775808,\"b\":9223372036854775807,"
                + "\"c\":18446744073709551615,\"d\":7}\n", line.take());
    }

    @Test
    void addressesOfBothVersions() throws Exception {
        assertEquals("10.1.0.11:9866", JsonLine.text(new InetSocketAddress("10.1.0.11", 9866)));
        byte[] six = InetAddress.getByName("fd00::2").getAddress();
        assertEquals("[fd00:0:0:0:0:0:0:2]:80", JsonLine.text(new InetSocketAddress(InetAddress.getByAddress(six), 80)));
        assertEquals("", JsonLine.text(null));
        assertEquals("", JsonLine.text(InetSocketAddress.createUnresolved("w1", 80)));
    }

    @Test
    void leavesOutWhatIsOptionalAndEmpty() {
        JsonLine line = new JsonLine();
        line.begin("k").optional("a", "").optional("b", null).optional("c", "x").string("d", null)
                .hex("e", new byte[] {0, (byte) 0xab}).hex("f", null).strings("g", Arrays.asList("1", "\"")).end();
        assertEquals("{\"k\":\"k\",\"c\":\"x\",\"d\":\"\",\"e\":\"00ab\",\"f\":\"\",\"g\":[\"1\",\"\\\"\"]}\n", line.take());
    }
}
