package hadoptic.log;

import hadoptic.file.Inode;
import hadoptic.file.User;
import java.io.File;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.util.HashMap;
import java.util.Map;

/**
 * How much this JVM may still write, of what the records of JVMs may take of a host's disk.
 *
 * <p>Nobody can look into another user's folder. So each user says what his own takes, by a link {@code .used-UID} beside it
 * that points at the number of bytes: a link can be read without being opened, which a pipe in its place would not allow.
 * Whoever lies has at most one user's share less for the others.
 */
public final class DiskQuota {
    /** The budget of a host, if none is given: so much, or a tenth of the file system; as {@code trace::budget} has it. */
    private static final long MAX_DEFAULT_BYTES = 5L << 30;
    private static final int DEFAULT_PART = 10;
    /** Part of the budget that is for the records of JVMs, and for those of one user. */
    private static final int PART_OF_JVMS = 4;
    private static final int PART_OF_USER = 16;
    /** The disk is looked at so often; what a user said of his folder is believed so long by a JVM that just starts. */
    private static final long LOOK_EVERY_NS = 5_000_000_000L;
    private static final long LOOK_AGAIN_NS = 500_000_000L;
    private static final long BELIEVED_AT_START_MS = 60_000;
    /** Others write too: a JVM takes a part of what is left until it looks again, but at least so much, if it is there. */
    private static final int PART_UNTIL_NEXT = 4;
    private static final long MIN_BYTES = 1 << 18;
    private static final int MAX_ENTRIES = 4096;
    private static final int MAX_FILES = 100_000;
    /** A user's folders are UID, UID.1 and so on. */
    private static final int MAX_FOLDERS = 10;
    private static final String CLAIM = ".used-";

    private final Path shared;
    private final Path own;
    private final User me;
    private final String user;
    private final long limit;
    private final long keepFree;
    private long left;
    private long looked;
    private boolean first = true;

    /**
     * For a user's folder in that of all JVMs.
     *
     * @param limit the budget of the host in bytes, 0 = none, -1 = the default
     * @param keepFree bytes of the file system to be left free, 0 = none, -1 = a tenth of it
     */
    public DiskQuota(Path own, User me, long limit, long keepFree) {
        this.shared = own.toAbsolutePath().getParent();
        this.own = own;
        this.me = me;
        this.user = "" + me.uidOutside;
        this.limit = limit;
        this.keepFree = keepFree;
    }

    /** Takes so many bytes of what is left; false = there is no room for them. */
    boolean take(long bytes) {
        long age = System.nanoTime() - looked;
        if (first || age >= LOOK_EVERY_NS || bytes > left && age >= LOOK_AGAIN_NS) {
            left = look();
            looked = System.nanoTime();
            first = false;
        }
        if (bytes > left) {
            return false;
        }
        left -= bytes;
        return true;
    }

    private long look() {
        File disk = shared.toFile();
        long size = disk.getTotalSpace();
        long room = Long.MAX_VALUE;
        if (size > 0) {
            room = disk.getUsableSpace() - (keepFree < 0 ? size / DEFAULT_PART : keepFree);
        }
        if (limit != 0) {
            long tenth = size > 0 ? size / DEFAULT_PART : MAX_DEFAULT_BYTES;
            long budget = limit < 0 ? Math.min(MAX_DEFAULT_BYTES, tenth) : limit;
            long mine = ofMine();
            room = Math.min(room, budget / PART_OF_USER - mine);
            if (!first) {
                room = Math.min(room, budget / PART_OF_JVMS - ofOthers(budget / PART_OF_USER) - mine);
            }
        }
        return Math.max(0, Math.max(Math.min(room, MIN_BYTES), room / PART_UNTIL_NEXT));
    }

    /** Bytes of this user's files. One of his JVMs adds them up, and tells the others by its link. */
    private long ofMine() {
        Path claim = shared.resolve(CLAIM + user);
        try {
            Inode about = Inode.at(claim);
            if (about != null && about.isLink() && me.owns(about)) {
                long age = System.currentTimeMillis() - Files.getLastModifiedTime(claim, LinkOption.NOFOLLOW_LINKS).toMillis();
                if (age >= 0 && age < (first ? BELIEVED_AT_START_MS : LOOK_EVERY_NS / 1_000_000)) {
                    return claimed(claim);
                }
            }
        } catch (IOException | RuntimeException unreadable) {
            // it is made anew
        }
        long bytes = added();
        claim(claim, bytes);
        return bytes;
    }

    private long added() {
        long bytes = 0;
        for (int i = 0; i < MAX_FOLDERS; i++) {
            bytes += added(shared.resolve(i == 0 ? user : user + "." + i));
        }
        return bytes;
    }

    private long added(Path folder) {
        long bytes = 0;
        int files = 0;
        try {
            Inode about = Inode.at(folder);
            if (about == null || !about.isFolder() || !me.owns(about)) {
                return 0;
            }
            try (DirectoryStream<Path> all = Files.newDirectoryStream(folder)) {
                for (Path each : all) {
                    bytes += each.toFile().length();
                    if (++files == MAX_FILES) {
                        return Long.MAX_VALUE / (2 * MAX_FOLDERS);
                    }
                }
            }
        } catch (IOException | RuntimeException unreadable) {
            // what could be seen counts
        }
        return bytes;
    }

    private void claim(Path claim, long bytes) {
        // a name that no other JVM of this user has now
        Path fresh = own.resolve(CLAIM + Thread.currentThread().getId() + "-" + System.nanoTime());
        try {
            Files.createSymbolicLink(fresh, Paths.get("" + bytes));
            try {
                Files.move(fresh, claim, StandardCopyOption.ATOMIC_MOVE);
            } catch (IOException | RuntimeException refused) {
                Files.deleteIfExists(fresh);
            }
        } catch (FileAlreadyExistsException another) {
            // it says the same
        } catch (IOException | RuntimeException noLinks) {
            // this user's part is not told to the others
        }
    }

    private static long claimed(Path claim) throws IOException {
        return Math.max(0, Long.parseLong(Files.readSymbolicLink(claim).toString()));
    }

    /** What the other users say that their files take; of each no more than his share. */
    private long ofOthers(long most) {
        Map<Integer, Long> byOwner = new HashMap<Integer, Long>();
        int entries = 0;
        try (DirectoryStream<Path> all = Files.newDirectoryStream(shared)) {
            for (Path each : all) {
                if (++entries > MAX_ENTRIES) {
                    break;
                }
                if (each.getFileName().toString().startsWith(CLAIM)) {
                    addClaim(byOwner, each, most);
                }
            }
        } catch (IOException | RuntimeException unreadable) {
            // what could be seen counts
        }
        long bytes = 0;
        for (long each : byOwner.values()) {
            bytes += each;
        }
        return bytes;
    }

    private void addClaim(Map<Integer, Long> byOwner, Path claim, long most) {
        try {
            Inode about = Inode.at(claim);
            if (about != null && about.isLink() && !me.owns(about)) {
                Long known = byOwner.get(about.uid);
                byOwner.put(about.uid, Math.max(known == null ? 0 : known, Math.min(most, claimed(claim))));
            }
        } catch (IOException | RuntimeException noNumber) {
            // no claim
        }
    }
}
