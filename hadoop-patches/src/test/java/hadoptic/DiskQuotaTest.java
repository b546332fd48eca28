package hadoptic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import hadoptic.file.User;
import hadoptic.log.Buffer;
import hadoptic.log.DiskQuota;
import hadoptic.log.Record;
import hadoptic.log.Writer;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.FileTime;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Records take no more of the disk than they may; what is not written is counted and marked, and the JVM goes on. */
class DiskQuotaTest {
    private static final Record HEADER = line -> line.begin("header").end();
    private static final Record END = line -> line.begin("end").end();
    /** Bytes of one record, about. */
    private static final int RECORD = 200;

    @TempDir
    Path shared;

    private Path own;
    private User me;

    @BeforeEach
    void makeOwn() throws Exception {
        me = User.read();
        own = Files.createDirectory(shared.resolve("" + me.uid));
    }

    private static void add(Buffer buffer, int records) {
        String text = String.join("", java.util.Collections.nCopies(RECORD - 20, "x"));
        for (int i = 0; i < records; i++) {
            buffer.add(line -> line.begin("x").string("s", text).end());
        }
    }

    /** Writes records under a quota, in so many batches, and returns the file's lines. */
    private List<String> written(DiskQuota quota, int batches, int records) throws Exception {
        Path file = own.resolve("jvm-1-1.jsonl");
        Buffer buffer = new Buffer(100_000);
        Writer writer = new Writer(file, quota, buffer, HEADER, () -> {}, 60_000);
        writer.start();
        for (int i = 0; i < batches; i++) {
            add(buffer, records);
            writer.flush(10_000);
        }
        writer.close(END, 10_000);
        List<String> lines = Files.readAllLines(file);
        long there = lines.stream().filter(line -> line.contains("\"x\"")).count();
        assertEquals(batches * records, there + writer.unwritten(), "each is written or counted");
        assertEquals(0, buffer.dropped());
        return lines;
    }

    @Test
    void aUserTakesNoMoreThanASixteenthOfTheBudget() throws Exception {
        long budget = 16 << 20;
        List<String> lines = written(new DiskQuota(own, me, budget, 0), 100, 100);
        long size = Files.size(own.resolve("jvm-1-1.jsonl"));
        assertTrue(size <= budget / 16 + 4096, "" + size);
        assertTrue(size > budget / 128, "what fits is written: " + size);
        assertEquals("{\"k\":\"header\"}", lines.get(0));
        assertEquals("{\"k\":\"end\"}", lines.get(lines.size() - 1));
    }

    @Test
    void otherUsersClaimsCountButNobodyClaimsMoreThanHisShare() throws Exception {
        assumeTrue(me.uid == 0, "other users need root");
        long budget = 16 << 20;
        for (int other = 1; other <= 4; other++) {
            Path claim = Files.createSymbolicLink(shared.resolve(".used-" + (70_000 + other)), Paths.get("" + Long.MAX_VALUE));
            Files.setAttribute(claim, "unix:uid", 70_000 + other, LinkOption.NOFOLLOW_LINKS);
            // a second one of the same owner, and what is none
            Path second = Files.createSymbolicLink(shared.resolve(".used-x" + other), Paths.get("999999999"));
            Files.setAttribute(second, "unix:uid", 70_000 + (other == 4 ? 3 : other), LinkOption.NOFOLLOW_LINKS);
            if (other == 3) {
                // three users leave room for a fourth
                written(new DiskQuota(own, me, budget, 0), 1, 100);
                Thread.sleep(600);
            }
        }
        Jvm.said(Arrays.asList("mkfifo", shared.resolve(".used-70009").toString()));
        Files.delete(own.resolve("jvm-1-1.jsonl"));
        DiskQuota quota = new DiskQuota(own, me, budget, 0);
        Path file = own.resolve("jvm-2-2.jsonl");
        Buffer buffer = new Buffer(100_000);
        Writer writer = new Writer(file, quota, buffer, HEADER, () -> {}, 60_000);
        writer.start();
        // the first look is a short one: what other users have counts from the second on
        add(buffer, 2000);
        writer.flush(10_000);
        Thread.sleep(600);
        add(buffer, 2000);
        writer.flush(10_000);
        writer.close(END, 10_000);
        assertTrue(writer.unwritten() >= 2000, "" + writer.unwritten());
    }

    @Test
    void asMuchOfTheDiskStaysFreeAsWasAskedFor() throws Exception {
        long free = shared.toFile().getUsableSpace();
        List<String> lines = written(new DiskQuota(own, me, 0, 2 * free), 3, 10);
        assertEquals(2 + 1, lines.size(), "header, clock and end: " + lines);
    }

    @Test
    void withoutLimitsAllIsWritten() throws Exception {
        written(new DiskQuota(own, me, 0, 0), 10, 1000);
        assertTrue(Files.size(own.resolve("jvm-1-1.jsonl")) > 10_000 * RECORD * 9 / 10);
    }

    @Test
    void whatTheUsersOtherJvmsWroteCounts() throws Exception {
        long budget = 16 << 20;
        Files.write(own.resolve("jvm-9-9.jsonl"), new byte[1 << 20]);
        assertEquals(3, written(new DiskQuota(own, me, budget, 0), 1, 100).size());
        // and the other JVMs learn of it without looking
        assertTrue(Files.isSymbolicLink(shared.resolve(".used-" + me.uid)));
        assertEquals("" + (1 << 20), Files.readSymbolicLink(shared.resolve(".used-" + me.uid)).toString());
    }

    @Test
    void aLinkInPlaceOfTheClaimIsNotFollowed() throws Exception {
        Path victim = Files.createFile(shared.resolve("victim"));
        Files.createSymbolicLink(shared.resolve(".used-" + me.uid), victim);
        written(new DiskQuota(own, me, 16 << 20, 0), 1, 100);
        assertEquals(0, Files.size(victim));
    }

    @Test
    void recordsThatWereNotWrittenAreMarkedAndWritingGoesOnWhenThereIsRoom() throws Exception {
        Files.write(own.resolve("jvm-9-9.jsonl"), new byte[1 << 20]);
        Path file = own.resolve("jvm-1-1.jsonl");
        Buffer buffer = new Buffer(100_000);
        Writer writer = new Writer(file, new DiskQuota(own, me, 16 << 20, 0), buffer, HEADER, () -> {}, 60_000);
        writer.start();
        add(buffer, 50);
        writer.flush(10_000);
        assertEquals(50, writer.unwritten());
        Files.delete(own.resolve("jvm-9-9.jsonl"));
        // what the user's JVMs believe of each other is a minute old
        Files.delete(shared.resolve(".used-" + me.uid));
        Thread.sleep(600);
        add(buffer, 7);
        writer.flush(10_000);
        writer.close(END, 10_000);
        List<String> lines = Files.readAllLines(file);
        assertEquals(7, lines.stream().filter(line -> line.contains("\"x\"")).count());
        assertEquals(50, Jvm.sum(lines, "clock", "unwritten"));
    }

    @Test
    void aFullDiskCostsRecordsAndTheyAreCounted() throws Exception {
        assumeTrue(Jvm.isRoot(), "a small file system needs root");
        Path built = Files.createDirectory(shared.resolve("built"));
        Jvm.build(built);
        Path disk = Files.createDirectory(shared.resolve("disk"));
        String java = String.join(" ", Jvm.command(built, "flush_ms=20,limit=0,out=" + disk + "/jvm",
                "hadoptic.SocketProgram", "sockets", "pause", "sockets"));
        // the disk is full when the JVM has begun to write, and has room again before it ends
        String said = Jvm.said(Arrays.asList("unshare", "-m", "/bin/sh", "-c", "mount -t tmpfs -o size=256k none " + disk + " && { "
                + "(sleep 1; cat /dev/zero >" + disk + "/fill; sleep 3; rm " + disk + "/fill) 2>/dev/null & " + java
                + "; code=$?; wait; cat " + disk + "/jvm/*/*.jsonl; exit $code; }"));
        List<String> lines = Arrays.asList(said.split("\n"));
        assertTrue(said.contains("\"k\":\"end\""), said);
        assertEquals(2 * SocketProgram.CONNECTIONS, lines.stream().filter(line -> line.contains("\"k\":\"open\"")).count()
                + (Jvm.sum(lines, "clock", "unwritten") > 0 ? SocketProgram.CONNECTIONS : 0), said);
    }

    @Test
    void aClaimOfTheUserIsBelievedForAWhile() throws Exception {
        Path claim = Files.createSymbolicLink(shared.resolve(".used-" + me.uid), Paths.get("" + (1 << 20)));
        assertEquals(3, written(new DiskQuota(own, me, 16 << 20, 0), 1, 10).size(), "no room, as the claim says");
        Files.delete(own.resolve("jvm-1-1.jsonl"));
        Jvm.said(Arrays.asList("touch", "-h", "-d", "-5 minutes", claim.toString()));
        assertTrue(FileTime.from(System.currentTimeMillis() - TimeUnit.MINUTES.toMillis(4), TimeUnit.MILLISECONDS)
                .compareTo(Files.getLastModifiedTime(claim, LinkOption.NOFOLLOW_LINKS)) > 0);
        List<String> lines = written(new DiskQuota(own, me, 16 << 20, 0), 1, 10);
        assertEquals(10, lines.stream().filter(line -> line.contains("\"x\"")).count(), "it is too old");
    }
}
