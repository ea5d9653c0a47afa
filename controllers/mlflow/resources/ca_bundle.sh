set -e
list_sources() {
  for file in $CA_BUNDLE_FILE_PATHS; do
    if [ -f "$file" ]; then echo "$file"; fi
  done
  for directory in $CA_BUNDLE_MOUNT_PATHS; do
    for file in "$directory"/*.crt "$directory"/*.pem; do
      if [ -f "$file" ]; then echo "$file"; fi
    done
  done
}
combine() {
  draft="$CA_BUNDLE_OUTPUT.draft"
  (umask 0077 && : > "$draft") || return 1
  sources=0
  for file in $(list_sources); do
    { cat "$file" && echo; } >> "$draft" || return 1
    sources=$((sources + 1))
  done
  mv -f "$draft" "$CA_BUNDLE_OUTPUT" || return 1
  chmod 0644 "$CA_BUNDLE_OUTPUT" || return 1
  certificates=$(grep -c -e '-----BEGIN' "$CA_BUNDLE_OUTPUT" || true)
  echo "trusting $certificates certificates from $sources sources"
}
