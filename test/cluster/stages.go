package cluster

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// PodBehaviorAnnotation on a pod selects a behaviour other than becoming ready, see the package comment.
	PodBehaviorAnnotation = "testcluster/behavior"
	// PodBehaviorRegistry is the prefix of image names that select a behaviour, for pods that cannot be annotated.
	PodBehaviorRegistry = "testcluster.invalid/"
)

//go:embed stages.yaml
var ownStages []byte

// kwokStages are the built-in stages to use, below kustomize/stage of the kwok module. Stages in a file replace all built-in stages, so
// these have to be in the file too.
var kwokStages = []string{
	"node/fast/node-initialize.yaml",
	"node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"pod/fast/pod-ready.yaml",
	"pod/fast/pod-complete.yaml",
	"pod/fast/pod-delete.yaml",
	"volume/fast/pv-bind.yaml",
	"volume/fast/pv-delete.yaml",
	"volume/fast/pvc-provision.yaml",
	"volume/fast/pvc-delete.yaml",
}

func (i *Instance) writeStages(ctx context.Context) error {
	root, err := RepositoryRoot()
	if err != nil {
		return err
	}
	dirs, err := moduleDirs(ctx, filepath.Join(root, "test", "cluster", "binaries"), []Module{{Path: "sigs.k8s.io/kwok"}})
	if err != nil {
		return err
	}
	documents := [][]byte{ownStages}
	for _, name := range kwokStages {
		stage, err := os.ReadFile(filepath.Join(dirs["sigs.k8s.io/kwok"], "kustomize", "stage", name))
		if err != nil {
			return fmt.Errorf("reading a stage of kwok: %w", err)
		}
		documents = append(documents, stage)
	}
	return writeFile(i.file("stages.yaml"), bytes.Join(documents, []byte("\n---\n")))
}
