# Prints files from an offset on, each behind a line of facts and before a line with the checksum of the whole.
# FOLDER; $@: name, offset, size, ... Container users write in the folder: what is opened has to be the file of that
# name itself, and no link to another one, which root could read and they could not.
real=$(readlink -f "$FOLDER") && cd "$real" || fail "$FOLDER is not there"
while [ $# -gt 2 ]; do
    name=$1 offset=$2 size=$3
    shift 3
    if [ ! -f "$name" ] || ! command exec 3<"$name" || [ "$(readlink "/proc/$$/fd/3")" != "$real/$name" ] ||
        [ "$(stat -L -c %h "/proc/$$/fd/3")" != 1 ] || [ "$(stat -L -c %s "/proc/$$/fd/3")" -lt "$size" ]; then
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
