// Package modelmesh answers admission requests about the runtimes of ModelMesh, ServingRuntime and ClusterServingRuntime. It
// refuses annotations of autoscaling that contradict themselves, in the words of the original, and numbers that make runtimes
// unreadable for other programs; of everything else that keeps a runtime from running it warns. Runtimes of KServe itself are let
// pass. What an object had before, and was stored with, does not keep users from changing the rest of it.
package modelmesh
