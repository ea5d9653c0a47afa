#!/bin/sh
# Creates the Secrets etcd-passwords (key root) and model-serving-etcd (key etcd_connection) if they are missing. If one of them exists,
# the other is derived from it. The password is passed to the container that enables authentication. Existing Secrets are never changed.
# The script may be interrupted at any point: the next run continues with what exists.
#
#   NAMESPACE    namespace of the Secrets
#   ENDPOINTS    endpoints of etcd, for a new connection
#   ROOT_PREFIX  prefix of all keys, for a new connection
#   RUN_DIR      directory in memory; its file root-password is the result, and is empty if authentication is to stay disabled
set -eu
umask 077
: "${NAMESPACE:?}" "${ENDPOINTS:?}" "${ROOT_PREFIX:?}" "${RUN_DIR:?}"
passwords=etcd-passwords
connections=model-serving-etcd
export HOME="$RUN_DIR"
cli=$(command -v kubectl || command -v oc)

fail() {
  echo "$1" >&2
  exit 1
}

# value SECRET KEY prints a value of a Secret, or nothing if it does not exist.
value() {
  "$cli" --namespace "$NAMESPACE" get secret "$1" --ignore-not-found \
    -o "go-template={{with .data}}{{with index . \"$2\"}}{{base64decode .}}{{end}}{{end}}"
}

# member NAME prints a string of the JSON in $connection. The JSON is read as the data of a ConfigMap in a dry run, because this image
# has no other program that parses JSON.
member() {
  printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"connection"},"data":%s}' "$connection" |
    "$cli" --namespace "$NAMESPACE" create --dry-run=client --validate=false -f - -o "go-template={{with .data}}{{with index . \"$1\"}}{{.}}{{end}}{{end}}"
}

# make SECRET KEY creates a Secret with the value on the standard input. A Secret that another client has created meanwhile is not
# overwritten: another value of another field manager is a conflict, and the next run reads it.
make() {
  "$cli" create secret generic "$1" --from-file="$2=/dev/stdin" --dry-run=client -o yaml |
    "$cli" --namespace "$NAMESPACE" apply --server-side --field-manager="etcd-secret-creator-$(hostname)" -f -
}

# quoted prints a text as a JSON string, without the quotes.
quoted() {
  printf '%s' "$1" | sed 's/\\/\\\\/g; s/"/\\"/g'
}

connection=$(value "$connections" etcd_connection)
password=$(value "$passwords" root)

if [ -n "$connection" ]; then
  user=$(member userid) || fail "Secret $connections: etcd_connection is not a JSON object with string values"
  case $user in
  '')
    echo "Secret $connections names no user, so authentication stays disabled. To enable it, delete the Secret: a new one is created with a password."
    : >"$RUN_DIR/root-password"
    exit 0
    ;;
  root) ;;
  *) fail "Secret $connections names the user $user, but this etcd has only the user root. If the connection is for another etcd, do not install this one; otherwise set userid to root." ;;
  esac
  known=$(member password)
  [ -n "$known" ] || fail "Secret $connections names the user root but no password: set the password, or delete the Secret so that a new one is created."
  if [ -z "$password" ]; then
    password=$known
    printf '%s' "$password" | make "$passwords" root
  fi
  [ "$password" = "$known" ] || fail "Secrets $connections and $passwords have different passwords: delete the wrong one, and it is created again from the other."
else
  if [ -z "$password" ]; then
    password=$(LC_ALL=C tr -dc 'A-Za-z0-9' </dev/urandom | head -c 32)
    printf '%s' "$password" | make "$passwords" root
  fi
  case $password in
  *[[:cntrl:]]*) fail "Secret $passwords: the password of root contains control characters, which a connection cannot contain: remove them." ;;
  esac
  printf '{"endpoints":"%s","root_prefix":"%s","userid":"root","password":"%s"}' \
    "$ENDPOINTS" "$ROOT_PREFIX" "$(quoted "$password")" | make "$connections" etcd_connection
fi
printf '%s' "$password" >"$RUN_DIR/root-password"
