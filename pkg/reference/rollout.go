package reference

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
)

// Annotations of workloads. They are stored in the cluster, so a restart of the manager causes no rollout.
const (
	// HashesAnnotation is set on the workload: a JSON object from reference ID to the hash that the running pods were started with.
	HashesAnnotation = "platform.opendatahub.io/references"
	// RolloutAnnotation is set on the pod template after the first change of a reference; another value starts a rollout.
	RolloutAnnotation = "platform.opendatahub.io/references-rollout"
)

// RolloutHash holds the annotations of a workload and its pod template.
type RolloutHash struct {
	// Hashes is the value of HashesAnnotation; empty without references.
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

// ForDeployment calls NewRolloutHash for a live Deployment, which is empty if it does not exist.
func ForDeployment(d *appsv1.Deployment, hashes map[string]string, referenced []Reference) (RolloutHash, error) {
	return NewRolloutHash(d.Annotations[HashesAnnotation], d.Spec.Template.Annotations[RolloutAnnotation], hashes, referenced)
}

// NewRolloutHash returns the annotations that roll the pods if a reference changed. lastHashes and rollout are the annotations of the live
// workload and its pod template, empty if absent. hashes are the current hashes by ID.
//
// A rollout needs a hash that differs from lastHashes. A new or adopted workload does not roll, nor one whose Secret is created later,
// such as a serving certificate. A deleted object keeps its hash, so a recreation with other content is a change.
func NewRolloutHash(lastHashes, rollout string, hashes map[string]string, referenced []Reference) (RolloutHash, error) {
	previous := map[string]string{}
	if lastHashes != "" && json.Unmarshal([]byte(lastHashes), &previous) != nil {
		previous = map[string]string{} // invalid after a manual edit: start over
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
	next := RolloutHash{Rollout: rollout}
	if len(current) > 0 {
		text, err := json.Marshal(current)
		if err != nil {
			return RolloutHash{}, fmt.Errorf("recording references: %w", err)
		}
		next.Hashes = string(text)
	}
	if changed {
		next.Rollout = hashTransition(previous, current)
	}
	return next, nil
}

// hashTransition returns a hash of a change. It differs from earlier values even if content changes back, so the pods roll.
func hashTransition(previous, current map[string]string) string {
	sum := fnv.New64a()
	for _, m := range []map[string]string{previous, current} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(sum, "%s=%s;", k, m[k])
		}
		fmt.Fprint(sum, "|")
	}
	return fmt.Sprintf("%016x", sum.Sum64())
}
