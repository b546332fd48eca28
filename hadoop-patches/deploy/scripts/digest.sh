# Makes a digest of what was recorded here, CAPTURE/HOST/.digest/digest.hdg.zst, unless it is there of just these files. While it
# works, it says "at<TAB>BYTES READ".
# PREFIX, CAPTURE, SUM (of the merger), MEMORY (bytes); $@: folder ("." or "jvm/UID"), name, size, ...
# With the rights of whom the agents' folder belongs to. JVMs' records are copied first, into that folder: their users can change
# them at any time, and what goes into the digest is what `collect` would have fetched.
host_folder
me=$(id -u)
[ -d "$dir" ] && [ ! -L "$dir" ] && cd -- "$dir" && [ "$(stat -c %u .)" = "$me" ] && ! shared $(stat -c '%g %a' .) ||
    fail "$dir is not the folder of the agents alone any more: run install again"
umask 077
for folder in .digest jvm; do
    if [ -L "$folder" ] || { [ -e "$folder" ] && { [ ! -d "$folder" ] || [ "$(stat -c %u "$folder")" != "$me" ]; }; }; then
        fail "$dir/$folder is there and no folder of the agents' user: look who made it, and take it away"
    fi
done
[ ! -e jvm ] || [ -f .digest/copies ] || fail "$dir/jvm is there and no copy of this program's: look who made it, and move it away"
[ -d .digest ] || mkdir .digest || exit 1
pid=
tidy() {
    [ -z "$pid" ] || kill "$pid" 2>/dev/null
    cd "$dir" && rm -rf -- .digest/new .digest/tmp .digest/files jvm && rm -f .digest/copies
}
# Who looks on may have gone: then this ends.
trap '' PIPE
trap tidy EXIT
trap 'exit 1' HUP INT TERM
tidy
renice -n 19 -p $$ >/dev/null 2>&1
! command -v ionice >/dev/null 2>&1 || ionice -c 3 -p $$ 2>/dev/null

printf '%s %s %s\n' "$@" >.digest/files || exit 1
state=$({ cat .digest/files; awk -v capture="$CAPTURE" '{ print ($1 == "." ? "./" : capture "/" $1 "/") $2 }' .digest/files |
    xargs stat -c '%i %u %s %y %z %n' -- 2>/dev/null; } | sha256sum | cut -d' ' -f1)
file=.digest/digest.hdg.zst
made=no
if [ "$(cat .digest/of 2>/dev/null)" != "$SUM $state $(stat -c %s "$file" 2>/dev/null) $(checksum "$file" 2>/dev/null)" ]; then
    rm -rf -- .digest/of .digest/answer "$file"
    made=yes
    # Copies, and at worst as much again for the digest and for packets that do not fit into memory.
    set -- $(awk '{ all += $3; if ($1 != ".") copies += $3 } END { printf "%.0f %.0f", all, all + copies }' .digest/files)
    free=$(df -Pk . | awk 'NR == 2 { printf "%.0f", $4 * 1024 }')
    [ "$2" -le $((free / 2)) ] ||
        fail "a digest may take $2 bytes here while it is made, and of the $free that are free half: make room, or collect without --digest"
    : >.digest/copies && mkdir jvm || exit 1
    while read -r folder name size; do
        [ "$folder" != . ] || continue
        OWNER=${folder#jvm/} OWNER=${OWNER%%.*}
        [ -d "$dir/$folder" ] || mkdir "$dir/$folder" || exit 1
        copy=$dir/$folder/$name
        if [ ! -L "$CAPTURE/$folder" ] && cd "$CAPTURE/$folder" && there=$(size_of_own "$name") && [ "$there" -ge "$size" ] &&
            part "$name" 0 "$size" >"$copy" && [ "$(stat -c %s "$copy")" = "$size" ]; then
            continue
        fi
        say refused "$folder/$name"
        rm -f -- "$copy"
    done <.digest/files
    cd "$dir" && mkdir .digest/tmp || exit 1
    (
        echo 1000 >/proc/self/oom_score_adj
        # Of both more than is ever needed: the program keeps to --memory itself. In blocks of 512 bytes, and KiB.
        ulimit -f $(($1 / 512 + 131072)) && ulimit -v $((MEMORY / 1024 * 2 + 2097152)) || exit 1
        export TMPDIR="$dir/.digest/tmp" RAYON_NUM_THREADS=2 MALLOC_ARENA_MAX=2
        exec "$PREFIX/bin/merger" digest "$dir" --out "$dir/.digest/new" --memory "$MEMORY" --json
    ) >.digest/answer 2>.digest/said &
    pid=$!
    born=$(ticks "$pid")
    looks=0
    while lives "$pid" "$born"; do
        say at "$(sed -n 's/^rchar: //p' "/proc/$pid/io" 2>/dev/null)" 2>/dev/null || exit 1
        if [ "$looks" -lt 20 ]; then sleep 0.1; else sleep 1; fi
        looks=$((looks + 1))
    done
    wait "$pid"
    code=$?
    pid=
    new=.digest/new/${dir##*/}/digest.hdg.zst
    case $code in 0 | 1) ;; *) rm -f "$new" ;; esac
    [ -f "$new" ] || fail "merger digest ended with $code: $(last_words .digest/said)"
    mv -f "$new" "$file" && sync "$file" 2>/dev/null
    echo "$SUM $state $(stat -c %s "$file") $(checksum "$file")" >.digest/of || exit 1
fi
say made "$made"
say size "$(stat -c %s "$file")"
say answer "$(tr -d '\n\r' <.digest/answer | head -c 1048576)"
say end digest
