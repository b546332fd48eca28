package hadoptic.agent;

import hadoptic.file.Inode;
import hadoptic.file.User;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/**
 * Where the records of a host's JVMs lie: a folder that all users may write to, sticky so that nobody can replace what is
 * another's, and in it a folder of each user, named by his number, into which only he writes.
 */
final class RecordFolder {
    private static final int ALL_PERMISSIONS = 0777;
    private static final int OWN_MODE = 0750;
    /** Names of a user's folders: UID, UID.1 and so on. */
    static final int MAX_TRIES = 10;

    private RecordFolder() {}

    /**
     * The folder of this user in the JVMs' folder, made where it is not there; throws if it could not be trusted. A second
     * folder is used where the first has a file of this name already: in containers JVMs that start at once may have the
     * same id and start time, and so may a JVM after the machine was started again.
     */
    static Path make(Path shared, User me, String name) throws IOException {
        Inode there = Inode.at(shared);
        if (there == null) {
            // nobody has prepared it for all users
            Files.createDirectories(shared, permissions("rwx------"));
            there = Inode.at(shared);
        }
        check(shared, there, me);
        StringBuilder refused = new StringBuilder();
        for (int i = 0; i < MAX_TRIES; i++) {
            Path own = shared.resolve(i == 0 ? "" + me.uidOutside : me.uidOutside + "." + i);
            Inode about = Inode.at(own);
            if (about == null) {
                makeOwn(own);
                about = Inode.at(own);
            }
            boolean fits = about != null && about.isFolder() && me.owns(about) && !about.isWritableByOthers();
            if (fits && !own.resolve(name).toFile().exists()) {
                if (refused.length() > 0) {
                    System.err.println("hadoptic: not of this user alone:" + refused + "; records go to " + own);
                }
                return own;
            }
            refused.append(fits ? "" : " " + own);
        }
        throw new IOException("no folder for " + name + " that only this user can write to; remove what lies at" + refused);
    }

    private static void check(Path shared, Inode about, User me) throws IOException {
        if (about == null || !about.isFolder()) {
            throw new IOException(shared + " is " + (about != null && about.isLink() ? "a link" : "no folder")
                    + ": records are written into a folder only");
        }
        if (!me.trusts(about)) {
            throw new IOException(shared + " belongs to user " + about.uid + ", who could take away what others write there;"
                    + " make it root's: chown 0 " + shared);
        }
        if (about.isWritableByOthers() && !about.isSticky()) {
            throw new IOException(shared + " can be written by others and is not sticky: anybody could replace its files;"
                    + " run chmod +t " + shared);
        }
    }

    /**
     * A folder that the group of the folder around it may read. The mask of this process may take that away, and a chmod
     * would take the folder out of the group: then a shell makes it, with another mask.
     */
    private static void makeOwn(Path own) throws IOException {
        try {
            Files.createDirectory(own, permissions("rwxr-x---"));
        } catch (FileAlreadyExistsException there) {
            return;
        }
        Inode made = Inode.at(own);
        if (made != null && (made.mode & ALL_PERMISSIONS) != OWN_MODE) {
            Files.delete(own);
            try {
                new ProcessBuilder("/bin/sh", "-c", "umask 027; mkdir \"$0\"", own.toString()).start().waitFor();
            } catch (InterruptedException hurried) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static FileAttribute<Set<PosixFilePermission>> permissions(String text) {
        return PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(text));
    }
}
