#!/bin/sh
# Creates the Secret minio-credentials (keys user and password), and the entry localMinIO of the Secret storage-config that refers to
# this MinIO, if they are missing. Existing values are never changed. The script may be interrupted at any point.
#
#   NAMESPACE  namespace of the Secrets
#   ENDPOINT   endpoint of MinIO
set -eu
umask 077
: "${NAMESPACE:?}" "${ENDPOINT:?}"
credentials=minio-credentials
cli=$(command -v kubectl || command -v oc)

# value SECRET KEY prints a value of a Secret, or nothing if it does not exist.
value() {
  "$cli" --namespace "$NAMESPACE" get secret "$1" --ignore-not-found \
    -o "go-template={{with .data}}{{with index . \"$2\"}}{{base64decode .}}{{end}}{{end}}"
}

# apply adds the data of the Secret on the standard input. Values that another client has written meanwhile are not overwritten: the next
# run reads them.
apply() {
  "$cli" --namespace "$NAMESPACE" apply --server-side --field-manager="create-credentials-$(hostname)" -f -
}

random() {
  LC_ALL=C tr -dc 'A-Za-z0-9' </dev/urandom | head -c "$1"
}

# Each value is read by a statement of its own: inside another statement, a failed request would look like a missing value, and an existing
# value would be overwritten.
password=$(value "$credentials" password)
if [ -z "$password" ]; then
  password=$(random 32)
  printf '%s' "$password" |
    "$cli" create secret generic "$credentials" --from-literal=user="$(random 20)" --from-file=password=/dev/stdin --dry-run=client -o yaml | apply
fi
entry=$(value storage-config localMinIO)
if [ -z "$entry" ]; then
  user=$(value "$credentials" user)
  [ -n "$user" ] || {
    echo "Secret $credentials has no user: set it, or delete the Secret so that a new one is created." >&2
    exit 1
  }
  printf '{"type":"s3","access_key_id":"%s","secret_access_key":"%s","endpoint_url":"%s","default_bucket":"modelmesh-example-models","region":"us-south"}' \
    "$user" "$password" "$ENDPOINT" |
    "$cli" create secret generic storage-config --from-file=localMinIO=/dev/stdin --dry-run=client -o yaml | apply
fi
