#!/usr/bin/env bash
# Installs what `make test` and `make lab` need beyond git, make, a C compiler and Rust, where it is missing.
#   tests/needs.sh           installs with apt-get (root), or says what is missing and exits with 1
#   tests/needs.sh --check   only says what is missing; exits with 1 if something is
set -u
# Where an ordinary user's shell does not look.
PATH=$PATH:/usr/sbin:/sbin

missing=()
have() { command -v "$1" >/dev/null 2>&1; }
[ -e /usr/include/pcap/pcap.h ] || missing+=(libpcap-dev)
have ip && have tc || missing+=(iproute2)
have ethtool || missing+=(ethtool)
have ssh || missing+=(openssh-client)
have sshd || missing+=(openssh-server)
have sudo || missing+=(sudo)
have setcap || missing+=(libcap2-bin)
have lsof || missing+=(lsof)
have script || missing+=(bsdutils)
have javac || missing+=(default-jdk-headless)
have mvn || missing+=(maven)
have dpkg-shlibdeps || missing+=(dpkg-dev)
have mmdebstrap || missing+=(mmdebstrap)
have man || missing+=(man-db)
have groff || missing+=(groff)
"$(dirname "$0")/mpi.sh" || missing+=(libmpich-dev libclang1)
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)

[ ${#missing[@]} -eq 0 ] && exit 0
if [ "${1:-}" = --check ]; then
    echo "missing: ${missing[*]}" >&2
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    echo "missing: ${missing[*]} - install them, or run this as root (apt-get install ${missing[*]})" >&2
    exit 1
fi
if ! have apt-get; then
    echo "missing: ${missing[*]} - this machine has no apt-get; install their equivalents by hand" >&2
    exit 1
fi
echo "installing: ${missing[*]}" >&2
# The tests start sshds of their own. Debian's package would let the whole world knock at this machine: masked, it does not.
case " ${missing[*]} " in
*" openssh-server "*)
    if have systemctl && systemctl mask ssh.service ssh.socket >/dev/null 2>&1; then
        echo "openssh-server: its service stays masked; \`systemctl unmask ssh.service ssh.socket\` if you want it" >&2
    fi
    ;;
esac
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
if ! { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "apt-get could not install: ${missing[*]} (whole log: $log)" >&2
    exit 1
fi
rm -f "$log"
