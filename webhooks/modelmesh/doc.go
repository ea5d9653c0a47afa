// Package modelmesh validates ServingRuntimes and ClusterServingRuntimes for ModelMesh. It denies contradictory autoscaling annotations, with
// the messages of the legacy webhook, and numbers that other clients cannot decode. It warns of other errors. It allows runtimes of KServe,
// and an update that keeps an error of the stored object.
package modelmesh
