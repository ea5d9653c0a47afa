digest() {
  for file in $(list_sources); do
    echo "$file"
    cat "$file"
  done | sha256sum
}
trap 'exit 0' TERM INT
built=
while :; do
  current=$(digest) || current=unreadable
  if [ "$current" != "$built" ]; then
    if combine; then built=$current; else echo "the previous bundle stays in place" >&2; fi
  fi
  sleep "$CA_BUNDLE_WATCH_INTERVAL" &
  wait $! || true
done
