# Lists a job's files: FROM is a folder of this host (KIND local), or one of HDFS (KIND hdfs), of which a copy is made
# first. HADOOP: the command. Says "folder" and "found<TAB>SIZE NAME"; what lies deeper is copied up.
umask 077
copy=$(mktemp -d "${TMPDIR:-/tmp}/hadoptic-history.XXXXXX") || exit 1
say folder "$copy"
if [ "$KIND" = hdfs ]; then
    mkdir "$copy/hdfs"
    chmod 755 "$copy"
    [ -z "$OWNER" ] || chown "$OWNER" "$copy/hdfs"
    if [ -n "$OWNER" ]; then
        setpriv --reuid="$OWNER" --regid="$(id -g "$OWNER")" --init-groups "$HADOOP" fs -get "$FROM" "$copy/hdfs/" >&2
    else
        "$HADOOP" fs -get "$FROM" "$copy/hdfs/" >&2
    fi || { rm -rf -- "$copy"; fail "$HADOOP fs -get $FROM failed"; }
    chmod 700 "$copy"
    FROM=$copy/hdfs
fi
[ -d "$FROM" ] || { rm -rf -- "$copy"; fail "$FROM is no folder"; }
# 1.x writes check sums beside (.NAME.crc), and names configurations JOB_conf.xml.
find "$FROM" -type f \( -name 'job_*' -o -name '*_job_*_conf.xml' -o -name '*.jhist' \) ! -name '.*' ! -name '*.summary' |
    while IFS= read -r path; do
        name=$(basename "$path")
        case $name in *[!A-Za-z0-9._@:+%-]*) continue ;; esac
        case $name in *"$JOB"*) ;; *) continue ;; esac
        cp -- "$path" "$copy/$name" && printf 'found\t%s %s\n' "$(stat -c %s "$copy/$name")" "$name"
    done
say end history
