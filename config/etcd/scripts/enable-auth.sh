#!/bin/sh
# Enables the authentication of etcd, with the password in $RUN_DIR/root-password, before other clients can reach it: etcd listens on
# loopback here, with the settings of its environment, and ends with this script. If the data already has authentication, the script
# checks the password and changes nothing. It may be interrupted at any point.
set -eu
: "${RUN_DIR:?}" "${ETCD_LISTEN_CLIENT_URLS:?}"
password=$(cat "$RUN_DIR/root-password")
export ETCDCTL_API=3 ETCDCTL_ENDPOINTS="$ETCD_LISTEN_CLIENT_URLS"

fail() {
  echo "$1" >&2
  exit 1
}

as_root() {
  ETCDCTL_USER=root ETCDCTL_PASSWORD="$password" etcdctl --command-timeout=5s "$@" 2>&1
}

# state prints off, on, denied, or waiting.
state() {
  case $(etcdctl --command-timeout=5s auth status 2>&1) in
  *'Authentication Status: false'*) echo off && return ;;
  # Since etcd 3.7, this needs no user.
  *'Authentication Status: true'* | *'user name is empty'* | *'permission denied'*) ;;
  *) echo waiting && return ;;
  esac
  [ -n "$password" ] || { echo denied && return; }
  case $(as_root auth status) in
  *'Authentication Status: true'*) echo on ;;
  *'invalid user ID or password'*) echo denied ;;
  *) echo waiting ;;
  esac
}

# switch_on starts from scratch: an existing user was left by an interrupted run, possibly with another password.
switch_on() {
  if etcdctl user get root >/dev/null 2>&1; then
    etcdctl user delete root
  fi
  # All processes of a node can see command lines. From its standard input, etcdctl reads one word.
  case $password in
  *[[:space:]]*) etcdctl user add root --new-user-password="$password" ;;
  *) printf '%s\n' "$password" | etcdctl user add root --interactive=false ;;
  esac
  etcdctl role get root >/dev/null 2>&1 || etcdctl role add root
  etcdctl user grant-role root root
  etcdctl auth enable
}

etcd &
server=$!
trap 'kill "$server" 2>/dev/null && wait "$server" || :' EXIT
now=waiting
while [ "$now" = waiting ]; do
  kill -0 "$server" 2>/dev/null || fail "etcd has exited; see its messages above."
  now=$(state)
  [ "$now" != waiting ] || sleep 1
done

case $now in
on) echo "Authentication is enabled." ;;
denied) fail "The data of this etcd was written with another password, or with one although the connection names no user: restore the previous Secrets, or delete the data." ;;
off)
  if [ -z "$password" ]; then
    echo "Authentication stays disabled: the connection names no user."
  else
    switch_on
  fi
  ;;
esac
