package hadoptic.patch;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;

/**
 * Which jar it is: its SHA-256, and by what is seen that it is still the file of which that was computed, because to compute
 * it anew in each JVM costs more than the rest of the agent's start: length, time of its last change, and the checksum of its
 * list of files, which has their checksums.
 */
final class JarIdentity {
    /** As it is written: digest, length (long), seconds since the epoch (long), checksum (int). */
    static final int BYTES = 32 + 8 + 8 + 4;
    /** A jar ends with the list of its files. */
    private static final int LIST_BYTES = 65_536;

    private final byte[] digest;
    private final long length;
    private final long changed;
    private final int list;

    private JarIdentity(byte[] digest, long length, long changed, int list) {
        this.digest = digest;
        this.length = length;
        this.changed = changed;
        this.list = list;
    }

    static JarIdentity compute(File jar) throws IOException {
        return new JarIdentity(digest(jar), jar.length(), changed(jar), list(jar));
    }

    static JarIdentity read(ByteBuffer from) {
        byte[] digest = new byte[32];
        from.get(digest);
        return new JarIdentity(digest, from.getLong(), from.getLong(), from.getInt());
    }

    void write(DataOutputStream out) throws IOException {
        out.write(digest);
        out.writeLong(length);
        out.writeLong(changed);
        out.writeInt(list);
    }

    /** Whether a jar is this one. */
    boolean isOf(File jar) throws IOException {
        if (jar.length() != length || list(jar) != list) {
            return false;
        }
        return changed(jar) == changed || Arrays.equals(digest(jar), digest);
    }

    /** In whole seconds: Java 8 knows no parts of one. */
    private static long changed(File jar) {
        return jar.lastModified() / 1000;
    }

    private static int list(File jar) throws IOException {
        try (RandomAccessFile in = new RandomAccessFile(jar, "r")) {
            int bytes = (int) Math.min(in.length(), LIST_BYTES);
            return Prepared.checksum(Prepared.bytes(in, in.length() - bytes, bytes));
        }
    }

    private static byte[] digest(File jar) throws IOException {
        try {
            return MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(jar.toPath()));
        } catch (NoSuchAlgorithmException none) {
            throw new IOException("this Java has no SHA-256", none);
        }
    }
}
