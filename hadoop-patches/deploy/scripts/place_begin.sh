# Makes the folders and the user of the agents. PREFIX, CAPTURE, SERVICE; $@: users of Hadoop's daemons.
# PREFIX/run/made remembers which folders were not there before, PREFIX/run/made_user the user, and
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
    [ "$(stat -c %u "$1")" = 0 ] || [ "$1" = "$host" ] || fail "$1 belongs to $(stat -c %U "$1"), not to root: move it away"
}
# The user that the agents go on as: no shell, no home, no password.
make_service() {
    if id -u "$SERVICE" >/dev/null 2>&1; then return; fi
    [ "$SERVICE" = hadoptic ] || fail "there is no user $SERVICE: make it, or leave --run-as out"
    shell=$(command -v nologin || echo /bin/false)
    if command -v useradd >/dev/null 2>&1; then
        useradd --system --user-group --no-create-home --home-dir /nonexistent --shell "$shell" hadoptic
    else
        addgroup -S hadoptic && adduser -S -D -H -h /nonexistent -s "$shell" -G hadoptic hadoptic
    fi || fail "the user hadoptic cannot be made: make it by hand, or say --run-as NAME (root keeps root)"
    echo hadoptic >"$PREFIX/run/made_user"
}
# Hosts of an earlier version have all in one folder that is open to all. Nobody writes there any more; what JVMs
# recorded goes to their users' folders, what else is not root's aside.
lock_down() {
    for name in sniffer dumpingd; do
        if agent "$name"; then fail "$name runs, and its folder is to be locked and given to $SERVICE: hadoptic stop first, then install, then start"; fi
    done
    chmod 700 "$host" && chown 0:0 "$host" || exit 1
    find "$host" -mindepth 1 -maxdepth 1 -type f -links 1 -name 'jvm-[0-9]*-[0-9]*.jsonl' ! -name '*[!a-z0-9.-]*' \
        -exec stat -c '%u %n' {} + | while read -r uid record; do
        mkdir -p "$CAPTURE/jvm/$uid" && mv -f -- "$record" "$CAPTURE/jvm/$uid/" && moved="$CAPTURE/jvm/$uid/${record##*/}" &&
            chown "$uid:$gid" "$CAPTURE/jvm/$uid" "$moved" && chmod 2750 "$CAPTURE/jvm/$uid" && chmod 640 "$moved" || exit 1
    done || exit 1
    find "$host" -mindepth 1 -maxdepth 1 ! \( -type f -links 1 \( -user 0 -o -user "$owner" \) \) ! -name .foreign -exec sh -c '
        mkdir -p "$0/.foreign" && chmod 700 "$0/.foreign" && mv -f -- "$@" "$0/.foreign/"' "$host" {} + || exit 1
    find "$host" -mindepth 1 -maxdepth 1 -type f -exec chown "$uid_service:$gid" {} + || exit 1
}

host=$CAPTURE/$(uname -n)
make "$PREFIX" 755
for folder in bin lib; do make "$PREFIX/$folder" 755; done
for folder in backup run log new; do make "$PREFIX/$folder" 700; done
[ "$(keeper "$PREFIX/bin/x")" = 0 ] || fail "others than root can write on the way to $PREFIX/bin: choose another --prefix"
make_service
uid_service=$(id -u "$SERVICE") gid=$(id -g "$SERVICE")
make "$CAPTURE" 755
mode=$(stat -c %a "$CAPTURE")
if [ "$mode" != 755 ]; then
    # JVMs of all users pass through; only root makes folders.
    chmod 755 "$CAPTURE" || exit 1
    [ -f "$PREFIX/run/capture_mode" ] || printf '%s\n' "$mode" >"$PREFIX/run/capture_mode"
fi
[ "$(keeper "$CAPTURE/x")" = 0 ] || fail "others than root can write on the way to $CAPTURE: choose another --capture-dir"
make "$CAPTURE/jvm" 700
make "$host" 700
printf %s "$made" >>"$PREFIX/run/made"
[ ! -L "$host" ] || fail "$host is a symbolic link: move it away"
owner=$(stat -c '%u' "$host")
before=$(cat "$PREFIX/run/service" 2>/dev/null)
if [ "$owner" = "$uid_service" ]; then
    ! shared $(stat -c '%g %a' "$host") || lock_down
elif [ "$owner" = 0 ] || [ "$owner" = "$(id -u "${before:-root}" 2>/dev/null)" ]; then
    lock_down
else
    fail "$host belongs to $(stat -c %U "$host"), not to $SERVICE: move it away"
fi
chown "$uid_service:$gid" "$host" && chmod 750 "$host" || exit 1
# Each user's JVMs have a folder of their own here, and nobody can be there before those of Hadoop's daemons.
for user in "$@" hdfs yarn mapred hadoop; do
    uid=$(id -u -- "$user" 2>/dev/null) || continue
    [ ! -e "$CAPTURE/jvm/$uid" ] && [ ! -L "$CAPTURE/jvm/$uid" ] || continue
    mkdir -m 700 "$CAPTURE/jvm/$uid" && chown "$uid:$gid" "$CAPTURE/jvm/$uid" && chmod 2750 "$CAPTURE/jvm/$uid" || exit 1
done
chown "0:$gid" "$CAPTURE/jvm" && chmod 3777 "$CAPTURE/jvm" || exit 1
printf '%s\n' "$SERVICE" >"$PREFIX/run/service"
say end place_begin
