#!/bin/sh
# Starts Hadoop's daemons and tools as its own scripts do, which no jar holds: bin/hadoop, bin/hdfs, bin/yarn, bin/mapred.
#
# What counts here is where options come from, version by version:
#   1.x   hadoop-env.sh; HADOOP_OPTS, then HADOOP_<DAEMON>_OPTS, or HADOOP_CLIENT_OPTS for tools
#   2.x   the same for hdfs and hadoop; yarn knows yarn-env.sh and YARN_OPTS, YARN_<DAEMON>_OPTS, YARN_CLIENT_OPTS, and not
#         HADOOP_OPTS; of mapred, the history server reads mapred-env.sh and HADOOP_JOB_HISTORYSERVER_OPTS
#   3.x   HADOOP_OPTS for all, HADOOP_CLIENT_OPTS for tools, then <PROGRAM>_<SUBCOMMAND>_OPTS; names of 2.x win where set
# The last of two equal options of a JVM counts, so the order is theirs as well.

program=${0##*/}
home=$(cd "$(dirname "$0")/.." && pwd -P) || exit 2
# LAYOUT_MAJOR and LAYOUT_CLASS_PATH: what the lab knows of this version's files.
. "$home/libexec/layout.sh"

if [ "${1:-}" = --config ]; then
    HADOOP_CONF_DIR=$2
    shift 2
fi
if [ $# = 0 ]; then
    echo "usage: $program [--config DIR] COMMAND|CLASS [ARGUMENT]..." >&2
    exit 1
fi
command=$1
shift

export HADOOP_HOME="$home"
export HADOOP_CONF_DIR="${HADOOP_CONF_DIR:-/etc/hadoop/conf}"

source_env() { # source_env FILE
    # shellcheck disable=SC1090
    [ ! -f "$HADOOP_CONF_DIR/$1" ] || . "$HADOOP_CONF_DIR/$1"
}

value_of() { # value_of VARIABLE: its value; empty where it is not set, or where a class is no name of one
    case $1 in
    *[!A-Z0-9_]*) ;;
    *) eval "printf %s \"\${$1:-}\"" ;;
    esac
}

upper() { printf %s "$1" | tr '[:lower:]' '[:upper:]'; }

add() { # add VARIABLE: behind the options so far
    added=$(value_of "$1")
    options="$options $added"
}

source_env hadoop-env.sh
case $program in
yarn) source_env yarn-env.sh ;;
mapred) source_env mapred-env.sh ;;
esac
if [ -z "${JAVA_HOME:-}" ]; then
    echo "$program: JAVA_HOME is not set; set it in $HADOOP_CONF_DIR/hadoop-env.sh" >&2
    exit 1
fi

# Which class, and whether it is a daemon or a tool.
kind=tool
case $program:$command in
*:namenode) class=org.apache.hadoop.hdfs.server.namenode.NameNode kind=daemon ;;
*:secondarynamenode) class=org.apache.hadoop.hdfs.server.namenode.SecondaryNameNode kind=daemon ;;
*:datanode) class=org.apache.hadoop.hdfs.server.datanode.DataNode kind=daemon ;;
*:jobtracker) class=org.apache.hadoop.mapred.JobTracker kind=daemon ;;
*:tasktracker) class=org.apache.hadoop.mapred.TaskTracker kind=daemon ;;
yarn:resourcemanager) class=org.apache.hadoop.yarn.server.resourcemanager.ResourceManager kind=daemon ;;
yarn:nodemanager) class=org.apache.hadoop.yarn.server.nodemanager.NodeManager kind=daemon ;;
mapred:historyserver) class=org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer kind=daemon ;;
*:fs | *:dfs) class=org.apache.hadoop.fs.FsShell ;;
*:fsck) class=org.apache.hadoop.hdfs.tools.DFSck ;;
*:dfsadmin) class=org.apache.hadoop.hdfs.tools.DFSAdmin ;;
*:jar) class=org.apache.hadoop.util.RunJar ;;
*:distcp) class=org.apache.hadoop.tools.DistCp ;;
*:version) class=org.apache.hadoop.util.VersionInfo ;;
*:classpath)
    echo "$HADOOP_CONF_DIR:$LAYOUT_CLASS_PATH"
    exit
    ;;
*) class=$command kind=class ;;
esac

options=
heap=
daemon_options=HADOOP_$(upper "$command")_OPTS
case $LAYOUT_MAJOR in
1)
    heap=-Xmx${HADOOP_HEAPSIZE:-1000}m
    add HADOOP_OPTS
    case $kind in
    daemon) add "$daemon_options" ;;
    tool) add HADOOP_CLIENT_OPTS ;;
    esac
    ;;
2)
    case $program:$kind in
    yarn:*)
        heap=-Xmx${YARN_HEAPSIZE:-1000}m
        own=$(value_of "YARN_$(upper "$command")_HEAPSIZE")
        [ -z "$own" ] || heap=-Xmx${own}m
        add YARN_OPTS
        case $kind in
        daemon) add "YARN_$(upper "$command")_OPTS" ;;
        tool) add YARN_CLIENT_OPTS ;;
        esac
        HADOOP_LOG_DIR=${YARN_LOG_DIR:-${HADOOP_LOG_DIR:-}}
        ;;
    mapred:daemon)
        heap=-Xmx${HADOOP_JOB_HISTORYSERVER_HEAPSIZE:-${HADOOP_HEAPSIZE:-1000}}m
        add HADOOP_OPTS
        add HADOOP_JOB_HISTORYSERVER_OPTS
        ;;
    *:daemon)
        heap=-Xmx${HADOOP_HEAPSIZE:-1000}m
        add HADOOP_OPTS
        add "$daemon_options"
        ;;
    *)
        heap=-Xmx${HADOOP_HEAPSIZE:-1000}m
        add HADOOP_OPTS
        # Only bin/hadoop gives a tool's options to a class of its user's.
        case $program:$kind in
        hadoop:* | *:tool) add HADOOP_CLIENT_OPTS ;;
        esac
        ;;
    esac
    ;;
3)
    [ -z "${HADOOP_HEAPSIZE_MAX:-}" ] || case $HADOOP_HEAPSIZE_MAX in
    *[!0-9]*) heap=-Xmx$HADOOP_HEAPSIZE_MAX ;;
    *) heap=-Xmx${HADOOP_HEAPSIZE_MAX}m ;;
    esac
    if [ "$program" = yarn ] && [ -n "$YARN_OPTS" ]; then
        echo "WARNING: YARN_OPTS has been replaced by HADOOP_OPTS. Using value of YARN_OPTS." >&2
        HADOOP_OPTS=$YARN_OPTS
    fi
    add HADOOP_OPTS
    [ $kind = daemon ] || add HADOOP_CLIENT_OPTS
    own_options=$(upper "$program")_$(upper "$command")_OPTS
    if [ "$own_options" != "$daemon_options" ] && [ -n "$(value_of "$daemon_options")" ]; then
        echo "WARNING: $daemon_options has been replaced by $own_options. Using value of $daemon_options." >&2
        own_options=$daemon_options
    fi
    add "$own_options"
    ;;
*)
    echo "$program: Hadoop $LAYOUT_MAJOR.x is not known here" >&2
    exit 2
    ;;
esac
: "${HADOOP_LOG_DIR:=$home/logs}"
options="-Dproc_$command $heap $options -Dhadoop.log.dir=$HADOOP_LOG_DIR -Dhadoop.home.dir=$home"
[ "$program" != yarn ] || options="$options -Dyarn.log.dir=$HADOOP_LOG_DIR"

# As in Hadoop's scripts, the user's own entries come last.
class_path=$HADOOP_CONF_DIR:$LAYOUT_CLASS_PATH${HADOOP_CLASSPATH:+:$HADOOP_CLASSPATH}
# Options are words: they may hold no blanks, and no pattern is one.
set -f
if [ "$LAYOUT_MAJOR" = 1 ]; then
    # shellcheck disable=SC2086
    exec "$JAVA_HOME/bin/java" $options -classpath "$class_path" "$class" "$@"
fi
export CLASSPATH="$class_path"
# shellcheck disable=SC2086
exec "$JAVA_HOME/bin/java" $options "$class" "$@"
