package runtimes

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// noteReferences finds what the Predictors of a namespace refer to and does not exist: the entry of the storage Secret that they name, and
// the claim that lies in their parameters.
func (s *server) noteReferences(ctx context.Context, f *facts) error {
	all := map[string][]reference.Missing{}
	for _, m := range f.models {
		if m.Source != mm.SourcePredictor {
			continue
		}
		missing, err := s.missingOf(ctx, f, m)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			all[m.Name] = missing
		}
	}
	s.References.Set(f.namespace, all)
	return nil
}

func (s *server) missingOf(ctx context.Context, f *facts, m mm.Model) ([]reference.Missing, error) {
	var missing []reference.Missing
	if key := m.StorageKey(); key != nil && *key != "" && !f.storage.keys[*key] {
		lacks := reference.Missing{Reference: reference.Reference{Kind: reference.Secret, Name: f.settings.StorageSecretName}}
		if f.storageFound {
			lacks.Key = *key
		}
		missing = append(missing, lacks)
	}
	if claim := m.Claim(); claim != "" {
		err := s.claims.Get(ctx, inside(f.namespace, claim), modelmesh.Metadata(claimKind))
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, reference.Missing{Reference: reference.Reference{Kind: reference.Claim, Name: claim}})
		case err != nil:
			return nil, fmt.Errorf("reading PersistentVolumeClaim %s from the cache: %w", claim, err)
		}
	}
	return missing, nil
}
