# What the other scripts use. Prints lines "key<TAB>value", and files as a line of facts and then their bytes.
say() { printf '%s\t%s\n' "$1" "$2"; }
# The shell's own complaint tells why.
fail() { printf '%s\n' "$*" >&2; exit 1; }
checksum() { sha256sum <"$1" | cut -d' ' -f1; }
# Start time of a process, by which it is known again (field 22 of its stat; the name before may hold anything). One that
# has ended and only waits to be noticed has none.
ticks() { sed -n 's/.*) //; /^[ZX]/!p' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
lives() { [ -n "$1" ] && [ -n "$2" ] && [ "$(ticks "$1")" = "$2" ]; }
# agent NAME: whether it runs, whoever started it; sets pid, born and began (seconds since the epoch). CAPTURE, PREFIX.
agent() {
    pid= born=
    # What systemd starts again after a crash has another number than the one that was written down.
    if [ -f "/etc/systemd/system/hadoptic-$1.service" ] && command -v systemctl >/dev/null 2>&1; then
        pid=$(systemctl show -p MainPID "hadoptic-$1.service" 2>/dev/null | cut -d= -f2)
        if [ "${pid:-0}" = 0 ]; then pid=; else born=$(ticks "$pid"); fi
    fi
    if ! lives "$pid" "$born" && [ -f "$PREFIX/run/$1.pid" ]; then read -r pid born _ <"$PREFIX/run/$1.pid"; fi
    # Daemons start agents too, if they are told to.
    if ! lives "$pid" "$born" && [ -f "$CAPTURE/$(uname -n)/agents.lock" ]; then
        # Container users can write there: a process that is not the program itself is none of ours.
        program=$(readlink -f "$PREFIX/bin")/$1
        while read -r other pid born _; do
            case $other:$(readlink "/proc/$pid/exe" 2>/dev/null) in
            "$1:$program" | "$1:$program (deleted)") if lives "$pid" "$born"; then break; fi ;;
            esac
            pid= born=
        done <"$CAPTURE/$(uname -n)/agents.lock"
    fi
    lives "$pid" "$born" || { pid= born=; return 1; }
    began=$(($(sed -n 's/^btime //p' /proc/stat) + born / $(getconf CLK_TCK 2>/dev/null || echo 100)))
}
# emit NAME PATH
emit() {
    if [ -f "$2" ] && real=$(readlink -f "$2") && size=$(wc -c <"$real"); then
        printf 'file\t%s\t%s\t%s\t%s\t%d\n' "$1" "$real" "$(stat -c %a "$real")" "$(stat -c %U:%G "$real")" "$size"
        head -c "$size" "$real"
        echo
    else
        printf 'missing\t%s\t%s\n' "$1" "$2"
    fi
}
# The nearest folder above a path that is there.
above() {
    folder=$1
    while [ ! -d "$folder" ]; do folder=$(dirname "$folder"); done
    printf '%s\n' "$folder"
}
# Hadoop's JVMs of this host: "jvm<TAB>PID TICKS USER CLASS AGENT HADOOP JAVA". Of a command line only the main class is
# told, and whether the agent stands in it. Processes of other network namespaces are those of other hosts.
jvms() {
    here=$(readlink /proc/self/ns/net)
    for line in $(grep -l -a -F org.apache.hadoop. /proc/[0-9]*/cmdline 2>/dev/null); do
        pid=${line#/proc/}
        pid=${pid%/cmdline}
        exe=$(readlink "/proc/$pid/exe" 2>/dev/null) || continue
        case $exe in */java) ;; *) continue ;; esac
        [ "$(readlink "/proc/$pid/ns/net" 2>/dev/null)" = "$here" ] || continue
        class=$(tr '\0' '\n' <"$line" 2>/dev/null | grep -x -m 1 'org\.apache\.hadoop\.[A-Za-z0-9_.$]*') || continue
        born=$(ticks "$pid")
        agent=no
        if grep -q -a -F hadoptic-agent.jar "$line" 2>/dev/null; then
            agent=yes
        elif [ -f "$CAPTURE/$(uname -n)/jvm-$pid-$born.jsonl" ]; then
            agent=attached
        fi
        hadoop=$(ls -l "/proc/$pid/fd" 2>/dev/null | sed -n -e 's|.*/hadoop-common-\([0-9][^/]*\)\.jar$|\1|p' \
            -e 's|.*/hadoop-core-\([0-9][^/]*\)\.jar$|\1|p' | grep -v tests | head -n 1)
        printf 'jvm\t%s %s %s %s %s %s %s\n' "$pid" "$born" "$(stat -c %U "/proc/$pid" 2>/dev/null)" "$class" "$agent" \
            "${hadoop:--}" "$exe"
    done
}

# Folders in which Hadoop's jars lie: where its JVMs have them open, and where they usually are.
jar_folders() {
    {
        for line in $(grep -l -a -F org.apache.hadoop. /proc/[0-9]*/cmdline 2>/dev/null); do
            ls -l "${line%cmdline}fd" 2>/dev/null | sed -n 's|.* -> \(/.*\)/hadoop-[^/]*\.jar$|\1|p'
        done
        for folder in ${HADOOP_HOME:+"$HADOOP_HOME"} ${HADOOP_PREFIX:+"$HADOOP_PREFIX"} /usr/lib/hadoop /usr/lib/hadoop-* /opt/hadoop* \
            /usr/local/hadoop* /usr/hdp/current/hadoop-* /opt/cloudera/parcels/CDH/lib/hadoop*; do
            [ ! -d "$folder" ] || printf '%s\n' "$folder"
        done
    } | sed 's|/share/hadoop/.*|/share/hadoop|' | sort -u
}
