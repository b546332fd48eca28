# Prints files from an offset on (*.json: as a whole, as it is now), each behind a line of facts and before a line with the
# checksum of the whole.
# FOLDER; $@: name, offset, size, ... Container users write in the folder: what is opened has to be the file of that
# name itself, and no link to another one, which root could read and they could not.
real=$(readlink -f "$FOLDER") && cd "$real" || fail "$FOLDER is not there"
open_own() {
    [ -f "$1" ] && command exec 3<"$1" && [ "$(readlink "/proc/$$/fd/3")" = "$real/$1" ] &&
        [ "$(stat -L -c %h "/proc/$$/fd/3")" = 1 ]
}
while [ $# -gt 2 ]; do
    name=$1 offset=$2 size=$3
    shift 3
    own=no
    for try in 1 2 3 4 5 6 7 8 9; do
        if open_own "$name"; then
            own=yes
            break
        fi
        # Only what agents that run replace as a whole, perhaps just now, may be another file the next time.
        case $name in *.json) ;; *) break ;; esac
    done
    if [ $own = yes ]; then
        there=$(stat -L -c %s "/proc/$$/fd/3")
        case $name in *.json) offset=0 size=$there ;; esac
    fi
    if [ $own = no ] || [ "$there" -lt "$size" ]; then
        printf 'refused\t%s\n' "$name"
        continue
    fi
    printf 'bytes\t%s %s\n' "$((size - offset))" "$name"
    # /proc opens the same file again, at its beginning.
    tail -c +$((offset + 1)) "/proc/$$/fd/3" | head -c $((size - offset))
    printf '\nsum\t%s\n' "$(head -c "$size" "/proc/$$/fd/3" | sha256sum | cut -d' ' -f1)"
    exec 3<&-
done
printf 'end\tfetch\n'
