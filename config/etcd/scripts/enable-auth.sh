#!/bin/sh
# Switches authentication of etcd on, with the password in $RUN_DIR/root-password, before anybody else can reach it: etcd runs on
# loopback here, with the settings of its environment, and ends with this program. With data that has authentication already,
# it checks the password and changes nothing. It may stop anywhere.
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
  *'user name is empty'* | *'permission denied'*) ;;
  *) echo waiting && return ;;
  esac
  [ -n "$password" ] || { echo denied && return; }
  case $(as_root auth status) in
  *'Authentication Status: true'*) echo on ;;
  *'invalid user ID or password'*) echo denied ;;
  *) echo waiting ;;
  esac
}

# switch_on starts anew: a user that is there was left by a stop in the middle, perhaps with another password.
switch_on() {
  if etcdctl user get root >/dev/null 2>&1; then
    etcdctl user delete root
  fi
  etcdctl user add root --new-user-password="$password"
  etcdctl role get root >/dev/null 2>&1 || etcdctl role add root
  etcdctl user grant-role root root
  etcdctl auth enable
}

etcd &
server=$!
trap 'kill "$server" 2>/dev/null && wait "$server" || :' EXIT
now=waiting
while [ "$now" = waiting ]; do
  kill -0 "$server" 2>/dev/null || fail "etcd has ended; why stands above."
  now=$(state)
  [ "$now" != waiting ] || sleep 1
done

case $now in
on) echo "Authentication is on." ;;
denied) fail "The data of this etcd was written with another password, or with one: put the former Secrets back, or remove the data." ;;
off)
  if [ -z "$password" ]; then
    echo "Authentication stays off: the connection names no user."
  else
    switch_on
  fi
  ;;
esac
