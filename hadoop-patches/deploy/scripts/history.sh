# Lists a job's files: FROM is a folder of this host (KIND local), or one of HDFS (KIND hdfs), of which a copy is made
# first. HADOOP: the command. Says "folder" and "found<TAB>SIZE NAME"; what lies deeper is copied up.
umask 077
copy=$(mktemp -d "${TMPDIR:-/tmp}/hadoptic-history.XXXXXX") || exit 1
say folder "$copy"
end_with() { rm -rf -- "$copy"; fail "$@"; }
if [ "$KIND" = hdfs ]; then
    # A login's search path may lead there; sudo's does not.
    for there in "${HADOOP_HOME:-/nowhere}" /opt/hadoop* /usr/local/hadoop* /usr/lib/hadoop /usr/hdp/current/hadoop-client \
        /opt/cloudera/parcels/CDH; do
        PATH=$PATH:$there/bin
    done
    program=$(command -v "$HADOOP") || end_with "$HADOOP is not there: name Hadoop's own program with --hadoop"
    case $program in /*) ;; *) end_with "$HADOOP is no path of a program" ;; esac
    # A program that others can change runs as they, not as root.
    kept_by=$(keeper "$program") && [ -f "$program" ] || end_with "more than one user can change $program"
    [ "$kept_by" != 0 ] || kept_by=$(stat -L -c %u "$program")
    [ -z "$OWNER" ] || kept_by=$(id -u -- "$OWNER") || end_with "there is no user $OWNER"
    mkdir "$copy/hdfs"
    chmod 755 "$copy"
    chown "$kept_by" "$copy/hdfs" || end_with "$copy/hdfs cannot be given to user $kept_by"
    # The history server moves files while they are read: then they are in another place the next time.
    tries=1
    until as "$kept_by" "$program" fs -get "$FROM" "$copy/hdfs/$tries" 2>"$copy/said"; do
        said=$(tail -n 3 "$copy/said" | tr '\n' ' ')
        [ "$tries" -lt 3 ] || end_with "$program fs -get $FROM failed: $said"
        tries=$((tries + 1))
    done
    FROM=$copy/hdfs/$tries
else
    kept_by=$(keeper "$FROM/x") || end_with "more than one user can change what $FROM is"
    [ "$kept_by" != 0 ] || kept_by=$(stat -L -c %u "$FROM")
fi
[ -d "$FROM" ] || end_with "$FROM is no folder"
# 1.x writes check sums beside (.NAME.crc), and names configurations JOB_conf.xml. What users have put there is read with
# the rights of whose folder it is.
as "$kept_by" find "$FROM" -type f \( -name 'job_*' -o -name '*_job_*_conf.xml' -o -name '*.jhist' \) ! -name '.*' ! -name '*.summary' \
    ! -path '*
*' | head -n 100000 |
    while IFS= read -r path; do
        name=$(basename "$path")
        case $name in *[!A-Za-z0-9._@:+%-]*) continue ;; esac
        case $name in *"$JOB"*) ;; *) continue ;; esac
        size=$(stat -c %s -- "$path") || continue
        head_of "$kept_by" "$path" "$size" >"$copy/$name" && printf 'found\t%s %s\n' "$(stat -c %s "$copy/$name")" "$name"
    done
chmod 700 "$copy"
say end history
