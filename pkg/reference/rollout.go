package reference

import (
	"encoding/json"
	"fmt"
	"hash/fnv"

	appsv1 "k8s.io/api/apps/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
)

// Annotations of workloads. They are stored in the cluster, so a restart of the manager causes no rollout.
const (
	// HashesAnnotation is set on the workload: a JSON object with the last known hash of each reference by ID.
	HashesAnnotation = "platform.opendatahub.io/references"
	// RolloutAnnotation is set on the pod template after the first change of a reference; another value starts a rollout.
	RolloutAnnotation = "platform.opendatahub.io/references-rollout"
)

// RolloutHash holds the annotations of a workload and its pod template.
type RolloutHash struct {
	// Hashes is the value of HashesAnnotation; empty if no hash is known.
	Hashes string
	// Rollout is the value of RolloutAnnotation; empty before the first rollout for a reference.
	Rollout string
}

// Apply sets the annotations on a Deployment with a pod template.
func (h RolloutHash) Apply(d *appsv1ac.DeploymentApplyConfiguration) {
	if h.Hashes != "" {
		d.WithAnnotations(map[string]string{HashesAnnotation: h.Hashes})
	}
	if h.Rollout != "" {
		d.Spec.Template.WithAnnotations(map[string]string{RolloutAnnotation: h.Rollout})
	}
}

// NewRolloutHash returns the next annotations of a Deployment. They start a rollout if a hash changed. live is empty if the Deployment does
// not exist. hashes are the current hashes by ID.
//
// A rollout needs a hash that differs from the last one. Pods of a new or adopted workload do not restart, nor do those of a workload whose
// Secret is created later, such as a serving certificate. A deleted object keeps its hash, so its recreation is a change.
func NewRolloutHash(live *appsv1.Deployment, hashes map[string]string, referenced []Reference) RolloutHash {
	lastHashes := live.Annotations[HashesAnnotation]
	previous := map[string]string{}
	if json.Unmarshal([]byte(lastHashes), &previous) != nil {
		previous = map[string]string{} // absent, or invalid after a manual edit: start over
	}
	current := map[string]string{}
	changed := false
	for _, ref := range Merge(referenced) {
		hash, exists := hashes[ref.ID()]
		previousHash, known := previous[ref.ID()]
		switch {
		case exists:
			current[ref.ID()] = hash
			changed = changed || known && previousHash != hash
		case known:
			current[ref.ID()] = previousHash
		}
	}
	next := RolloutHash{Rollout: live.Spec.Template.Annotations[RolloutAnnotation]}
	if len(current) > 0 {
		text, _ := json.Marshal(current) // cannot fail for strings
		next.Hashes = string(text)
	}
	if changed { // Rollout hashes the transition, because the pods must also restart if the content changes back
		sum := fnv.New64a()
		fmt.Fprint(sum, lastHashes, "|", next.Hashes)
		next.Rollout = fmt.Sprintf("%016x", sum.Sum64())
	}
	return next
}
