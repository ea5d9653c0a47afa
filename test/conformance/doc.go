// Package conformance checks the views of KServe's kinds in apis/serving against the types of KServe, the schemas of CRDs for server-side
// apply, and the command lines of pods for secrets. The operator does not import the types of KServe, because they depend on the client
// libraries of three clouds. The tests build a program with them, see test/cluster/binaries/kserve.
package conformance
