// Package conformance checks the views of KServe's kinds in apis/serving against the types of KServe. The operator does not import these
// types, because they depend on the clients of three clouds; a small program with them is built for the tests.
package conformance
