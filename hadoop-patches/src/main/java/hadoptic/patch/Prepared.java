package hadoptic.patch;

import hadoptic.file.Inode;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.zip.CRC32;

/**
 * Classes that were patched beforehand, by {@code hadoptic.agent.Prepare}, in a file beside the agent's jar: a short task's
 * JVM then need not start the library that patches. A class is known by its bytes, all of which are compared: the file has
 * them as they were before. One that is not the same is patched as if there were no file.
 *
 * <p>The file, all numbers big-endian: {@link #MAGIC}; the {@link JarIdentity} of the jar whose hooks they call; number of
 * classes (int); for each class, in ascending order, the {@link #key} of its bytes (long), the offset of these (int), and
 * offset (int), length (int) and checksum (int) of what it becomes; then the bytes. Checksums are CRC-32.
 *
 * <p>The file is believed if it is root's or of the owner of the jar, and nobody else may write to it.
 */
public final class Prepared {
    /** First bytes of the file: "hadoptic", then the version of the format. */
    static final long MAGIC = 0x6861646f70746963L + 2;
    static final int HEADER_BYTES = 8 + JarIdentity.BYTES + 4;
    static final int ENTRY_BYTES = 8 + 4 + 4 + 4 + 4;
    static final int MAX_CLASSES = 10_000;
    private static final int MAX_CLASS_BYTES = 1 << 24;

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

    /** Those of a jar; none where there is no file. A file that is not for this jar, or another user's, is told and not used. */
    public static Prepared of(File jar) {
        File path = beside(jar);
        try {
            Inode about = Inode.at(path.toPath());
            if (about == null) {
                return none();
            }
            check(about, Inode.at(jar.toPath().toRealPath()));
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

    private static void check(Inode file, Inode jar) throws IOException {
        if (!file.isFile()) {
            throw new IOException("it is no file, or a link to one");
        }
        if (file.uid != 0 && (jar == null || file.uid != jar.uid)) {
            throw new IOException("it belongs to user " + file.uid + ", and the agent does not");
        }
        if (file.isWritableByOthers()) {
            throw new IOException("others may write to it");
        }
    }

    private static ByteBuffer read(RandomAccessFile file, File jar) throws IOException {
        ByteBuffer header = ByteBuffer.wrap(bytes(file, 0, HEADER_BYTES));
        if (header.getLong() != MAGIC) {
            throw new IOException("it was not written by this version of hadoptic.agent.Prepare");
        }
        if (!JarIdentity.read(header).isOf(jar)) {
            throw new IOException("it was prepared with another agent; run hadoptic.agent.Prepare again");
        }
        int count = header.getInt();
        if (count < 0 || count > MAX_CLASSES) {
            throw new IOException("it is damaged: " + count + " classes");
        }
        return ByteBuffer.wrap(bytes(file, HEADER_BYTES, count * ENTRY_BYTES));
    }

    /** What a class becomes, null = it was not prepared. */
    byte[] patched(byte[] bytes) {
        if (file == null) {
            return null;
        }
        long key = key(bytes);
        try {
            for (int entry = first(key); entry < index.capacity() && index.getLong(entry) == key; entry += ENTRY_BYTES) {
                byte[] patched = patched(entry, bytes);
                if (patched != null) {
                    return patched;
                }
            }
        } catch (IOException | RuntimeException unreadable) {
            // it is patched as it loads
        }
        return null;
    }

    private byte[] patched(int entry, byte[] bytes) throws IOException {
        synchronized (file) {
            if (!Arrays.equals(bytes, bytes(file, index.getInt(entry + 8), bytes.length))) {
                return null;
            }
            byte[] patched = bytes(file, index.getInt(entry + 12), index.getInt(entry + 16));
            return checksum(patched) == index.getInt(entry + 20) ? patched : null;
        }
    }

    /** Place of the first entry whose key is this one, or a larger one. */
    private int first(long key) {
        int low = 0;
        int high = index.capacity() / ENTRY_BYTES;
        while (low < high) {
            int middle = (low + high) / 2;
            if (index.getLong(middle * ENTRY_BYTES) < key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low * ENTRY_BYTES;
    }

    /** By what the bytes of a class are looked for: checksum and length, which others may have as well. */
    static long key(byte[] bytes) {
        return (long) checksum(bytes) << 32 | bytes.length;
    }

    static int checksum(byte[] bytes) {
        CRC32 crc = new CRC32();
        crc.update(bytes, 0, bytes.length);
        return (int) crc.getValue();
    }

    static byte[] bytes(RandomAccessFile file, long offset, int length) throws IOException {
        if (length < 0 || length > MAX_CLASS_BYTES) {
            throw new IOException("it is damaged: a class of " + length + " bytes");
        }
        byte[] bytes = new byte[length];
        file.seek(offset);
        file.readFully(bytes);
        return bytes;
    }
}
