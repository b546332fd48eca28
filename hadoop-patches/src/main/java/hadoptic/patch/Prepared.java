package hadoptic.patch;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.util.zip.CRC32;

/**
 * Classes that were patched beforehand, by {@code hadoptic.agent.Prepare}, in a file beside the agent's jar: a short task's
 * JVM then need not start the library that patches. A class is known by the checksum and length of its bytes, so one that is
 * not the same is patched as if there were no file.
 *
 * <p>The file, all numbers big-endian: {@link #MAGIC}; {@link #identity} of the jar whose hooks they call (long); number of
 * classes (int); for each class, in ascending order, the {@link #key} of its bytes (long), and offset (int), length (int) and
 * checksum (int) of what it becomes; then the classes. Checksums are CRC-32.
 */
public final class Prepared {
    /** First bytes of the file: "hadoptic", then the version of the format. */
    static final long MAGIC = 0x6861646f70746963L + 1;
    static final int HEADER_BYTES = 8 + 8 + 4;
    static final int ENTRY_BYTES = 8 + 4 + 4 + 4;
    private static final int MOST_CLASSES = 10_000;
    private static final int MOST_BYTES = 1 << 24;
    /** A jar ends with the list of its files and their checksums. */
    private static final int LIST_BYTES = 65_536;

    private final RandomAccessFile file;
    private final ByteBuffer index;

    private Prepared(RandomAccessFile file, ByteBuffer index) {
        this.file = file;
        this.index = index;
    }

    /** Without any. */
    public static Prepared none() {
        return new Prepared(null, ByteBuffer.allocate(0));
    }

    /** Where those of a jar are looked for. */
    public static File beside(File jar) {
        return new File(jar.getPath() + ".patches");
    }

    /** Those of a jar; none where there is no file. A file that is not for this jar is told and not used. */
    public static Prepared of(File jar) {
        File path = beside(jar);
        if (!path.exists()) {
            return none();
        }
        try {
            RandomAccessFile file = new RandomAccessFile(path, "r");
            try {
                return new Prepared(file, read(file, jar));
            } catch (IOException | RuntimeException unusable) {
                file.close();
                throw unusable;
            }
        } catch (IOException | RuntimeException unusable) {
            System.err.println("hadoptic: " + path + " is not used, classes are patched as they load: " + unusable.getMessage());
            return none();
        }
    }

    private static ByteBuffer read(RandomAccessFile file, File jar) throws IOException {
        ByteBuffer header = ByteBuffer.wrap(bytes(file, 0, HEADER_BYTES));
        if (header.getLong() != MAGIC) {
            throw new IOException("it was not written by this version of hadoptic.agent.Prepare");
        }
        if (header.getLong() != identity(jar)) {
            throw new IOException("it was prepared with another agent; run hadoptic.agent.Prepare again");
        }
        int count = header.getInt();
        if (count < 0 || count > MOST_CLASSES) {
            throw new IOException("it is damaged: " + count + " classes");
        }
        return ByteBuffer.wrap(bytes(file, HEADER_BYTES, count * ENTRY_BYTES));
    }

    /** What a class becomes, null = it was not prepared. */
    byte[] patched(byte[] bytes) {
        int entry = file == null ? -1 : find(key(bytes));
        if (entry < 0) {
            return null;
        }
        try {
            byte[] patched;
            synchronized (file) {
                patched = bytes(file, index.getInt(entry + 8), index.getInt(entry + 12));
            }
            return checksum(patched) == index.getInt(entry + 16) ? patched : null;
        } catch (IOException | RuntimeException unreadable) {
            return null;
        }
    }

    private int find(long key) {
        int low = 0;
        int high = index.capacity() / ENTRY_BYTES;
        while (low < high) {
            int middle = (low + high) / 2;
            long there = index.getLong(middle * ENTRY_BYTES);
            if (there == key) {
                return middle * ENTRY_BYTES;
            } else if (there < key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return -1;
    }

    /** By what the bytes of a class are known: checksum and length. */
    static long key(byte[] bytes) {
        return (long) checksum(bytes) << 32 | bytes.length;
    }

    /** By what a jar is known: checksum of its list of files, and length. */
    static long identity(File jar) throws IOException {
        try (RandomAccessFile in = new RandomAccessFile(jar, "r")) {
            long length = in.length();
            int list = (int) Math.min(length, LIST_BYTES);
            return (long) checksum(bytes(in, length - list, list)) << 32 | length;
        }
    }

    static int checksum(byte[] bytes) {
        CRC32 crc = new CRC32();
        crc.update(bytes, 0, bytes.length);
        return (int) crc.getValue();
    }

    private static byte[] bytes(RandomAccessFile file, long offset, int length) throws IOException {
        if (length < 0 || length > MOST_BYTES) {
            throw new IOException("it is damaged: a class of " + length + " bytes");
        }
        byte[] bytes = new byte[length];
        file.seek(offset);
        file.readFully(bytes);
        return bytes;
    }
}
