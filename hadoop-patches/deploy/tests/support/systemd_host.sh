# A host whose first process is a systemd of its own: a root of its own in memory, with the machine's /usr in it and no unit but
# targets, one sshd and what is installed later. Run with processes, mounts, network, name, memory and control groups of its
# own. $1: the rig's folder, $2: the host's name. The machine's systemd, units and settings are not seen from here.
set -e
at=$1 name=$2
mount --make-rprivate /
root=$at/$name.root
mkdir "$root"
mount -t tmpfs -o mode=755 tmpfs "$root"
cd "$root"
mkdir -p usr etc/systemd/system proc sys dev run tmp opt root var/lib var/log old ".$at"
for link in bin sbin lib lib32 lib64; do [ ! -e "/usr/$link" ] || ln -s "usr/$link" "$link"; done
mount --rbind /usr usr
mount --bind "$at" ".$at"
mount --bind "$at/$name" ".$at/host"
for own in passwd group login.defs nsswitch.conf ld.so.cache alternatives pam.d; do [ ! -e "/etc/$own" ] || cp -a "/etc/$own" etc/; done
cp -a /etc/java* etc/ 2>/dev/null || true
printf 'root:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n' >etc/shadow
echo "$name" >etc/hostname
: >etc/machine-id
units=$(systemctl --version >/dev/null && dirname "$(find /usr/lib/systemd/system -name basic.target)")
for target in basic sysinit sockets timers paths slices local-fs network umount shutdown multi-user; do
    cp "$units/$target.target" etc/systemd/system/
done
mkdir etc/systemd/system/multi-user.target.wants
ln -s multi-user.target etc/systemd/system/default.target
printf '[Service]\nExecStartPre=/bin/mkdir -p /run/sshd\nExecStart=/usr/sbin/sshd -D -E %s/%s.log -f %s/%s.sshd\n' \
    "$at" "$name" "$at" "$name" >etc/systemd/system/sshd.service
ln -s ../sshd.service etc/systemd/system/multi-user.target.wants/sshd.service
mount -t proc proc proc
# A systemd sets limits of the kernel that are the whole machine's.
mount --bind proc/sys proc/sys
mount -o remount,ro,bind proc/sys
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm
for device in null zero full random urandom tty; do
    : >"dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
: >dev/console
mount --bind /dev/null dev/console
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs var/log
ip link set lo up
hostname "$name"
pivot_root . old
umount -l /old
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=other SYSTEMD_UNIT_PATH=/etc/systemd/system \
    /usr/lib/systemd/systemd --system --log-target=console --show-status=false
