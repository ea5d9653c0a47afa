// Package fakecluster is an API server that serves fixed objects, for tests of programs that only read: what they print of a
// cluster is then the same at every run. It knows discovery, get, and list with selectors and pages, whole objects and
// metadata, and it takes note of every request.
package fakecluster
