set -eu
umask 027
export LC_ALL=C
cd "$1"
exec 9>>.lock
flock --nonblock 9 || { echo "Another backup or restore uses this volume: try again when it has ended." >&2; exit 1; }
rm -f ./*.partial # of runs that were killed

if [ -n "${RESTORE:-}" ]; then
  file=$RESTORE
  if [ "$file" = latest ]; then
    set -- ./"$PGDATABASE"-[0-9]*T[0-9]*Z.dump
    while [ $# -gt 1 ]; do shift; done
    file=$1
  fi
  [ -f "$file" ] || { echo "There is no backup $file. There are:" >&2; ls -1 >&2; exit 1; }
  echo "Restoring $file"
  # All of it or nothing.
  pg_restore --no-password --clean --if-exists --no-owner --no-privileges --single-transaction --exit-on-error --dbname="$PGDATABASE" "$file"
  echo "Restored $file"
  exit
fi

file=./$PGDATABASE-$(date -u +%Y%m%dT%H%M%SZ).dump
trap 'rm -f "$file.partial"' EXIT
pg_dump --no-password --format=custom --file="$file.partial" "$PGDATABASE"
pg_restore --list "$file.partial" >/dev/null
sync "$file.partial"
mv "$file.partial" "$file"
sync .
echo "Wrote $file"

set -- ./"$PGDATABASE"-[0-9]*T[0-9]*Z.dump # the oldest first
while [ $# -gt "$KEEP" ]; do
  rm "$1"
  echo "Deleted $1"
  shift
done
