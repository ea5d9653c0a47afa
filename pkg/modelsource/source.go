// Package modelsource is where models may come from besides Predictors and InferenceServices. A source is compiled in: it is handed
// to the part of the component modelmesh that looks after models, which registers its models with the mesh as it does all others.
package modelsource

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// Source of models. All its methods may be called at the same time.
type Source interface {
	// ID is the owner of the models in the mesh, and part of their ids there; it must never change. It is neither empty nor that of
	// another source, and has no slash.
	ID() string
	// DisplayName is for people.
	DisplayName() string
	// Start makes what there is known, and returns when it is. Until ctx ends the source keeps itself up to date.
	Start(ctx context.Context) error
	// Get returns a model with its status; nil for one that is not there. It answers from memory, after Start has returned.
	Get(name types.NamespacedName) *Entry
	// List returns the models of a namespace for which keep is true.
	List(namespace string, keep func(*Entry) bool) []*Entry
	// UpdateStatus stores a status. False says that the entry is not the present one, or not there any more.
	UpdateStatus(ctx context.Context, entry *Entry, status v1alpha1.PredictorStatus) (bool, error)
	// Subscribe registers a function that is told of each model that is new, changed or gone, until ctx ends. It must not block.
	Subscribe(ctx context.Context, listener func(types.NamespacedName))
}

// Entry is one model of a source. It is never changed once it was handed out.
type Entry struct {
	Model  modelmesh.Model
	Status v1alpha1.PredictorStatus
	// Version changes with the entry, status included.
	Version string
}

// Validate tells what is wrong with the ids of sources; they are known beside those that are built in.
func Validate(sources []Source) error {
	taken := map[string]string{
		modelmesh.SourcePredictor: "Predictors", modelmesh.SourceInferenceService: "InferenceServices",
	}
	for _, s := range sources {
		id := s.ID()
		if id == "" || strings.Contains(id, "/") {
			return fmt.Errorf("the source of models %q has the id %q: give it one that is not empty and has no slash", s.DisplayName(), id)
		}
		if other, found := taken[id]; found {
			return fmt.Errorf("the source of models %q has the id %q, which is that of %s: give it another", s.DisplayName(), id, other)
		}
		taken[id] = s.DisplayName()
	}
	return nil
}
