#!/bin/sh
# Makes the Secrets etcd-passwords (key root) and model-serving-etcd (key etcd_connection) where they are missing, each from the
# other where that one is there, and hands the password to the container that switches authentication on. What exists is never
# changed. It may stop anywhere: the next run goes on from what is there.
#
#   NAMESPACE    of the Secrets
#   ENDPOINTS    of etcd, for a new connection
#   ROOT_PREFIX  before all keys, for a new connection
#   RUN_DIR      a folder in memory; the file root-password in it is the result, empty where no authentication is wanted
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

# value SECRET KEY prints a value of a Secret, or nothing where there is none.
value() {
  "$cli" --namespace "$NAMESPACE" get secret "$1" --ignore-not-found \
    -o "go-template={{with .data}}{{with index . \"$2\"}}{{base64decode .}}{{end}}{{end}}"
}

# member NAME prints a string of the JSON in $connection. It is read as the data of a ConfigMap that nobody creates, since this
# image has no other program that understands JSON.
member() {
  printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"connection"},"data":%s}' "$connection" |
    "$cli" --namespace "$NAMESPACE" create --dry-run=client --validate=false -f - -o "go-template={{with .data}}{{with index . \"$1\"}}{{.}}{{end}}{{end}}"
}

# make SECRET KEY creates a Secret with the value on the standard input. Whoever was faster is not overwritten: another value of
# another manager is a conflict, and the next run reads it.
make() {
  "$cli" create secret generic "$1" --from-file="$2=/dev/stdin" --dry-run=client -o yaml |
    "$cli" --namespace "$NAMESPACE" apply --server-side --field-manager="etcd-secret-creator-$(hostname)" -f -
}

# quoted prints a text as a string of JSON, without the quotes.
quoted() {
  printf '%s' "$1" | sed 's/\\/\\\\/g; s/"/\\"/g'
}

connection=$(value "$connections" etcd_connection)
password=$(value "$passwords" root)

if [ -n "$connection" ]; then
  user=$(member userid) || fail "Secret $connections: etcd_connection is not a JSON object of strings"
  case $user in
  '')
    echo "Secret $connections names no user, so authentication stays off. Delete the Secret to have one made with a password."
    : >"$RUN_DIR/root-password"
    exit 0
    ;;
  root) ;;
  *) fail "Secret $connections names the user $user, but this etcd knows only root. If it is for another etcd, do not install this one; else set userid to root." ;;
  esac
  known=$(member password)
  [ -n "$known" ] || fail "Secret $connections names the user root and no password: set it, or delete the Secret to have one made."
  if [ -z "$password" ]; then
    password=$known
    printf '%s' "$password" | make "$passwords" root
  fi
  [ "$password" = "$known" ] || fail "Secrets $connections and $passwords have different passwords: delete the one that is wrong, and it is made from the other."
else
  if [ -z "$password" ]; then
    password=$(LC_ALL=C tr -dc 'A-Za-z0-9' </dev/urandom | head -c 32)
    printf '%s' "$password" | make "$passwords" root
  fi
  case $password in
  *[[:cntrl:]]*) fail "Secret $passwords: the password of root has control characters, which no connection can hold: remove them." ;;
  esac
  printf '{"endpoints":"%s","root_prefix":"%s","userid":"root","password":"%s"}' \
    "$ENDPOINTS" "$ROOT_PREFIX" "$(quoted "$password")" | make "$connections" etcd_connection
fi
printf '%s' "$password" >"$RUN_DIR/root-password"
