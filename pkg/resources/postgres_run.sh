command -v flock >/dev/null || { echo "This image has no flock (util-linux), which keeps two servers from using one volume." >&2; exit 1; }
exec 9>>"$1/.lock" || exit 1
trap 'exit 0' INT TERM
until flock --timeout 10 9; do
  [ $? -eq 1 ] || exit 1
  echo "Another server still uses this volume; waiting until it has stopped." >&2
done
trap - INT TERM
exec container-entrypoint run-postgresql
