package hadoptic.file;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Map;

/** What the kernel says of a file, folder or link itself: a link is not followed. */
public final class Inode {
    private static final int TYPE = 0170000;
    private static final int FOLDER = 0040000;
    private static final int FILE = 0100000;
    private static final int LINK = 0120000;
    private static final int STICKY = 01000;
    private static final int WRITABLE_BY_OTHERS = 022;

    /** Owner, as this process's user namespace counts. */
    public final int uid;
    /** Type and permissions. */
    public final int mode;
    /** Names that it has. */
    public final int links;

    private Inode(int uid, int mode, int links) {
        this.uid = uid;
        this.mode = mode;
        this.links = links;
    }

    /** Of what lies at a path; null = nothing does. */
    public static Inode at(Path path) throws IOException {
        try {
            Map<String, Object> of = Files.readAttributes(path, "unix:uid,mode,nlink", LinkOption.NOFOLLOW_LINKS);
            return new Inode((Integer) of.get("uid"), (Integer) of.get("mode"), (Integer) of.get("nlink"));
        } catch (NoSuchFileException nothing) {
            return null;
        }
    }

    /** Whether it is a folder, and no link to one. */
    public boolean isFolder() {
        return (mode & TYPE) == FOLDER;
    }

    /** Whether it is a plain file: no link, pipe or device. */
    public boolean isFile() {
        return (mode & TYPE) == FILE;
    }

    /** Whether it is a symbolic link. */
    public boolean isLink() {
        return (mode & TYPE) == LINK;
    }

    /** Whether its group or all may write to it. */
    public boolean isWritableByOthers() {
        return (mode & WRITABLE_BY_OTHERS) != 0;
    }

    /** Of a folder: whether only their owners may rename and remove what lies in it. */
    public boolean isSticky() {
        return (mode & STICKY) != 0;
    }
}
