# How the agents are. PREFIX, CAPTURE.
host=$(uname -n)
dir=$CAPTURE/$host
say name "$host"
say now "$(date +%s)"
emit installed.json "$PREFIX/installed.json"
[ ! -f "$PREFIX/lib/hadoptic-agent.jar" ] || say jar "$(checksum "$PREFIX/lib/hadoptic-agent.jar")"
for name in sniffer dumpingd; do
    if agent "$name"; then
        say runs "$name $pid $began"
    elif [ -f "$PREFIX/run/$name.pid" ]; then
        say gone "$name"
    fi
    if [ -f "$dir/$name.json" ]; then
        say age "$name $(($(date +%s) - $(stat -c %Y "$dir/$name.json")))"
        emit "$name.json" "$dir/$name.json"
    fi
done
jvms
if [ -d "$dir" ]; then
    say disk "$(df -Pk "$dir" | awk 'NR == 2 { print $4, $2 }')"
    say used "$(du -sk "$dir" 2>/dev/null | cut -f1)"
    # Names of files may be anything: container users write here. What is counted are those with the agents' names.
    sizes=$(find "$dir" -maxdepth 1 -type f -name 'jvm-*.jsonl' -exec stat -c %s {} + 2>/dev/null)
    bytes=$(printf '%s\n' "$sizes" | awk '{ n += $1 } END { printf "%.0f", n }')
    say jvms "$(printf '%s\n' "$sizes" | grep -c .) $bytes"
    if [ "$bytes" -lt 1073741824 ]; then
        say spans "$(find "$dir" -maxdepth 1 -type f -name 'jvm-*.jsonl' -exec cat {} + 2>/dev/null | wc -l)"
    fi
    # Of the last records of sockets with a peer, those whose owner is known. One in TIME_WAIT belongs to nobody any more.
    if [ -f "$dir/sockets.jsonl" ]; then
        tail -c 16777216 "$dir/sockets.jsonl" | awk '/"k":"socket"/ && !/"TIME_WAIT"/ { n++; if (/"pid":/) known++ } END { print "owners\t" known + 0 " " n + 0 }'
    fi
fi
say end status
