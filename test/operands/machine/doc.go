// Package machine brings to the machine of a test what programs of pods need there without a cluster: Python with pinned packages,
// PostgreSQL, certificates and free ports. What is missing is installed, into the user's cache directory or by Debian's packages.
package machine
