#!/bin/sh
# Makes the Secret minio-credentials (keys user and password), and the entry localMinIO of the Secret storage-config that leads to
# this MinIO, where they are missing. What exists is never changed. It may stop anywhere.
#
#   NAMESPACE  of the Secrets
#   ENDPOINT   of MinIO
set -eu
umask 077
: "${NAMESPACE:?}" "${ENDPOINT:?}"
credentials=minio-credentials
cli=$(command -v kubectl || command -v oc)

# value SECRET KEY prints a value of a Secret, or nothing where there is none.
value() {
  "$cli" --namespace "$NAMESPACE" get secret "$1" --ignore-not-found \
    -o "go-template={{with .data}}{{with index . \"$2\"}}{{base64decode .}}{{end}}{{end}}"
}

# apply adds the data of the Secret on the standard input. Whoever was faster is not overwritten: the next run reads his.
apply() {
  "$cli" --namespace "$NAMESPACE" apply --server-side --field-manager="create-credentials-$(hostname)" -f -
}

random() {
  LC_ALL=C tr -dc 'A-Za-z0-9' </dev/urandom | head -c "$1"
}

# Each value is read by a statement of its own: in the midst of another one, a request that fails would pass for a value that is
# missing, and what exists would be written anew.
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
    echo "Secret $credentials has no user: set it, or delete the Secret to have one made." >&2
    exit 1
  }
  printf '{"type":"s3","access_key_id":"%s","secret_access_key":"%s","endpoint_url":"%s","default_bucket":"modelmesh-example-models","region":"us-south"}' \
    "$user" "$password" "$ENDPOINT" |
    "$cli" create secret generic storage-config --from-file=localMinIO=/dev/stdin --dry-run=client -o yaml | apply
fi
