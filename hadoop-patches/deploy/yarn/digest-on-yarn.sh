#!/bin/sh
# Digests of what a cluster's hosts recorded, made by the hosts themselves as a job of YARN's distributed shell: for clusters
# without ssh. See docs/digests.md, and there first who may read captures.
#
# digest-on-yarn.sh --jar FILE --hosts N --hdfs FOLDER --out FOLDER [OPTION...]
#   --jar FILE               hadoop-yarn-applications-distributedshell-VERSION.jar of the cluster's version
#   --hosts N                so many hosts have a NodeManager and a capture
#   --hdfs FOLDER            a folder of HDFS for the program and the digests, made with mode 700. Where it is there from an
#                            earlier try of just this capture, the hosts that have theirs there are done
#   --out FOLDER             the digests are fetched into this folder, which is not there yet
#   --merger FILE            the program, of the hosts' architecture [merger of the search path]
#   --capture-dir FOLDER     of all hosts [/var/lib/hadoptic/capture]
#   --container-memory MIB   more than half of what a NodeManager gives, so that no host gets two containers; half of it is
#                            the merger's [2048]
#   --while-recording        also where agents have not ended: a digest of what is there by then, beside the job
#   --hadoop FILE            Hadoop's program, as it is called on all hosts [hadoop of the search path]
#   --queue NAME             of YARN
set -u
fail() { printf 'digest-on-yarn: %s\n' "$*" >&2; exit 1; }

fs() { "$program" fs "$@"; }

# In a container: HDFS CAPTURE SUM MIB RECORDING (yes/no) HADOOP.
in_container() {
    hdfs=$1 capture=$2 sum=$3 mib=$4 recording=$5 program=$6
    host=$(uname -n)
    umask 077
    work=$(mktemp -d "$PWD/digest.XXXXXX") && cd "$work" || exit 1
    trap 'cd / && rm -rf -- "$work"' EXIT
    [ -d "$capture/$host" ] || fail "there is no $capture/$host on $host: nothing was recorded there"
    [ -r "$capture/$host" ] && [ -x "$capture/$host" ] || fail "$(id -un) may not read $capture/$host on $host"
    for file in "$capture/$host"/*; do
        [ -r "$file" ] || fail "$(id -un) may not read $file on $host: containers have to run as who records there"
    done
    [ -x "$program" ] || fail "there is no $program on $host: name Hadoop's program, as it is called on all hosts, with --hadoop"
    if fs -test -e "$hdfs/$host/digest.hdg.zst"; then exit 0; fi
    # Whoever comes second to a host leaves it to the first.
    if ! fs -mkdir "$hdfs/.claims/$host"; then
        if fs -test -d "$hdfs/.claims/$host"; then exit 0; fi
        fail "$hdfs/.claims cannot be written"
    fi
    fs -get "$hdfs/.merger" merger && [ "$(sha256sum <merger | cut -d' ' -f1)" = "$sum" ] ||
        fail "$hdfs/.merger is not the program that was put there"
    chmod 700 merger
    for agent in sniffer dumpingd; do
        [ ! -f "$capture/$host/$agent.json" ] || [ "$recording" = yes ] || grep -q '"ended": *true' "$capture/$host/$agent.json" ||
            fail "$agent on $host has not ended: stop it first, or say --while-recording"
    done
    ! command -v ionice >/dev/null 2>&1 || ionice -c 3 -p $$
    mkdir tmp && TMPDIR=$PWD/tmp RAYON_NUM_THREADS=2 MALLOC_ARENA_MAX=2 \
        nice -n 19 ./merger digest "$capture" --out out --memory "$((mib / 2))MiB"
    [ -f "out/$host/digest.hdg.zst" ] || fail "no digest was made on $host"
    fs -mkdir -p "$hdfs/$host" && fs -put "out/$host/digest.hdg.zst" "$hdfs/$host/" || fail "$hdfs/$host cannot be written"
    exit 0
}
if [ "${1:-}" = --in-container ]; then shift; in_container "$@"; fi

jar='' hosts='' hdfs='' out='' merger=$(command -v merger) capture=/var/lib/hadoptic/capture mib=2048 recording=no program=$(command -v hadoop) queue=''
while [ $# -gt 0 ]; do
    case $1 in
    --while-recording) recording=yes; shift; continue ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0"; exit 0 ;;
    esac
    [ $# -gt 1 ] || fail "$1 wants a value (--help)"
    case $1 in
    --jar) jar=$2 ;;
    --hosts) hosts=$2 ;;
    --hdfs) hdfs=$2 ;;
    --out) out=$2 ;;
    --merger) merger=$2 ;;
    --capture-dir) capture=$2 ;;
    --container-memory) mib=$2 ;;
    --hadoop) program=$2 ;;
    --queue) queue=$2 ;;
    *) fail "$1 is no option of this (--help)" ;;
    esac
    shift 2
done
[ -f "$jar" ] || fail "--jar: the jar of YARN's distributed shell is wanted"
[ -f "$merger" ] || fail "--merger: the program merger is wanted"
[ -n "$hdfs" ] && [ -n "$out" ] || fail "--hdfs and --out are wanted (--help)"
case $program in /*) ;; *) fail "--hadoop: the path of Hadoop's program is wanted" ;; esac
case $hosts in '' | *[!0-9]*) fail "--hosts: how many hosts are there?" ;; esac
case $mib in '' | *[!0-9]*) fail "--container-memory: a number of MiB is wanted" ;; esac
# They become words of a shell in the containers.
case $hdfs$capture$program in *[!A-Za-z0-9._/:+@-]*) fail "folders with blanks or signs will not do: $hdfs $capture $program" ;; esac
[ ! -e "$out" ] || fail "$out is there already: choose another --out"

# Whose folder it is reads the digests.
if owner=$(fs -stat %u "$hdfs" 2>/dev/null); then
    [ "$owner" = "${HADOOP_USER_NAME:-$(id -un)}" ] || fail "$hdfs is there and belongs to $owner: choose another --hdfs"
fi
fs -mkdir -p "$hdfs" && fs -chmod 700 "$hdfs" || fail "$hdfs cannot be made yours alone"
sum=$(sha256sum <"$merger" | cut -d' ' -f1)
fs -put -f "$merger" "$hdfs/.merger" || fail "$hdfs cannot be written"
fs -rm -r -f -skipTrash "$hdfs/.claims" >/dev/null 2>&1
fs -mkdir "$hdfs/.claims" || exit 1
set -- -jar "$jar" -appname hadoptic-digest -shell_script "$0" -shell_args "--in-container $hdfs $capture $sum $mib $recording $program" \
    -master_memory 512 -container_memory "$mib" -container_vcores 1 -num_containers "$hosts"
[ -z "$queue" ] || set -- "$@" -queue "$queue"
"$program" jar "$jar" org.apache.hadoop.yarn.applications.distributedshell.Client "$@" ||
    fail "not all containers did their work: yarn logs -applicationId ID tells why. What is done is done: call this again"
umask 077
mkdir "$out" || exit 1
fs -get "$hdfs/*" "$out/" || exit 1
rm -rf -- "$out/.merger" "$out/.claims"
found=$(find "$out" -mindepth 2 -maxdepth 2 -name digest.hdg.zst | wc -l)
find "$out" -mindepth 2 -maxdepth 2 -name digest.hdg.zst | sort
[ "$found" -ge "$hosts" ] ||
    fail "$found of $hosts hosts have digests: the others got no container. Call this again with another --out, and more --container-memory"
