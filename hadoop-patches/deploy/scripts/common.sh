# What the other scripts use. Prints lines "key<TAB>value", and files as a line of facts and then their bytes.
# Nothing that a process, a link or another user's file says is executed or written to with root's rights: see keeper.
say() { printf '%s\t%s\n' "$1" "$2"; }
# The shell's own complaint tells why.
fail() { printf '%s\n' "$*" >&2; exit 1; }
checksum() { sha256sum <"$1" | cut -d' ' -f1; }
# Start time of a process, by which it is known again (field 22 of its stat; the name before may hold anything). One that
# has ended and only waits to be noticed has none.
ticks() { sed -n 's/.*) //; /^[ZX]/!p' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
lives() { [ -n "$1" ] && [ -n "$2" ] && [ "$(ticks "$1")" = "$2" ]; }

# Whether others than the owner may write, by "GROUP MODE" as stat prints them; the group root counts for root.
shared() {
    case $2 in *[2367]) return 0 ;; *[2367]?) [ "$1" != 0 ] ;; *) return 1 ;; esac
}
# keeper PATH: as whom PATH may be opened, made or run: 0 where root alone can change what stands on the way there, links
# included; else the user who can, for what he plants leads only where he may go himself. Fails where several can.
keeper() {
    rest=$1 at= who=0 links=0
    case $rest in /*) ;; *) return 1 ;; esac
    while rest=${rest#"${rest%%[!/]*}"} && [ -n "$rest" ]; do
        part=${rest%%/*}
        rest=${rest#"$part"}
        case $part in
        .) continue ;;
        ..) at=${at%/*}; continue ;;
        esac
        set -- $(stat -c '%u %g %a' -- "${at:-/}" 2>/dev/null)
        [ $# = 3 ] || return 1
        if [ "$1" != 0 ]; then
            who=$1
        elif shared "$2" "$3"; then
            # In a sticky folder nobody takes away what is another's.
            case $3 in [1357]???) entry=$(stat -c %u -- "$at/$part" 2>/dev/null) ;; *) entry= ;; esac
            if [ -n "$entry" ]; then [ "$entry" = 0 ] || who=$entry; elif [ "$who" = 0 ]; then return 1; fi
        fi
        if [ -L "$at/$part" ]; then
            links=$((links + 1))
            target=$(readlink -- "$at/$part") && [ "$links" -le 40 ] || return 1
            case $target in /*) at= ;; esac
            rest=$target$rest
        else
            at=$at/$part
        fi
    done
    printf '%s\n' "$who"
}
# as UID COMMAND...: with the rights of that user and no others.
as() {
    if [ "$1" = "$(id -u)" ]; then shift; "$@"; return; fi
    set -- "$1" "$(getent passwd "$1" 2>/dev/null || awk -F: -v uid="$1" '$3 == uid' /etc/passwd)" "$@"
    uid=$1 entry=$2
    shift 3
    if [ -n "$entry" ]; then
        set -- --regid="$(printf '%s\n' "$entry" | cut -d: -f4)" --init-groups --no-new-privs "$@"
    else
        set -- --regid="$uid" --clear-groups --no-new-privs "$@"
    fi
    setpriv --reuid="$uid" "$@"
}
# Users' folders can be as many and as full as they like. look_for ALL EACH: seconds for what in_time runs from now on, all
# together and each. in_time COMMAND...: ends with 124 if it takes longer.
look_for() { deadline=$(($(date +%s) + $1)) each=$2; }
in_time() {
    left=$((deadline - $(date +%s)))
    [ "$left" -le "$each" ] || left=$each
    [ "$left" -gt 0 ] || return 124
    timeout "$left" "$@"
}
# Folders of users in the current one, as JVMs make them: UID or UID.1 to UID.9, which belongs to that user. So nobody has
# more than ten, however many he makes. Then "late" if there were too many to look at in time; last "odd COUNT", of those that
# are none.
user_folders() {
    {
        in_time find . -mindepth 1 -maxdepth 1 -type d -name '[0-9]*' ! -name '*[!0-9.]*' -exec stat -c '%u %n' -- {} + 2>/dev/null ||
            [ $? != 124 ] || echo late
    } | awk '
        $0 == "late" { print; next }
        { name = substr($2, 3); user = name; sub(/\.[1-9]$/, "", user); if (user == $1 "") print name; else odd++ }
        END { print "odd " odd + 0 }'
}
# Prints at most $3 bytes of the file $2 as user $1: of no link, and without waiting for a pipe.
head_of() {
    if dd if=/dev/null iflag=nofollow,nonblock count=0 2>/dev/null; then
        as "$1" dd if="$2" iflag=nofollow,nonblock,fullblock bs=64k count=$((($3 + 65535) / 65536)) 2>/dev/null | head -c "$3"
    elif [ -f "$2" ] && [ ! -L "$2" ]; then
        as "$1" timeout 10 head -c "$3" "$2" 2>/dev/null
    fi
}
# Prints $3 bytes of the file $1 of the current folder from $2 on: of no link, and without waiting for a pipe.
if dd if=/dev/null iflag=nofollow,nonblock,skip_bytes,count_bytes count=0 2>/dev/null; then
    part() { dd if="./$1" iflag=nofollow,nonblock,fullblock,skip_bytes,count_bytes bs=64k skip="$2" count="$3" 2>/dev/null; }
else
    part() { [ ! -L "./$1" ] && [ -f "./$1" ] && tail -c +$(($2 + 1)) "./$1" 2>/dev/null | head -c "$3"; }
fi
# Prints the size of a file of the current folder that has one name and this OWNER (uid, "" = anybody).
size_of_own() {
    about=$(stat -c '%h %u %s %F' -- "./$1" 2>/dev/null)
    case $about in "1 "*" regular file" | "1 "*" regular empty file") ;; *) return 1 ;; esac
    set -- $about
    [ "${OWNER:-$2}" = "$2" ] && printf '%s\n' "$3"
}
# The last lines of a log in one.
last_words() { timeout 10 tail -c 2048 -- "$1" 2>/dev/null | tail -n 3 | tr '\n' ' ' | tr -d '[:cntrl:]' | tail -c 600; }
# emit NAME PATH MOST: a file of at most so many bytes, read with the rights of its way's keeper.
emit() {
    real= about=
    if who=$(keeper "$2"); then
        real=$(readlink -f -- "$2")
        about=$(stat -c '%a %U:%G %s %F' -- "$real" 2>/dev/null)
        # It may be anybody's link, and stands in a line.
        case $real in *[[:cntrl:]]*) about= ;; esac
    elif [ -e "$2" ]; then
        say unsafe "$2"
    fi
    case $about in *' regular file' | *' regular empty file') ;; *) printf 'missing\t%s\t%s\t%s\n' "$1" "$2" "$who"; return ;; esac
    set -- "$1" "$2" "$3" $about
    if [ "$6" -gt "$3" ]; then
        say large "$2 ($6 bytes)"
        printf 'missing\t%s\t%s\t%s\n' "$1" "$2" "$who"
        return
    fi
    printf 'file\t%s\t%s\t%s\t%s\t%s\t%d\n' "$1" "$real" "$4" "$5" "$who" "$6"
    # What is cut off meanwhile is made up for: the lines behind have to be found.
    { head_of "$who" "$real" "$6"; head -c "$6" /dev/zero; } | head -c "$6"
    echo
}
# The nearest folder above a path that is there.
above() {
    folder=$1
    while [ ! -d "$folder" ]; do folder=$(dirname "$folder"); done
    printf '%s\n' "$folder"
}

# The folder of the host's agents, and whose it is; root's where it is not there. CAPTURE.
host_folder() {
    dir=$CAPTURE/$(uname -n)
    service=$(stat -c %u -- "$dir" 2>/dev/null)
    service=${service:-0}
}
# Whether a process is the agent $1: the program below the prefix, run by root or by whom the folder belongs to, and it
# writes into this host's folder. PREFIX; dir and service by host_folder.
is_agent() {
    lives "$2" "$3" || return 1
    # By number: from a mount namespace of its own the path may begin elsewhere. One that was replaced is deleted.
    case $(readlink "/proc/$2/exe" 2>/dev/null) in
    *"/bin/$1") [ "$(stat -L -c %d:%i "/proc/$2/exe" 2>/dev/null)" = "$(stat -L -c %d:%i "$PREFIX/bin/$1" 2>/dev/null)" ] || return 1 ;;
    *"/bin/$1 (deleted)") ;;
    *) return 1 ;;
    esac
    case $(sed -n 's/^Uid:[[:blank:]]*\([0-9]*\).*/\1/p' "/proc/$2/status" 2>/dev/null) in 0 | "$service") ;; *) return 1 ;; esac
    tr '\0' '\n' 2>/dev/null <"/proc/$2/cmdline" | sed -n '/^--out$/{n;p;q;}' | grep -q -x -F -- "$dir"
}
# agent NAME: whether it runs, whoever started it; sets pid, born and began (seconds since the epoch). CAPTURE, PREFIX.
agent() {
    pid= born=
    host_folder
    # What systemd starts again after a crash has another number than the one that was written down.
    if [ -f "/etc/systemd/system/hadoptic-$1.service" ] && command -v systemctl >/dev/null 2>&1; then
        pid=$(systemctl show -p MainPID "hadoptic-$1.service" 2>/dev/null | cut -d= -f2)
        if [ "${pid:-0}" = 0 ]; then pid=; else born=$(ticks "$pid"); fi
    fi
    if ! is_agent "$1" "$pid" "$born" && [ -f "$PREFIX/run/$1.pid" ]; then read -r pid born _ <"$PREFIX/run/$1.pid"; fi
    # Daemons start agents too, if they are told to. What anybody else wrote there is not believed.
    if ! is_agent "$1" "$pid" "$born" && lock=$(believed "$dir/agents.lock"); then
        while read -r other pid born _; do
            if [ "$other" = "$1" ] && is_agent "$1" "$pid" "$born"; then break; fi
            pid= born=
        done <<X
$lock
X
    fi
    is_agent "$1" "$pid" "$born" || { pid= born=; return 1; }
    began=$(($(sed -n 's/^btime //p' /proc/stat) + born / $(getconf CLK_TCK 2>/dev/null || echo 100)))
}
# What a file of the agents' folder says, if the folder and the file are root's or its owner's, and nobody else writes there.
believed() {
    set -- "$1" $(stat -c '%u %g %a' -- "$dir" 2>/dev/null) $(stat -c '%u %F' -- "$1" 2>/dev/null)
    [ $# -ge 7 ] && ! shared "$3" "$4" || return 1
    case $5 in 0 | "$service") ;; *) return 1 ;; esac
    [ "$6" = regular ] || return 1
    head_of "$service" "$1" 65536
}

# Hadoop's JVMs of this host: "jvm<TAB>PID TICKS USER CLASS AGENT HADOOP". Of a command line only the main class is
# told, and whether the agent stands in it: any user can call a process of his so. Processes of other network namespaces
# are those of other hosts.
jvms() {
    here=$(readlink /proc/self/ns/net)
    for line in $(grep -l -a -F org.apache.hadoop. /proc/[0-9]*/cmdline 2>/dev/null | head -n 5000); do
        pid=${line#/proc/}
        pid=${pid%/cmdline}
        case $(readlink "/proc/$pid/exe" 2>/dev/null) in */java) ;; *) continue ;; esac
        [ "$(readlink "/proc/$pid/ns/net" 2>/dev/null)" = "$here" ] || continue
        class=$(head -c 4194304 "$line" 2>/dev/null | tr '\0' '\n' | grep -x -m 1 'org\.apache\.hadoop\.[A-Za-z0-9_.$]\{1,200\}') || continue
        born=$(ticks "$pid")
        agent=no
        if grep -q -a -F hadoptic-agent.jar "$line" 2>/dev/null; then
            agent=yes
        else
            owner=$(stat -c %u "/proc/$pid" 2>/dev/null)
            for record in "$CAPTURE/jvm/$owner/jvm-$pid-$born.jsonl" "$CAPTURE/jvm/$owner".[1-9]/"jvm-$pid-$born.jsonl"; do
                [ ! -f "$record" ] || agent=attached
            done
        fi
        hadoop=$(ls -l "/proc/$pid/fd" 2>/dev/null | sed -n -e 's|.*/hadoop-common-\([0-9][A-Za-z0-9._-]\{0,60\}\)\.jar$|\1|p' \
            -e 's|.*/hadoop-core-\([0-9][A-Za-z0-9._-]\{0,60\}\)\.jar$|\1|p' | grep -v tests | head -n 1)
        printf 'jvm\t%s %s %s %s %s %s\n' "$pid" "$born" "$(stat -c %U "/proc/$pid" 2>/dev/null)" "$class" "$agent" \
            "${hadoop:--}"
    done
}

# Usual folders of Hadoop's, besides those that root's login names.
hadoop_homes() {
    for folder in ${HADOOP_HOME:+"$HADOOP_HOME"} ${HADOOP_PREFIX:+"$HADOOP_PREFIX"} /usr/lib/hadoop /usr/lib/hadoop-* /opt/hadoop* \
        /usr/local/hadoop* /usr/hdp/current/hadoop-* /opt/cloudera/parcels/CDH/lib/hadoop*; do
        [ ! -d "$folder" ] || printf '%s\n' "$folder"
    done
}
# Folders in which Hadoop's jars lie: where its JVMs have them open, and where they usually are. Only those in which root
# alone can replace a jar: what is prepared of one is run by every JVM.
jar_folders() {
    {
        for line in $(grep -l -a -F org.apache.hadoop. /proc/[0-9]*/cmdline 2>/dev/null | head -n 5000); do
            ls -l "${line%cmdline}fd" 2>/dev/null | sed -n 's|.* -> \(/.*\)/hadoop-[^/]*\.jar$|\1|p'
        done
        hadoop_homes
    } | sed 's|/share/hadoop/.*|/share/hadoop|' | sort -u | head -n 200 | while IFS= read -r folder; do
        if roots_alone "$folder"; then printf '%s\n' "$folder"; fi
    done
}
roots_alone() {
    [ "$(keeper "$1/x")" = 0 ] || return 1
    odd=$(timeout 20 find -L "$1" -maxdepth 12 \( -type d -o -name 'hadoop-*.jar' \) \
        \( ! -user 0 -o -perm -002 -o -perm -020 ! -group 0 \) 2>/dev/null | head -n 1)
    [ -z "$odd" ] || return 1
    timeout 20 find -L "$1" -maxdepth 12 -name 'hadoop-*.jar' -exec readlink -f -- {} + 2>/dev/null | sed 's|/[^/]*$||' | sort -u | {
        while IFS= read -r real; do [ "$(keeper "$real/x")" = 0 ] || exit 1; done
    }
}

# java_keeper JAVA: as whom a Java may be run: root, if root alone can change it and what it loads; else the one who can.
java_keeper() {
    who=$(keeper "$1") && real=$(readlink -f -- "$1") || return 1
    if [ "$who" = 0 ]; then
        home=$(dirname "$(dirname "$real")")
        case $home in / | /usr | /usr/local) home=$real ;; esac
        set -- $(timeout 20 find "$home" ! -type l \( ! -user 0 -o -perm -002 -o -perm -020 ! -group 0 \) -exec stat -c '%u' {} + 2>/dev/null | sort -nr | head -n 1)
        case ${1-none} in none) ;; 0) return 1 ;; *) who=$1 ;; esac
    fi
    printf '%s\n' "$who"
}
# loads JAVA JAR: whether a JVM of this host loads the agent; says why not.
loads() {
    who=$(java_keeper "$1") || { echo "more than one user can change $1: name another with --java"; return 1; }
    trial=$(mktemp -d) || return 1
    mkdir "$trial/out" && chmod 755 "$trial" && cp -- "$2" "$trial/hadoptic-agent.jar" && chmod 644 "$trial/hadoptic-agent.jar" &&
        chown "$who" "$trial/out" && cd "$trial" || { rm -rf -- "$trial"; return 1; }
    told=$(as "$who" timeout 60 "$1" "-javaagent:$trial/hadoptic-agent.jar=out=$trial/out" -version 2>&1 | head -c 4000)
    find "$trial/out" -name 'jvm-*.jsonl' 2>/dev/null | grep -q .
    loaded=$?
    cd /
    rm -rf -- "$trial"
    [ "$loaded" = 0 ] || printf '%s\n' "$told"
    return "$loaded"
}

# kept PATH UID: nobody but this user can have put a link on the way to PATH since it was looked at.
kept() {
    [ "$2" != 0 ] || [ "$(keeper "$1")" = 0 ] || fail "others than root can write on the way to $1: chmod go-w there, and run this again"
}
# sum_by UID PATH: checksum of what that user reads there.
sum_by() { as "$1" cat -- "$2" | sha256sum | cut -d' ' -f1; }
