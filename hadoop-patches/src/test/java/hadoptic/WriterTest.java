package hadoptic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import hadoptic.file.User;
import hadoptic.log.Buffer;
import hadoptic.log.DiskQuota;
import hadoptic.log.Record;
import hadoptic.log.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The file of a JVM: private, never somebody else's, header first, each batch behind both clocks, the end last. */
class WriterTest {
    private static final Record HEADER = line -> line.begin("header").end();
    private static final Record END = line -> line.begin("end").end();

    private static final DiskQuota QUOTA;

    static {
        try {
            QUOTA = new DiskQuota(Paths.get("/tmp/none"), User.read(), 0, 0);
        } catch (java.io.IOException noProc) {
            throw new IllegalStateException(noProc);
        }
    }

    @TempDir
    Path folder;

    private static Record numbered(int n) {
        return line -> line.begin("x").number("n", n).end();
    }

    private List<String> lines(Path file) throws Exception {
        return Files.readAllLines(file, StandardCharsets.UTF_8);
    }

    @Test
    void writesHeaderBatchesAndEndInOrder() throws Exception {
        Path file = folder.resolve("jvm.jsonl");
        Buffer buffer = new Buffer(10);
        Writer writer = new Writer(file, QUOTA, buffer, HEADER, () -> {}, 60_000);
        buffer.add(numbered(1));
        writer.start();
        buffer.add(numbered(2));
        writer.flush(10_000);
        List<String> flushed = lines(file);
        buffer.add(numbered(3));
        writer.close(END, 10_000);
        // How many batches the records make, each with its clock, is up to the scheduler.
        List<String> all = lines(file);
        assertEquals("{\"k\":\"header\"}", all.get(0));
        assertTrue(all.get(1).startsWith("{\"k\":\"clock\",\"t\":"), all.get(1));
        assertTrue(flushed.contains("{\"k\":\"x\",\"n\":2}"), flushed.toString());
        all.removeIf(line -> line.startsWith("{\"k\":\"clock\""));
        assertEquals(
                Arrays.asList("{\"k\":\"header\"}", "{\"k\":\"x\",\"n\":1}", "{\"k\":\"x\",\"n\":2}", "{\"k\":\"x\",\"n\":3}", "{\"k\":\"end\"}"),
                all);
    }

    @Test
    void onlyTheUserAndTheGroupMayReadIt() throws Exception {
        Path file = folder.resolve("jvm.jsonl");
        Writer writer = new Writer(file, QUOTA, new Buffer(10), HEADER, () -> {}, 60_000);
        writer.start();
        writer.close(END, 10_000);
        assertEquals("rw-r-----", PosixFilePermissions.toString(Files.getPosixFilePermissions(file)));
    }

    @Test
    void refusesAFileOrLinkThatIsThereAlready() throws Exception {
        Path file = Files.createFile(folder.resolve("jvm.jsonl"));
        assertThrows(FileAlreadyExistsException.class,
                () -> new Writer(file, QUOTA, new Buffer(10), HEADER, () -> {}, 60_000));
        Path link = Files.createSymbolicLink(folder.resolve("link.jsonl"), folder.resolve("elsewhere"));
        assertThrows(FileAlreadyExistsException.class,
                () -> new Writer(link, QUOTA, new Buffer(10), HEADER, () -> {}, 60_000));
    }

    @Test
    void tellsDroppedRecordsWithTheNextBatch() throws Exception {
        Path file = folder.resolve("jvm.jsonl");
        Buffer buffer = new Buffer(2);
        Writer writer = new Writer(file, QUOTA, buffer, HEADER, () -> {}, 60_000);
        for (int n = 0; n < 5; n++) {
            buffer.add(numbered(n));
        }
        writer.start();
        writer.flush(10_000);
        writer.close(END, 10_000);
        long dropped = 0;
        for (String line : lines(file)) {
            if (line.contains("\"clock\"")) {
                dropped += Long.parseLong(line.replaceAll(".*\"dropped\":(\\d+).*", "$1"));
            }
        }
        assertEquals(3, dropped);
    }

    @Test
    void aRecordThatCannotBeWrittenSpoilsNoOther() throws Exception {
        Path file = folder.resolve("jvm.jsonl");
        Buffer buffer = new Buffer(10);
        Writer writer = new Writer(file, QUOTA, buffer, HEADER, () -> {
            throw new IllegalStateException("nothing to sample");
        }, 60_000);
        buffer.add(numbered(1));
        buffer.add(line -> {
            line.begin("half").string("s", "written");
            throw new IllegalStateException("broken");
        });
        buffer.add(numbered(2));
        writer.start();
        writer.close(END, 10_000);
        List<String> lines = lines(file);
        assertEquals(1, buffer.dropped());
        assertTrue(lines.contains("{\"k\":\"x\",\"n\":1}") && lines.contains("{\"k\":\"x\",\"n\":2}"));
        assertTrue(lines.stream().allMatch(line -> line.startsWith("{") && line.endsWith("}") && !line.contains("half")));
    }
}
