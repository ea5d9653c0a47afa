// Package machine provides the programs and files that pods need on a machine without a cluster: Python with pinned packages, PostgreSQL,
// certificates and free ports. It installs missing programs into the user's cache directory or as packages of Debian.
package machine
