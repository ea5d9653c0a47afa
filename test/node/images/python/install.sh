# Installs packages of PyPI into a system, apart from it, and writes them as a layer of an image: what is in /opt/app. The system
# is a tar, which ends in a folder that is thrown away; what pip needs from this machine gets no further. Standard input is the
# list for pip, further arguments are options of pip.
set -eu
system=$1 root=$2 authorities=$3
shift 3
tar -C "$root" -xpf "$system"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp "$authorities" "$root/tmp/authorities.crt"
cat > "$root/tmp/requirements.txt"
export REQUESTS_CA_BUNDLE=/tmp/authorities.crt PIP_CERT=/tmp/authorities.crt
chroot "$root" python3 -m venv /opt/app >&2
chroot "$root" /opt/app/bin/pip install --quiet --no-cache-dir --disable-pip-version-check "$@" -r /tmp/requirements.txt >&2
tar -C "$root" --numeric-owner --sort=name -cf - opt/app
