# Runs the program of Python on standard input in a system and writes what it makes in /data1 as a layer of an image. Arguments are a
# folder that is thrown away, and the layers of the system.
set -eu
root=$1
shift
for layer; do
  tar -C "$root" -xpf "$layer"
done
cat > "$root/tmp/train.py"
chroot "$root" /opt/app/bin/python3 /tmp/train.py >&2
tar -C "$root" --numeric-owner --sort=name -cf - data1
