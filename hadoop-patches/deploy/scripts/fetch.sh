# Prints files from an offset on (*.json: as a whole, as it is now), each behind a line of facts and before a line with the
# checksum of the whole. FOLDER, OWNER (uid, "" = anybody), MAX_JSON; $@: name, offset, size, ...
# Users write in their folders: what is opened is a file of that name itself, with one name and of its owner, and no
# link or pipe; and there are always as many bytes as were announced, whoever cuts the file meanwhile.
cd -- "$FOLDER" || fail "$FOLDER is not there"
# A manifest is replaced as a whole by agents that run: what is announced, sent and summed up has to be one of them.
copy=
trap '[ -z "$copy" ] || rm -f -- "$copy"' EXIT
while [ $# -gt 2 ]; do
    name=$1 offset=$2 size=$3
    shift 3
    case $name in
    *.json)
        there=
        [ -n "$copy" ] || copy=$(mktemp) || exit 1
        for try in 1 2 3 4 5 6 7 8 9; do
            if size_of_own "$name" >/dev/null && part "$name" 0 $((MAX_JSON + 1)) >"$copy"; then
                there=$(stat -c %s "$copy")
                break
            fi
        done
        [ "${there:-0}" -le "$MAX_JSON" ] || there=
        offset=0 size=${there:-0}
        send() { cat "$copy"; }
        ;;
    *)
        there=$(size_of_own "$name")
        send() { part "$name" "$1" "$2"; }
        ;;
    esac
    if [ -z "$there" ] || [ "$there" -lt "$size" ]; then
        printf 'refused\t%s\n' "$name"
        continue
    fi
    printf 'bytes\t%s %s\n' "$((size - offset))" "$name"
    { send "$offset" "$((size - offset))"; head -c "$((size - offset))" /dev/zero; } | head -c "$((size - offset))"
    printf '\nsum\t%s\n' "$(send 0 "$size" | sha256sum | cut -d' ' -f1)"
done
printf 'end\tfetch\n'
