// Package conformance checks the views of KServe's kinds in apis/serving against the types of KServe. The operator does not import these
// types, because they depend on the client libraries of three clouds. The tests build a program with them, see test/cluster/binaries/kserve.
package conformance
