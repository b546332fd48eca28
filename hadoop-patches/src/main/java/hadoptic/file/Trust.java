package hadoptic.file;

import java.io.IOException;
import java.nio.file.Path;

/** Whether a path leads to what only root, or one other user, can change. */
public final class Trust {
    private Trust() {}

    /**
     * Why others could change what lies at a real path (of {@link Path#toRealPath}), null = nobody could but root and this
     * user. A sticky folder may be written by all: what is in it belongs to root or this user, and stays.
     */
    public static String refusal(Path real, int user) throws IOException {
        for (Path part = real; part != null; part = part.getParent()) {
            Inode about = Inode.at(part);
            if (about == null || about.isLink()) {
                return part + " has changed";
            }
            if (about.uid != 0 && about.uid != user) {
                return part + " belongs to user " + about.uid;
            }
            boolean kept = about.isFolder() && about.isSticky() && part != real;
            if (about.isWritableByOthers() && !kept) {
                return part + " can be written by others";
            }
        }
        return null;
    }
}
