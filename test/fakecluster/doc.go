// Package fakecluster is an API server with fixed objects, for tests of programs that only read. It serves discovery, get, and list with
// selectors and pages, as whole objects or metadata, and records every request.
package fakecluster
