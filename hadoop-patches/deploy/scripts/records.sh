# What was recorded, looked at with the rights of whom the agents' folder belongs to: what users have put among their
# records leads nowhere else. CAPTURE.
host_folder
kib() { timeout 20 du -skx "$@" 2>/dev/null | awk '{ n += $1 } END { printf "%.0f", n }'; }
for name in sniffer dumpingd; do
    if [ -f "$dir/$name.json" ]; then
        say age "$name $(($(date +%s) - $(stat -c %Y "$dir/$name.json")))"
        emit "$name.json" "$dir/$name.json" 8388608
    fi
    # Where daemons start the agents, their log is here.
    [ ! -f "$dir/$name.log" ] || say log "$name $(last_words "$dir/$name.log")"
done
[ ! -d "$dir" ] || say host_kib "$(kib "$dir")"
# Of the last records of sockets with a peer, those whose owner is known. One in TIME_WAIT belongs to nobody any more.
last=$(find "$dir" -maxdepth 1 -type f -name 'sockets.jsonl' -exec stat -c %s {} + 2>/dev/null)
if [ -n "$last" ]; then
    timeout 20 tail -c 16777216 "$dir/sockets.jsonl" | awk '/"k":"socket"/ && !/"TIME_WAIT"/ { n++; if (/"pid":/) known++ } END { print "owners\t" known + 0 " " n + 0 }'
fi
if cd "$CAPTURE/jvm" 2>/dev/null; then
    # A subshell's own output is a pipe.
    exec 3>&1
    look_for 60 10
    say jvm_kib "$(kib .)"
    odd=$(in_time find . -mindepth 1 -maxdepth 1 ! \( -type d -name '[0-9]*' ! -name '*[!0-9.]*' \) ! -name 'daemon-[0-9]*' ! -name '.used-[0-9]*' -exec stat -c x -- {} + 2>/dev/null | head -n 100000 | wc -l)
    user_folders | {
        while IFS= read -r name; do
            case $name in
            odd\ *) odd=$((odd + ${name#odd })); continue ;;
            late) say unread '*'; continue ;;
            esac
            folder=./$name uid=${name%%.*}
            [ -r "$folder" -a -x "$folder" ] || { odd=$((odd + 1)); continue; }
            # Names of files may be anything. What is counted are those with the agents' names.
            set -- -mindepth 1 -maxdepth 1 -type f -links 1 -user "$uid" -name 'jvm-[0-9]*-[0-9]*.jsonl' ! -name '*[!a-z0-9.-]*'
            all=$(in_time find "$folder" -mindepth 1 -maxdepth 1 ! -name no-agent ! -name 'daemon-*' -exec stat -c x -- {} + 2>/dev/null | wc -l)
            files=$(in_time find "$folder" "$@" -exec stat -c '%s %b %B' -- {} + 2>/dev/null |
                awk '{ n++; bytes += $1; taken += $2 * $3 } END { printf "%d %.0f %.0f", n, bytes, taken }')
            say jvms "$name $files $all"
            [ ! -f "$folder/no-agent" ] || say no_agent "$uid"
            # Sparse files are as long as they say when they are read.
            bytes=${files#* } bytes=${bytes% *}
            [ "$bytes" -le 1073741824 ] || { say unread "$name"; continue; }
            # With each batch a JVM says how many records it could not write since the one before. A line is 64 KiB at most.
            { in_time find "$folder" "$@" -exec cat -- {} + 2>/dev/null || [ $? != 124 ] || say unread "$name" >&3; } |
                head -c 1073741824 | LC_ALL=C fold -b -w 65536 | LC_ALL=C awk '
                    { n++ }
                    index($0, "\"k\":\"clock\"") && match($0, /"unwritten":[0-9]+/) { lost += substr($0, RSTART + 12, RLENGTH - 12) }
                    END { printf "spans\t%.0f\nunwritten\t%.0f\n", n, lost }'
        done
        say odd "$odd"
    }
fi
say end records
