package hadoptic.agent;

import java.nio.file.Path;

/** The shell that outlives the last daemon of a host, and asks the agents to end when none has come back. */
final class Stopper {
    /** Its lock, in the agents' folder. */
    static final String LOCK = "agents.stopper";

    /**
     * Of several one waits; a daemon that comes back in time keeps the agents. It goes through the processes, which the
     * kernel limits, and not through the marks, of which any user can make a million; a mark counts for a process of its
     * owner. Field 22 of /proc/PID/stat is the start time, by which a process is known again; nothing is started to read it.
     */
    private static final String SCRIPT = String.join("\n",
            "cd / && exec 9>>\"$1/agents.stopper\" && { ! command -v flock >/dev/null || flock -n 9 || exit 0; }",
            "born() {",
            "    born=",
            "    { read -r line <\"/proc/$1/stat\"; } 2>/dev/null || return 1",
            "    set -- ${line##*) }",
            "    born=${20}",
            "}",
            "user() { sed -n 's/^Uid:.*[[:blank:]]\\([0-9]*\\)$/\\1/p' \"/proc/$1/status\" 2>/dev/null; }",
            "needed() {",
            "    for process in /proc/[0-9]*; do",
            "        pid=${process#/proc/}",
            "        born \"$pid\" || continue",
            "        mark=$1/daemon-$pid-$born",
            "        if [ -f \"$mark\" ] && [ ! -L \"$mark\" ] && [ \"$(stat -c %u \"$mark\")\" = \"$(user \"$pid\")\" ]; then return 0; fi",
            "    done",
            "    return 1",
            "}",
            "idle=0",
            "while [ \"$idle\" -lt \"$2\" ]; do",
            "    sleep 1; idle=$((idle + 1))",
            "    if needed \"$3\"; then idle=0; fi",
            "done",
            "lock=$1/agents.lock; me=$(id -u)",
            "[ -f \"$lock\" ] && [ ! -L \"$lock\" ] && [ -O \"$lock\" ] || exit 1",
            "while read -r name pid ticks started; do",
            "    case $pid in '' | *[!0-9]*) continue ;; esac",
            "    if born \"$pid\" && [ \"$born\" = \"$ticks\" ] && { [ \"$me\" = 0 ] || [ \"$(user \"$pid\")\" = \"$me\" ]; } &&",
            "        tr '\\0' '\\n' <\"/proc/$pid/cmdline\" 2>/dev/null | grep -q -x -F -e \"$1\"; then kill \"$pid\"; fi",
            "done <\"$lock\"");

    private Stopper() {}

    /** The command, for the agents' folder, the folder with the marks of daemons, and how long none must be seen. */
    static String[] command(AgentsFolder folder, Path marks, long seconds) {
        return new String[] {"/bin/sh", "-c", SCRIPT, "hadoptic-stopper", folder.toString(), "" + seconds, marks.toString()};
    }
}
