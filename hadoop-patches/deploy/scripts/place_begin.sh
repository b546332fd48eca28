# Makes the folders. PREFIX, CAPTURE. PREFIX/run/made remembers which of them were not there before, and
# PREFIX/run/capture_mode what permissions CAPTURE had, also for an install that fails later.
umask 022
made=
make() { # make FOLDER MODE
    upper=$(dirname "$1")
    [ -d "$upper" ] || make "$upper" 755
    [ ! -L "$1" ] || fail "$1 is a symbolic link: name the folder to which it points"
    if [ ! -d "$1" ]; then
        mkdir "$1" || exit 1
        chmod "$2" "$1" || exit 1
        # That one goes at the end of each install.
        [ "$1" = "$PREFIX/new" ] || made="$made$1
"
    fi
}
host=$(uname -n)
make "$PREFIX" 755
for folder in bin lib; do make "$PREFIX/$folder" 755; done
for folder in backup run log new; do make "$PREFIX/$folder" 700; done
make "$CAPTURE" 1777
make "$CAPTURE/$host" 1777
# Container users write their records here, so it is open to all, and nobody may take away what is another's.
printf %s "$made" >>"$PREFIX/run/made"
mode=$(stat -c %a "$CAPTURE")
if [ "$mode" != 1777 ]; then
    chmod 1777 "$CAPTURE" || exit 1
    [ -f "$PREFIX/run/capture_mode" ] || printf '%s\n' "$mode" >"$PREFIX/run/capture_mode"
fi
if [ -L "$CAPTURE/$host" ] || [ "$(stat -c %u "$CAPTURE/$host")" != "$(id -u)" ]; then
    fail "$CAPTURE/$host belongs to $(stat -c %U "$CAPTURE/$host"), not to root: move it away"
fi
chmod 1777 "$CAPTURE/$host"
say end place_begin
