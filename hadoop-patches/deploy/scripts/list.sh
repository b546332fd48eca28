# What there is to collect: "found<TAB>SIZE NAME". CAPTURE.
host=$(uname -n)
dir=$CAPTURE/$host
say name "$host"
[ -d "$dir" ] || fail "$dir is not there: nothing was recorded here"
cd "$dir" || exit 1
odd=0
for name in *; do
    [ -f "$name" ] && [ ! -L "$name" ] || continue
    case $name in
    *[!A-Za-z0-9._@:+-]* | -* | .*) odd=$((odd + 1)); continue ;;
    sniffer.json | dumpingd.json | ports.json | sockets.jsonl | packets-*.hpk | packets-*.pcapng | jvm-*.jsonl | *.log) ;;
    *) continue ;;
    esac
    printf 'found\t%s %s\n' "$(stat -c %s "$name")" "$name"
done
say odd "$odd"
for name in sniffer dumpingd; do
    if agent "$name"; then say runs "$name"; fi
done
say end list
