package hadoptic.file;

import hadoptic.log.Cpu;
import java.io.IOException;
import java.util.StringTokenizer;

/**
 * The user as whom this process makes files. In a user namespace he has another number than outside, and root of the machine
 * may have none: what is root's, and what is any other unknown user's, then belongs to {@link #unknown}.
 */
public final class User {
    /** As this process counts. */
    public final int uid;
    /** As the user namespace around this one counts: the machine, if namespaces are not nested. */
    public final int uidOutside;
    /** Who stands in for users without a number in here, -1 = root has one. */
    private final int unknown;

    private User(int uid, int uidOutside, int unknown) {
        this.uid = uid;
        this.uidOutside = uidOutside;
        this.unknown = unknown;
    }

    /** Reads /proc. The owner of /proc/self does not tell it: that is root for programs that got rights by their file. */
    public static User read() throws IOException {
        int uid = ofProcess("self");
        long outside = uid;
        boolean knowsRoot = false;
        for (String line : Cpu.text("/proc/self/uid_map").split("\n")) {
            // first number inside, first outside, how many
            StringTokenizer range = new StringTokenizer(line);
            long from = Long.parseLong(range.nextToken());
            long to = Long.parseLong(range.nextToken());
            knowsRoot |= to == 0;
            if (uid >= from && uid < from + Long.parseLong(range.nextToken())) {
                outside = uid - from + to;
            }
        }
        int unknown = knowsRoot ? -1 : Integer.parseInt(Cpu.text("/proc/sys/kernel/overflowuid").trim());
        return new User(uid, (int) outside, unknown);
    }

    /** The user as whom a process makes files. */
    public static int ofProcess(String pid) throws IOException {
        // real, effective, saved, for files
        long[] ids = Cpu.numbers(Cpu.text("/proc/" + pid + "/status"), "Uid:");
        if (ids.length != 4) {
            throw new IOException("/proc/" + pid + "/status names no user");
        }
        return (int) ids[3];
    }

    /** Whether something is this user's own. */
    public boolean owns(Inode of) {
        return of.uid == uid;
    }

    /** Whether something is this user's own or root's. */
    public boolean trusts(Inode of) {
        return of.uid == uid || of.uid == 0 || of.uid == unknown;
    }
}
