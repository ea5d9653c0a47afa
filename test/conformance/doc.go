// Package conformance holds the views of KServe's kinds in apis/serving against the types of KServe itself. These are no part of
// the operator, because they bring the clients of three clouds; a small program around them is built for the tests.
package conformance
