# Lists a job's files: FROM is a folder of this host (KIND local), or one of HDFS (KIND hdfs), of which a copy is made
# first. HADOOP: the command. Says "folder" and "found<TAB>SIZE NAME"; what lies deeper is copied up.
umask 077
copy=$(mktemp -d "${TMPDIR:-/tmp}/hadoptic-history.XXXXXX") || exit 1
say folder "$copy"
if [ "$KIND" = hdfs ]; then
    # A login's search path may lead there; sudo's does not.
    for there in "${HADOOP_HOME:-/nowhere}" /opt/hadoop* /usr/local/hadoop* /usr/lib/hadoop /usr/hdp/current/hadoop-client \
        /opt/cloudera/parcels/CDH; do
        PATH=$PATH:$there/bin
    done
    program=$(command -v "$HADOOP") || { rm -rf -- "$copy"; fail "$HADOOP is not there: name Hadoop's own program with --hadoop"; }
    mkdir "$copy/hdfs"
    chmod 755 "$copy"
    [ -z "$OWNER" ] || chown "$OWNER" "$copy/hdfs" || { rm -rf -- "$copy"; exit 1; }
    # The history server moves files while they are read: then they are in another place the next time.
    tries=1
    until
        if [ -n "$OWNER" ]; then
            setpriv --reuid="$OWNER" --regid="$(id -g "$OWNER")" --init-groups "$program" fs -get "$FROM" "$copy/hdfs/$tries" 2>"$copy/said"
        else
            "$program" fs -get "$FROM" "$copy/hdfs/$tries" 2>"$copy/said"
        fi
    do
        said=$(tail -n 3 "$copy/said" | tr '\n' ' ')
        [ "$tries" -lt 3 ] || { rm -rf -- "$copy"; fail "$program fs -get $FROM failed: $said"; }
        tries=$((tries + 1))
    done
    chmod 700 "$copy"
    FROM=$copy/hdfs/$tries
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
