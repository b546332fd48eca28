# What there is to collect: "found<TAB>SIZE ALLOCATED FOLDER NAME", FOLDER "." or "jvm/UID", "odd<TAB>FOLDER COUNT", and
# "unlisted<TAB>FOLDER" where not all files were listed.
# CAPTURE. With the rights of whom the agents' folder belongs to.
host_folder
# A subshell's own output is a pipe.
exec 3>&1
look_for 600 60
[ -d "$dir" ] && [ ! -L "$dir" ] || fail "$dir is not there: nothing was recorded here"
# files FOLDER MOST CONDITION...: those of the current folder.
files() {
    folder=$1 most=$2
    shift 2
    {
        in_time find . -mindepth 1 -maxdepth 1 -type f -links 1 ! -name '*[!A-Za-z0-9._@:+-]*' ! -name '.*' "$@" \
            -exec stat -c '%s %b %B %n' -- {} + 2>/dev/null || [ $? != 124 ] || say unlisted "$folder" >&3
    } | head -n "$((most + 1))" | awk -v folder="$folder" -v most="$most" '
        NR > most { printf "unlisted\t%s\n", folder; exit }
        NF == 4 { sub(/^\.\//, "", $4); printf "found\t%.0f %.0f %s %s\n", $1, $2 * $3, folder, $4 }'
}
# What else lies there: folders of the agents' own are none of it.
others() {
    folder=$1
    shift
    say odd "$folder $(in_time find . -mindepth 1 -maxdepth 1 ! -type d ! \( -type f -links 1 ! -name '*[!A-Za-z0-9._@:+-]*' "$@" \) \
        ! -name '.*' ! -name no-agent ! -name 'agents.*' ! -name 'daemon-*' -exec stat -c x -- {} + 2>/dev/null | head -n 1000000 | wc -l)"
}
agents_files() {
    "$@" \( -name sniffer.json -o -name dumpingd.json -o -name ports.json -o -name 'sockets*.jsonl' -o -name 'packets-*.hpk' \
        -o -name 'packets-*.pcapng' -o -name 'jvm-*.jsonl' -o -name '*.log' \)
}
cd "$dir" || exit 1
agents_files files . 100000
agents_files others .
if cd "$CAPTURE/jvm" 2>/dev/null; then
    top=$(in_time find . -mindepth 1 -maxdepth 1 ! -type d ! -name 'daemon-*' ! -name '.used-[0-9]*' -exec stat -c x -- {} + 2>/dev/null | head -n 1000000 | wc -l)
    user_folders | {
        while IFS= read -r name; do
            case $name in
            odd\ *) top=$((top + ${name#odd })); continue ;;
            late) say unlisted jvm; continue ;;
            esac
            { [ ! -L "$name" ] && cd "$name" 2>/dev/null; } || { top=$((top + 1)); continue; }
            files "jvm/$name" 100000 -user "${name%%.*}" -name 'jvm-[0-9]*-[0-9]*.jsonl'
            others "jvm/$name" -user "${name%%.*}" -name 'jvm-[0-9]*-[0-9]*.jsonl'
            cd "$CAPTURE/jvm" || break
        done
        say odd "jvm $top"
    }
fi
say end list
