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

// Annotations that carry the state of references. They stand in the cluster, so a restart forgets nothing.
const (
	// HashesAnnotation stands on the workload object: a JSON object from reference ID to the hash that the running
	// pods were started with.
	HashesAnnotation = "platform.opendatahub.io/references"
	// RolloutAnnotation stands on the pod template once a reference has changed under running pods; another value rolls them.
	RolloutAnnotation = "platform.opendatahub.io/references-rollout"
)

// RolloutHash is what to write on a workload and on its pod template.
type RolloutHash struct {
	// Baseline is the value of BaselineAnnotation; empty when nothing is referenced.
	Hashes string
	// Rollout is the value of RolloutAnnotation; empty when pods were never rolled for a reference.
	Rollout string
}

// Apply puts the stamp on a workload whose pod template is set.
func (s RolloutHash) Apply(d *appsv1ac.DeploymentApplyConfiguration) {
	if s.Hashes != "" {
		d.WithAnnotations(map[string]string{HashesAnnotation: s.Hashes})
	}
	if s.Rollout != "" {
		d.Spec.Template.WithAnnotations(map[string]string{RolloutAnnotation: s.Rollout})
	}
}

// ForDeployment is Next for a live Deployment; an empty one stands for one that does not exist.
func ForDeployment(d *appsv1.Deployment, hashes map[string]string, referenced []Reference) (RolloutHash, error) {
	return NewRolloutHash(d.Annotations[HashesAnnotation], d.Spec.Template.Annotations[RolloutAnnotation], hashes, referenced)
}

// NewRolloutHash decides whether pods must roll. baseline and rollout are the annotations of the live workload and of its pod
// template, empty where they do not exist; required holds the IDs that the workload references now.
//
// The pod template is left alone until a hash differs from the one in the baseline: a new workload, one that is taken over
// from another operator, and one whose Secret appears after it (a serving certificate) never roll for nothing. An object
// that is gone for a moment keeps its hash, so that coming back with another content counts as a change.
func NewRolloutHash(baseline, rollout string, hashes map[string]string, referenced []Reference) (RolloutHash, error) {
	before := map[string]string{}
	if baseline != "" && json.Unmarshal([]byte(baseline), &before) != nil {
		before = map[string]string{} // edited by hand: start again rather than fail for ever
	}
	after := map[string]string{}
	changed := false
	for _, ref := range Merge(referenced) {
		now, exists := hashes[ref.ID()]
		old, known := before[ref.ID()]
		switch {
		case exists:
			after[ref.ID()] = now
			changed = changed || known && old != now
		case known:
			after[ref.ID()] = old
		}
	}
	next := RolloutHash{Rollout: rollout}
	if len(after) > 0 {
		text, err := json.Marshal(after)
		if err != nil {
			return RolloutHash{}, fmt.Errorf("recording references: %w", err)
		}
		next.Hashes = string(text)
	}
	if changed {
		next.Rollout = hashTransition(before, after)
	}
	return next, nil
}

// fingerprint differs whenever the step from before to after does, so that going back to an older content rolls too.
func hashTransition(before, after map[string]string) string {
	sum := fnv.New64a()
	for _, m := range []map[string]string{before, after} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(sum, "%s=%s;", k, m[k])
		}
		fmt.Fprint(sum, "|")
	}
	return fmt.Sprintf("%016x", sum.Sum64())
}
