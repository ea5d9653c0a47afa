// Package fakecluster is an API server with given objects, for tests of command-line tools. It serves discovery, get, merge patches, logs,
// and lists with selectors and pages, as objects or their metadata, and records the requests for objects.
package fakecluster
