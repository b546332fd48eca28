package hadoptic.agent;

import hadoptic.file.Inode;
import hadoptic.file.User;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;

/** The folder of a host's agents: root's or of the user of the first daemon, and written by nobody else. */
final class AgentsFolder {
    private final Path folder;
    private final User me;

    private AgentsFolder(Path folder, User me) {
        this.folder = folder;
        this.me = me;
    }

    /** Makes the folder where it is not there; throws if it could not be trusted. */
    static AgentsFolder make(Path folder, User me) throws IOException {
        if (Inode.at(folder) == null) {
            Files.createDirectories(folder, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwxr-x---")));
        }
        Inode about = Inode.at(folder);
        if (about == null || !about.isFolder()) {
            throw new IOException(folder + " is no folder, or a link to one");
        }
        if (about.isWritableByOthers()) {
            throw new IOException(folder + " can be written by others: run chmod go-w " + folder);
        }
        return new AgentsFolder(folder, me);
    }

    /** Whether this user looks after the agents in it: not where it is another's. */
    boolean isOurs() throws IOException {
        Inode about = Inode.at(folder);
        return about != null && me.trusts(about) && Files.isWritable(folder);
    }

    /** A place in it. */
    Path resolve(String name) {
        return folder.resolve(name);
    }

    /** Makes a file of this user's for this user only; one that is there has to be his own, and no link. */
    Path own(String name) throws IOException {
        Path file = folder.resolve(name);
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
    boolean isOwn(Path file) throws IOException {
        Inode about = Inode.at(file);
        return about != null && about.isFile() && me.owns(about) && about.links == 1;
    }

    @Override
    public String toString() {
        return folder.toString();
    }
}
