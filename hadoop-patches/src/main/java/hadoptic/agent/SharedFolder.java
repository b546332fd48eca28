package hadoptic.agent;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;

/**
 * The folder of a host, into which hdfs, yarn and the users of containers write: sticky, so that nobody can replace what
 * is another's, and without trust in what lies there already, which may be a link that somebody has planted.
 */
final class SharedFolder {
    private static final int WRITABLE_BY_ALL = 02;
    private static final int STICKY = 01000;

    private SharedFolder() {}

    /** Makes the folder where it is not there; throws if it could not be trusted. */
    static Path make(Path folder) throws IOException {
        if (!Files.isDirectory(folder)) {
            Files.createDirectories(folder);
            Files.setAttribute(folder, "unix:mode", 01777);
        }
        if (Files.isSymbolicLink(folder)) {
            throw new IOException(folder + " is a link: records are written into a folder only");
        }
        int mode = (Integer) Files.getAttribute(folder, "unix:mode", LinkOption.NOFOLLOW_LINKS);
        if ((mode & WRITABLE_BY_ALL) != 0 && (mode & STICKY) == 0) {
            throw new IOException(folder + " can be written by all and is not sticky: anybody could replace its files;"
                    + " run chmod +t " + folder);
        }
        return folder;
    }

    /** Makes a file of this user's for this user only; one that is there has to be his own, and no link. */
    static Path own(Path file) throws IOException {
        try {
            // the JDK opens it with O_CREAT, O_EXCL and O_NOFOLLOW
            return Files.createFile(file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        } catch (FileAlreadyExistsException there) {
            if (!isOwn(file)) {
                throw new IOException(file + " is not a file of this user's own: it is left alone");
            }
            return file;
        }
    }

    /** Whether something is a plain file of this user's, with one name. */
    static boolean isOwn(Path file) throws IOException {
        Object me = Files.getAttribute(Paths.get("/proc/self"), "unix:uid");
        return Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)
                && Files.getAttribute(file, "unix:uid", LinkOption.NOFOLLOW_LINKS).equals(me)
                && Files.getAttribute(file, "unix:nlink", LinkOption.NOFOLLOW_LINKS).equals(1);
    }
}
